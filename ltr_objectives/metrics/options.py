"""The options of metrics: their text, and their values under the conventions of libraries."""

from collections.abc import Iterable
from dataclasses import MISSING, fields, replace
from typing import Any, ClassVar, Self

from ltr_objectives.errors import require, shown
from ltr_objectives.extensible import Extensible
from ltr_objectives.goals import with_goal
from ltr_objectives.language import metric_text


class Options(Extensible):
    """The base of metrics that writes them as text."""

    k: int | None
    goal: str | None
    conventions: ClassVar[dict[str, dict[str, Any]]]

    def __str__(self) -> str:
        """Return the text that ``get_metric`` reads, such as ``map(threshold=2.5)@10[liked]``, with options written.

        Results have it as key. It leaves out the convention: ``get_metric(str(metric), convention)`` has both.
        """
        return self._text(self._written)

    def _text(self, names: Iterable[str]) -> str:
        """Return the text with these options."""
        text = metric_text(self.name, {name: getattr(self, name) for name in names if name in self.options()})
        return with_goal(text if self.k is None else f"{text}@{self.k}", self.goal)

    def _changed(self) -> list[str]:
        """Return the options that differ from their defaults, without cutoff and goal."""
        default: dict[str, Any] = {f.name: f.default for f in fields(self)}
        return [name for name in self.options() if getattr(self, name) != default[name]]

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the parameters that stand in brackets."""
        return tuple(name for name in cls.parameters() if name not in ("k", "goal"))

    def with_convention(self, library: str) -> Self:
        """Return this metric with the conventions of a library, except for the options that were written."""
        there = f"conventions of {self.name}: {', '.join(sorted(self.conventions)) or 'none'}"
        known = isinstance(library, str) and library in self.conventions
        require(known, f"{self.name} has no convention {shown(library)}; {there}")
        kept = {"_written", "goal", *self._written}
        usual = {f.name: f.default for f in fields(self) if f.name not in kept and f.default is not MISSING}
        return self._with(**{name: self.conventions[library].get(name, value) for name, value in usual.items()})

    def _with(self, **values: Any) -> Self:
        """Return a copy with other values of goal or conventions, which do not count as written."""
        return replace(self, **{"_written": self._written, **values})
