"""Break the package in one place at a time and list the changes that no test notices.

Each mutant is run on a copy of the tree, with the tests that execute the function that it changes. Kernels, metrics and
objectives run as plain Python, because a changed kernel would take seconds to compile. Adapters run with compiled
kernels. A run that was interrupted continues where it stopped. ``python tools/mutants.py 'adapters/*'`` breaks some of
the files.
"""

import argparse
import ast
import contextlib
import fnmatch
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.progress import track

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = ".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist", "results", "catboost_info", "node_modules"
PLAIN, COMPILED = "plain", "compiled"
FOLDERS = {"ltr_objectives/kernels": PLAIN, "ltr_objectives/metrics": PLAIN, "ltr_objectives/objectives": PLAIN,
           "adapters": COMPILED}  # fmt: skip
OMITTED = {"_compiler.py", "__init__.py"}  # run differently here
SLOW_FILES = (  # they start processes, wait for a clock, or test other folders
    "test_benchmark*", "test_cli", "test_cli_*", "test_docs", "test_imports", "test_installed", "test_interrupts",
    "test_jit", "test_large_data", "test_movielens", "test_notebooks", "test_packaging", "test_report", "test_search*",
    "test_served",
)  # fmt: skip
TRAINING = (
    "test_auto", "test_bags", "test_bounds", "test_callables", "test_catboost*", "test_dask", "test_files",
    "test_goals_libraries", "test_position_bias", "test_presets", "test_properties_adapters", "test_ranker*",
    "test_refit", "test_refused", "test_streams", "test_threads", "test_tradeoff", "test_training*",
)  # fmt: skip
LEFT_OUT = {PLAIN: SLOW_FILES + TRAINING, COMPILED: SLOW_FILES}  # patterns of test files
SLOW = "not (20000_documents or same_bytes or wide_gaps or seed_select or monte_carlo or copies or processes)"
LONGEST = {PLAIN: 2.0, COMPILED: 20.0}  # seconds of a case; slower ones are left out
CASES = 20  # of each test, at most two that differ in numbers only
WHOLE = "equal_the_reference", "the_call_is_refused"  # tests of which all cases count
BUDGET = 30.0  # seconds of the tests of one mutant
MEMORY = 16 << 30
OPPOSITE: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
Tests = dict[str, tuple[float, list[str]]]  # seconds and executed functions


class Mutant(NamedTuple):
    """One change of the source."""

    file: str
    function: str  # its qualified name
    line: int
    start: int  # in the bytes of the file
    end: int
    before: str
    after: str

    def of(self, source: bytes) -> str:
        """Return the source with the change."""
        return (source[: self.start] + self.after.encode() + source[self.end :]).decode()


