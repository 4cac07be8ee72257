"""The code of the pages and of the README runs, their links hold, and the site builds strictly."""

import contextlib
import importlib.util
import inspect
import io
import os
import posixpath
import re
import subprocess
import sys
import textwrap
import warnings
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote, urlsplit

import examples
import numpy as np
import pytest
from loading import load
from packaging.requirements import Requirement

import ltr_objectives
from ltr_objectives import adapters, datasets

ROOT = Path(__file__).parents[1]
DOCS, README = ROOT / "docs", ROOT / "README.md"
if not README.exists():
    pytest.skip("the tests run beside an unpacked wheel", allow_module_level=True)
BLOCK = re.compile(r"^( *)```(python|diff|sh)\n(.*?)^\1```\n(?:\n\1```text\n(.*?)^\1```\n)?", re.DOTALL | re.MULTILINE)
EXECUTED = re.compile(r"^<!-- executed: (true|nearly|on less data) -->$", re.MULTILINE)
NEEDS = re.compile(r"^<!-- needs: (.+) -->$", re.MULTILINE)
MANY_TREES = re.compile(r"(?<=--trees )\d{3,}|(?<=n_estimators=)\d{3,}|(?<=\"iterations\": )\d{3,}")
PAGES = {page.relative_to(DOCS).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
ELSEWHERE = (README, ROOT / "benchmarks" / "results" / "README.md", ROOT / "notebooks" / "papers.md")
RUN = {name: found[1] for name, text in PAGES.items() if (found := EXECUTED.search(text))}
MAIN = {"choose_objective.md", "estimators.md", "metrics.md", "tools.md", "tutorial.md"}


@pytest.mark.parametrize("page", [pytest.param(p, marks=[] if p in MAIN else pytest.mark.release) for p in RUN])
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    for need in map(Requirement, needs[1].split() if (needs := NEEDS.search(PAGES[page])) else ()):
        if version(need.name) not in need.specifier:
            pytest.skip(f"{page} is about {need}")
    monkeypatch.chdir(tmp_path)
    whole = RUN[page] != "on less data"
    if not whole:
        examples.less_data(monkeypatch)
    names: dict[str, object] = {"__name__": "page"}
    for match in BLOCK.finditer(PAGES[page].partition("<!-- the code below is executed by")[0]):
        code, printed = textwrap.dedent(match[3]), io.StringIO()
        code = code if whole else MANY_TREES.sub("20", code)
        if match[2] == "diff":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of the library's own script
                examples.run(side("-", code), names)
            code = side("+", code)
        with contextlib.redirect_stdout(printed):
            print(shell(code), end="") if match[2] == "sh" else examples.run(code, names)
        if match[4] is not None and whole:
            same(printed.getvalue(), textwrap.dedent(match[4]), nearly=RUN[page] == "nearly")


def same(printed: str, expected: str, *, nearly: bool) -> None:
    """Compare an output with that of the page; fractions of models differ a little by version and processor."""
    if nearly:
        words, shown = ([*re.split(r"(-?\d+\.\d+)", " ".join(text.split()))] for text in (printed, expected))
        assert [word.rstrip("+ ") for word in words[::2]] == [word.rstrip("+ ") for word in shown[::2]]
        np.testing.assert_allclose(*(np.array(found[1::2], float) for found in (words, shown)), atol=0.012)
    else:
        assert printed == expected


def shell(code: str) -> str:
    """Run commands of the page with this Python, and return their output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.check_output(["bash", "-ec", code], text=True, env={**os.environ, "PATH": path})


def side(sign: str, diff: str) -> str:
    """Return the script before a diff ("-"), or after it ("+")."""
    return "".join(line[2:] + "\n" for line in diff.splitlines() if line[:1] in ("", " ", sign))


def test_the_readme_runs_and_prints_what_it_says(capsys):
    """The value depends on threads and versions in the last digits."""
    names: dict[str, object] = {}
    [(_, _, code, printed), (_, _, diff, _)] = BLOCK.findall(README.read_text())
    examples.run(code, names)
    same(capsys.readouterr().out, printed, nearly=True)
    for sign in "-+":
        examples.run(side(sign, diff), names)
        assert np.ptp(names["ranker"].predict(names["test"].X)) > 0


def test_links_hold_in_the_repository():
    pages = {DOCS / page: text for page, text in PAGES.items()} | {page: page.read_text() for page in ELSEWHERE}
    for page, text in pages.items():
        for link, place in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", BLOCK.sub("", text)):
            found = page.parent.joinpath(link).resolve() if link else page
            assert found.exists(), (page, link)
            if found in pages:
                assert not place or place in anchors(pages[found]), (page, link, place)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them, and those of public names."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", text), re.MULTILINE)
    of_headings = {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}
    return of_headings | set(re.findall(r'^<a id="(.+)"></a>$', text, re.MULTILINE))


def test_settings_that_pages_link_exist():
    modules = (ltr_objectives, adapters, datasets)
    public = {name: getattr(module, name) for module in modules for name in module.__all__}
    for text in (*PAGES.values(), *(page.read_text() for page in ELSEWHERE)):
        for setting, name, file in re.findall(r"\[`((\w+)[^`\]]*)`\]\(\.\./([\w/]+\.py)\)", text):
            eval(setting, public.copy())  # raises for an argument that does not exist
            assert Path(inspect.getfile(inspect.unwrap(public[name]))).samefile(ROOT / file), (setting, file)


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


@pytest.mark.release
def test_the_site():
    """It builds strictly, each page is in its navigation, each public name in the reference, and its links hold."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical is not installed: pip install --group docs")
    for command in (["docs/pages.py"], ["-m", "zensical", "build", "--clean", "--strict"]):
        done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    built = ROOT / "build" / "site"
    assert "make_ranking_fold" in (built / "promises.html").read_text()  # as every public name
    site = {path.relative_to(built).as_posix(): Page(path.read_text()) for path in built.rglob("*.html")}
    missing = {name.replace(".md", ".html") for name in PAGES} - {
        posixpath.normpath(x) for x in site["index.html"].links
    }
    assert not missing, f"name these pages in mkdocs.yml, below nav: {missing}"
    reference = set().union(*(page.ids for name, page in site.items() if name.startswith(("api/", "objectives/"))))
    for public, thing in load(DOCS / "surface.py").public_names().items():
        assert {public, f"{thing.__module__}.{thing.__qualname__}"} <= reference
    for name, page in site.items():
        for link in page.links if name != "404.html" else ():  # its links are absolute
            parts = urlsplit(link)
            where = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path)))
            where = where if parts.path else name
            if not parts.scheme and where.endswith(".html"):
                assert where in site, (name, link)
                assert not parts.fragment or unquote(parts.fragment) in site[where].ids, (name, link)
