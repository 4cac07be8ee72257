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
SKIPPED = (".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist", "results", "catboost_info", "node_modules")
PLAIN, COMPILED = "plain", "compiled"
FOLDERS = {"ltr_objectives/kernels": PLAIN, "ltr_objectives/metrics": PLAIN, "ltr_objectives/objectives": PLAIN,
           "adapters": COMPILED}  # fmt: skip
OMITTED = {"_jit.py", "_parts.py", "__init__.py", "check.py"}  # compile nothing here, or are tests themselves
TESTS = {  # patterns of test files; a file that starts processes or waits for a clock is not worth its time here
    PLAIN: ("test_correlation", "test_goals", "test_listwise*", "test_metrics", "test_mixture", "test_neuralndcg",
            "test_objectives", "test_pairwise", "test_plackett_luce", "test_plrank", "test_propensity",
            "test_published*", "test_queries", "test_reference_loss", "test_softrank", "test_sorting",
            "test_stochasticrank", "test_subsample", "test_unit"),
    COMPILED: ("test_adapters", "test_auto", "test_catboost*", "test_continue", "test_dask_parts",
               "test_goals_adapters", "test_gpu_arrays", "test_inputs", "test_large_labels", "test_model_files",
               "test_persistence", "test_position_adapters", "test_rankers*", "test_refused", "test_streams",
               "test_warnings", "test_weights"),
}  # fmt: skip
# what takes long without compiled code
SLOW = "not (20000_documents or same_bytes or wide_gaps or seed_select or monte_carlo or reinforce or copies)"
LONGEST = {PLAIN: 2.0, COMPILED: 20.0}  # seconds; slower cases are left out
CASES = 20  # of each parametrised test, of different kinds
BUDGET = 60.0  # seconds of tests for one mutant
MEMORY = 16 << 30
OPPOSITE: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
EQUIVALENT: dict[tuple[str, str, str], str] = {}  # (file, function, change): why no test can notice it


class Mutant(NamedTuple):
    """One change of the source."""

    file: str
    function: str  # its qualified name
    line: int
    start: int  # in the bytes of the file
    end: int
    before: str
    after: str

    @property
    def key(self) -> tuple[str, str, int, int, str]:
        """What names the mutant in the results."""
        return self.file, self.function, self.line, self.start, self.after


class Sites(ast.NodeVisitor):
    """All mutants of a file: signs, factors, indices, comparisons, conditions in functions."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.source, self.names, self.found = file, text.encode(), [], []
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.visit(ast.parse(text))

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _span(self, node: Any) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, node: Any, start: int, end: int, after: str) -> None:
        if self.names and self.names[-1] != "class":
            function = ".".join(name for name in self.names if name != "class")
            before = self.source[start:end].decode()
            self.found.append(Mutant(self.file, function, node.lineno, start, end, before, after))

    def _wrap(self, node: Any, before: str, after: str) -> None:
        start, end = self._span(node)
        self._add(node, start, end, before + self.source[start:end].decode() + after)

    def _operator(self, node: Any, left: Any, right: Any, kind: type) -> None:
        if kind in OPPOSITE:
            before, after = OPPOSITE[kind]
            start, end = self._span(left)[1], self._span(right)[0]
            at = start + self.source[start:end].decode().index(before)
            self._add(node, at, at + len(before), after)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.names += [node.name]
        for statement in node.body:
            self.visit(statement)
        self.names.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names += [node.name, "class"]
        for statement in node.body:
            self.visit(statement)
        del self.names[-2:]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.names += ["<lambda>"]
        self.visit(node.body)
        self.names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave messages as they are."""

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._operator(node, node.left, node.right, type(node.op))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._operator(node, node.values[0], node.values[1], type(node.op))
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        self._operator(node, node.left, node.comparators[0], type(node.ops[0]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub | ast.Not):
            self._add(node, self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._operator(node, node.target, node.value, type(node.op))
        self._wrap(node.value, "2 * (", ")")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.BinOp | ast.Name | ast.UnaryOp):
            self._wrap(node.value, "2 * (", ")")
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Name | ast.BinOp):
            self._wrap(node.slice, "(", ") - 1")
        elif isinstance(node.slice, ast.Slice) and node.slice.lower is not None:
            self._wrap(node.slice.lower, "(", ") + 1")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func)
        if name in ("min", "max"):
            self._add(node, *self._span(node.func), "max" if name == "min" else "min")
        if name == "range" and node.args:
            self._wrap(node.args[-1], "(", ") - 1")
        self.generic_visit(node)

    def visit_If(self, node: Any) -> None:
        if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            self._wrap(node.test, "not (", ")")
        self.generic_visit(node)

    visit_IfExp = visit_If

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add(node, *self._span(node), str(not value))
        elif isinstance(value, int | float):
            self._add(node, *self._span(node), "1" if value == 0 else str(value + 1 if value == 1 else 2 * value))


