"""Machine code: an installation has all of it, nothing stale or foreign is run, and it is the same in every process."""

import ast
import collections
import contextlib
import gc
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import shutil
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba.core.codegen
import numpy as np
import pytest
from loading import run_code

import ltr_objectives
from ltr_objectives import LTRWarning
from ltr_objectives.kernels import _compiler
from ltr_objectives.kernels._content import content_hash
from ltr_objectives.kernels._jit import Kernel, allocating, inlined, kernel
from ltr_objectives.kernels.partners import leaves_out_pairs
from ltr_objectives.kernels.rankings import copy_order
from ltr_objectives.kernels.rng import mix

# the cache, in this process


def calls():
    """Count the times that machine code was found, with a kernel that this process has not compiled yet."""
    made = _compiler.compiled(leaves_out_pairs.py_func, {"nogil": True})
    assert made(5, 3, 2) is True
    return sum(made.stats.cache_hits.values())


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setattr(_compiler.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_compiler, "BUILT_IN", None)
    monkeypatch.setattr(_compiler.MachineCode, "kept", True)
    return _compiler.user_folder()


def of(content):
    """Return a file of machine code as it is written."""
    return lambda file: _compiler._digest(file.name, content) + content


def foreign(file):
    """Return machine code of another kernel, as a user who can write to the folder above could put it there."""
    _compiler.compiled(mix.py_func, {"nogil": True})(np.uint64(1))
    [other] = set(file.parent.glob("*.code")) - {file}
    other.replace(file)


def pipe(file):
    file.unlink()
    os.mkfifo(file)


def changed(change):
    """Write what ``change`` makes of the file."""
    return lambda file: file.write_bytes(change(file))


posix = pytest.mark.skipif(sys.platform == "win32", reason="no modes and no pipes")
DAMAGED = {
    "cut short": changed(lambda file: file.read_bytes()[:-9]),
    "longer": changed(lambda file: file.read_bytes() + b"0"),
    "one bit": changed(lambda file: bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:]),
    "empty": changed(lambda file: b""),
    "a number": changed(of(pickle.dumps(3))),
    "no pickle": changed(of(b"0")),
    "of another kernel": foreign,
    "a pipe": pytest.param(pipe, marks=posix),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED)
def test_damaged_machine_code_is_compiled_anew_and_replaced(cache, damage):
    assert [calls(), calls()] == [0, 1]
    [file] = cache.glob("*.code")
    damage(file)
    assert [calls(), calls()] == [0, 1]


@posix
def test_machine_code_that_others_can_write_is_not_read(cache):
    calls()
    [file] = cache.glob("*.code")
    file.chmod(0o666)
    assert calls() == 0
    file.chmod(0o644)
    assert calls() == 1


@posix
@pytest.mark.parametrize(("above", "mode", "read"), [(0, 0o777, 0), (1, 0o1777, 1), (1, 0o777, 0), (1, 0o757, 0)])
def test_machine_code_is_not_read_in_a_folder_where_others_can_exchange_it(cache, tmp_path, above, mode, read):
    calls()
    (tmp_path if above else cache).chmod(mode)
    with contextlib.nullcontext() if read else pytest.warns(LTRWarning, match="other users can write"):
        assert calls() == read


@pytest.mark.parametrize("installed", [False, True])
def test_machine_code_is_read_where_it_cannot_be_written(cache, monkeypatch, installed):
    calls()
    monkeypatch.setattr(_compiler, "private_folder", lambda folder: pytest.fail("nothing is to be written"))
    if installed:  # whoever can write there can write the package's source files too
        cache.chmod(0o777)
        monkeypatch.setattr(_compiler, "BUILT_IN", cache)
    assert calls() == 1


@pytest.mark.parametrize("chosen", [True, False], ids=["no folder", "no home"])
def test_the_first_kernel_that_cannot_be_kept_warns(cache, monkeypatch, tmp_path, chosen):
    def homeless():
        raise RuntimeError

    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(_compiler.config, "CACHE_DIR", str(tmp_path / "file") if chosen else "")
    monkeypatch.setattr(_compiler, "user_cache", homeless)
    own = _compiler.compiled(lambda x: 2.0 * x, {})  # is compiled in each process anyway
    assert own(3.0) == 6.0
    with pytest.warns(LTRWarning, match="NUMBA_CACHE_DIR") as warned:
        assert [calls(), calls()] == [0, 0]
    assert len(warned) == 1


