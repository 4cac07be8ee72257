"""Sizes of the project, numbers that should fall: ``make size``."""

import ast
import graphlib
import inspect
import subprocess
import sys
from collections import Counter
from pathlib import Path

from ltr_objectives import Metric, Objective

ROOT = Path(__file__).parents[1]
KERNELS = {"kernel", "inlined", "inlined_kernel"}
HOUSES = {"package": ("ltr_objectives", "adapters"), "tests": ("tests",), "benchmarks": ("benchmarks",)}


def length(path: Path) -> int:
    """The lines of a file."""
    return len(path.read_text().splitlines())


def module(path: Path) -> str:
    """The name by which a file of the package is imported; adapters/ is linked into the package."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return f"ltr_objectives.{name}" if name.startswith("adapters") else name


def code_lines(node: ast.AST) -> int:
    """The lines of a module, class or function that are neither empty, nor comment, nor docstring."""
    texts = {line for n in ast.walk(node) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)
             for line in range(n.lineno, n.end_lineno + 1)}  # fmt: skip
    return len({line for n in ast.walk(node) for line in _lines(n)} - texts)


def _lines(node: ast.AST) -> range:
    """The first lines of a node; the whole of a text over several lines."""
    if not hasattr(node, "lineno"):
        return range(0)
    return range(node.lineno, (node.end_lineno if isinstance(node, ast.Constant) else node.lineno) + 1)


def imports(tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules that are imported when this one is, without those for type checkers."""
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found & modules


def main() -> None:
    trees = {path: ast.parse(path.read_text()) for folders in HOUSES.values() for folder in folders
             for path in sorted((ROOT / folder).rglob("*.py")) if "__pycache__" not in path.parts}  # fmt: skip
    folders = {path: str(path.parent.relative_to(ROOT)) for path in trees}
    lines = Counter(dict.fromkeys(folders.values(), 0))
    for path in trees:
        lines[folders[path]] += length(path)
    modules = Counter(folders.values())
    for folder in sorted(modules):
        print(f"{folder:28} {lines[folder]:7,} lines {modules[folder]:4} modules")
    for house, parts in HOUSES.items():
        own = [path for path in trees if path.relative_to(ROOT).parts[0] in parts]
        total, code = (sum(of(path) for path in own) for of in (length, lambda path: code_lines(trees[path])))
        print(f"{house:28} {total:7,} lines {len(own):4} modules {code:7,} of code")
    package = {path: tree for path, tree in trees.items() if path.relative_to(ROOT).parts[0] in HOUSES["package"]}
    for cls in (Objective, Metric):
        public = [name for name, _ in inspect.getmembers(cls) if not name.startswith("_")]
        print(f"public members of {cls.__name__:10} {len(public):7}")
    functions = [f for tree in package.values() for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
    kernels = [f for f in functions if KERNELS & {ast.unparse(d) for d in f.decorator_list}]
    most = max(kernels, key=lambda f: len(f.args.args))
    print(f"most arguments of a kernel   {len(most.args.args):7} ({most.name})")
    print(f"kernels of more than 8       {sum(len(f.args.args) > 8 for f in kernels):7}")
    print(f"functions above 40 lines     {sum(code_lines(f) > 40 for f in functions):7} of code")
    names = {module(path): tree for path, tree in package.items()}
    try:
        graphlib.TopologicalSorter({n: imports(tree, set(names)) - {n} for n, tree in names.items()}).prepare()
        print("circles of imports                 0")
    except graphlib.CycleError as error:
        print("circle of imports           ", " > ".join(error.args[1]))
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"],
                          cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    print(f"cases of tests               {done.stdout.splitlines()[-1].split()[0]:>7}")


if __name__ == "__main__":
    main()