def sites(path: Path, root: Path, order: random.Random) -> Iterator[Mutant]:
    """Yield the mutants of a file, in random order, that are valid Python and change it."""
    text = path.read_text()
    found = Sites(str(path.relative_to(root)), text).found
    order.shuffle(found)
    for mutant in found:
        with contextlib.suppress(SyntaxError):
            if ast.dump(ast.parse(mutated(text, mutant))) != ast.dump(ast.parse(text)):
                yield mutant


def mutated(text: str, mutant: Mutant) -> str:
    """The source with the change."""
    source = text.encode()
    return (source[: mutant.start] + mutant.after.encode() + source[mutant.end :]).decode()


def chosen(root: Path, each: int, seed: int, patterns: list[str]) -> list[Mutant]:
    """At most ``each`` mutants of each file, the first of every file before the second of any."""
    drawn = []
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            name = str(path.relative_to(root))
            if path.name not in OMITTED and any(fnmatch.fnmatch(name, p) for p in patterns):
                drawn.append(list(itertools.islice(sites(path, root, random.Random(f"{seed} {name}")), each)))
    return [file[i] for i in range(each) for file in drawn if i < len(file)]


def folder_of(file: str) -> str:
    """The entry of ``FOLDERS`` that a file belongs to."""
    return str(Path(file).parent)


class TooSlow(BaseException):
    """A test takes longer than it may; no ``except Exception`` catches it."""


