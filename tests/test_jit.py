"""The numba cache: no stale code after any kernel file changes, no failure where nothing is writable."""

import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import ltr_objectives.kernels as kernels
from ltr_objectives import registry
from ltr_objectives.kernels import _jit

CODE = """
from ltr_objectives import evaluate
from ltr_objectives.kernels import _jit, values
print(evaluate("mrr", [2.0, 1.0, 0.0], [1, 0, 0], [3]))
print(_jit.CACHE)
print(sum(values.metric_values.stats.cache_hits.values()))
"""


def run_copy(folder: Path, **environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    env |= {"PYTHONPATH": str(folder), **environment}
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}\n{CODE}"],
                          env=env, cwd=folder, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def copy_package(folder: Path) -> Path:
    shutil.copytree(_jit.PACKAGE, folder / "ltr_objectives", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "ltr_objectives"


def test_a_changed_helper_is_compiled_anew(tmp_path):
    package = copy_package(tmp_path)
    first, second = run_copy(tmp_path), run_copy(tmp_path)
    assert first[0] == second[0]
    assert first[1].startswith(str(package))
    assert int(first[2]) == 0
    assert int(second[2]) > 0
    helper = package / "kernels" / "sorting.py"  # of the kernel in values.py
    helper.write_text(helper.read_text().replace("earlier[j] >= v", "earlier[j] < v"))
    changed = run_copy(tmp_path)
    assert int(changed[2]) == 0
    assert (float(first[0]), float(changed[0])) == (1.0, pytest.approx(1 / 3))


def test_without_a_writable_folder_there_is_no_cache(tmp_path):
    package = copy_package(tmp_path)
    nowhere = tmp_path / "file"
    nowhere.write_text("no folder")
    for path in (package / "__pycache__", tmp_path / "cache"):
        path.write_text("no folder either")
    out = run_copy(tmp_path, XDG_CACHE_HOME=str(nowhere), PYTHONDONTWRITEBYTECODE="1")
    assert out[1] == "None"
    out = run_copy(tmp_path, NUMBA_CACHE_DIR=str(nowhere))
    assert out[1] == "None"
    good = run_copy(tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "chosen"))
    assert good[1].startswith(str(tmp_path / "chosen"))


ONE = "import numpy; from ltr_objectives.kernels.sorting import all_finite; all_finite(numpy.zeros(1))"


def said(folder: Path, code: str = ONE, **environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "LTR_OBJECTIVES_QUIET")}
    env |= {"PYTHONPATH": str(_jit.PACKAGE.parent), "NUMBA_CACHE_DIR": str(folder), **environment}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()


def test_compiling_is_announced_in_one_line(tmp_path):
    cold = said(tmp_path / "cache")
    assert len(cold) == 1
    assert cold[0].startswith("ltr_objectives: compiling machine code")
    assert str(tmp_path / "cache") in cold[0]
    assert said(tmp_path / "cache") == []
    assert said(tmp_path / "other", LTR_OBJECTIVES_QUIET="1") == []
    (tmp_path / "file").write_text("no folder")
    [nowhere] = said(tmp_path / "file" / "cache")
    assert "no folder is writable" in nowhere
    assert said(tmp_path / "third", f"import sys; sys.stderr.close(); sys.stderr = None; {ONE}") == []
    assert said(tmp_path / "fourth", "import numba, ltr_objectives.kernels._jit\nnumba.njit(lambda: 1)()") == []


def entry_kernels():
    """Kernels that Python calls: those over ranges of queries."""
    for info in pkgutil.iter_modules(kernels.__path__):
        module = import_module(f"ltr_objectives.kernels.{info.name}")
        for name, function in vars(module).items():
            arguments = list(inspect.signature(getattr(function, "py_func", len)).parameters)
            if arguments[:3] == ["first", "last", "ptr"]:
                yield name, function


def test_each_kernel_has_one_compiled_signature(rng):
    group = rng.integers(1, 9, 30)
    for dtype in (np.float32, np.float64, np.int32):
        labels, scores = rng.integers(0, 2, group.sum()).astype(dtype), rng.normal(size=group.sum()).astype(dtype)
        for name in registry.objectives():
            for objective in registry.objective_class(name).examples():
                for threads in (1, 2):
                    objective.gradient_hessian(scores, labels, group, n_threads=threads)
                objective.report(scores, labels, group)
        for name in registry.metrics():
            for metric in registry.metric_class(name).examples():
                metric.per_query(scores, labels, group)
    found = dict(entry_kernels())
    assert "pair_gradients" in found
    for name, function in found.items():
        kinds = {str(s).replace("float32", "float64") for s in function.nopython_signatures}  # results may be either
        assert len(kinds) == 1, name


def test_strict_kernels_see_nan():
    from ltr_objectives.kernels.sorting import all_finite

    assert all_finite(np.array([0.0, 1.0]))
    assert not all_finite(np.array([0.0, np.nan]))
    assert not all_finite(np.array([np.inf, 0.0]))
