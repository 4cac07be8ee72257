"""Wheel, sdist, editable install and the bare clone: each has every module, and types that a type checker reads."""

import json
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

RIGHT = """
import numpy as np
from numpy.typing import NDArray
from ltr_objectives import NDCG, LTRError, YetiLoss, evaluate, get_metric, get_objective, metrics, objectives
from ltr_objectives.adapters import CatBoostRanker, LGBMRanker, XGBRanker
from ltr_objectives.adapters import catboost_metric, catboost_objective, lightgbm_metric, lightgbm_objective
from ltr_objectives.adapters import xgboost_metric, xgboost_objective
from ltr_objectives.datasets import make_ranking_fold

train, valid, test = make_ranking_fold((20, 5, 5), seed=0)
for maker in (XGBRanker, LGBMRanker, CatBoostRanker):
    ranker = maker(objective=YetiLoss("map", neighbors=1), eval_metric=["map", NDCG(k=3)], n_estimators=3)
    fitted = ranker.fit(train.X, train.y, qid=train.qid, eval_set=[(valid.X, valid.y)], eval_qid=[valid.qid])
    rounds: int = fitted.best_iteration_
    value: float = fitted.score(test.X, test.y, qid=test.qid) + fitted.best_score_["validation_0"]["map"]
    scores: NDArray[np.float64] = fitted.set_params(max_depth=3).load_model("model").predict(test.X)
    fitted.set_fit_request(qid=True).set_score_request(qid=True)
mean: float = evaluate("ndcg@10", scores, test.y, qid=test.qid, convention="lightgbm")
means: dict[str, float] = evaluate(["map", "mrr"], scores, test.y, test.group)
cutoff: int | None = get_metric("ndcg@10", "xgboost").k
names: tuple[str, ...] = (*metrics(), *objectives(), get_objective("yetiloss:map").name)
grad, hess = YetiLoss("map").gradient_hessian(scores, test.y, test.group)
print(grad.sum(), xgboost_objective("yetiloss:map", n_threads=2), lightgbm_objective(YetiLoss("map")), LTRError)
print(xgboost_metric("map", NDCG(k=3), convention="xgboost"), lightgbm_metric("map"))
print(catboost_objective, catboost_metric)
"""
STAR = """
from ltr_objectives import *
from ltr_objectives.adapters import *

print(YetiLoss("map"), NDCG(), evaluate("map", [1], [1], [1]), get_metric("map"), LGBMRanker().fit, xgboost_objective)
"""
WRONG = """
from ltr_objectives import Nonsense
from ltr_objectives.adapters import Nowhere
YetiLoss(nonsense=3)
NDCG(k="ten")
LGBMRanker(objective=3)
XGBRanker().fit([[1]], [1], qidd=[1])
CatBoostRanker().predict()
xgboost_objective(3)
lightgbm_metric("map", conventions="xgboost")
catboost_metric("map", convention=3)
evaluate("map", [1], [1], groups=[1])
get_metric("map").kk
metrics().keys()
model: str = LGBMRanker().booster_
evaluate("map", [1], [1], [1], convention="lightgm")
NDCG(gain_type="exponential")
XGBRanker(convention="treceval")
ltr_objectives.nonsense
"""
SCRIPTS = "right.py", "star.py", "wrong.py"
IMPORTS = """
import ltr_objectives
from ltr_objectives import NDCG, YetiLoss, evaluate, get_metric, metrics
from ltr_objectives.adapters import CatBoostRanker, LGBMRanker, XGBRanker
from ltr_objectives.adapters import catboost_metric, lightgbm_metric, xgboost_objective
"""


def run(*command, cwd):
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clone(folder):
    """The files of a checkout that the package needs."""
    skip = shutil.ignore_patterns("__pycache__", "numba-*")
    for name in ("ltr_objectives", "adapters"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skip)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)


def environment(folder, *install):
    """The interpreter of a new environment with the dependencies and with what ``pip install *install`` installs."""
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
    """A clone, an sdist, a wheel of the sdist, and a wheel of the clone."""
    root = tmp_path_factory.mktemp("dist")
    (root / "clone").mkdir()
    clone(root / "clone")
    build = (sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check")
    run(*build, "--outdir", root / "of-sdist", root / "clone", cwd=root)
    run(*build, "--wheel", "--outdir", root / "of-clone", root / "clone", cwd=root)
    return root


@pytest.fixture(scope="module")
def pythons(dist, tmp_path_factory):
    """Interpreters that see the package by a wheel and by an editable install."""
    root = tmp_path_factory.mktemp("environments")
    [wheel] = (dist / "of-sdist").glob("*.whl")
    return {
        "wheel": environment(root / "wheel", wheel),
        "editable": environment(root / "editable", "--editable", dist / "clone"),
    }


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


def test_every_install_imports_its_own_files(dist, pythons, tmp_path):
    clone = environment(tmp_path / "bare"), dist / "clone"
    for python, cwd in (clone, (pythons["wheel"], tmp_path), (pythons["editable"], tmp_path)):
        package, adapters = run(python, "-c", USE, cwd=cwd).split()
        assert package.removesuffix("/__init__.py") == adapters.removesuffix("/adapters/_callables.py")
        assert not package.startswith(str(ROOT))


@pytest.mark.parametrize(("checker", "install"), [("mypy", "wheel"), ("pyright", "editable")])
def test_a_user_s_types(checker, install, pythons, tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "star.py").write_text(STAR)
    (tmp_path / "wrong.py").write_text(IMPORTS + WRONG)
    first = IMPORTS.count("\n") + 1
    must = {*range(first + 1, first + WRONG.count("\n"))}
    found = {"mypy": by_mypy, "pyright": by_pyright}[checker](pythons[install], tmp_path)
    assert found.keys() == {"wrong.py"}, found
    lines = (IMPORTS + WRONG).splitlines()
    assert not (missed := [lines[i - 1] for i in sorted(must - found["wrong.py"].keys())]), missed
    assert not (more := [lines[i - 1] for i in sorted(found["wrong.py"].keys() - must)]), more


def by_mypy(python, folder):
    command = "mypy", "--strict", "--python-executable", python, "--cache-dir", folder / "cache", *SCRIPTS
    done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=folder, capture_output=True, text=True)
    found = {}
    for file, line, what in re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE):
        found.setdefault(file, {})[int(line)] = what
    assert found, done.stdout + done.stderr
    return found


def by_pyright(python, folder):
    plain = Version(version("numpy")) < Version("2.3")  # there np.ndarray alone has no known dtype
    unknown = "none" if plain else "error"
    settings = {
        "typeCheckingMode": "strict",
        **dict.fromkeys(("reportUnknownMemberType", "reportUnknownVariableType", "reportUnknownArgumentType"), unknown),
        "reportUnusedImport": "none",
        "reportUnusedExpression": "none",
        "reportWildcardImportFromLibrary": "none",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = "pyright", "--outputjson", "--pythonpath", python, *SCRIPTS
    done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=folder, capture_output=True, text=True)
    found = {}
    for said in json.loads(done.stdout)["generalDiagnostics"]:
        found.setdefault(said["file"].rpartition("/")[2], {})[said["range"]["start"]["line"] + 1] = said["message"]
    return found
