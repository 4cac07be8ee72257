"""The imports of the core have no circle, and none is of what is built on it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import ltr_objectives

PACKAGE = Path(ltr_objectives.__file__).parent
FOLDERS = ".", "kernels", "metrics", "objectives"
CORE = {
    ".".join(("ltr_objectives", *path.relative_to(PACKAGE).with_suffix("").parts)): path
    for folder in FOLDERS
    for path in (PACKAGE / folder).glob("[!_]*.py")
    if path.name != "datasets.py"  # another name of what the workbench has
}


def imported(path):
    """The modules of the package that a file imports anywhere, also in functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "ltr_objectives":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in CORE else node.module for name in names)


def test_no_import_of_the_core_runs_upward():
    graph = {name: {*imported(path)} for name, path in CORE.items()}
    assert all(len(modules) > 1 for name, modules in graph.items() if name.endswith(("base", "queries")))
    TopologicalSorter(graph).prepare()  # raises for a circle
    above = "ltr_objectives.adapters", "ltr_objectives.workbench"
    assert not {
        name: found for name, modules in graph.items() if (found := [m for m in modules if m.startswith(above)])
    }
