"""Docstrings as Markdown: reST mathematics and cross-references, which mkdocstrings would show as they stand."""

import pydoc
import re
import textwrap
from typing import Any

import griffe

import ltr_objectives
from ltr_objectives import adapters

DISPLAY = re.compile(r"^( *)\.\. math::(.*(?:\n(?: *\n)*\1 +\S.*)*)", re.MULTILINE)
ROLE = re.compile(r":(math|func|class|meth|mod|attr|exc):`([^`]+)`")
SHARED = re.compile(r"^( *)(\w+(?:, \*{0,2}\w+)+)\n((?:\1 +\S.*\n)+)", re.MULTILINE)  # parameters with one text
TYPED = re.compile(r"^ *(\w+(?:, \w+)*) : (.+?)(?:, optional)?$", re.MULTILINE)
DOCTEST = re.compile(r"^>>> .*\n?(?:.+\n?)*", re.MULTILINE)


def display(match: re.Match[str]) -> str:
    """Return a block of mathematics, at the indentation of its directive."""
    first, _, rest = match[2].partition("\n")
    lines = f"{first.strip()}\n{textwrap.dedent(rest)}".strip()
    return textwrap.indent(f"\n$$\n{lines}\n$$\n", match[1])


def separate(match: re.Match[str]) -> str:
    """Return an entry for each parameter: griffe would give all of them type and default of the first.

    A long text stands at the last alone, which may have further paragraphs.
    """
    indent, text, (*others, last) = match[1], match[3], match[2].split(", ")
    above = text if text.count("\n") <= 2 else f"{indent}    See ``{last}``.\n"
    return "".join(f"{indent}{name}\n{above}" for name in others) + f"{indent}{last}\n{text}"


def to_markdown(text: str, place: griffe.Object) -> str:
    """Return the docstring ``text`` of ``place`` with reST mathematics and roles in Markdown."""

    def role(match: re.Match[str]) -> str:
        kind, inner = match[1], " ".join(match[2].split())
        return rf"\({inner}\)" if kind == "math" else f"[`{inner}`][{target(place, inner)}]"

    if "Examples\n--------" not in text:  # griffe sees to that section itself
        text = DOCTEST.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", text)
    return ROLE.sub(role, DISPLAY.sub(display, SHARED.sub(separate, text)))


def target(place: griffe.Object, name: str) -> str:
    """Return where a name leads as seen from ``place``: to a member of it, a public name, or something around."""
    if name.startswith("ltr_objectives."):
        path = getattr(pydoc.locate(name), "__qualname__", "")
        return (
            f"{pydoc.locate(name).__module__}.{path}" if "." in path else name
        )  # methods go by where they are defined
    if name in place.members:
        return f"{place.path}.{name}"
    for package in (ltr_objectives, adapters):
        if name in package.__all__:
            return f"{package.__name__}.{name}"
    return place.resolve(name)


def as_written(docstring: griffe.Docstring) -> None:
    """Set types with choices to their text: as an expression ``"log2-rank"`` is a difference, ``"mean"`` a name."""
    found = [(names, kind) for names, kind in TYPED.findall(docstring.value) if '"' in kind or "," in kind]
    written = {name: kind for names, kind in found for name in names.split(", ")}
    for section in docstring.parsed:
        if section.kind in (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes):
            for entry in section.value:
                entry.annotation = written.get(entry.name, entry.annotation)


class RestructuredText(griffe.Extension):
    """Converts every docstring of a package once it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        self._convert(pkg)

    def _convert(self, thing: griffe.Object | griffe.Alias) -> None:
        if isinstance(thing, griffe.Alias):
            return
        if isinstance(thing, griffe.Function):
            for each in list(thing.parameters):
                if str(each.annotation) == "NoReturn" or each.name == "_written":  # refused, or not for the user
                    del thing.parameters[each.name]
        if thing.docstring:
            thing.docstring.value = to_markdown(thing.docstring.value, thing)
            as_written(thing.docstring)
        for member in thing.members.values():
            self._convert(member)
