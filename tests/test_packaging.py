"""The package is complete and light to import, and says what to do where it is not."""

import shutil
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


def test_import_loads_neither_numba_nor_a_library():
    code = (
        "import sys, ltr_objectives, ltr_objectives.adapters\n"
        "heavy = {'numba', 'xgboost', 'lightgbm', 'catboost', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)


def test_every_public_name_is_there():
    for module in (ltr_objectives, adapters):
        for name in module.__all__:
            assert getattr(module, name) is not None
        with pytest.raises(AttributeError, match="nothing"):
            module.nothing  # noqa: B018 - the look is the test


def test_a_checkout_without_links_says_what_to_do(tmp_path):
    without = shutil.ignore_patterns("adapters", "__pycache__")
    shutil.copytree(ROOT / "ltr_objectives", tmp_path / "ltr_objectives", ignore=without)
    (tmp_path / "ltr_objectives" / "adapters").write_text("../adapters")  # what git writes on Windows
    done = subprocess.run([sys.executable, "-c", "import ltr_objectives"], cwd=tmp_path, capture_output=True, text=True)
    assert "ImportError" in done.stderr
    assert "git config core.symlinks true" in done.stderr


@pytest.mark.filterwarnings("ignore:Reliance on distutils from stdlib:UserWarning")
@pytest.mark.filterwarnings("ignore:The distutils package:DeprecationWarning")  # setuptools loads it in Python 3.11
def test_the_readme_of_an_index_has_absolute_links(monkeypatch):
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    at = "https://example.org/a/b"
    if sys.version_info < (3, 11):  # NumPy has loaded the distutils of Python
        monkeypatch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    text = "[a](docs/x.md#y) ![b](docs/z.png) [c](https://d.org) [e](#f)"
    made = f"[a]({at}/blob/v1/docs/x.md#y) ![b]({at}/raw/v1/docs/z.png) [c](https://d.org) [e](#f)"
    assert load(ROOT / "setup.py").absolute(text, at, "1") == made


@pytest.mark.release
def test_warmup_prints_where_the_machine_code_lies():
    done = subprocess.run([sys.executable, "-m", "ltr_objectives.warmup"], check=True, capture_output=True, text=True)
    assert "cache:" in done.stdout
