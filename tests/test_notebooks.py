"""The notebooks run on small data without warnings, and read the reader's own data."""

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import write_letor
from loading import load

from ltr_objectives.datasets import load_letor, make_ranking_fold

nbformat = pytest.importorskip("nbformat")
FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
if not FOLDER.exists():
    pytest.skip("the tests run beside an unpacked wheel", allow_module_level=True)

DATA = {"QUERIES": (12, 8, 8), "LENGTH": 12, "FEATURES": 10, "THREADS": 1}
SMALL = {
    "compare_libraries": {"TREES": 4, "LEAVES": 4, "FOLDS": 3, "THREADS": 1},
    "reproduce_the_papers": {**DATA, "TREES": 3, "DEPTH": 2, "SAMPLES": 5, "POINTS": 9},
    "write_your_own": {**DATA, "TREES": 4, "LEAVES": 4},
}
NOTEBOOKS = {path.stem: nbformat.read(path, as_version=4) for path in sorted(FOLDER.glob("*.ipynb"))}


def smaller(name: str) -> Any:
    """Return the notebook with warnings as errors, and with small settings that override its own."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    [settings] = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ())]
    assert SMALL[name].keys() <= set(re.findall(r"\w+", notebook.cells[settings].source))
    lines = ["import sys, warnings", f"assert sys.executable == {sys.executable!r}", "warnings.simplefilter('error')"]
    for category in ("DeprecationWarning", "PendingDeprecationWarning"):  # a reader sees those of the cells alone
        lines += [f"warnings.simplefilter('ignore', {category})"]
        lines += [f"warnings.filterwarnings('error', category={category}, module='__main__')"]
    lines += [f"{key} = {value!r}" for key, value in SMALL[name].items()]
    notebook.cells.insert(settings + 1, nbformat.v4.new_code_cell("\n".join(lines)))
    return notebook


@pytest.mark.release
def test_they_run_on_small_data(monkeypatch, tmp_path):
    """One after another in one kernel, which imports the libraries once and forgets the names of each notebook."""
    for package in ("nbclient", "ipykernel", "xgboost", "lightgbm", "catboost", "matplotlib", "pandas", "scipy"):
        pytest.importorskip(package)
    monkeypatch.delenv("LTR_DATA", raising=False)
    made = {name: smaller(name) for name in SMALL}
    cells = []
    for notebook in made.values():
        cells += [*notebook.cells, nbformat.v4.new_code_cell("%reset -f")]
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    load(FOLDER / "execute.py").execute(nbformat.v4.new_notebook(cells=cells), timeout=300)
    for name, notebook in made.items():
        outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
        assert all(output.get("name") != "stderr" for output in outputs), name
        assert any("image/png" in output.get("data", {}) for output in outputs), name


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_reads_the_reader_s_own_data(name, tmp_path, monkeypatch):
    """Run the cell that makes the data with LTR_DATA set to a LETOR folder."""
    fold = make_ranking_fold((4, 2, 3), features=10, mean_length=5)
    for part in ("train", "vali", "test"):
        write_letor(tmp_path / f"{part}.txt", getattr(fold, part))
    monkeypatch.setenv("LTR_DATA", str(tmp_path))
    [source] = [cell.source for cell in NOTEBOOKS[name].cells if "LTR_DATA" in cell.source and "outputs" in cell]
    statements = ast.parse(source).body
    first = next(i for i, each in enumerate(statements) if "LTR_DATA" in ast.unparse(each))
    names: dict[str, Any] = {"os": os, "load_letor": load_letor}
    exec("\n".join(map(ast.unparse, statements[first : first + 3])), names)
    assert [len(names[part].group) for part in ("train", "vali", "test")] == [4, 2, 3]