def test_the_cache_is_the_folder_of_numba_or_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    for chosen, found in (("chosen", "chosen"), ("", "user")):
        monkeypatch.setattr(_compiler.config, "CACHE_DIR", str(tmp_path / chosen) if chosen else "")
        assert _compiler.user_folder().is_relative_to(tmp_path / found)


def copied(folder: Path) -> Path:
    """Return a copy of the package in ``folder``."""
    leave = shutil.ignore_patterns("__pycache__", "numba-*")
    return shutil.copytree(Path(ltr_objectives.__file__).parent, folder / "ltr_objectives", ignore=leave)


def kernel_of(text, **names):
    """Return the kernel ``f`` of this text."""
    exec(f"@kernel\ndef f(x, z=1):\n    return {text}\n", found := {"kernel": kernel, **names})
    return found["f"]


Pair, Swapped = (collections.namedtuple("Pair", fields) for fields in ("x y", "y x"))
CONTENTS = {
    "itself": kernel_of("x + 1"),
    "a constant": kernel_of("x + 2"),
    "the type of a constant": kernel_of("x + 1.0"),
    "another argument": kernel_of("x + z"),
    "a global": kernel_of("x + y", y=2),
    "another global": kernel_of("x + y", y=3),
    "its type": kernel_of("x + y", y=np.int64(3)),
    "a callee": kernel_of("y(x)", y=kernel_of("x + 1")),
    "another callee": kernel_of("y(x)", y=kernel_of("x + 2")),
    "its callee": kernel_of("y(x)", y=kernel_of("y(x)", y=kernel_of("x + 1"))),
    "options of a callee": kernel_of("y(x)", y=inlined(kernel_of("x + 1").py_func)),
    "a record": kernel_of("y(x, x)", y=Pair),
    "the order of its fields": kernel_of("y(x, x)", y=Swapped),
    "an inner function": kernel_of("[y * i for i in x]", y=2),
    "another inner function": kernel_of("[y * i for i in x]", y=3),
}


def test_whatever_differs_in_a_kernel_or_in_what_it_uses_has_other_machine_code():
    assert len({content_hash(made) for made in CONTENTS.values()}) == len(CONTENTS)
    assert content_hash(kernel_of("x + 1")) == content_hash(CONTENTS["itself"])
    records = [content_hash(list(_compiler._read([numba.typeof(kind(1.0, 2.0))]))) for kind in (Pair, Swapped)]
    assert records[0] != records[1]
    with pytest.raises(TypeError, match="object"):
        content_hash(kernel_of("x + y", y=object()))


def kernels():
    """Return all kernels of the package."""
    return {
        value
        for name, module in sys.modules.items()
        if name.startswith(("ltr_objectives.kernels.", "ltr_objectives.metrics.", "ltr_objectives.objectives."))
        for value in vars(module).values()
        if isinstance(value, Kernel)
    }


def test_closures_have_names_of_their_own():
    """Machine code that two processes kept is linked by name in a third one."""
    for module in pkgutil.iter_modules(ltr_objectives.kernels.__path__):
        importlib.import_module(f"ltr_objectives.kernels.{module.name}")
    every = [each for each in gc.get_objects() if type(each) is Kernel and each.py_func.__closure__]
    names = [(each.__module__, each.__qualname__) for each in every if each.__module__.startswith("ltr_objectives.")]
    assert len(names) == len({*names}) > 20


def test_all_kernels_can_be_kept():
    assert len({content_hash(one) for one in kernels()}) == len(kernels()) > 100


# other processes

ASKED = """
from ltr_objectives.kernels import _compiler

asked, load = set(), _compiler.MachineCode.load_overload

def loaded(self, sig, context):
    asked.add(next(self._names(sig, context.codegen())))
    return load(self, sig, context)

_compiler.MachineCode.load_overload = loaded
"""
WARMUP = """
from ltr_objectives.warmup import warm_up

for share in range(3):
    warm_up(share, 3)
"""
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


def test_nothing_is_compiled_after_an_installation():
    """What is cached does not matter here: the kernels that an installation asks for are all that are used."""
    codes = (ASKED + code + "print(*asked)" for code in (WARMUP, USES))
    installed, used = (set(run_code(code, PYTHONWARNINGS="ignore").stdout.split()) for code in codes)
    assert used - installed == set()
    assert len(used) > 20


