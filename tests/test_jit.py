"""Machine code: an installation has all of it, nothing stale or foreign is run, and it is the same in every process."""

import errno
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import numba.core.codegen
import pytest
from loading import run_code

from ltr_objectives import LTRWarning
from ltr_objectives.kernels import _compiler

PACKAGE, FOLDERS = _compiler.PACKAGE, ("kernels", "metrics", "objectives")


# the cache, in this process


def double(x):
    return 2.0 * x


def calls(x=3.0):
    """Count the times that machine code was found, with a kernel that this process has not compiled yet."""
    made = _compiler.compiled(double, {"nogil": True})
    assert made(x) == 2.0 * x
    return sum(made.stats.cache_hits.values())


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(_compiler.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_compiler, "CACHE", _compiler.writable_folder())
    return _compiler.CACHE


def test_damaged_machine_code_is_compiled_anew_and_replaced(cache):
    assert [calls(), calls()] == [0, 1]
    [file] = cache.glob("*.code")
    file.write_bytes(file.read_bytes()[:-9])
    assert [calls(), calls()] == [0, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_machine_code_that_others_can_write_is_not_read(cache):
    calls()
    [file] = cache.glob("*.code")
    file.chmod(0o666)
    assert calls() == 0
    file.chmod(0o644)
    assert calls() == 1
    cache.chmod(0o777)
    assert calls() == 0


@pytest.mark.parametrize("installed", [False, True])
def test_machine_code_is_read_where_it_cannot_be_written(cache, monkeypatch, installed):
    calls()
    monkeypatch.setattr(_compiler, "CACHE", None)
    if installed:  # whoever can write there can write the package's source files too
        cache.chmod(0o777)
        monkeypatch.setattr(_compiler, "BUILT_IN", cache)
    assert calls() == 1


def test_on_a_full_disk_kernels_are_compiled_without_the_cache(cache, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(_compiler, "replacing", full)
    with pytest.warns(LTRWarning, match=re.escape(f"repair {cache}")):
        assert calls() == 0
    assert _compiler.CACHE is None
    assert calls() == 0  # silent
    assert list(cache.iterdir()) == []


def test_the_cache_is_the_folder_of_numba_or_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    (tmp_path / "file").write_text("no folder")
    for chosen, found in (("chosen", "chosen"), ("", "user"), ("file", None)):
        monkeypatch.setattr(_compiler.config, "CACHE_DIR", str(tmp_path / chosen) if chosen else "")
        folder = _compiler.writable_folder()
        assert folder is None if found is None else folder.is_relative_to(tmp_path / found)


def test_the_cache_is_of_one_source(tmp_path):
    """A kernel of one file calls those of others, also of metrics and objectives."""
    copied = tmp_path / "ltr_objectives"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "numba-*"))
    seen = {_compiler.source_hash(copied)}
    files = [file for folder in FOLDERS for file in (copied / folder).glob("*.py")]
    for file in files:
        file.write_text(f"{file.read_text()}\n")
        seen.add(_compiler.source_hash(copied))
    assert len(seen) == 1 + len(files) > 50


def reachable(function, found):
    """Add a kernel and those that it closes over to ``found``."""
    if hasattr(function, "py_func") and id(function) not in found:
        found[id(function)] = function
        for cell in function.py_func.__closure__ or ():
            reachable(cell.cell_contents, found)


def test_no_two_kernels_share_a_file_of_machine_code():
    found: dict[int, object] = {}
    for folder in FOLDERS:
        for path in (PACKAGE / folder).glob("*.py"):
            for value in vars(import_module(f"ltr_objectives.{folder}.{path.stem}")).values():
                reachable(value, found)
    files = [function.compiled._cache._name for function in found.values()]
    assert len(files) > 100
    assert len(set(files)) == len(files)


# other processes

USES = """
import numpy as np
from catalog import EXAMPLES, METRICS
from ltr_objectives import NDCG, Queries
from rankers import ranker

class Mine(NDCG):
    def discount(self, ranks):
        return 1.0 / ranks**2

rng = np.random.default_rng(0)
labels, qid, X = rng.integers(0, 2, 60), np.repeat([0, 1], 30), rng.normal(size=(60, 3))
queries, scores = Queries(labels, [30, 30], weight=rng.random(60)), rng.normal(size=60)
for objective in sum(EXAMPLES.values(), ()):
    if len(getattr(getattr(objective, "metric", None), "weights", "four")) == 4:  # thresholds of graded MAP
        for dtype in (np.float32, np.float64):
            objective.compute(queries, scores.astype(dtype), dtype=dtype)
for metric in sum(METRICS.values(), ()):
    metric.values(queries, scores)
for library in ("xgboost", "lightgbm", "catboost"):
    for metric in ("map", "ndcg@10", Mine()):
        eval_set = {"eval_set": [(X, labels)], "eval_qid": [qid]}
        fitted = ranker(library, n_estimators=2, eval_metric=metric).fit(X, labels, qid=qid, **eval_set)
        fitted.score(X, labels, qid=qid)
"""