def nodes(node: Any, names: tuple[str, ...] = (), inside: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the nodes of the bodies of functions, each with the qualified name of its function."""
    children = ast.iter_child_nodes(node)
    match node:
        case ast.JoinedStr():  # messages stay as they are
            return
        case ast.AnnAssign():
            children = iter([node.value] if node.value else [])
        case ast.FunctionDef() | ast.ClassDef():
            children, names, inside = iter(node.body), (*names, node.name), isinstance(node, ast.FunctionDef)
        case ast.Lambda():
            children, names, inside = iter([node.body]), (*names, "<lambda>"), True
    if inside:
        yield ".".join(names), node
    for child in children:
        yield from nodes(child, names, inside)


class Source:
    """The bytes of a file, and changes of them: signs, factors, indices, comparisons, conditions."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]

    def start(self, node: Any) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: Any) -> int:
        return self.lines[node.end_lineno - 1] + node.end_col_offset

    def wrapped(self, node: Any, before: str, after: str) -> tuple[int, int, str]:
        start, end = self.start(node), self.end(node)
        return start, end, before + self.source[start:end].decode() + after

    def changes(self, node: Any) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and new text of the changes at a node."""
        match node:
            case (
                ast.BinOp(left=left, op=op, right=right)
                | ast.BoolOp(values=[left, right, *_], op=op)
                | ast.Compare(left=left, ops=[op, *_], comparators=[right, *_])
                | ast.AugAssign(target=left, op=op, value=right)
            ) if type(op) in OPPOSITE:
                before, after = OPPOSITE[type(op)]
                at = self.source.index(before.encode(), self.end(left), self.start(right))
                yield at, at + len(before), after
        match node:
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                yield self.start(node), self.start(node.operand), ""
            case ast.AugAssign(value=value) | ast.Return(value=ast.BinOp() | ast.Name() | ast.UnaryOp() as value):
                yield self.wrapped(value, "2 * (", ")")
            case ast.Subscript(slice=ast.Name() | ast.BinOp() as index):
                yield self.wrapped(index, "(", ") - 1")
            case ast.Subscript(slice=ast.Slice(lower=ast.expr() as lower)):
                yield self.wrapped(lower, "(", ") + 1")
            case ast.Call(func=ast.Name("min" | "max" as name)):
                yield self.start(node.func), self.end(node.func), "max" if name == "min" else "min"
            case ast.Call(func=ast.Name("range"), args=[*_, last]):
                yield self.wrapped(last, "(", ") - 1")
            case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield self.wrapped(test, "not (", ")")
            case ast.Constant(value=bool(value)):
                yield self.start(node), self.end(node), str(not value)
            case ast.Constant(value=int(value) | float(value)):
                yield self.start(node), self.end(node), "1" if value == 0 else str(2 * value)


def mutants(path: Path, name: str, order: random.Random) -> Iterator[Mutant]:
    """Yield the mutants of a file, in random order, that are valid Python and change it."""
    source = path.read_bytes()
    file, usual = Source(source), ast.parse(source)
    found = [
        Mutant(name, function, node.lineno, start, end, source[start:end].decode(), after)
        for function, node in nodes(usual)
        for start, end, after in file.changes(node)
    ]
    order.shuffle(found)
    for mutant in found:
        with contextlib.suppress(SyntaxError):
            if ast.dump(ast.parse(mutant.of(source))) != ast.dump(usual):
                yield mutant


def chosen(root: Path, each: int, seed: int, patterns: list[str]) -> list[Mutant]:
    """Return at most ``each`` mutants of each file, the first of every file before the second of any."""
    drawn = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).glob("*.py")):
        name = str(path.relative_to(root))
        if path.name not in OMITTED and any(fnmatch.fnmatch(name, p) for p in patterns):
            drawn.append(list(itertools.islice(mutants(path, name, random.Random(f"{seed} {name}")), each)))
    return [file[i] for i in range(each) for file in drawn if i < len(file)]


def mode_of(file: str) -> str | None:
    """Return how the tests of a file of the package run; None for other files."""
    return FOLDERS.get(str(Path(file).parent))


class TooSlow(BaseException):
    """A test takes longer than it may; no ``except Exception`` catches it."""


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fail after some seconds of processor time."""

    def stop(*_: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except TooSlow:
        pytest.fail("too slow")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Recorder:
    """Records of each test that passes the time and the functions that it executes."""

    def __init__(self, root: Path, longest: float) -> None:
        self.root, self.longest, self.codes, self.passed = root, longest, set(), set()
        self.found: Tests = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out most cases of a test, but none of those that are a table of different things."""
        count: Counter[Any] = Counter()
        kept = []
        for item in items:
            test, _, case = item.nodeid.partition("[")
            kind = test, "".join(c for c in case if not c.isdigit())
            if test.endswith(WHOLE) or (count[kind] < 2 and count[test] < CASES):
                count.update([kind, test])
                kept.append(item)
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Record the calls of one test and of its fixtures."""
        self.codes.clear()
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        begin = time.process_time()
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            if item.nodeid in self.passed:
                self.found[item.nodeid] = time.process_time() - begin, sorted(set(self._functions()))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Stop a test that takes too long."""
        with limited(self.longest):
            result = yield
        self.passed.add(item.nodeid)
        return result

    def _called(self, frame: Any, event: str, _: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def _functions(self) -> Iterator[str]:
        for code in list(self.codes):
            file = os.path.relpath(os.path.realpath(code.co_filename), self.root)
            if mode_of(file):
                name = code.co_qualname.replace("<locals>.", "")
                yield f"{file}:{name.split('.<')[0] if name.endswith('comp>') else name}"


class Selected:
    """Runs the tests of one mutant, in their order, and keeps the name of the one that fails."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times, self.found = times, ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out all other tests."""
        place = {test: i for i, test in enumerate(self.times)}
        items[:] = sorted((i for i in items if i.nodeid in place), key=lambda item: place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Stop a test that no longer ends."""
        with limited(10.0 + 10.0 * self.times[item.nodeid]):
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the name of a test, or of a file that cannot be imported, if it fails."""
        if report.failed:
            self.found = report.nodeid

    pytest_collectreport = pytest_runtest_logreport


def _pytest(root: Path, mode: str, arguments: list[str], plugin: Any, pipe: Any) -> None:
    """Run tests, in a process of its own, and send what the plugin found."""
    import numba

    numba.config.DISABLE_JIT = mode == PLAIN
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(root)
    own = ROOT, ROOT / "tests"
    sys.path[:] = [str(root), str(root / "tests"), *(p for p in sys.path if Path(p).resolve() not in own)]
    sys.dont_write_bytecode = True
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning", *arguments], [plugin])
    done = isinstance(plugin, Recorder) or code == pytest.ExitCode.OK
    pipe.send(plugin.found if done else plugin.found or f"pytest ended with {code!r}")
    pipe.close()
    os._exit(0)


def in_process(root: Path, mode: str, arguments: list[str], plugin: Any, seconds: float) -> Any:
    """Return the result that `_pytest` sends; None if the process ends without it or runs too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_pytest, args=(root, mode, arguments, plugin, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def record(root: Path, mode: str, folder: Path) -> Tests:
    """Record the tests of the package as it is; test files that were recorded are not run again."""
    kept = folder / f"tests-{mode}.json"
    known: dict[str, Tests] = json.loads(kept.read_text()) if kept.exists() else {}
    files = {path.name for path in (root / "tests").glob("test_*.py")}
    files -= {file for file in files for pattern in LEFT_OUT[mode] if fnmatch.fnmatch(file, f"{pattern}.py")}
    for name in track(sorted(files - known.keys()), f"Recording tests ({mode})"):
        arguments = [f"tests/{name}", "-m", "not release", *(["-k", SLOW] if mode == PLAIN else [])]
        known[name] = in_process(root, mode, arguments, Recorder(root, LONGEST[mode]), 7200) or {}
        kept.write_text(json.dumps(known))
    return {test: found for tests in known.values() for test, found in tests.items()}


def tests_of(mutant: Mutant, tests: Tests) -> dict[str, float]:
    """Return the tests that execute the function, one case of each before the second of any, within the budget."""
    cases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for test, (seconds, functions) in tests.items():
        if f"{mutant.file}:{mutant.function}" in functions:
            cases[test.split("[")[0]].append((seconds, test))
    queue = sorted((i, seconds, test) for kind in cases.values() for i, (seconds, test) in enumerate(sorted(kind)))
    used = itertools.accumulate(seconds for _, seconds, _ in queue)
    return {test: seconds for (_, seconds, test), until in zip(queue, used, strict=True) if until - seconds <= BUDGET}


def run(root: Path, mutant: Mutant, tests: Tests) -> dict[str, Any]:
    """Run the tests of one mutant until one fails."""
    selected, path = tests_of(mutant, tests), root / mutant.file
    source, stat = path.read_bytes(), path.stat()
    failed: str | None = "no test"
    if selected:
        try:
            path.write_text(mutant.of(source))
            files = list(dict.fromkeys(test.split("::")[0] for test in selected))
            failed = in_process(root, str(mode_of(mutant.file)), ["-x", *files], Selected(selected), 1200)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # so that its bytecode is valid again
    result = {"no test": "not run", "": "survived", None: "no end"}.get(failed, "caught")
    return {**mutant._asdict(), "result": result, "test": failed or ""}


def main() -> None:
    """Run the mutants that have no result yet, and print the survivors and the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=["*"], help="files to break, such as 'adapters/*'")
    parser.add_argument("--each", type=int, default=12, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=0, help="selects the mutants")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants", help="folder for the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "results.jsonl"
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {tuple(result[name] for name in Mutant._fields) for result in results}
    for name in ("catboost", "lightgbm", "pandas", "scipy.stats", "sklearn", "xgboost"):
        __import__(name)  # once; each process of tests begins as a copy of this one
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "tree"
        shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
        new = [mutant for mutant in chosen(root, options.each, options.seed, options.patterns) if mutant not in done]
        tests = {mode: record(root, mode, options.out) for mode in {str(mode_of(m.file)) for m in new}}
        with kept.open("a") as lines:
            for mutant in track(new, "Running mutants"):
                results.append(run(root, mutant, tests[str(mode_of(mutant.file))]))
                lines.write(json.dumps(results[-1]) + "\n")
                lines.flush()
    for r in results:
        if r["result"] in ("survived", "not run"):
            print(f"{r['result']}: {r['file']}:{r['line']} {r['function']}: {r['before']} -> {r['after']}")
    print(f"{len(results):,} mutants:", dict(Counter(r["result"] for r in results)))


if __name__ == "__main__":
    main()
