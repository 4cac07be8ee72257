"""The notebooks run on small data without warnings, and are shipped with tidy, readable outputs."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import examples
import pytest
from loading import load

from ltr_objectives.datasets import load_letor, make_ranking_fold
from ltr_objectives.workbench import movielens

nbformat = pytest.importorskip("nbformat")
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
if not FOLDER.exists():
    pytest.skip("the tests run beside an unpacked wheel", allow_module_level=True)

DATA = {"QUERIES": (12, 8, 8), "LENGTH": 12, "FEATURES": 10, "THREADS": 1}
SMALL = {
    "choose_an_objective": {**DATA, "TREES": 3, "LEAVES": 4, "DRAWS": 3},
    "compare_libraries": {"TREES": 4, "LEAVES": 4, "THREADS": 1},
    "neural_rankers": {**DATA, "TREES": 4, "EPOCHS": 2},
    "pareto_front": {**DATA, "TREES": 4, "LEAVES": 4},
    "reproduce_the_papers": {**DATA, "TREES": 3, "DEPTH": 2, "SAMPLES": 5, "POINTS": 9},
    "write_your_own": {**DATA, "TREES": 4, "LEAVES": 4},
}
WITH_TORCH = {"neural_rankers"}  # run by make test-neural
NOTEBOOKS = {path.stem: nbformat.read(path, as_version=4) for path in sorted(FOLDER.glob("*.ipynb"))}
LOCAL = re.compile(rf"{ROOT}|/(?:home|root|tmp|usr|Users)/|site-packages")


def code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in code(notebook) for output in cell.outputs]


def smaller(name: str) -> Any:
    """The notebook with warnings as errors, and with small settings that override its own."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    [settings] = [i for i, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", ())]
    names = {
        target.id
        for target in ast.walk(ast.parse(notebook.cells[settings].source))
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    assert set(SMALL[name]) <= names
    lines = ["import sys, warnings", f"assert sys.executable == {sys.executable!r}", "warnings.simplefilter('error')"]
    for category in ("DeprecationWarning", "PendingDeprecationWarning"):  # a reader sees those of the cells alone
        lines += [f"warnings.simplefilter('ignore', {category})"]
        lines += [f"warnings.filterwarnings('error', category={category}, module='__main__')"]
    lines += ["warnings.filterwarnings('ignore', 'numpy.*size changed')"]  # harmless, as NumPy says
    lines += ["from ltr_objectives.workbench import movielens", f"movielens.MD5 = {movielens.MD5}"]
    lines += [f"{key} = {value!r}" for key, value in SMALL[name].items()]
    notebook.cells.insert(settings + 1, nbformat.v4.new_code_cell("\n".join(lines)))
    return notebook


def test_every_notebook_has_small_settings():
    assert set(NOTEBOOKS) == set(SMALL)


@pytest.mark.parametrize("library", ["catboost", "torch"])
def test_they_run_on_small_data(monkeypatch, tmp_path, library):
    """One after another in one kernel, which imports the libraries once and forgets the names of each notebook."""
    for package in ("nbclient", "ipykernel", "xgboost", "lightgbm", library, "matplotlib", "pandas", "scipy"):
        pytest.importorskip(package)
    monkeypatch.delenv("LTR_DATA", raising=False)
    monkeypatch.setenv("LTR_OBJECTIVES_CACHE", str(tmp_path))
    examples.movielens_archive(monkeypatch, tmp_path / "movielens", "ml-1m", 40, 60)
    made = {name: smaller(name) for name in SMALL if (name in WITH_TORCH) == (library == "torch")}
    cells = []
    for notebook in made.values():
        cells += [*notebook.cells, nbformat.v4.new_code_cell("%reset -f")]
    for i, cell in enumerate(cells):
        cell.id = f"cell-{i}"
    load(FOLDER / "execute.py").execute(nbformat.v4.new_notebook(cells=cells), timeout=300)
    for name, notebook in made.items():
        assert all(output.get("name") != "stderr" for output in outputs(notebook)), name
        assert pictures(notebook) == pictures(NOTEBOOKS[name]) > 0, name


def pictures(notebook: Any) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_is_shipped_with_its_outputs_and_names_no_machine(name):
    notebook = NOTEBOOKS[name]
    assert [cell.execution_count for cell in code(notebook)] == list(range(1, len(code(notebook)) + 1))
    assert {output.output_type for output in outputs(notebook)} <= {"stream", "display_data", "execute_result"}
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 500_000
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    for output in outputs(notebook):
        assert output.get("name") != "stderr"
        texts = [output.get("text", ""), *(v for k, v in output.get("data", {}).items() if not k.startswith("image/"))]
        assert not LOCAL.search("\n".join(texts))
        assert "Warning" not in "\n".join(texts)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for link in re.findall(r"\]\((?!https?:)([^)#]+)", cell.source):
                assert (FOLDER / link).exists(), link


def test_it_is_formatted():
    pytest.importorskip("ruff")
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run([sys.executable, "-m", "ruff", *command, "notebooks"], cwd=ROOT, capture_output=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_reads_the_reader_s_own_data(name, tmp_path, monkeypatch):
    """Run the cell that makes the data with LTR_DATA set to a LETOR folder."""
    for package in ("sklearn", "joblib"):
        pytest.importorskip(package)
    from commands import write_letor

    fold = make_ranking_fold((4, 2, 3), features=10, mean_length=5)
    for part in ("train", "vali", "test"):
        write_letor(tmp_path / f"{part}.txt", getattr(fold, part))
    monkeypatch.setenv("LTR_OBJECTIVES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LTR_DATA", str(tmp_path))
    [source] = [cell.source for cell in code(NOTEBOOKS[name]) if "LTR_DATA" in cell.source]
    statements = ast.parse(source).body
    first = next(i for i, each in enumerate(statements) if "LTR_DATA" in ast.unparse(each))
    names: dict[str, Any] = {"os": os, "load_letor": load_letor}
    exec("\n".join(map(ast.unparse, statements[first : first + 3])), names)
    assert [len(names[part].group) for part in ("train", "vali", "test")] == [4, 2, 3]
