"""``objective="auto"``: train what suits the metric, and keep the model with the best value on the eval set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.queries import Queries
from ltr_objectives.statistics import differences
from ltr_objectives.workbench.candidates import check_comparable, natives_for, ours_for
from ltr_objectives.workbench.trials import try_each, warn_without_ours


class Attempt(NamedTuple):
    """A trained candidate."""

    model: Any
    scores: np.ndarray  # of the queries that choose
    rounds: int
    params: dict[str, Any]  # beside those of the ranker


class Candidate(NamedTuple):
    """One objective that was tried.

    Attributes
    ----------
    objective : str
        Its name.
    native : bool
        True if it is the library's own.
    value : float
        Its mean over the queries of the last pair of ``eval_set``.
    rounds : int
        The rounds that its model predicts with.
    difference : float or None
        Mean difference from the chosen one over queries; None for the chosen one.
    se : float or None
        Paired standard error of the difference.
    p : float or None
        p of the paired t-test after Holm's correction.
    params : dict
        Of a native objective: the parameters beside those of the ranker that give it the defaults of ours; empty if it
        was better at the defaults of its library.
    """

    objective: str
    native: bool
    value: float
    rounds: int
    difference: float | None = None
    se: float | None = None
    p: float | None = None
    params: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Decision:
    """The candidates of ``objective="auto"`` and the chosen one. ``str`` of it is a table.

    Attributes
    ----------
    metric : str
        The metric that decided.
    chosen : str
        The objective with the largest mean; the first of equal ones.
    queries : int
        Queries of the last pair of ``eval_set``.
    candidates : tuple of Candidate
        In the order in which they were tried. The chosen one was selected on these queries, so that its value is
        larger than on new ones.
    left_out : dict
        The reason for each objective that could not be trained.

    Examples
    --------
    >>> ours = Candidate("yetiloss:map", False, 0.75, 10)
    >>> theirs = Candidate("lambdarank", True, 0.7, 8, -0.05, 0.01, 0.002, {"reg_lambda": 3.25})
    >>> print(Decision("map", "yetiloss:map", 20, (ours, theirs)))
    map over 20 queries
    yetiloss:map  0.7500     10 rounds  chosen
    lambdarank    0.7000      8 rounds  -0.0500 (0.0100), p 0.002, with reg_lambda=3.25
    """

    metric: str
    chosen: str
    queries: int
    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        width = max(map(len, [*(each.objective for each in self.candidates), *self.left_out]))
        lines = [f"{self.metric} over {self.queries:,} queries"]
        lines += [self._line(each, width) for each in self.candidates]
        return "\n".join([*lines, *(f"{name:{width}}  left out: {why}" for name, why in self.left_out.items())])

    def as_dicts(self) -> list[dict[str, Any]]:
        """The candidates as dicts, such as for a DataFrame."""
        return [each._asdict() for each in self.candidates]

    def _line(self, each: Candidate, width: int) -> str:
        error = "" if each.se is None else f" ({each.se:.4f})"
        found = "chosen" if each.p is None else f"{each.difference:+.4f}{error}, p {each.p:.2g}"
        given = " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in each.params.items())
        settings = f", with {given}" if given else ", at the defaults of its library" if each.native else ""
        return f"{each.objective:{width}}  {each.value:.4f}  {each.rounds:5} rounds  {found}{settings}"


def choose(
    library: str, metric: Metric, queries: Queries, attempt: Callable[[Objective | str], Attempt], data: str,
    n_threads: int | None = None,
) -> tuple[Any, Decision]:  # fmt: skip
    """Train each candidate for ``metric``; return the model with the largest mean over ``queries``, and the evidence.

    Parameters
    ----------
    library : str
        Its name; its own objectives are candidates too.
    metric : Metric
    queries : Queries
        The queries that choose.
    attempt : callable
        Trains one objective, a string if it is the library's own, and returns an :class:`Attempt`. A candidate for
        which it raises ``LTRError`` is left out.
    data : str
        The name of ``queries`` in messages.
    n_threads : int, optional
    """
    check_comparable(metric, queries, data)
    weight = None if metric.query_weights == "ignore" else queries.weight_by_query
    natives = natives_for(library, metric)
    tried: dict[str, Objective | str] = {**ours_for(metric), **{name: name for name in natives}}
    trained, left_out = try_each(tried, lambda label: attempt(tried[label]))
    warn_without_ours(trained, left_out)
    values = {label: metric.values(queries, each.scores, n_threads=n_threads) for label, each in trained.items()}
    means = {label: metric.average(*metric.sums(each, weight)) for label, each in values.items()}
    best = max(means, key=lambda label: means[label])
    others = differences({label: v for label, v in values.items() if label != best}, values[best], weight)
    found = []
    for label, each in trained.items():
        candidate = Candidate(label, label in natives, means[label], each.rounds, params=each.params)
        if label in others:
            of = others[label]
            se = of["se"] if np.isfinite(of["se"]) else None  # of a single query there is none
            candidate = candidate._replace(difference=of["difference"], se=se, p=of["p"])
        found.append(candidate)
    return trained[best].model, Decision(str(metric), best, len(queries), tuple(found), left_out)
