"""Break the package in one place at a time and list the changes that no test notices: ``make mutants``.

Each mutant is run on a copy of the tree, with the tests that execute the function that it changes. Kernels, metrics and
objectives run as plain Python, because a changed kernel would take seconds to compile. Adapters run with compiled
kernels. A run that was interrupted continues where it stopped.
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
OMITTED = {"_compiler.py", "_parts.py", "__init__.py", "check.py"}  # run differently here, or are tests themselves
TESTS = {  # patterns of test files; tests that start processes or wait for a clock take too long here
    PLAIN: ("test_clicks", "test_contracts", "test_evaluate", "test_goals", "test_inputs", "test_kernels",
            "test_metrics", "test_own_classes", "test_pairs", "test_plackett_luce", "test_preferences",
            "test_properties_core", "test_published*", "test_smoothed", "test_stochasticrank", "test_weights",
            "test_wrappers"),
    COMPILED: ("test_auto", "test_callables", "test_catboost*", "test_dask", "test_files", "test_goals_libraries",
               "test_inputs", "test_ranker*", "test_refused", "test_streams", "test_training*"),
}  # fmt: skip
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
EQUIVALENT = {  # (file, line of the source, what is written there instead): why no test can notice it
    ("adapters/_catboost_fit.py",
     "for name, ours, theirs in zip(self._fields, self, other, strict=True):", "False"):
        "two records of the same fields",
    ("adapters/_catboost_passes.py", "self._waiting -= rows", "2 * (rows)"): "a waiting thread goes on anyway",
    ("adapters/_frames.py", "frame: FrameType | None = sys._getframe(1)", "2"): "our own frames are passed over",
    ("ltr_objectives/kernels/exponential.py",
     "outside += not abs(x[i]) < FARTHEST", "2 * (not abs(x[i]) < FARTHEST)"):
        "a count that is compared with 0",
    ("ltr_objectives/kernels/plackett_luce.py",
     "if tail[middle] > x:", ">="):
        "sums of random numbers are never equal",
    ("ltr_objectives/kernels/scores.py", "row += GAMMA", "2 * (GAMMA)"): "a constant of a hash",
    ("ltr_objectives/kernels/sorting.py",
     "last = 0  # the largest count below top, and where it is", "1"):
        "a smaller bound keeps more documents than needed",
    ("ltr_objectives/kernels/threads.py",
     "self.begun.append(True)", "False"):
        "only the length of the list is read",
    ("ltr_objectives/metrics/binary.py",
     "return sum(i < j for i, j in pairs) / len(pairs) if pairs else float(self.empty)", "<="):
        "two different documents",
    ("ltr_objectives/objectives/neuralndcg.py",
     "m, rounds, noisy = min(longest, how.most), how.rounds + 1, np.empty(longest)",
     "2"):
        "a larger buffer",
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
        """The source with the change."""
        return (source[: self.start] + self.after.encode() + source[self.end :]).decode()


class Sites(ast.NodeVisitor):
    """All mutants of the functions of a file: signs, factors, indices, comparisons, conditions."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source, self.names, self.found = file, source, [], []
        self.starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
        self.visit(ast.parse(source))

    def _span(self, node: Any) -> tuple[int, int]:
        starts = self.starts
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def _replace(self, node: Any, start: int, end: int, after: str) -> None:
        if self.names and self.names[-1] != "class":
            function = ".".join(name for name in self.names if name != "class")
            before = self.source[start:end].decode()
            self.found.append(Mutant(self.file, function, node.lineno, start, end, before, after))

    def _wrap(self, node: Any, before: str, after: str) -> None:
        start, end = self._span(node)
        self._replace(node, start, end, before + self.source[start:end].decode() + after)

    def _operator(self, node: Any, left: Any, right: Any, kind: type) -> None:
        if kind in OPPOSITE:
            before, after = OPPOSITE[kind]
            start, end = self._span(left)[1], self._span(right)[0]
            at = start + self.source[start:end].decode().index(before)
            self._replace(node, at, at + len(before), after)

    def _inside(self, names: list[str], nodes: list[Any]) -> None:
        self.names += names
        for node in nodes:
            self.visit(node)
        del self.names[-len(names) :]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside([node.name], node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside([node.name, "class"], node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._inside(["<lambda>"], [node.body])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages as they are."""

    def generic_visit(self, node: Any) -> None:
        change = getattr(self, f"_change_{type(node).__name__}", None)
        if change:
            change(node)
        super().generic_visit(node)

    def _change_BinOp(self, node: Any) -> None:
        self._operator(node, node.left, node.right, type(node.op))

    def _change_BoolOp(self, node: Any) -> None:
        self._operator(node, node.values[0], node.values[1], type(node.op))

    def _change_Compare(self, node: Any) -> None:
        self._operator(node, node.left, node.comparators[0], type(node.ops[0]))

    def _change_UnaryOp(self, node: Any) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            self._replace(node, self._span(node)[0], self._span(node.operand)[0], "")

    def _change_AugAssign(self, node: Any) -> None:
        self._operator(node, node.target, node.value, type(node.op))
        self._wrap(node.value, "2 * (", ")")

    def _change_Return(self, node: Any) -> None:
        if isinstance(node.value, ast.BinOp | ast.Name | ast.UnaryOp):
            self._wrap(node.value, "2 * (", ")")

    def _change_Subscript(self, node: Any) -> None:
        if isinstance(node.slice, ast.Name | ast.BinOp):
            self._wrap(node.slice, "(", ") - 1")
        elif isinstance(node.slice, ast.Slice) and node.slice.lower is not None:
            self._wrap(node.slice.lower, "(", ") + 1")

    def _change_Call(self, node: Any) -> None:
        name = ast.unparse(node.func)
        if name in ("min", "max"):
            self._replace(node, *self._span(node.func), "max" if name == "min" else "min")
        if name == "range" and node.args:
            self._wrap(node.args[-1], "(", ") - 1")

    def _change_If(self, node: Any) -> None:
        if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            self._wrap(node.test, "not (", ")")

    _change_IfExp = _change_If

    def _change_Constant(self, node: Any) -> None:
        value = node.value
        if isinstance(value, bool):
            self._replace(node, *self._span(node), str(not value))
        elif isinstance(value, int | float):
            self._replace(node, *self._span(node), "1" if value == 0 else str(value + 1 if value == 1 else 2 * value))


def sites(path: Path, root: Path, order: random.Random) -> Iterator[Mutant]:
    """Yield the mutants of a file, in random order, that are valid Python and change it."""
    source = path.read_bytes()
    found = Sites(str(path.relative_to(root)), source).found
    order.shuffle(found)
    usual = ast.dump(ast.parse(source))
    for mutant in found:
        with contextlib.suppress(SyntaxError):
            if ast.dump(ast.parse(mutant.of(source))) != usual:
                yield mutant


def chosen(root: Path, each: int, seed: int, patterns: list[str]) -> list[Mutant]:
    """At most ``each`` mutants of each file, the first of every file before the second of any."""
    drawn = []
    for path in sorted(path for folder in FOLDERS for path in (root / folder).glob("*.py")):
        name = str(path.relative_to(root))
        if path.name not in OMITTED and any(fnmatch.fnmatch(name, p) for p in patterns):
            drawn.append(list(itertools.islice(sites(path, root, random.Random(f"{seed} {name}")), each)))
    return [file[i] for i in range(each) for file in drawn if i < len(file)]


def mode_of(file: str) -> str | None:
    """The way in which the tests of a file of the package run; None for other files."""
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
        self.root, self.longest, self.codes = root, longest, set()
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
        """Record the calls of one test."""
        self.codes.clear()
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        begin = time.process_time()
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            if item.nodeid in self.found:
                self.found[item.nodeid] = time.process_time() - begin, sorted(set(self._functions()))

    def _called(self, frame: Any, event: str, _: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def _functions(self) -> Iterator[str]:
        for code in list(self.codes):
            file = os.path.relpath(os.path.realpath(code.co_filename), self.root)
            if mode_of(file):
                name = code.co_qualname.replace("<locals>.", "")
                yield f"{file}:{name.split('.<')[0] if name.endswith('comp>') else name}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Stop a test that takes too long."""
        with limited(self.longest):
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the test if it passes."""
        if report.when == "call" and report.passed:
            self.found[report.nodeid] = 0.0, []


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
    """The result that `_pytest` sends; None if the process ends without it or runs too long."""
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
    files = sorted({path.name for name in TESTS[mode] for path in (root / "tests").glob(f"{name}.py")})
    for name in track([f for f in files if f not in known], f"Recording tests ({mode})"):
        arguments = [f"tests/{name}", "-m", "not release", *(["-k", SLOW] if mode == PLAIN else [])]
        known[name] = in_process(root, mode, arguments, Recorder(root, LONGEST[mode]), 7200) or {}
        kept.write_text(json.dumps(known))
    return {test: found for tests in known.values() for test, found in tests.items()}


def tests_of(mutant: Mutant, tests: Tests) -> dict[str, float]:
    """The tests that execute the function, one case of each before the second of any, within the budget."""
    cases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for test, (seconds, functions) in tests.items():
        if f"{mutant.file}:{mutant.function}" in functions:
            cases[test.split("[")[0]].append((seconds, test))
    queue = sorted((i, seconds, test) for kind in cases.values() for i, (seconds, test) in enumerate(sorted(kind)))
    used = itertools.accumulate(seconds for _, seconds, _ in queue)
    return {test: seconds for (_, seconds, test), until in zip(queue, used, strict=True) if until - seconds <= BUDGET}


def run(root: Path, mutant: Mutant, tests: Tests) -> dict[str, Any]:
    """Run the tests of one mutant until one fails."""
    selected = tests_of(mutant, tests)
    begin, path = time.perf_counter(), root / mutant.file
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
    return {**mutant._asdict(), "result": result, "test": failed or "", "tests": len(selected),
            "seconds": round(time.perf_counter() - begin, 1)}  # fmt: skip


def report(results: list[dict[str, Any]]) -> None:
    """Print the survivors and the numbers by file."""
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for r in results:
        outcome = r["result"]
        if outcome in ("survived", "not run"):
            line = (ROOT / r["file"]).read_text().splitlines()[r["line"] - 1].strip()
            if (r["file"], line, r["after"]) in EQUIVALENT:
                outcome = "equivalent"
            else:
                print(f"{outcome}: {r['file']}:{r['line']} {r['function']}: {r['before']} -> {r['after']}")
        by_file[r["file"]][outcome] += 1
    by_file[f"{len(results):,} mutants"] = sum(by_file.values(), Counter())
    columns = "caught", "no end", "survived", "not run", "equivalent"
    print(f"\n{'file':48}" + "".join(f"{column:>11}" for column in columns))
    for file, counts in by_file.items():
        print(f"{file:48}" + "".join(f"{counts[column]:11}" for column in columns))


def main() -> None:
    """Run the mutants that have no result yet, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=["*"], help="files to break, such as 'adapters/*'")
    parser.add_argument("--each", type=int, default=12, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=0, help="selects the mutants")
    parser.add_argument("--tests", type=Path, default=ROOT, help="a tree whose tests run in place of these")
    parser.add_argument("--only", type=Path, help="results of another run: try its survivors alone")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants", help="folder for the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    def read(path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def key(result: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(result[name] for name in Mutant._fields)

    results = read(options.out / "results.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "tree"
        shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
        if options.tests != ROOT:
            shutil.rmtree(root / "tests")
            shutil.copytree(options.tests / "tests", root / "tests")
        mutants = chosen(root, options.each, options.seed, options.patterns)
        if options.only:
            survivors = {key(r) for r in read(options.only) if r["result"] in ("survived", "not run")}
            mutants = [m for m in mutants if m in survivors]
        done = set(map(key, results))
        mutants = [m for m in mutants if m not in done]
        preload()
        tests = {mode: record(root, mode, options.out) for mode in {str(mode_of(m.file)) for m in mutants}}
        with (options.out / "results.jsonl").open("a") as lines:
            for mutant in track(mutants, "Running mutants"):
                results.append(run(root, mutant, tests[str(mode_of(mutant.file))]))
                lines.write(json.dumps(results[-1]) + "\n")
                lines.flush()
    report(results)


def preload() -> None:
    """Import the libraries once; each process of tests begins as a copy of this one."""
    for name in ("catboost", "lightgbm", "pandas", "scipy.stats", "sklearn", "xgboost"):
        __import__(name)


if __name__ == "__main__":
    main()
