"""The numba cache: no stale code after any kernel file changes, no failure if it is missing, damaged or full."""

import inspect
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest
from catalog import EXAMPLES, METRICS

import ltr_objectives.kernels as kernels
from ltr_objectives import registry
from ltr_objectives.kernels import _compiler
from ltr_objectives.kernels.scores import content_stream, read_scores

CODE = """
import numpy as np
from ltr_objectives.kernels import _compiler, softmax
softmax.softmax(np.zeros(2), p := np.empty(2))
print(p[0])
print(_compiler.CACHE)
print(sum(softmax.softmax.compiled.stats.cache_hits.values()))
"""


def run_copy(folder: Path, **environment: str) -> list[str]:
    """The output of the code; stderr must be empty."""
    done = finished_copy(folder, **environment)
    assert done.stderr == ""
    return done.stdout.splitlines()


def finished_copy(folder: Path, before: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "PYTHONPATH")}
    env |= {"PYTHONPATH": str(folder), **environment}
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path += {sys.path!r}\n{before}\n{CODE}"],
                          env=env, cwd=folder, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done


def copy_package(folder: Path) -> Path:
    shutil.copytree(_compiler.PACKAGE, folder / "ltr_objectives", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "ltr_objectives"


def test_other_versions_of_numba_compile_as_they_always_do_to_the_same_bytes(tmp_path):
    code = """
import sys, numba
if len(sys.argv) > 1:
    numba.__version__ = sys.argv[1]
import numpy as np
from ltr_objectives.kernels import _compiler, softmax
softmax.softmax(np.random.default_rng(0).normal(size=50), p := np.empty(50))
print(_compiler.parts is None, p.tobytes().hex())
"""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = []
    for version in ((), ("9.9.9",)):
        done = subprocess.run([sys.executable, "-c", code, *version], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    (with_parts, *own), (without, *same) = (text.split() for text in outputs)
    assert (with_parts, without) == ("False", "True")
    assert own == same


CLOSURES = """
import sys, numba
numba.__version__ = "9.9.9"  # compile plainly
from ltr_objectives.kernels._jit import kernel

def around(inner):
    @kernel
    def middle(x):
        return inner(x)
    @kernel
    def outer(x):
        return middle(x)
    return outer

@kernel
def added(x):
    return x + 3

@kernel
def times(x):
    return x * 3

made = {"added": around(added), "times": around(times)}
print([made[name](5) for name in sys.argv[1:]])
"""


def test_kernels_that_differ_in_what_they_close_over_do_not_share_machine_code(tmp_path):
    file, right = tmp_path / "closures.py", {"added": 8, "times": 15}
    file.write_text(CLOSURES)
    for names in (("added", "times"), ("times", "added")):
        for order in (names[:1], names[1:], names):  # the last loads the code of two processes, or compiles nothing
            env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / names[0])}
            done = subprocess.run([sys.executable, str(file), *order], env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout) == [right[name] for name in order]


def reachable(function, found):
    """Add a kernel and those that it closes over to ``found``."""
    if hasattr(function, "py_func") and id(function) not in found:
        found[id(function)] = function
        for cell in function.py_func.__closure__ or ():
            reachable(cell.cell_contents, found)


