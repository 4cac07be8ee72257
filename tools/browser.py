"""The built site in a browser: on a phone, from a server and as files, without any other server."""

import contextlib
import functools
import http.server
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
TYPESET = "() => !document.querySelector('.arithmatex') || window.MathJax.startup?.promise?.then(() => true)"
PROBLEMS = """() => ({
    "scrolls sideways": document.documentElement.scrollWidth > window.innerWidth,
    "formulas that are wrong": document.querySelectorAll("[data-mml-node=merror]").length,
    "formulas as text": document.querySelectorAll(".arithmatex:not(:has(mjx-container))").length,
})"""


def check(site: Path) -> None:
    """Look at every page, and search."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise SystemExit(f"install one of {', '.join(BROWSERS)}")
    with opened(found) as browser:
        with served(site) as address:
            check_search(browser, address)
        check_search(browser, site.as_uri())
        for page in sorted(site.rglob("*.html")):
            if page.name != "404.html":
                check_page(browser, page.as_uri())
                print(f"{page.relative_to(site)}: well", flush=True)


@contextlib.contextmanager
def opened(executable: str) -> Iterator[Any]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=OPTIONS)
        yield browser
        browser.close()


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the files in ``folder``, and yield the address."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:  # or the process waits for the thread
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def visited(browser: Any, address: str, viewport: dict[str, int]) -> Iterator[Any]:
    """Open a page of the site; afterwards, check that it asked no other server and that its scripts had no error."""
    page, trouble = browser.new_page(viewport=viewport), []
    own = address.partition("//")[0], "data:", "blob:"
    page.set_default_timeout(600_000)  # ms, for a busy machine
    page.on("request", lambda request: None if request.url.startswith(own) else trouble.append(request.url))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(address)
    yield page
    page.close()
    assert not trouble, (address, trouble)


def check_page(browser: Any, address: str) -> None:
    with visited(browser, address, PHONE) as page:
        page.wait_for_function(TYPESET)
        found = page.evaluate(PROBLEMS)
        assert not any(found.values()), (address, found)


def check_search(browser: Any, address: str) -> None:
    """Check that a search opens the page that it should."""
    with visited(browser, f"{address}/index.html", DESK) as page:
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("StochasticRank", delay=20)
        page.get_by_text(re.compile(r"^\d+ results?$")).wait_for()
        page.keyboard.press("Enter")
        page.wait_for_url("**/*tochastic*")


if __name__ == "__main__":
    check(Path(__file__).resolve().parents[1] / "build" / "site")