class Recorder:
    """Records the outcome and the time of each test, and the functions that it executes."""

    def __init__(self, root: Path, longest: float) -> None:
        self.root, self.longest, self.codes, self.tests = str(root), longest, set(), {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out most cases of a test."""
        count: Counter[Any] = Counter()
        chosen = []
        for item in items:
            test, _, case = item.nodeid.partition("[")
            kind = test, "".join(c for c in case if not c.isdigit())
            count[kind] += 1
            if count[kind] <= 1 and count[test] < CASES:
                count[test] += 1
                chosen.append(item)
        items[:] = chosen

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
            if item.nodeid in self.tests:
                self.tests[item.nodeid] = time.process_time() - begin, sorted(set(self._functions()))

    def _called(self, frame: Any, event: str, _: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def _functions(self) -> Iterator[str]:
        for code in list(self.codes):
            if code.co_filename.startswith(self.root):
                file = os.path.relpath(os.path.realpath(code.co_filename), self.root)
                if folder_of(file) in FOLDERS:
                    name = code.co_qualname.replace("<locals>.", "")
                    yield f"{file}:{name.split('.<')[0] if name.endswith('comp>') else name}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        """Stop a test that takes too long."""
        with limited(self.longest):
            return (yield)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Remember what passed."""
        if report.when == "call" and report.passed:
            self.tests[report.nodeid] = 0.0, []


class Selected:
    """Runs the tests of one mutant, in their order, and remembers the one that fails."""

    def __init__(self, times: dict[str, float]) -> None:
        self.times, self.failed = times, ""

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
        """Remember the failure."""
        if report.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        """Count a test file that cannot be imported as a failure."""
        if report.failed:
            self.failed = report.nodeid


class limited:
    """Raise `TooSlow` in the main thread after some seconds of processor time."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        def stop(*_: Any) -> None:
            raise TooSlow

        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)

    def __exit__(self, kind: Any, *_: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if kind is TooSlow:
            pytest.fail("too slow")


def _pytest(root: Path, mode: str, arguments: list[str], plugin: Any, pipe: Any) -> None:
    """In a process of its own: run tests and send what the plugin found."""
    import numba

    numba.config.DISABLE_JIT = mode == PLAIN
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(root)
    own = ROOT, ROOT / "tests"
    sys.path[:] = [str(root), str(root / "tests"), *(p for p in sys.path if Path(p).resolve() not in own)]
    sys.dont_write_bytecode = True
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    code = pytest.main(["-q", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning", *arguments], [plugin])
    if isinstance(plugin, Recorder):
        pipe.send(plugin.tests)
    else:
        pipe.send("" if code == pytest.ExitCode.OK else plugin.failed or f"pytest ended with {code!r}")
    pipe.close()
    os._exit(0)


def in_process(root: Path, mode: str, arguments: list[str], plugin: Any, seconds: float) -> Any:
    """What `_pytest` sends; None if the process ends without it or takes too long."""
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


def record(root: Path, mode: str, folder: Path) -> dict[str, tuple[float, list[str]]]:
    """Time and functions of each test that passes without a mutant; test files that were recorded are not run again."""
    kept = folder / f"tests-{mode}.json"
    known: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    files = sorted({path for name in TESTS[mode] for path in (root / "tests").glob(f"{name}.py")})
    for path in track([f for f in files if f.name not in known], f"Recording tests ({mode})"):
        arguments = [f"tests/{path.name}", *(["-k", SLOW] if mode == PLAIN else [])]
        known[path.name] = in_process(root, mode, arguments, Recorder(root, LONGEST[mode]), 7200) or {}
        kept.write_text(json.dumps(known))
    return {test: found for tests in known.values() for test, found in tests.items()}


def tests_of(mutant: Mutant, tests: dict[str, tuple[float, list[str]]]) -> dict[str, float]:
    """The tests that execute the function, one of each kind before the second of any, within the budget."""
    function = f"{mutant.file}:{mutant.function}"
    by_kind: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for test, (seconds, functions) in tests.items():
        if function in functions:
            by_kind[test.split("[")[0]].append((seconds, test))
    queue = sorted((i, seconds, test) for kind in by_kind.values() for i, (seconds, test) in enumerate(sorted(kind)))
    used, selected = 0.0, {}
    for _, seconds, test in queue:
        used += seconds
        if used > BUDGET and selected:
            break
        selected[test] = seconds
    return selected


def run(root: Path, mutant: Mutant, tests: dict[str, tuple[float, list[str]]]) -> dict[str, Any]:
    """One mutant: the first test that fails, or that none does."""
    selected = tests_of(mutant, tests)
    begin = time.perf_counter()
    path = root / mutant.file
    text, stat = path.read_text(), path.stat()
    failed: str | None = "no test"
    if selected:
        try:
            path.write_text(mutated(text, mutant))
            files = list(dict.fromkeys(test.split("::")[0] for test in selected))
            failed = in_process(root, FOLDERS[folder_of(mutant.file)], ["-x", *files], Selected(selected), 1200)
        finally:
            path.write_text(text)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # so that its bytecode is valid again
    result = {"no test": "not run", "": "survived", None: "no end"}.get(failed, "caught")
    return {**mutant._asdict(), "result": result, "test": failed or "", "tests": len(selected),
            "seconds": round(time.perf_counter() - begin, 1)}  # fmt: skip


def report(results: list[dict[str, Any]]) -> None:
    """Print the survivors and the numbers by file."""
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for r in results:
        equivalent = EQUIVALENT.get((r["file"], r["function"], f"{r['before']} -> {r['after']}"))
        outcome = "equivalent" if equivalent and r["result"] in ("survived", "not run") else r["result"]
        by_file[r["file"]][outcome] += 1
        if outcome in ("survived", "not run"):
            print(f"{outcome}: {r['file']}:{r['line']} {r['function']}: {r['before']} -> {r['after']}")
    columns = ("caught", "no end", "survived", "not run", "equivalent")
    print(f"\n{'file':48}" + "".join(f"{column:>11}" for column in columns))
    for file, counts in sorted(by_file.items()):
        print(f"{file:48}" + "".join(f"{counts[column]:11}" for column in columns))
    total = sum(by_file.values(), Counter())
    print(f"{total.total():,} mutants{'':34}" + "".join(f"{total[column]:11}" for column in columns))


def main() -> None:
    """Read the arguments, run the mutants that have no result yet, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=["*"], help="files to break, such as 'adapters/*'")
    parser.add_argument("--each", type=int, default=12, help="mutants of each file")
    parser.add_argument("--seed", type=int, default=0, help="selects the mutants")
    parser.add_argument("--tests", type=Path, default=ROOT, help="a tree whose tests replace those of this one")
    parser.add_argument("--only", type=Path, help="results of another run: try its survivors alone")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants", help="folder for the results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    kept = options.out / "results.jsonl"
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve() / "tree"
        shutil.copytree(ROOT, root, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
        if options.tests != ROOT:
            shutil.rmtree(root / "tests")
            shutil.copytree(options.tests / "tests", root / "tests")
        mutants = chosen(root, options.each, options.seed, options.patterns)
        if options.only:
            lines = map(json.loads, options.only.read_text().splitlines())
            keys = {tuple(r[k] for k in ("file", "function", "line", "start", "after")) for r in lines
                    if r["result"] in ("survived", "not run")}  # fmt: skip
            mutants = [m for m in mutants if m.key in keys]
        done = {tuple(r[k] for k in ("file", "function", "line", "start", "after")) for r in results}
        mutants = [m for m in mutants if m.key not in done]
        preload()
        modes = {FOLDERS[folder_of(m.file)] for m in mutants}
        tests = {mode: record(root, mode, options.out) for mode in sorted(modes)}
        with kept.open("a") as lines:
            for mutant in track(mutants, "Running mutants"):
                results.append(run(root, mutant, tests[FOLDERS[folder_of(mutant.file)]]))
                lines.write(json.dumps(results[-1]) + "\n")
                lines.flush()
    report(results)


def preload() -> None:
    """Import the libraries once; each process of tests begins as a copy of this one."""
    import catboost  # noqa: F401
    import lightgbm  # noqa: F401
    import pandas  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn  # noqa: F401
    import xgboost  # noqa: F401


if __name__ == "__main__":
    main()
