"""``check_metric``: whether the methods of a metric agree, on small random lists."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.base import TIES, Metric
from ltr_objectives.queries import Queries, vector
from ltr_objectives.registry import described

CUTOFFS = (1, 2, 3, 5, 8, 20)
LISTS = 8  # of each length and cutoff


def check_metric(metric: Metric, labels: ArrayLike | None = None) -> None:
    """Raise unless ``gain``, ``discount``, ``scale`` and ``kind`` of a metric agree with its ``reference``.

    Values, also of tied scores, and the changes of all swaps and moves are compared on small random lists, with several
    cutoffs. Call it in a test of a metric of your own.

    Parameters
    ----------
    metric : Metric
        An object of the class, such as ``Attention()``.
    labels : array, optional
        The labels to draw from. By default 0 to 4, or as far as the metric's ``label_limit`` allows; for a limit of at
        most 1 also fractions.

    Raises
    ------
    LTRError
        It names the methods that disagree, and a list for which they do.

    Examples
    --------
    >>> from ltr_objectives import NDCG
    >>> check_metric(NDCG(k=10))
    """
    require(
        isinstance(metric, Metric),
        f"metric must be an object of a subclass of ltr_objectives.Metric, got {described(metric)}",
    )
    rng, known = np.random.default_rng(0), None if labels is None else vector("labels", labels)
    require(known is None or len(known), "labels is empty; give the labels to draw from")
    metric = replace(metric, goal=None, empty=0.0 if metric.empty == "skip" else metric.empty)

    def some(n: int) -> np.ndarray:
        return random_labels(metric.label_limit, rng, n) if known is None else rng.choice(known, n)

    every = np.unique(some(300))
    metric.layers(Queries(np.resize(every, 100), [100]))  # raises if gain or discount returns what none may
    gain = metric._each("gain", "label", every)
    worst, best = every[gain.argmin()], every[gain.argmax()]
    for k in {"none": (None,), "required": CUTOFFS, "optional": (None, *CUTOFFS)}[metric.cutoff]:
        each = replace(metric, k=k)
        for y in every:
            _compare_value(each, np.array([y]), "gain, scale, or discount of rank 1")
        for d in range(2, 10):
            _compare_value(each, np.append(np.full(d - 1, worst), best), f"discount of rank {d}, or scale")
        for n in (*range(1, 8), 30):
            one = np.where(np.arange(n) == rng.integers(n), best, worst)
            for ranked in (one, *(some(n) for _ in range(LISTS))):
                _compare_value(each, ranked, "kind or scale")
                for change in (swapped, moved) if n < 8 else ():
                    found = each.swap_changes(ranked) if change is swapped else each.move_changes(ranked)
                    good = np.allclose(found, brute_force_changes(each, ranked, change), rtol=1e-10, atol=1e-12)
                    name = change.__name__
                    require(good, f"{each}: {name} documents of {ranked.tolist()} change reference otherwise than kind")
    try:
        by_ties = [replace(metric, ties=ties) for ties in TIES]
    except LTRError:  # the metric has its own treatment of ties
        return
    for n, each in itertools.product((2, 4, 6), by_ties):
        _compare_ties(each, some(n), rng.integers(0, 2, n).astype(np.float64))


def random_labels(limit: float | None, rng: np.random.Generator, n: int) -> np.ndarray:
    """Random labels up to a limit, the limit included if it is at most 4."""
    if limit is not None and limit <= 1:
        return rng.choice([0.0, 0.2, 0.5, 1 - 1e-7, 1.0], n) * limit
    chance = np.array([0.4, 0.3, 0.15, 0.1, 0.05][: 5 if limit is None else int(limit) + 1])
    return rng.choice(len(chance), n, p=chance / chance.sum()).astype(np.float64)


def swapped(labels: np.ndarray, d: int, e: int) -> np.ndarray:
    """Labels in rank order after two documents are swapped."""
    out = labels.copy()
    out[[d, e]] = out[[e, d]]
    return out


def moved(labels: np.ndarray, d: int, e: int) -> np.ndarray:
    """Labels in rank order after one document is moved to another rank."""
    return np.insert(np.delete(labels, d), e, labels[d])


def brute_force_changes(
    metric: Metric, labels: np.ndarray, change: Callable[[np.ndarray, int, int], np.ndarray] = swapped
) -> np.ndarray:
    """Change of ``metric.reference`` for each swap, or move, of ranks ``d`` and ``e``."""
    n = len(labels)
    out, before = np.zeros((n, n)), _reference(metric, labels)
    for d in range(n):
        for e in range(d + 1 if change is swapped else 0, n):
            out[d, e] = _reference(metric, change(labels, d, e)) - before
    return out


def _reference(metric: Metric, labels: np.ndarray) -> float:
    told = f"{metric}: reference gets an array, the labels {labels.tolist()} in rank order, and must return a number"
    try:
        value = float(metric.reference(labels.copy()))
    except (TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise LTRError(f"{told}, but raised {error!r}") from error
    require(np.isfinite(value), f"{told}, but returned {value}")
    return value


def _compare_value(metric: Metric, ranked: np.ndarray, suspects: str) -> None:
    rows = np.random.default_rng(len(ranked)).permutation(len(ranked))
    _require_equal(metric, -rows.astype(np.float64), ranked[rows], _reference(metric, ranked), suspects)


def _compare_ties(metric: Metric, labels: np.ndarray, scores: np.ndarray) -> None:
    orders = map(list, itertools.permutations(range(len(scores))))
    values = [_reference(metric, labels[o]) for o in orders if (np.diff(scores[o]) <= 0).all()]  # the input's first
    expected = {"average": float(np.mean(values)), "worst": min(values), "best": max(values), "input": values[0]}
    _require_equal(metric, scores, labels, expected[metric.ties], f"with ties={metric.ties!r} gain, kind or scale")


def _require_equal(metric: Metric, scores: np.ndarray, labels: np.ndarray, expected: float, suspects: str) -> None:
    found = float(metric.per_query(scores, labels, [len(labels)])[0])
    ranked = labels[np.argsort(-scores, kind="stable")].tolist()
    require(
        np.isclose(found, expected, rtol=1e-10, atol=1e-12),
        f"{metric}: the labels {ranked} in rank order have the value {expected:.6g} by reference, but {found:.6g} by "
        f"gain, discount, scale and kind; correct {suspects}, or reference",
    )