FACTOR = """
from ltr_objectives.kernels._jit import inlined

@inlined
def times(x):
    return 2.0 * x
"""
KERNELS = """
from ltr_objectives.kernels._jit import kernel
from ltr_objectives.kernels.factor import times

@kernel
def twice(x):
    return 1.0 * times(x)

@kernel
def again(x):
    return 1.0 * times(x)
"""
RUN = """
import pathlib, subprocess, sys

place, beginning = sys.argv[1:]
sys.path.insert(0, place)
import ltr_objectives

def edit(name, old, new):
    file = pathlib.Path(ltr_objectives.__file__).parent / "kernels" / f"{name}.py"
    file.write_text(file.read_text().replace(old, new))

def run(name):
    from ltr_objectives.kernels import twice
    kernel = getattr(twice, name)
    print(kernel(3.0), sum(kernel.compiled.stats.cache_hits.values()), flush=True)

def other(code):
    subprocess.run([sys.executable, "-c", beginning + code, place, beginning], check=True)

"""


@pytest.fixture
def small(tmp_path):
    """Run code in a process with a package that has two small kernels; each prints its value, and 1 if it was loaded.

    Return what was printed, and the warnings.
    """
    kernels = copied(tmp_path) / "kernels"
    (kernels / "factor.py").write_text(FACTOR)
    (kernels / "twice.py").write_text(KERNELS)

    def run(code='run("twice")', place=tmp_path, **environment):
        done = run_code(RUN + code, str(place), RUN, **{"NUMBA_CACHE_DIR": str(tmp_path / "cache"), **environment})
        return done.stdout.splitlines(), done.stderr

    return run


BOTH = """run("twice"); run("again")"""


@pytest.mark.parametrize(
    ("edited", "old", "new"),
    [pytest.param("twice", "1.0", "10.0", marks=pytest.mark.release), ("factor", "2.0", "20.0")],
)
def test_a_process_keeps_machine_code_of_the_functions_that_it_imported(small, edited, old, new):
    change = f"edit({edited!r}, {old!r}, {new!r})"
    code = f"from ltr_objectives.kernels import twice; {change}; run('twice'); other({BOTH!r}); run('again')"
    assert small(code) == (["6.0 0", "60.0 0", "60.0 0", "6.0 0"], "")
    assert small(BOTH) == (["60.0 1", "60.0 1"], "")
    assert small(f"edit({edited!r}, {new!r}, {old!r}); {BOTH}") == (["6.0 1", "6.0 1"], "")


