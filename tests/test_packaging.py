"""The package is complete and light to import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from loading import load, read_toml

import ltr_objectives
from ltr_objectives import adapters

ROOT = Path(__file__).resolve().parent.parent


def test_every_folder_with_modules_is_a_listed_package():
    listed = set(read_toml(ROOT / "pyproject.toml")["tool"]["setuptools"]["packages"])
    folders = {p.parent.relative_to(ROOT) for p in (ROOT / "ltr_objectives").rglob("*.py")}
    assert listed == {".".join(f.parts) for f in folders} | {"ltr_objectives.adapters"}  # rglob does not follow links


def runs(code):
    """Run a program in a new process, in which nothing is loaded yet."""
    start = "import sys; found = lambda *names: {m for m in sys.modules if m.startswith(names)}\n"
    subprocess.run([sys.executable, "-c", start + code], check=True, cwd=ROOT.parent)


def test_import_loads_what_is_used():
    heavy = "'numpy', 'numba', 'xgboost', 'lightgbm', 'catboost', 'sklearn', 'scipy', 'pandas'"
    runs(
        "import ltr_objectives, ltr_objectives.adapters\n"
        f"assert not found({heavy}), found({heavy})\n"
        "assert found('ltr_objectives') == {'ltr_objectives', 'ltr_objectives.adapters'}, found('ltr_objectives')\n"
        "from ltr_objectives import MAP, evaluate\n"
        "assert not found('ltr_objectives.objectives')\n"
        "evaluate(['ndcg@10', MAP(), 'err'], [1, 0], [1, 0], [2])\n"
        "assert not found('ltr_objectives.objectives')\n"
        "assert {*ltr_objectives.__all__} <= {*dir(ltr_objectives)}"
    )


def test_a_star_imports_what_needs_no_library_that_is_missing():
    runs(
        "sys.modules['sklearn'] = sys.modules['xgboost'] = None  # so that imports fail\n"
        "from ltr_objectives.adapters import *\n"
        "assert {'bounded', 'xgboost_metric'} < {*globals()} and not {'refit', 'LGBMRanker'} & {*globals()}"
    )


@pytest.mark.parametrize("base", ["Metric", "Objective"])
def test_the_tables_of_names_are_whole_whatever_was_loaded_before(base):
    text = {"Metric": "ndcg", "Objective": "ranknet"}[base]
    runs(f"from ltr_objectives import {base} as base\nassert {text!r} in base.named and len(base.named) > 10")
    runs(
        f"from ltr_objectives import LTRError, {base} as base\n"
        f"try:\n    class Mine(base, text={text!r}): pass\n"
        "except LTRError: pass\n"
        "else: raise AssertionError"
    )


@pytest.mark.parametrize("package", [ltr_objectives, adapters])
def test_a_public_name_stands_in_all_lists(package):
    tree = ast.parse(Path(package.__file__).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    typed = {(f"{node.module}", name.name) for node in imports for name in node.names if "ltr_" in str(node.module)}
    listed = {(f"{package.__name__}.{m}", name) for m, names in package._MODULES.items() for name in names.split()}
    assert typed == listed
    assert sorted(name for _, name in listed) == sorted(package.__all__)


def test_public_names_and_their_parameters_are_those_of_the_list():
    """docs/promises.md says what may change."""
    if not (ROOT / "docs").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    known = (ROOT / "tests" / "public.txt").read_text(encoding="utf-8").rstrip("\n").splitlines()
    found = load(ROOT / "docs" / "surface.py").surface().rstrip("\n").splitlines()
    assert found == known, "if this is meant: python docs/pages.py --names > tests/public.txt"


def test_a_citation_names_the_version():
    citation = ROOT / "CITATION.cff"
    assert not citation.exists() or f"\nversion: {ltr_objectives.__version__}\n" in citation.read_text()


@pytest.mark.filterwarnings("ignore:Reliance on distutils from stdlib:UserWarning")
@pytest.mark.filterwarnings("ignore:The distutils package:DeprecationWarning")  # setuptools loads it in Python 3.11
def test_the_readme_of_an_index_has_absolute_links():
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    at = "https://example.org/a/b"
    text = "[a](docs/x.md#y) ![b](docs/z.png) [c](https://d.org) [e](#f)"
    made = f"[a]({at}/blob/v1/docs/x.md#y) ![b]({at}/raw/v1/docs/z.png) [c](https://d.org) [e](#f)"
    assert load(ROOT / "setup.py").absolute(text, at, "1") == made
