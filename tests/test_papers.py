"""Every link of docs/papers.md leads to something, every setting in it exists, and every row has a link or a reason.

The paper about the package cites its bibliography, and names title and authors as CITATION.cff does.
"""

import importlib
import json
import re
from pathlib import Path

import pytest

import ltr_objectives

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
TABLES = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if line.startswith("| ")]
ROWS = [cells for cells in TABLES if cells[0] != "in the source"]
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)#?([^)\s]*)\)")
LINKS = LINK.findall(TEXT)
REASONS = tuple(re.findall(r"^\* \*\*(.+?)\*\*", TEXT, re.MULTILINE))  # explained at the head of the page
pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="the tests run beside an unpacked wheel")


def headings(path: Path) -> set[str]:
    """Anchors of the headings of a page or notebook, as the site makes them."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "markdown")
    found = (re.sub(r"[^\w\s-]", "", line).strip().lower() for line in re.findall(r"^#+ (.+)", text, re.MULTILINE))
    return {re.sub(r"[-\s]+", "-", line) for line in found}


def test_links_lead_to_files_headings_and_public_names():
    for _, link, anchor in LINKS:
        path = PAGE.parent / link
        assert path.is_file(), link
        if anchor.startswith("ltr_objectives."):
            module, _, name = anchor.rpartition(".")
            assert name in importlib.import_module(module).__all__, anchor
        else:
            assert not anchor or anchor in headings(path), (link, anchor)


def test_linked_settings_exist():
    public = {name: getattr(ltr_objectives, name) for name in ltr_objectives.__all__}
    tried = 0
    for text, _, anchor in LINKS:
        if anchor.rpartition(".")[2] in public:
            eval(text.strip("`"), public.copy())  # raises for an argument that does not exist
            tried += 1
    assert tried > 100


def test_every_row_has_a_link_or_a_reason():
    assert len(ROWS) > 150
    for cells in ROWS:
        assert len(cells) == 3, cells
        assert all(cells), cells
        assert LINK.search(cells[2]) or cells[2].startswith(REASONS), cells


def test_named_files_exist():
    for path in re.findall(r"`((?:tests|benchmarks)/[^`]+)`", TEXT):
        assert (ROOT / path).is_file(), path


def test_the_paper_about_the_package_cites_its_bibliography():
    paper, bibliography = ((ROOT / "paper" / name).read_text(encoding="utf-8") for name in ("paper.md", "paper.bib"))
    entries = re.findall(r"^@\w+\{(\w+),$", bibliography, re.MULTILINE)
    assert sorted(set(re.findall(r"@(\w+)", paper))) == entries  # each of them once, in order of names
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search('^title: (".+")$', paper, re.MULTILINE)[1] in citation
    names = re.compile(r"^  - name: (.+)$", re.MULTILINE)
    assert names.findall(paper.partition("affiliations:")[0]) == names.findall(citation)
