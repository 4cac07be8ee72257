"""The Python code of pages, run as it stands on less data, with query ids that fall."""

import dataclasses
import re
from pathlib import Path

import pytest

from ltr_objectives import datasets

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
MOST_QUERIES, MOST_FEATURES, LENGTH = 60, 10, 20.0


def blocks(page: str) -> list[str]:
    """Return the blocks of Python in a page of the repository."""
    if not (ROOT / page).exists():
        pytest.skip("the tests run beside an unpacked wheel")
    return [re.sub(rf"^{indent}", "", code, flags=re.M) for indent, code in BLOCK.findall((ROOT / page).read_text())]


def block(page: str, *words: str) -> str:
    """Return the one block with all of these words."""
    [code] = [code for code in blocks(page) if all(word in code for word in words)]
    return code


def script(name: str) -> str:
    """Return the script of the folder ``examples``."""
    path = ROOT / "examples" / f"{name}.py"
    if not path.exists():
        pytest.skip("the tests run beside an unpacked wheel")
    return path.read_text()


def run(code: str, names: dict) -> None:
    """Run a block; its names are defined in ``names``."""
    exec(compile(code, "example", "exec"), names)


def less_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the generated data of pages smaller, with query ids that fall, as those of LETOR files may."""
    plain, fold = datasets.make_ranking, datasets.make_ranking_fold

    def make_ranking(queries=1000, *args, **options):
        options |= {"features": min(options.get("features", 136), MOST_FEATURES)}
        options |= {"mean_length": min(options.get("mean_length", 120.0), LENGTH)}
        data = plain(min(queries, MOST_QUERIES), *args, **options)
        return dataclasses.replace(data, qid=10 * (data.qid.max() + 1 - data.qid))

    def make_ranking_fold(queries, *args, **options):
        return fold(tuple(min(q, MOST_QUERIES // 3) for q in queries), *args, **options)

    monkeypatch.setattr(datasets, "make_ranking", make_ranking)
    monkeypatch.setattr(datasets, "make_ranking_fold", make_ranking_fold)