def test_functions_of_an_outdated_pyc_are_not_taken_for_those_of_the_file(small, tmp_path):
    """Python sees no edit that leaves a file's size and time as they were, as rsync -t and archives may."""
    file = tmp_path / "ltr_objectives" / "kernels" / "factor.py"
    cached = {"PYTHONDONTWRITEBYTECODE": ""}
    assert small(**cached) == (["6.0 0"], "")
    before = file.stat()
    file.write_text(file.read_text().replace("2.0", "4.0"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert small(BOTH, **cached) == (["6.0 1", "6.0 0"], "")
    shutil.rmtree(file.parent / "__pycache__")
    assert small(BOTH, **cached) == (["12.0 0", "12.0 0"], "")


def test_kernels_that_are_not_compiled_are_silent():
    code = "from ltr_objectives import YetiLoss; YetiLoss().gradient_hessian([0.1, 0.2, 0.3], [1, 0, 2], [3])"
    done = run_code(code, NUMBA_DISABLE_JIT="1", NUMBA_CACHE_DIR=os.devnull, PYTHONWARNINGS="error")
    assert done.stderr == ""


@pytest.fixture
def twice(small, tmp_path):
    """Compile or load a kernel, on a processor: its value, and 1 if it was loaded."""

    def run(folder="cache", processor=None):
        chosen = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""} if processor else {}
        printed, warned = small(NUMBA_CACHE_DIR=str(tmp_path / folder), **chosen)
        assert warned == ""
        return printed[0]

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


@pytest.mark.release  # compiles for minutes
@pytest.mark.parametrize("orders", [("forward", "backward"), ("backward", "forward")])
def test_all_kernels_are_right_in_two_orders_from_one_cache(tmp_path, orders):
    for order in orders:
        run_code(IN_ORDER, order, NUMBA_CACHE_DIR=str(tmp_path))


# the rules of _jit.py

RULES = """
import sys
import numpy as np
from catalog import EXAMPLES, METRICS
from ltr_objectives.kernels._jit import Kernel

running, written, made = [], set(), set()

def arrays(value):
    if isinstance(value, np.ndarray):
        return [value]
    return [array for part in value for array in arrays(part)] if isinstance(value, tuple) else []

def checked(kernel, *given):
    name, found = kernel.py_func.__name__, arrays(given) if kernel.targetoptions["fastmath"] else []
    before = [array.tobytes() for array in found]
    running.append(kernel)
    result = kernel.py_func(*given)
    running.pop()
    if arrays(result):
        made.add(kernel)
        for one in (kernel, *running[-1:]):
            assert one.targetoptions["_nrt"], f"{one.py_func.__name__} has arrays of {name} and is not allocating"
    for i, array in enumerate(found):
        if array.tobytes() != before[i]:
            written.add(kernel)
            others = found[:i] + found[i + 1 :]
            assert not any(np.shares_memory(array, other) for other in others), name
    return result

Kernel.__call__ = checked
sizes = [int(size) for size in sys.argv[1:]]
rng = np.random.default_rng(0)
labels, scores = rng.integers(0, 2, sum(sizes)), rng.normal(size=sum(sizes))
for examples in EXAMPLES.values():
    for objective in examples:
        objective.gradient_hessian(scores, labels, sizes)
for examples in METRICS.values():
    examples[-1].per_query(scores, labels, sizes)
print(len(written), len(made))
"""


@pytest.mark.parametrize("sizes", [(1, 3), pytest.param((1, 3, 24, 90), marks=pytest.mark.release)], ids=str)
def test_kernels_keep_what_the_compiler_does_not_check(sizes):
    """Arrays overlap none that a reordered sum writes, and are returned only where references are counted.

    Python runs the same lines here.
    """
    environment = {"PYTHONWARNINGS": "ignore", "NUMBA_DISABLE_JIT": "1"}  # whole numbers wrap around
    written, made = map(int, run_code(RULES, *map(str, sizes), **environment).stdout.split())
    assert written > 10
    assert made > 10


def test_functions_that_reorder_sums_and_write_arrays_begin_by_stating_that_none_overlap():
    writing = 0
    for one in kernels():
        [function] = ast.parse(textwrap.dedent(inspect.getsource(one.py_func))).body
        inside = ast.walk(function) if one.targetoptions["fastmath"] else ()
        if any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in inside):
            writing += 1
            assert "apart()" in map(ast.unparse, function.body[:2]), function.name
    assert writing > 10


def test_all_arrays_that_a_kernel_states_to_be_apart_are_noalias():
    arrays = (numba.int64[::1],) * 2
    copy_order.callee.compile(arrays)
    head = re.search("define.*%arg.*", copy_order.callee.inspect_llvm(arrays))
    pointers = re.findall(r"(?:ptr|\*) ([^%]*)%arg", head[0])  # older versions of numba write i8* for ptr
    assert len(pointers) == 6  # of each array its data, its owner and a Python object
    assert all("noalias" in attributes for attributes in pointers)


def test_a_function_that_makes_an_array_does_not_compile_without_its_mark():
    def made():
        return np.zeros(3)[0]

    assert allocating(made)() == 0.0
    with pytest.raises(numba.core.errors.NumbaError):
        kernel(made)()


LEAKS = """
import numpy as np
from catalog import METRICS, MIXTURES, OBJECTIVES, PATHS
from ltr_objectives import Queries
from numba.core.runtime.nrt import rtsys

rng = np.random.default_rng(0)
labels, scores = rng.integers(0, 2, (2, 36)), rng.normal(size=36)
for repeat in range(2):
    before = rtsys.get_allocation_stats()
    queries = Queries({"relevance": labels[0], "revenue": labels[1]}, [1, 3, 32])
    for objective in (*OBJECTIVES.values(), MIXTURES[0], PATHS["goals"]):
        objective.compute(queries, scores)
    for examples in METRICS.values():
        examples[-1].values(queries, scores)
    after = rtsys.get_allocation_stats()
assert after.alloc - before.alloc > 100, "nothing was counted"
assert after.alloc - before.alloc == after.free - before.free, (before, after)
assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free, (before, after)
"""


def test_each_array_that_a_kernel_makes_is_freed_once():
    run_code(LEAKS, PYTHONWARNINGS="ignore", NUMBA_NRT_STATS="1")