def machine_code(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.code")}


def test_nothing_is_compiled_after_an_installation(tmp_path):
    run_code("from ltr_objectives.warmup import warm_up; warm_up()", NUMBA_CACHE_DIR=str(tmp_path))
    before = machine_code(tmp_path)  # what the package does not have
    run_code(USES, PYTHONWARNINGS="ignore", NUMBA_CACHE_DIR=str(tmp_path))
    assert machine_code(tmp_path) == before


TWICE = """
from ltr_objectives.kernels._jit import kernel

@kernel
def twice(x):
    return 2.0 * x

print(twice(3.0), sum(twice.compiled.stats.cache_hits.values()))
"""


@pytest.fixture
def twice(tmp_path):
    """Start a process that compiles or loads a kernel, on a processor: its value, and 1 if it was loaded."""
    file = tmp_path / "twice.py"
    file.write_text(TWICE)

    def run(folder="cache", processor=None):
        environment = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""} if processor else {}
        code = f"import runpy; runpy.run_path({str(file)!r})"
        done = run_code(code, NUMBA_CACHE_DIR=str(tmp_path / folder), **environment)
        assert done.stderr == ""
        return done.stdout.strip()

    return run


@pytest.mark.parametrize("baseline", ["x86-64-v3", pytest.param("generic", marks=pytest.mark.release)])
def test_machine_code_of_a_baseline_runs_on_this_processor_but_not_the_reverse(twice, baseline):
    here = set(numba.core.codegen.get_host_cpu_features().split(","))
    if baseline != "generic" and not here >= _compiler.V3:
        pytest.skip("an older processor")
    assert [twice("of the baseline", baseline), twice("of the baseline")] == ["6.0 0", "6.0 1"]
    assert [twice("of this one"), twice("of this one", baseline)] == ["6.0 0", "6.0 0"]


@pytest.mark.release
def test_eight_processes_at_once_compile_in_silence(twice):
    with ThreadPoolExecutor(8) as pool:
        assert {out.split()[0] for out in pool.map(lambda _: twice(), range(8))} == {"6.0"}
    assert twice() == "6.0 1"


IN_ORDER = """
import itertools, sys
import numpy as np
from catalog import ONE_OF_EACH, SOME
from oracles.references import reference
from ltr_objectives.kernels import _compiler

assert _compiler.parts is None
rng = np.random.default_rng(0)
lists = [(rng.permutation(n) / 4.0, rng.integers(0, 2, n).astype(float)) for n in (2, 5, 9)]
tried = [*itertools.chain(*SOME.values()), *ONE_OF_EACH]
for one in tried if sys.argv[1] == "forward" else reversed(tried):
    for scores, labels in lists:
        if hasattr(one, "values"):
            found = one.per_query(scores, labels, [len(labels)])[0]
            np.testing.assert_allclose(found, one.reference(labels[np.argsort(-scores)]), 1e-9, 1e-12, str(one))
        elif (quiet := one.without_noise()) is not None:
            found = quiet.gradient_hessian(scores, labels, [len(labels)])
            np.testing.assert_allclose(found, reference(quiet, scores, labels), 1e-9, 1e-12, str(one))
"""


@pytest.mark.skipif(_compiler.parts is not None, reason="compiles for minutes: a job of its own has such a numba")
@pytest.mark.parametrize("orders", [("forward", "backward"), ("backward", "forward")])
def test_all_kernels_are_right_in_two_orders_from_one_cache(tmp_path, orders):
    for order in orders:
        run_code(IN_ORDER, order, NUMBA_CACHE_DIR=str(tmp_path))


APART = """
import numpy as np
from catalog import EXAMPLES
from ltr_objectives.kernels._jit import Kernel

written = set()

def arrays(value):
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays(part)] if isinstance(value, tuple) else []

def checked(kernel, *given):
    function = kernel.py_func
    if not kernel.targetoptions["fastmath"]:
        return function(*given)
    found = arrays(given)
    before = [array.tobytes() for array in found]
    result = function(*given)
    for i, array in enumerate(found):
        if array.tobytes() != before[i]:
            written.add(function.__name__)
            others = found[:i] + found[i + 1 :]
            assert not any(np.shares_memory(array, other) for other in others), function.__name__
    return result

Kernel.__call__ = checked
rng = np.random.default_rng(0)
labels, scores = rng.integers(0, 2, 118), rng.normal(size=118)
for examples in EXAMPLES.values():
    for objective in examples:
        objective.gradient_hessian(scores, labels, [1, 3, 24, 90])
print(len(written))
"""


@pytest.mark.release
def test_arrays_written_by_functions_that_reorder_sums_overlap_nothing_else():
    """LLVM takes it that no array overlaps another, and does not check it. Python runs the same lines here."""
    done = run_code(APART, PYTHONWARNINGS="ignore", NUMBA_DISABLE_JIT="1")  # whole numbers wrap around
    assert int(done.stdout) > 10
