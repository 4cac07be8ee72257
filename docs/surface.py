"""The public names with their parameters, members and defaults, and the commands with their options."""

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from typer.main import get_command

import ltr_objectives
from ltr_objectives import Metric, Objective, adapters
from ltr_objectives.adapters._auto import Candidate
from ltr_objectives.adapters._ranker import Fitted, Ranker
from ltr_objectives.adapters._tradeoff import Tradeoff
from ltr_objectives.extensible import Extensible
from ltr_objectives.statistics import Comparison
from ltr_objectives.workbench.cli.app import app

PACKAGES = ("ltr_objectives", "ltr_objectives.adapters")
MODULES = ("ltr_objectives.datasets", "ltr_objectives.warmup")
FOR_CLASSES = {  # what metrics and objectives of one's own need beside the base classes
    "ltr_objectives.checks": [
        f"check_{each}" for each in ("choice", "fraction", "integer", "not_negative", "positive")
    ],
    "ltr_objectives.kernels.swaps": ("LINEAR", "CASCADE", "AVERAGE"),
    "ltr_objectives.objectives.base": ("Facts",),
    "ltr_objectives.objectives.call": ("Call",),
}
WRAP = textwrap.TextWrapper(100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False).wrap
RETURNED = {  # records that have a page with their function
    "compare_scores": Comparison,
    "LGBMRanker": Candidate,
    "tradeoff": Tradeoff,
}
BASE_CLASSES = ("Objective", "Metric", "Queries")
SHARED = ["fit", "predict", "score", "best_iteration_", "booster_", "save_model", "load_model"]


def public_names() -> dict[str, Any]:
    """Return every public object by the name that users import it by."""
    found = {f"{package.__name__}.{name}": getattr(package, name)
             for package in (ltr_objectives, adapters) for name in package.__all__}  # fmt: skip
    for module in map(importlib.import_module, MODULES):
        found |= {f"{module.__name__}.{n}": getattr(module, n) for n in module.__all__ if not n.isupper()}
    return found


def render(public: str, thing: Any) -> str:
    """Return a block of mkdocstrings, with the anchor of the public name, and of what the function returns."""
    if not inspect.getdoc(thing):
        raise ValueError(f"{public} has no docstring")
    options = f"{{heading_level: 1, members: {members(thing) or 'null'}, inherited_members: {inherited(thing)}}}"
    block = f"[](){{#{public}}}\n\n::: {thing.__module__}.{thing.__qualname__}\n    options: {options}\n"
    returned = RETURNED.get(thing.__name__)
    return block + (f"\n::: {returned.__module__}.{returned.__name__}\n" if returned else "")


def inherited(thing: Any) -> str:
    """List the methods of the base class of estimators, which a page shows beside those of the class itself."""
    if thing in (ltr_objectives.Metric, ltr_objectives.Objective):
        return str([name for name in public_members(thing) if name not in vars(thing)])
    return str(SHARED) if inspect.isclass(thing) and issubclass(thing, Ranker) else "false"


def members(thing: Any) -> list[str] | None:
    """List the members to show: all of a base class, those that the docstring of our class names, or the new ones."""
    if thing.__name__ in BASE_CLASSES or not inspect.isclass(thing):
        return None
    if issubclass(thing, ltr_objectives.Objective | ltr_objectives.Metric):
        return re.findall(r":meth:`(\w+)`", inspect.getdoc(thing) or "")
    if issubclass(thing, Ranker):
        return SHARED
    routines = {
        name for name, v in vars(thing).items() if (inspect.isroutine(v) or isinstance(v, classmethod)) and v.__doc__
    }
    return sorted(name for name in routines if not name.startswith("_"))


def public_members(thing: type) -> list[str]:
    """Return the public attributes, properties and methods of a base class that have a text or a type."""
    bases = [base for base in thing.__mro__ if base.__module__.startswith("ltr_objectives.")]
    found = [item for base in bases for item in vars(base).items()]
    routines = [n for n, v in found if isinstance(v, property) or getattr(v, "__name__", "") == n]
    annotated = [name for base in bases if base is not Extensible for name in inspect.get_annotations(base)]
    names = dict.fromkeys((*annotated, *routines))
    return [name for name in names if not name.startswith("_") and name not in inspect.signature(thing).parameters]


def surface() -> str:
    """Return every public name with its parameters, by module, and every command with its options."""
    modules = {name: importlib.import_module(name).__all__ for name in (*PACKAGES, *MODULES)} | FOR_CLASSES
    found = {f"`{name}`": signatures(importlib.import_module(name), names) for name, names in modules.items()}
    of_fit = [name for name in Fitted._fields if hasattr(Ranker, name)]
    found["All estimators"] = [*(signed(name, inspect.getattr_static(Ranker, name)) for name in SHARED), *of_fit]
    blocks = ["\n".join((f"### {title}\n", "```python", *lines, "```\n")) for title, lines in found.items()]
    return "\n".join([*blocks, "\n".join(("### Commands\n", "```text", *commands(), "```\n"))])


def signatures(module: ModuleType, names: Iterable[str]) -> list[str]:
    """Yield an entry for each name of a module, and one for each public member of a class."""
    lines = []
    for name, thing in ((name, getattr(module, name)) for name in names):
        lines.append(signed(name, thing))
        if inspect.isclass(thing):
            lines += [signed(f"{name}.{each}", inspect.getattr_static(thing, each, None)) for each in promised(thing)]
    return lines


def promised(thing: type) -> list[str]:
    """Return the public members of a class: those that its reference shows, without what estimators inherit."""
    known = [] if issubclass(thing, Ranker) else members(thing)
    return public_members(thing) if known is None else known


def signed(name: str, thing: Any) -> str:
    """Return a name with its parameters and their defaults, or with its value."""
    function = getattr(thing, "__func__", thing)
    if isinstance(function, property) or not callable(function):
        return name if isinstance(function, property) or "." in name else f"{name} = {function!r}"
    if inspect.isclass(thing) and (thing is ltr_objectives.Objective or issubclass(thing, Exception)):
        return f"class {name}({thing.__bases__[0].__name__})".removesuffix("(Extensible)")
    given = inspect.signature(function).parameters.values()
    bare = [p.replace(annotation=p.empty) for p in given if p.name not in ("self", "cls")]
    written = re.sub(r"<[a-z -]+ '?([\w.]+)'?[^>]*>", r"\1", str(inspect.Signature(bare)))  # names of functions
    return "\n".join(WRAP(name + written))


def commands() -> list[str]:
    """Return each command with its arguments and options."""
    lines = []
    for name, command in get_command(app).commands.items():
        options = " ".join("/".join((*p.opts, *p.secondary_opts)) for p in command.params)
        lines += WRAP(f"ltr-objectives {name} {options}")
    return lines


def registered(kind: str) -> dict[str, Any]:
    """Return every registered objective or metric by its public name, by name."""
    table = Objective.named if kind == "objectives" else Metric.named
    named = {f"ltr_objectives.{each.__name__}": each for each in table.values()}
    return {name: named[name] for name in sorted(named) if hasattr(ltr_objectives, named[name].__name__)}
