"""Wheel, sdist, editable install and the bare clone: each has every module, and types that a type checker reads."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.version import Version

pytestmark = pytest.mark.release
ROOT = Path(__file__).resolve().parent.parent
MODULES = {str(p.relative_to(ROOT)) for p in (ROOT / "ltr_objectives").rglob("*.py")}
MODULES |= {f"ltr_objectives/adapters/{p.name}" for p in (ROOT / "adapters").glob("*.py")} | {"ltr_objectives/py.typed"}
MODULES |= {f"ltr_objectives/workbench/example/{name}" for name in ("LICENSE", "lambdarank.npz")}
USE = "import ltr_objectives, ltr_objectives.adapters._callables as c; print(ltr_objectives.__file__, c.__file__)"
STAR = """
from ltr_objectives import *
from ltr_objectives.adapters import *

print(YetiLoss("map"), NDCG(), evaluate("map", [1], [1], [1]), LGBMRanker().fit, xgboost_objective)
"""
UNKNOWN = "reportUnknownMemberType", "reportUnknownVariableType", "reportUnknownArgumentType"
PYRIGHT = {
    "typeCheckingMode": "strict",
    **{name: "none" for name in UNKNOWN if Version(version("numpy")) < Version("2.3")},  # np.ndarray has no dtype there
    **dict.fromkeys(("reportUnusedImport", "reportUnusedExpression", "reportWildcardImportFromLibrary"), "none"),
}


TRAIN = """
import warnings

import numpy as np
from ltr_objectives import LTRWarning
from ltr_objectives.adapters import LGBMRanker

warnings.simplefilter("error", LTRWarning)  # that machine code is not kept
X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3
print(LGBMRanker(objective="yetiloss:map", n_estimators=3).fit(X, y, group=[20] * 10).score(X, y, group=[20] * 10))
"""


def run(*command, cwd, **more):
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | more
    done = subprocess.run([*map(str, command)], cwd=cwd, env=alone, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clone(folder):
    """Return the files of a checkout that the package needs."""
    skip = shutil.ignore_patterns("__pycache__", "numba-*")
    for name in ("ltr_objectives", "adapters"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skip)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)


def environment(folder, *install):
    """Return the interpreter of a new environment with what ``pip install *install`` installs."""
    venv.create(folder, symlinks=True)
    packages = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"]
    if install:
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed")
        run(sys.executable, "-m", "pip", "install", *options, "--prefix", folder, *install, cwd=folder)
    beside = [p for p in sys.path if p.endswith("site-packages")]  # which the tests themselves import from
    Path(packages, "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n" + "\n".join(beside))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Return a clone, an sdist, a wheel of the sdist, and a wheel of the clone."""
    root = tmp_path_factory.mktemp("dist")
    (root / "clone").mkdir()
    clone(root / "clone")
    build = (sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check")
    run(*build, "--outdir", root / "of-sdist", root / "clone", cwd=root)
    run(*build, "--wheel", "--outdir", root / "of-clone", root / "clone", cwd=root)
    return root


@pytest.fixture(scope="module")
def pythons(dist):
    """Return interpreters that see the package by a wheel and by an editable install."""
    [wheel] = (dist / "of-sdist").glob("*.whl")
    installs = {"wheel": [wheel], "editable": ["--editable", dist / "clone"]}
    return {name: environment(dist / f"in-{name}", *install) for name, install in installs.items()}


def test_wheels_and_sdist_hold_every_module(dist):
    [sdist] = (dist / "of-sdist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= MODULES
    for folder in ("of-sdist", "of-clone"):
        [wheel] = (dist / folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            found = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
        compiled = {name for name in found if "/numba-" in name}
        assert len(compiled) > 10
        assert {name: found[name] for name in found.keys() - compiled} == {
            name: (dist / "clone" / name).read_bytes() for name in MODULES
        }


def test_an_installed_wheel_trains_where_nothing_can_be_written(pythons, tmp_path):
    assert float(run(pythons["wheel"], "-c", TRAIN, cwd=tmp_path, HOME="/", NUMBA_CACHE_DIR="/dev/null/none")) > 0.5
    with pytest.raises(AssertionError, match="each process compiles"):
        run(pythons["editable"], "-c", TRAIN, cwd=tmp_path, HOME="/", NUMBA_CACHE_DIR="/dev/null/none")


def test_every_install_imports_its_own_files(dist, pythons, tmp_path):
    bare = environment(tmp_path / "bare")
    for python, cwd in ((bare, dist / "clone"), (pythons["wheel"], tmp_path), (pythons["editable"], tmp_path)):
        package, adapters = run(python, "-c", USE, cwd=cwd).split()
        assert package.removesuffix("/__init__.py") == adapters.removesuffix("/adapters/_callables.py")
        assert not package.startswith(str(ROOT))


@pytest.mark.parametrize(("checker", "install"), [("mypy", "wheel"), ("pyright", "editable")])
def test_a_type_checker_finds_the_wrong_calls_and_no_others(checker, install, pythons, tmp_path):
    calls = (ROOT / "tests" / "typing" / "calls.py").read_text()
    (tmp_path / "calls.py").write_text(calls)
    (tmp_path / "star.py").write_text(STAR)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    options = {
        "mypy": ["--strict", "--python-executable", pythons[install], "--cache-dir", tmp_path / "cache"],
        "pyright": ["--pythonpath", pythons[install]],
    }[checker]
    command = [sys.executable, "-m", checker, *map(str, options), "calls.py", "star.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = set(re.findall(r"(\w+\.py):(\d+):(?:\d+ -)? error", done.stdout))
    marked = {("calls.py", str(i)) for i, line in enumerate(calls.splitlines(), 1) if line.endswith("# error")}
    assert found == marked, done.stdout + done.stderr
