"""What the documentation takes from the code: the registry, the public names, and the opening of the README.

A page asks for it by a comment of its own line, ``<!-- from the code: objectives -->``; see ``CONTENTS``.
"""

import importlib
import inspect
import re
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import ltr_objectives
from ltr_objectives import adapters, registry

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "build" / "docs-source"  # as in mkdocs.yml
MODULES = ("ltr_objectives.datasets", "ltr_objectives.propensity", "ltr_objectives.warmup")
REQUEST = re.compile(r"^<!-- from the code: (.+) -->$", re.MULTILINE)
OF_BASE_CLASSES = ("Objective", "Metric", "Queries")


def on_config(config: Any) -> None:
    """Pages that the navigation does not name are how-to pages."""
    named = set(re.findall(r"[\w/]+\.md", str(config.nav)))
    [how_to] = [section["How to"] for section in config.nav if "How to" in section]
    how_to += sorted({page.name for page in Path(config.docs_dir).glob("*.md")} - named)


def on_pre_build(config: Any) -> None:
    """Lay the package out as it is installed: the adapters lie beside it in the repository."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ltr_objectives", SOURCE / "ltr_objectives", ignore=without)
    shutil.copytree(ROOT / "adapters", SOURCE / "ltr_objectives" / "adapters", ignore=without)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in what the page asks for."""
    return REQUEST.sub(lambda match: CONTENTS[match[1]](), markdown)


def public_names() -> dict[str, Any]:
    """Every public object by the name that users import it by."""
    found = {f"{package.__name__}.{name}": getattr(package, name)
             for package in (ltr_objectives, adapters) for name in package.__all__}  # fmt: skip
    for module in map(importlib.import_module, MODULES):
        own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__}
        found |= {f"{module.__name__}.{n}": own[n] for n in getattr(module, "__all__", own) if not n.startswith("_")}
    return found


def render(public: str, thing: Any, members: Iterable[str] | bool) -> str:
    """A block of mkdocstrings, with the anchor of the public name."""
    if not inspect.getdoc(thing):
        raise ValueError(f"{public} has no docstring")
    shown = str(members).lower() if isinstance(members, bool) else str([*members])
    path = f"{thing.__module__}.{thing.__qualname__}"
    return f"[](){{#{public}}}\n\n::: {path}\n    options:\n      members: {shown}\n"


def own_members(thing: Any) -> list[str]:
    """Documented methods and properties that a class adds to those of every objective or metric."""
    bases = [getattr(ltr_objectives, name) for name in OF_BASE_CLASSES]
    return [
        name
        for name, value in vars(thing).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property))
        and value.__doc__
        and not any(hasattr(base, name) for base in bases)
    ]


def registered(kind: str) -> list[tuple[str, type]]:
    """Public name and class of every registered objective or metric, in the registry's order."""
    names = [name for name, (folder, _) in registry.public_classes().items() if folder == kind]
    return [(f"ltr_objectives.{name}", registry.load_public(name)) for name in names]


def classes(kind: str) -> str:
    """Each registered objective or metric."""
    return "\n".join(render(name, thing, own_members(thing)) for name, thing in registered(kind))


def others(package: str) -> str:
    """The public names of a package that are no registered objective or metric."""
    shown = set(registry.public_classes())
    out = []
    for public, thing in public_names().items():
        module, _, name = public.rpartition(".")
        if module == package and name not in shown:
            out.append(
                render(
                    public, thing, name in OF_BASE_CLASSES or own_members(thing) if inspect.isclass(thing) else False
                )
            )
    return "\n".join(out)


def objectives_table() -> str:
    """One line for each objective: notation, metric, randomness, Hessian, and what reproduces it in a library."""
    lines = [
        "| objective | as a string | optimises | random | Hessian | native counterpart |",
        "|---|---|---|---|---|---|",
    ]
    for public, thing in registered("objectives"):
        plain = thing()
        metric = "any metric" if "metric" in thing.parameters() else first_sentence(thing)
        native = {f"{p.library} `{next(iter(p.params.values()))}`".partition(":mode")[0] for p in thing.parities()}
        lines.append(
            f'| [`{thing.__name__}`][{public}] | `"{thing.name}"` | {metric} | {"yes" if plain.random else "no"} '
            f"| {plain.hessian_kind} | {', '.join(sorted(native)) or '-'} |"
        )
    return "\n".join(lines)


def first_sentence(thing: Any) -> str:
    return inspect.getdoc(inspect.getmodule(thing)).partition(":")[2].strip().partition("\n")[0].rstrip(".")


def conventions_table() -> str:
    """What each metric changes for the convention of each library."""
    libraries = sorted({name for _, thing in registered("metrics") for name in thing.conventions})
    lines = [f"| metric | {' | '.join(libraries)} |", "|---" * (len(libraries) + 1) + "|"]
    for public, thing in registered("metrics"):
        cells = (
            "<br>".join(f"`{key}={value!r}`" for key, value in thing.conventions[name].items())
            if name in thing.conventions else "-" for name in libraries
        )  # fmt: skip
        lines.append(f"| [`{thing.__name__}`][{public}] | {' | '.join(cells)} |")
    return "\n".join(lines)


def kernels() -> str:
    """The derivation at the head of each kernel's module."""
    names = sorted(path.stem for path in (ROOT / "ltr_objectives" / "kernels").glob("[!_]*.py"))
    return "\n".join(f"::: ltr_objectives.kernels.{name}\n    options:\n      members: false\n" for name in names)


def opening() -> str:
    """The README up to its first section, with links that hold from here."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    text = re.sub(r"\]\(docs/", "](", text.partition("\n")[2])
    return re.sub(r"!?\[([^\]]*)\]\((?!https?:)(?![\w]+\.md)[^)]*\)", r"\1", text)


CONTENTS: dict[str, Callable[[], str]] = {
    "opening of the README": opening,
    "table of objectives": objectives_table,
    "objectives": lambda: classes("objectives"),
    "kernels": kernels,
    "table of conventions": conventions_table,
    "metrics": lambda: classes("metrics"),
    **{f"other names of {name}": lambda name=name: others(name)
       for name in ("ltr_objectives", "ltr_objectives.adapters", *MODULES)},
}  # fmt: skip
