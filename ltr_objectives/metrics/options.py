"""The options of metrics: their text, and their values under the conventions of libraries."""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

from ltr_objectives.checks import Check, check_integer, is_number, one_of, optional, refuse
from ltr_objectives.errors import require, shown
from ltr_objectives.extensible import Extensible
from ltr_objectives.goals import check_goal, with_goal
from ltr_objectives.language import metric_text

Ties = Literal["average", "input", "worst", "best"]
QueryWeights = Literal["mean", "rows", "relevant", "ignore"]


def _check_empty(name: str, value: object) -> object:
    if not is_number(value) and not (isinstance(value, str) and value == "skip"):
        refuse(name, value, "must be a number or 'skip'")
    return value


@dataclass(frozen=True)
class Options(Extensible):
    """The base of metrics: the options of all, which :class:`ltr_objectives.Metric` explains, and their text."""

    k: int | None = None
    ties: Ties = "average"
    empty: float | str = 0.0
    query_weights: QueryWeights = "mean"
    goal: str | None = field(default=None, kw_only=True)

    checks: ClassVar[dict[str, Check]] = {
        "k": optional(check_integer),
        "ties": one_of(*get_args(Ties)),
        "empty": _check_empty,
        "query_weights": one_of(*get_args(QueryWeights)),
        "goal": optional(lambda name, goal: check_goal(goal)),
    }
    conventions: ClassVar[dict[str, dict[str, Any]]] = {}  # by library, the options that are not the defaults
    cutoff: ClassVar[str] = "optional"  # or "required", or "none", or "query" of a metric with one for each query

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.cutoff not in ("none", "query") or self.k is None, f"{self.name} has no cutoff; leave k out")
        require(
            self.cutoff != "required" or self.k is not None,
            f"{self.name} of the whole list is the same for every ranking; give a cutoff, such as {self.name}@10",
        )

    @property
    def goals(self) -> tuple[str, ...]:
        """The goals whose labels the metric reads."""
        return () if self.goal is None else (self.goal,)

    @property
    def _of_empty(self) -> float:
        """The value of an empty query in ``reference``; one that the mean skips has 0 there, which no swap changes."""
        return 0.0 if self.empty == "skip" else float(self.empty)

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
