"""Try an installed wheel with one of its extras, in an environment with that alone."""

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import ltr_objectives
from ltr_objectives import adapters
from ltr_objectives.libraries import LIBRARIES

RANKERS = {name: library.ranker for name, library in LIBRARIES.items()}
X, Y, GROUP = np.arange(400, dtype=float).reshape(200, 2) % 7, np.arange(200) % 3, np.full(40, 5)  # LightGBM needs rows


def core() -> None:
    """Check that gradients and metrics need numpy and numba only."""
    assert "site-packages" in ltr_objectives.__file__
    grad, hess = ltr_objectives.LambdaMART("map").gradient_hessian(X[:, 0], Y, GROUP)
    assert np.isfinite(grad).all()
    assert hess.sum() > 0
    assert 0 < ltr_objectives.evaluate("map", X[:, 0], Y, GROUP) <= 1


def train(library: str) -> None:
    """Train the library's estimator."""
    ranker = getattr(adapters, RANKERS[library])(objective="lambdamart:map", n_estimators=2)
    assert ranker.fit(X, Y, group=GROUP).predict(X).shape == Y.shape


def dask() -> None:
    """Check that the functions for Dask can be imported."""
    import dask.dataframe  # noqa: F401 - the extra brings it

    assert callable(adapters.dask_group)


def letor() -> None:
    """Read a LETOR file."""
    from ltr_objectives.datasets import load_letor

    with tempfile.TemporaryDirectory() as folder:
        for part in ("train", "vali", "test"):
            Path(folder, f"{part}.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
        assert load_letor(folder).train.y.tolist() == [1, 0]


def cli() -> None:
    """Check that the command is installed."""
    command = Path(sys.executable).with_name("ltr-objectives")
    printed = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert printed.startswith(f"ltr-objectives {ltr_objectives.__version__}\n")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "t.csv").write_text("y,s,q\n1,2,a\n0,1,a\n")
        columns = {"labels": "y", "scores": "s", "qid": "q"}
        files = [f"--{name}={folder}/t.csv:{column}" for name, column in columns.items()]
        subprocess.run([command, "evaluate", "--metric=map", *files], check=True)


def parquet() -> None:
    """Check that pandas and pyarrow are installed."""
    import pandas  # noqa: F401 - the extra brings it
    import pyarrow.parquet  # noqa: F401 - the extra brings it


def torch() -> None:
    """Check that a loss has a gradient in PyTorch."""
    from torch import tensor

    scores = tensor([0.0, 1.0, 2.0], requires_grad=True)
    adapters.torch_loss("lambdamart:map")(scores, tensor([1.0, 0.0, 2.0]), [3]).backward()
    assert scores.grad.abs().sum() > 0


CHECKS = {"none": [], "dask": [dask], "letor": [letor], "cli": [letor, cli], "parquet": [parquet]}
CHECKS |= {library: [lambda library=library: train(library)] for library in RANKERS}
CHECKS["all"] = [check for checks in CHECKS.values() for check in checks]
CHECKS["torch"] = [torch]  # which all extras together leave out, because of its size
CHECKS["xgboost-cpu"] = CHECKS["xgboost"]

if __name__ == "__main__":
    extra = sys.argv[1]
    library = extra.removesuffix("-cpu")
    if library in RANKERS:
        others = [name for name in RANKERS if name != library and importlib.util.find_spec(name)]
        assert not others, f"{extra} also installs {others}"
    if extra == "all":
        unwanted = [name for name in ("optuna", "matplotlib", "pytest", "zensical") if importlib.util.find_spec(name)]
        assert unwanted in ([], ["matplotlib"]), unwanted  # CatBoost needs Matplotlib
    for check in (core, *CHECKS[extra]):
        check()
    print(f"{extra}: works")
