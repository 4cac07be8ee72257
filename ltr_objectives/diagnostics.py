"""Why a ranking does not improve: which queries have zero gradient, and how large the other gradients are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import warn
from ltr_objectives.objectives.around import innermost
from ltr_objectives.objectives.base import Objective, read_queries
from ltr_objectives.objectives.composite import Composite
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import Labels, Queries

SETTLED = 1e-6  # a query's gradient below this share of its gradient at tied scores counts as zero
MOST_PAIRS = 10**10  # which take a second or more

REASONS = {  # a query with zero gradient counts for the first that applies
    "one document": "nothing to order",
    "weight zero": "every row has weight 0",
    "no pairs": "no pair was given",
    "all labels equal": "no order is better than another",
    "nothing relevant": "labels differ, but none has a gain above 0: see threshold and gains of the metric",
    "all equally relevant": "labels differ, but all have the same gain: see threshold and gains of the metric",
    "scores settled": f"the gradient is below {SETTLED:g} of that at tied scores: the order is right, or scores are "
    "far apart",
    "gradient zero": "at these scores, for example beyond the cutoff",
}


@dataclass(frozen=True)
class Report:
    """The queries with a gradient at given scores, and why others have none; made by :func:`report`.

    Queries are counted for the objective that learns from the labels, without wrappers such as ``Langevin``. Hessians
    and norms are those that a library gets in the first iteration, with the wrappers.

    Parameters
    ----------
    objective : str
        The objective with its parameters.
    queries : int
        Number of queries.
    rows : int
        Number of rows.
    useful : int
        Number of queries whose gradient is not zero.
    useless : dict of str to int
        Number of the other queries, by reason.
    hessian_zero : int
        Number of rows of useful queries whose Hessian is exactly zero.
    hessian_negative : int
        Number of rows whose Hessian is negative.
    hessian_sum : float
        Sum over all rows. The libraries compare the sum in a leaf with ``min_child_weight`` or
        ``min_sum_hessian_in_leaf``.
    gradient_norm : float
        Euclidean norm over all rows.
    query_norms : tuple of three floats
        Smallest, median and largest norm of the gradient of a useful query.

    Examples
    --------
    >>> from ltr_objectives import report
    >>> print(report("lambdamart:mrr", [0.0, 0.0, 1.0], [1, 0, 1], group=[2, 1]))
    LambdaMART(metric=MRR(k=None, ties='average', empty=0.0, query_weights='mean', goal=None, threshold=0.0), ...)
    queries                2, rows 3
      useful               1 (50%)
      one document         1 (50%): nothing to order
    Hessian                sum 0.25; 0 zero, 0 negative
    gradient norm          0.3536; by useful query 0.3536, 0.3536, 0.3536 (smallest, median, largest)
    """

    objective: str
    queries: int
    rows: int
    useful: int
    useless: dict[str, int]
    hessian_zero: int
    hessian_negative: int
    hessian_sum: float
    gradient_norm: float
    query_norms: tuple[float, float, float]

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        def share(n: int) -> str:
            return f"{n} ({100 * n / self.queries:.0f}%)"

        low, middle, high = self.query_norms
        lines = [
            ("queries", f"{self.queries}, rows {self.rows}"),
            ("  useful", share(self.useful)),
            *((f"  {reason}", f"{share(n)}: {REASONS[reason]}") for reason, n in self.useless.items()),
            ("Hessian", f"sum {self.hessian_sum:.4g}; {self.hessian_zero} zero, {self.hessian_negative} negative"),
            ("gradient norm", f"{self.gradient_norm:.4g}; by useful query {low:.4g}, {middle:.4g}, {high:.4g} "
                              "(smallest, median, largest)"),
        ]  # fmt: skip
        return "\n".join([self.objective, *(f"{name:22} {value}" for name, value in lines)])


def _by_query(ufunc: np.ufunc, values: np.ndarray, queries: Queries) -> Any:
    return ufunc.reduceat(values, queries.ptr[:-1], axis=-1)


def _differ(values: np.ndarray, queries: Queries) -> np.ndarray:
    """Return True for queries whose values differ. Extremes are compared: a difference may overflow."""
    differ = _by_query(np.maximum, values, queries) > _by_query(np.minimum, values, queries)
    return np.any(np.atleast_2d(differ), axis=0, keepdims=True)[0]


def _largest(grad: np.ndarray, queries: Queries) -> np.ndarray:
    """Return the largest absolute gradient of each query."""
    return _by_query(np.maximum, np.abs(grad), queries)


def _reasons(objective: Objective, queries: Queries, now: np.ndarray, tied: np.ndarray) -> dict[str, int]:
    """Count queries with zero gradient by reason, from their largest gradients at these scores and at tied scores."""
    relevance, weight, facts = objective.relevance(queries), objective.row_weight(queries), objective.facts
    all_labels = [queries.for_goal(goal).labels for goal in (None, *facts.goals)] if facts.reads_labels else [relevance]
    differs = _differ(relevance, queries)
    applies = {
        "one document": np.diff(queries.ptr) == 1,
        "weight zero": np.zeros(len(queries), bool) if weight is None else _by_query(np.maximum, weight, queries) == 0,
        "no pairs": ~differs & (not facts.reads_labels),
        "all labels equal": ~np.any([_differ(labels, queries) for labels in all_labels], axis=0),
        "nothing relevant": ~differs & (np.atleast_2d(relevance)[:, queries.ptr[:-1]] == 0).all(axis=0),
        "all equally relevant": ~differs,
        "scores settled": tied > 0,
        "gradient zero": np.ones(len(queries), bool),
    }
    left = now <= SETTLED * tied
    counts = {}
    for reason in REASONS:
        which = applies[reason]
        counts[reason] = int((left & which).sum())
        left &= ~which
    return {reason: n for reason, n in counts.items() if n}


def report(
    objective: str | Objective, scores: ArrayLike, labels: Labels, group: ArrayLike | None = None,
    weight: ArrayLike | None = None, *, qid: ArrayLike | None = None, propensity: ArrayLike | None = None,
    n_threads: int | None = None,
) -> Report:  # fmt: skip
    """Report the queries with a gradient at these scores, and the reasons why others have none.

    Parameters
    ----------
    objective : str or Objective
        Such as ``"yetiloss:ndcg@10"``.
    scores, labels, group, weight, qid, propensity, n_threads
        As for :meth:`ltr_objectives.Objective.gradient_hessian`.

    Returns
    -------
    Report
        Queries with zero gradient by reason, Hessian entries, gradient norms. ``print`` shows a table,
        ``as_dict()`` gives plain numbers.

    Examples
    --------
    >>> found = report("lambdamart", [0.1, 0.2, 0.3, 0.4, 0.5], [1, 0, 2, 2, 1], group=[2, 2, 1])
    >>> found.useful, found.useless
    (1, {'one document': 1, 'all labels equal': 1})
    """
    found = get_objective(objective)
    given: dict[str, Any] = {"qid": qid, "weight": weight, "propensity": propensity}
    return diagnose(found, read_queries(found, labels, group, **given), scores, n_threads=n_threads)


def diagnose(objective: Objective, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> Report:
    """Report on validated queries, as :func:`report` does; compute the gradient up to three times."""
    s, inner = queries.check_scores(scores).values, innermost(objective)
    grad, hess = objective.compute(queries, s, n_threads=n_threads)
    learnt = grad if inner is objective else inner.compute(queries, s, n_threads=n_threads)[0]
    at_ties = inner.compute(queries, np.zeros(queries.rows), n_threads=n_threads)[0]
    now, tied = _largest(learnt, queries), _largest(at_ties, queries)
    useful = now > SETTLED * tied
    norms = _by_query(np.hypot, np.abs(grad), queries)  # no square of a large number, which would be infinite
    of_useful = norms[useful] if useful.any() else np.zeros(1)
    return Report(
        objective=repr(objective),
        queries=len(queries),
        rows=queries.rows,
        useful=int(useful.sum()),
        useless=_reasons(inner, queries, now, tied),
        hessian_zero=int(((hess == 0) & np.repeat(useful, np.diff(queries.ptr))).sum()),
        hessian_negative=int((hess < 0).sum()),
        hessian_sum=float(hess.sum()),
        gradient_norm=float(np.hypot.reduce(norms)),
        query_norms=(float(of_useful.min()), float(np.median(of_useful)), float(of_useful.max())),
    )


def warn_if_useless(
    objective: Objective, queries: Queries, scores: np.ndarray, grad: np.ndarray, n_threads: int | None = None
) -> None:
    """Warn if more than half of the queries have zero gradient; ``grad`` is that of ``objective``.

    A query counts only if its gradient is zero at other scores too, unlike squared error of equal labels.
    Labels that are clicks do not cause a warning, because queries without a click are usual.
    """
    if queries.of_clicks:
        return
    inner, half = innermost(objective), len(queries) / 2
    if inner is not objective:
        grad, _ = inner.compute(queries, scores, n_threads=n_threads)
    without = _largest(grad, queries) == 0
    if without.sum() > half:
        elsewhere, _ = inner.compute(queries, np.cos(np.arange(queries.rows)), n_threads=n_threads)
        without &= _largest(elsewhere, queries) <= 1e-12 * (1.0 + np.abs(queries.labels).max())  # rounding
    if without.sum() > half:
        by_reason = diagnose(objective, queries, scores, n_threads=n_threads).useless
        reasons = "; ".join(f"{n} {reason}" for reason, n in by_reason.items())
        warn(
            f"{without.sum()} of {len(queries)} queries have zero gradient ({reasons}); "
            f"ltr_objectives.report({str(inner)!r}, scores, labels, group) lists them"
        )


def warn_if_goals_agree(objective: Objective, queries: Queries, n_threads: int | None = None) -> None:
    """Warn if the labels of two goals give two parts of a sum one direction of the gradient."""
    members = [part for part in objective.members if part.factor > 0] if isinstance(objective, Composite) else []
    for part in members:
        part.on(queries, lambda inner, own: warn_if_goals_agree(inner, own, n_threads))
    if len({part.goal for part in members}) < 2:
        return
    scores = np.cos(np.arange(queries.rows))

    def direction(inner: Objective, own: Queries) -> np.ndarray:
        grad, _ = inner.compute(own, scores, n_threads=n_threads)
        return grad / (np.abs(grad).max() or 1.0)  # its squares are finite

    for (one, g), (other, h) in combinations([(part, part.on(queries, direction)) for part in members], 2):
        if one.goal != other.goal and g @ h > (1 - 1e-9) * np.linalg.norm(g) * np.linalg.norm(h):
            warn(
                f"labels[{other.goal or one.goal!r}] order and weigh every query as other labels do, so that "
                f"{one.objective} and {other.objective} have one gradient; leave one out. If they are amounts, NDCG "
                "divides them by the best of the query: take 'dcg(gain_type=linear)'"
            )


def warn_if_long(objective: Objective, queries: Queries) -> None:
    """Warn if a gradient visits ``MOST_PAIRS`` pairs of documents of the longest list."""
    if isinstance(objective, Composite):
        for member in objective.members:
            member.on(queries, warn_if_long)
    elif (pairs := objective.pairs_visited(queries)) >= MOST_PAIRS:
        warn(
            f"{objective.name} visits {pairs:.1e} pairs of documents of one query for each gradient, and Ctrl-C waits "
            "for that; choose a cutoff, fewer pairs or fewer draws, or split the queries"
        )