def test_no_two_kernels_share_a_file_of_machine_code():
    found: dict[int, object] = {}
    for folder in ("kernels", "metrics", "objectives"):
        for path in (_compiler.PACKAGE / folder).glob("*.py"):
            for value in vars(import_module(f"ltr_objectives.{folder}.{path.stem}")).values():
                reachable(value, found)
    files = [function.compiled._cache._name for function in found.values()]
    assert len(files) > 100
    assert len(set(files)) == len(files)


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
    path = os.pathsep.join([str(Path(__file__).parent), str(_compiler.PACKAGE.parent)])
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path}
    for order in orders:
        done = subprocess.run([sys.executable, "-c", IN_ORDER, order], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_claimed_versions_of_numba_are_those_that_the_tests_run():
    lowest = re.search(r"^numba==(\d+\.\d+)\.", Path(__file__).with_name("lowest.txt").read_text(), re.M)[1]
    newest = numba.__version__.rpartition(".")[0]
    assert _compiler.TESTED[0] == lowest
    assert newest in _compiler.TESTED
    assert len(_compiler.TESTED) == 2


USER = """
import sys, numba, numpy as np
from ltr_objectives.kernels import _compiler, softmax, sorting
@numba.njit
def sorted_total(s):  # each of them calls other kernels; the second reorders sums
    key, order = s.copy(), np.arange(len(s))
    sorting.sort_descending(key, order, np.empty_like(key), np.empty_like(order), len(s))
    p = np.empty_like(key)
    softmax.softmax(key, p)
    return key, order, p
s = np.random.default_rng(0).normal(size=100)
key, order, p = sorted_total(s)
assert (key == -np.sort(-s)).all() and (s[order] == key).all()
np.testing.assert_allclose(p, np.exp(key) / np.exp(key).sum())
print(_compiler.parts is None)
"""


def test_compiled_code_of_a_user_may_call_kernels(tmp_path):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for _ in ("compiled", "from the cache"):
        done = subprocess.run([sys.executable, "-c", USER], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "False\n"


def test_a_changed_helper_is_compiled_anew(tmp_path):
    package = copy_package(tmp_path)
    first, second = run_copy(tmp_path), run_copy(tmp_path)
    assert first[0] == second[0]
    assert first[1].startswith(str(package))
    assert int(first[2]) == 0
    assert int(second[2]) > 0
    helper = package / "kernels" / "exponential.py"  # which a kernel in softmax.py calls
    text = helper.read_text()
    assert "x[i] = p * " in text
    helper.write_text(text.replace("x[i] = p * ", "x[i] = 2.0 * p * "))
    changed = run_copy(tmp_path)
    assert int(changed[2]) == 0
    assert (float(first[0]), float(changed[0])) == (0.5, pytest.approx(2 / 3))


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


def test_damaged_machine_code_is_compiled_anew_and_replaced(tmp_path):
    copy_package(tmp_path)
    files = list(Path(run_copy(tmp_path)[1]).glob("*.code"))
    assert files
    for file in files:
        file.write_bytes(file.read_bytes()[:-9])
    assert run_copy(tmp_path)[::2] == ["0.5", "0"]
    assert int(run_copy(tmp_path)[2]) > 0


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits")
def test_on_a_full_disk_kernels_are_compiled_without_the_cache(tmp_path):
    folder = Path(run_copy(copy_package(tmp_path).parent)[1])
    for file in folder.glob("*.code"):
        file.unlink()
    done = finished_copy(tmp_path, FULL)
    assert done.stdout.startswith("0.5\nNone\n")
    [warning] = [line for line in done.stderr.splitlines() if "LTRWarning" in line]
    assert f"repair {folder}" in warning
    assert os.listdir(folder) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_a_folder_that_others_can_write_is_not_read(tmp_path):
    copy_package(tmp_path)
    chosen = tmp_path / "chosen"
    folder = Path(run_copy(tmp_path, NUMBA_CACHE_DIR=str(chosen))[1])
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert run_copy(tmp_path, NUMBA_CACHE_DIR=str(chosen))[1] == "None"


@pytest.mark.skipif(sys.platform == "win32", reason="no such folder")
def test_a_relative_cache_folder_is_ignored(tmp_path):
    package = copy_package(tmp_path)
    (package / "__pycache__").write_text("no folder")
    out = run_copy(tmp_path, XDG_CACHE_HOME="relative", HOME=str(tmp_path / "home"), PYTHONDONTWRITEBYTECODE="1")
    assert out[1].startswith(str(tmp_path / "home" / ".cache" / "ltr_objectives"))
    assert not (tmp_path / "relative").exists()


ONE = "import numpy; from ltr_objectives.kernels.sorting import all_equal; all_equal(numpy.zeros(1))"


def said(folder: Path, code: str = ONE, **environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "LTR_OBJECTIVES_QUIET")}
    env |= {"PYTHONPATH": str(_compiler.PACKAGE.parent), "NUMBA_CACHE_DIR": str(folder), **environment}
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
    assert "is not kept" in nowhere
    assert said(tmp_path / "third", f"import sys; sys.stderr.close(); sys.stderr = None; {ONE}") == []
    theirs = (
        "import numba, ltr_objectives.kernels._compiler\nnumba.njit(lambda: 1)()\n"
        "made = {}\nexec('f = lambda: 2', made)"
    )
    assert said(tmp_path / "fourth", f"{theirs}\nmade['f'].__module__ = None\nnumba.njit(made['f'])()") == []


LOGGED = """
import logging, sys
came = []
handler = logging.StreamHandler()
handler.emit = came.append
logging.basicConfig(level=logging.DEBUG, handlers=[handler])
logging.getLogger("numba").setLevel(sys.argv[1])
from ltr_objectives.kernels.sorting import all_equal
import numpy
all_equal(numpy.zeros(1))
print(len(came))
"""


def test_compiling_is_logged_only_where_the_user_has_set_the_level_of_numba(tmp_path):
    for level in ("NOTSET", "DEBUG"):
        env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / level)}
        done = subprocess.run([sys.executable, "-c", LOGGED, level], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (int(done.stdout) > 100) == (level == "DEBUG")


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
            for objective in EXAMPLES[name]:
                for threads in (1, 2):
                    objective.gradient_hessian(scores, labels, group, n_threads=threads)
                objective.report(scores, labels, group)
        content_stream(scores)
        for name in registry.metrics():
            for metric in METRICS[name]:
                metric.per_query(scores, labels, group)
    found = dict(entry_kernels())
    assert "pairs_by_gain" in found
    for name, function in found.items():
        signatures = map(str, function.compiled.nopython_signatures)
        kinds = {text.replace("float32", "float64") for text in signatures}  # results may be of both
        kinds = {re.sub(r"\), \d+\)", "), n)", kind) for kind in kinds}  # metrics may have several layers
        kinds = {re.sub(r"Rng\([^)]*\)|\bnone\b", "rng", kind) for kind in kinds}  # there may be no noise
        assert len(kinds) == 1, name


def test_only_functions_that_are_copied_into_callers_reorder_sums():
    folders = [import_module(f"ltr_objectives.{name}") for name in ("kernels", "objectives")]
    modules = [import_module(f"{f.__name__}.{info.name}") for f in folders for info in pkgutil.iter_modules(f.__path__)]
    functions = [f for module in modules for f in vars(module).values() if hasattr(f, "targetoptions")]
    reordering = [f for f in functions if f.targetoptions["fastmath"]]
    assert len(reordering) > 10
    assert all(f.targetoptions["forceinline"] for f in reordering)


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


def test_arrays_written_by_functions_that_reorder_sums_overlap_nothing_else():
    """LLVM takes it that no array overlaps another, and does not check it. Python runs the same lines here."""
    path = os.pathsep.join([str(Path(__file__).parent), str(_compiler.PACKAGE.parent)])
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-c", APART]  # Python warns where whole numbers wrap around
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


FINITE_AND_NOT = [0, 1, -2], [0, np.nan, 9], [0, 9, -np.inf], [np.inf, 9, 0], [np.inf, np.nan, 0]


def test_strict_kernels_see_nan():
    for dtype in (np.float32, np.float64):
        largest = [read_scores(np.array(s, dtype), np.array([0, 3], np.int64), 1).largest for s in FINITE_AND_NOT]
        np.testing.assert_array_equal(largest, [2.0, np.nan, np.inf, np.inf, np.nan])
