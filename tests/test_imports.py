"""The imports of the core have no circle, and none is of what is built on it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ltr_objectives
from ltr_objectives.libraries import LIBRARIES, Library

PACKAGE = Path(ltr_objectives.__file__).parent
FOLDERS = ".", "kernels", "metrics", "objectives"
CORE = {
    ".".join(("ltr_objectives", *path.relative_to(PACKAGE).with_suffix("").parts)): path
    for folder in FOLDERS
    for path in (PACKAGE / folder).glob("*.py")
    if not path.name.startswith("__") and path.name != "datasets.py"  # another name of what the workbench has
}
ABOVE = "ltr_objectives", "ltr_objectives.adapters", "ltr_objectives.workbench"


ADAPTERS = {f"ltr_objectives.adapters.{path.stem}": path for path in (PACKAGE / "adapters").glob("_[a-z]*.py")}


def is_module(name):
    path = PACKAGE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").is_file()


def imported(text):
    """Yield the modules of the package that a source imports, also in functions and by name, but not for types."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if ast.unparse(node).partition(":")[0] != "if TYPE_CHECKING"]
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if is_module(name) else node.module for name in whole]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names = [a.value for a in node.args if isinstance(a, ast.Constant)]
        yield from (name for name in names if name.partition(".")[0] == "ltr_objectives")


def upward(modules):
    return [m for m in modules if m == ABOVE[0] or m.startswith(ABOVE[1:])]


def test_no_import_of_the_core_runs_upward():
    graph = {name: {*imported(path.read_text())} for name, path in CORE.items()}
    assert all(len(modules) > 1 for name, modules in graph.items() if name.endswith(("base", "queries")))
    TopologicalSorter(graph).prepare()  # raises for a circle
    assert not {name: found for name, modules in graph.items() if (found := upward(modules))}


def test_the_adapters_have_no_circle_and_import_no_workbench():
    graph = {name: {*imported(path.read_text())} for name, path in ADAPTERS.items()}
    assert len(graph) > 10
    TopologicalSorter(graph).prepare()
    assert not {
        name: found for name, modules in graph.items() if (found := [m for m in modules if m.startswith(ABOVE[2])])
    }


@pytest.mark.parametrize(
    "line",
    [
        "from ltr_objectives import adapters",
        "importlib.import_module('ltr_objectives.workbench.tables')",
    ],
)
def test_a_late_import_is_seen(line):
    assert upward(imported(f"def f():\n    if True:\n        {line}\n"))
    assert not upward(imported("from ltr_objectives.errors import require\nfrom ltr_objectives import errors"))


def test_no_public_name_hides_a_module():
    modules = {".".join(module.split(".")[1:2]) for module in CORE}
    assert {"metrics", "objectives"} < modules
    assert not {name for name in ltr_objectives.__all__ if name in modules}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_has_all_facts(name):
    assert not [fact for fact in Library.__annotations__ if not hasattr(LIBRARIES[name], fact)]
