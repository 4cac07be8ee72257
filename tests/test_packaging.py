"""The installed package is complete and light to import, and everything registered exists."""

import ast
import re
import shutil
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest
from loading import load
from packaging.requirements import Requirement

import ltr_objectives
from ltr_objectives import adapters

if sys.version_info >= (3, 11):
    import tomllib
else:  # there pytest installs it
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def test_every_folder_with_modules_is_a_listed_package():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {p.parent.relative_to(ROOT) for p in (ROOT / "ltr_objectives").rglob("*.py")}
    assert listed == {".".join(f.parts) for f in folders} | {"ltr_objectives.adapters"}  # rglob does not follow links
    if (ROOT / "adapters").exists():  # not in a source distribution, which holds the files in place of the link
        assert (ROOT / "ltr_objectives" / "adapters").resolve() == ROOT / "adapters"


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
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018 - the look is the test


def test_type_checkers_are_told_of_every_adapter():
    """Each name that is loaded when it is used has a line ``from module import Name as Name`` for type checkers."""
    homes = {name: resolve_name(f".{home}", adapters.__name__) for name, home in adapters._MODULES.items()}
    tree = ast.parse(Path(adapters.__file__).read_text())
    [typed] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    found = {ast.unparse(line) for line in typed.body}
    must = {f"from {home} import {name} as {name}" for name, home in homes.items()}
    assert found == must, f"add {must - found}, remove {found - must}"


def test_a_checkout_without_links_says_what_to_do(tmp_path):
    without = shutil.ignore_patterns("adapters", "__pycache__")
    shutil.copytree(ROOT / "ltr_objectives", tmp_path / "ltr_objectives", ignore=without)
    (tmp_path / "ltr_objectives" / "adapters").write_text("../adapters")  # what git writes on Windows
    done = subprocess.run([sys.executable, "-c", "import ltr_objectives"], cwd=tmp_path, capture_output=True, text=True)
    assert "ImportError: ltr_objectives/adapters is a text file, but must be" in done.stderr
    assert "git config core.symlinks true" in done.stderr


@pytest.mark.filterwarnings("ignore:Reliance on distutils from stdlib:UserWarning")
@pytest.mark.filterwarnings("ignore:The distutils package:DeprecationWarning")  # setuptools loads it in Python 3.11
def test_the_readme_of_an_index_has_no_relative_link(monkeypatch):
    if not (ROOT / "setup.py").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    at = "https://example.org/a/b"
    if sys.version_info < (3, 11):  # NumPy has loaded the distutils of Python
        monkeypatch.setenv("SETUPTOOLS_USE_DISTUTILS", "stdlib")
    known = load(ROOT / "setup.py")
    text = "[a](docs/x.md#y) ![b](docs/z.png) [c](https://d.org) [e](#f)"
    made = f"[a]({at}/blob/v1/docs/x.md#y) ![b]({at}/raw/v1/docs/z.png) [c](https://d.org) [e](#f)"
    assert known.absolute(text, at, "1") == made
    described = known.described(f"{at}/")
    links = re.findall(r"\]\(([^)\s]+)\)", described["long_description"])
    start = re.compile(f"{re.escape(at)}/(blob|raw)/v{re.escape(ltr_objectives.__version__)}/")
    files = [start.sub("", link) for link in links if link.startswith(at)]
    assert files
    assert all((ROOT / file.partition("#")[0]).exists() for file in files)
    assert all(link.startswith(("https:", "#")) for link in links)
    assert described["project_urls"]["Source"] == at
    assert known.described("")["project_urls"] == {}


def test_the_citation_names_the_version():
    if not (ROOT / "CITATION.cff").exists():
        pytest.skip("the tests run beside an unpacked wheel")
    assert f"\nversion: {ltr_objectives.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_warmup_says_where_the_machine_code_lies():
    done = subprocess.run([sys.executable, "-m", "ltr_objectives.warmup"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("compiled in")
    assert "cache:" in done.stdout


def test_no_extra_allows_versions_that_run_code_of_a_file():
    """pyarrow before 14.0.1 does so for Parquet (CVE-2023-47248); `make audit` asks for others."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [each for extra in project["optional-dependencies"].values() for each in extra]
    bounds = {each for each in extras if each.startswith("pyarrow")}
    assert bounds == {"pyarrow>=14.0.1"}
    lowest = ROOT / "tests" / "lowest.txt"
    assert not lowest.exists() or "pyarrow==14.0.1" in lowest.read_text().splitlines()


def test_catboost_whose_metrics_crash_is_excluded():
    """Version 1.2.1 ends in an error with any metric that is not its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (allowed,) = (need.specifier for need in map(Requirement, project["optional-dependencies"]["catboost"])
                  if need.name == "catboost")  # fmt: skip
    assert [*allowed.filter(["1.2.0", "1.2.1", "1.2.2"])] == ["1.2.0", "1.2.2"]
