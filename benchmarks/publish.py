"""``python -m benchmarks publish``: write the tables of README.md and docs/ anew from benchmarks/results."""

import json
import re
from pathlib import Path
from typing import Annotated

from typer import Option, echo

from benchmarks.speed_tables import TABLES, markdown
from ltr_objectives._files import replacing

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PARTS = {
    "lead": ("**What our names give", (0, 1, 2)),
    "objectives": ("**Each objective", (0, 1, 2)),
    "verdict": ("**Verdict", (0, 1, 4)),
    "all": ("**All of ours", (0, 1, 2)),
}  # title, paragraphs
BLOCK = re.compile(r"(<!-- table: ([\w/]+) -->\n).*?(<!-- end -->)", re.S)


def block(name: str, results: Path) -> str:
    """The table called ``name``, and how it was made.

    A study is a folder: ``quality`` gives all of its tables, ``quality/verdict`` that of the verdicts and its
    explanation, ``quality/all`` all of ours, ``quality/lead`` what our names give, ``quality/objectives`` each of ours.
    ``scaling/long`` is a second table of ``scaling.json``.
    """
    folder, _, part = name.partition("/")
    if (results / folder).is_dir():
        document = json.loads((results / folder / "study.json").read_text())
        paragraphs = (results / folder / "summary.md").read_text().strip().split("\n\n")
        if part:
            title, chosen = PARTS[part]
            first = next(i for i, text in enumerate(paragraphs) if text.startswith(title))
            paragraphs = [paragraphs[first + i] for i in chosen]
        body, command = "\n\n".join(paragraphs), f"Command: `benchmarks/results/{folder}/study.json`"
    else:
        document = json.loads((results / f"{folder}.json").read_text())
        body = markdown(TABLES[name](document))
        if part == "short":  # of the README, which links to the whole table and its last line
            return f"\n{body}\n\n"
        command = f"`{document['command']}`"
    versions = ", ".join(f"{package} {version}" for package, version in document["versions"].items())
    return f"\n{body}\n\n{command}; {versions}.\n\n"


def published(text: str, results: Path) -> str:
    """A page with the tables of the results; an explanation that several share stands below the first."""
    above: set[str] = set()

    def anew(found: re.Match[str]) -> str:
        paragraphs = block(found[2], results).split("\n\n")
        kept = [text for text in paragraphs if text not in above or not text[:1].isalpha()]
        above.update(paragraphs)
        return found[1] + "\n\n".join(kept) + found[3]

    return BLOCK.sub(anew, text)


def publish(
    results: Annotated[Path, Option(help="Folder with the JSON files of the other benchmarks.")] = RESULTS,
) -> None:
    """Write the tables of README.md and docs/ anew.

    Pages without changes are not written.
    """
    for page in PAGES:
        text = page.read_text()
        new = published(text, results)
        if new != text:
            with replacing(page) as beside:
                beside.write_text(new)
            echo(f"written: {page.relative_to(ROOT)}")
