"""``check_metric`` and ``check_objective`` compare the methods of a class with one another, on small random lists."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, described, require
from ltr_objectives.kernels.moves import move_matrix
from ltr_objectives.kernels.swaps import swap_matrix
from ltr_objectives.metrics.base import LEARNED, Metric
from ltr_objectives.metrics.options import Ties
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Arrays
from ltr_objectives.objectives.composite import Composite, leaves
from ltr_objectives.objectives.reference import brute_force_changes
from ltr_objectives.queries import Queries, vector

CUTOFFS = {"none": (None,), "query": (None,), "required": (1, 2, 3, 5, 8, 20), "optional": (None, 1, 2, 3, 5, 8, 20)}
DRAWS = 800  # of an objective whose randomness cannot be turned off
SPREADS = (0.0, 1.0, 2.0**-13, 0.13, 8.0, 1024.0)  # between scores; the first two have ties


def check_metric(metric: Metric, labels: ArrayLike | None = None) -> None:
    """Raise unless ``gain``, ``discount``, ``scale`` and ``kind`` of a metric agree with its ``reference``.

    Values, also of tied scores, and the changes of all swaps and moves are compared on small random lists, with several
    cutoffs. A list must have the same value beside other lists. Gains must not fall as labels rise, nor all be equal,
    and no value may be above ``maximum``. Call it in a test of a metric of your own.

    ``kind`` names one of three families, ``Metric.LINEAR``, ``CASCADE`` and ``AVERAGE``, and no other metric can be
    trained for. :func:`ltr_objectives.evaluate` takes any other as a function.

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
    lists, every = _lists(metric, Metric, labels, longest=100)
    lists = [(s, y) for s, y in lists if len(s) <= 5 or _untied(s)]  # few enough orders of ties to enumerate
    metric = metric._with(goal=None, empty=0.0 if metric.empty == "skip" else metric.empty)
    metric.layers(Queries(np.resize(every, 100), [100]))  # raises if gain or discount returns what none may
    rises = np.diff(metric._each("gain", "label", every))
    falls = np.append(rises < 0, False)
    require(not falls.any(), f"{metric}: gain falls above label {every[falls.argmax()]:g}; larger labels are better")
    require(rises.any(), f"{metric}: gain is the same for the labels {every.tolist()}; pass labels= that differ in it")
    every_option = [replace(metric, k=k) for k in CUTOFFS[metric.cutoff]]
    with suppress(LTRError):  # of a metric with its own treatment of ties
        every_option += [replace(metric, ties=ties) for ties in get_args(Ties)]
    for each in every_option:
        most = np.inf if each.maximum is None else max(each.maximum, float(each.empty)) + 1e-9
        for (s, y), beside in zip(lists, each.per_query(*_joined(lists)), strict=True):
            case, value = _of(each, s, y), _compare_value(each, s, y)
            _require_equal([beside], [value], f"{case}, beside other lists,", "alone it is", ["value"])
            require(value <= most, f"{case} the value is {value:.6g}, above maximum; set maximum, None without a limit")
            if len(s) <= 5 and _untied(s) and each.kind in LEARNED:
                changes = [_changes(each, y, fill) for fill in (swap_matrix, move_matrix)]
                expected = [brute_force_changes(each, y), brute_force_changes(each, y, moves=True)]
                case = f"{each}: with labels {y.tolist()} in rank order, by kind"
                _require_equal(changes, expected, case, "by reference it is", ["change by swaps", "change by moves"])


def _changes(metric: Metric, labels: np.ndarray, fill: Callable[..., None]) -> np.ndarray:
    """Return the change of the metric by each swap or move of labels that are in rank order."""
    total = np.zeros((len(labels), len(labels)))
    for terms in metric.layers(Queries(labels, [len(labels)])):
        out = np.zeros_like(total)
        fill(terms.kind, terms.gain, terms.discount, terms.scale[0], out)
        total += out
    return total


def check_objective(objective: Objective, labels: ArrayLike | None = None, longest: int = 100) -> None:
    """Raise unless ``fill`` of an objective computes what its ``reference`` or ``reference_loss`` does.

    On random lists, with ties, equal labels and scores far apart, gradient and Hessian are compared with ``reference``,
    and on short ones with differences of ``reference_loss``; the class needs one of them. As ``noise_scale`` goes to 0
    they must approach those without noise. They must not depend on the number of threads, on other lists, or on the
    order of rows whose scores differ, and they depend on the iteration if and only if its facts have ``random``.
    Hessians must not be negative, and the gradient must raise better documents. A constant added to all scores must
    change nothing, unless its facts have ``shift_invariant=False``. The gradient of a list then adds up to 0, unless
    they have ``balanced=False``. Call it in a test of an objective of your own.

    Without ``reference`` the Hessian is compared only if the facts have ``hessian_kind="exact"`` or "bound", and of
    long lists only the slope along the gradient. A "bound" must be at least the second derivative; one that is too
    large passes. A mistake that ``reference`` or ``reference_loss`` shares is not seen.

    Parameters
    ----------
    objective : Objective
        An object of the class, such as ``SquaredHinge()``. It may not read the labels of goals.
    labels : array, optional
        The labels to draw from. By default as in :func:`check_metric`, in some lists also fractions, and labels up to
        15, as far as the objective takes them.
    longest : int
        Documents of the longest list.

    Raises
    ------
    LTRError
        It names what disagrees, and a list for which it does.

    Examples
    --------
    >>> from ltr_objectives import RankNet
    >>> check_objective(RankNet())
    """
    lists, every = _lists(objective, Objective, labels, longest=30)
    lists += _further_lists(objective, every, longest, labels is None)
    hash(objective)  # raises for a list as parameter, which must be a tuple
    together = _compare_calls(objective, lists)
    grad, hess = np.concatenate(together, axis=1)
    good = (hess >= 0).all() or _has_hessian(objective, "exact")
    require(good, f"{objective}: the Hessian is negative for some lists; return 0 or its absolute value")
    pulls = [g @ (y - y.mean()) for (s, y), (g, _) in zip(lists, together, strict=True) if np.ptp(s) < 0.1]
    require(
        sum(pulls) <= 0,
        f"{objective}: the gradient is largest for the best documents; change its sign, or read the labels",
    )
    good = len(every) == 1 or (grad.any() and hess.any())
    require(good, f"{objective}: gradient or Hessian is 0 in all lists; write both, or give labels that differ")
    quiet = objective.without_noise()
    if quiet is None:
        for s, y in lists:
            if len(s) < 4:
                _compare_means(objective, s.clip(-3, 3), y)
        return
    noisy = objective.facts.random and {"noise", "noise_scale"} <= set(objective.parameters())
    for (s, y), beside in zip(lists, _compare_calls(quiet, lists), strict=True):
        found = _compare_list(quiet, s, y)
        if not isinstance(quiet, Composite):  # what is around an objective may depend on the whole data set
            _require_equal(beside, found, f"{_of(quiet, s, y)}, beside other lists,", "alone it is")
        if noisy and _untied(s):
            little: dict[str, Any] = {"noise": vars(objective)["noise"], "noise_scale": 1e-9}
            faint = replace(quiet, **little)
            _require_equal(_at(faint, s, y), found, _of(faint, s, y), "without noise it is", tolerance=1e-5)


def random_labels(limit: float | None, rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw labels up to a limit, the limit included if it is at most 4."""
    if limit is not None and limit <= 1:
        return rng.choice([0.0, 0.2, 0.5, 1 - 1e-7, 1.0], n) * limit
    chance = np.array([0.4, 0.3, 0.15, 0.1, 0.05][: 5 if limit is None else int(limit) + 1])
    return rng.choice(len(chance), n, p=chance / chance.sum()).astype(np.float64)


def _lists(checked: Any, base: type, labels: ArrayLike | None, longest: int) -> tuple[list[Arrays], np.ndarray]:
    """Return the scores and labels of lists, and all labels in them in ascending order."""
    name = f"{base.__name__.lower()} must be an object of a subclass of ltr_objectives.{base.__name__}"
    require(isinstance(checked, base), f"{name}, got {described(checked)}")
    rng, known = np.random.default_rng(0), None if labels is None else vector("labels", labels)
    require(known is None or len(known), "labels is empty; give the labels to draw from")

    def some(n: int) -> np.ndarray:
        return random_labels(checked.label_limit, rng, n) if known is None else rng.choice(known, n)

    every = np.unique(some(300))
    lists = [(-0.13 * np.arange(3), np.array([y, every[-1], every[0]])) for y in every]
    for n in (2, 3, 4, 6, 9, longest):  # the best document is the last
        lists.append((-0.13 * np.arange(n), np.append(np.full(n - 1, every[0]), every[-1])))
    for spread, n in (*itertools.product(SPREADS, (1, 2, 3, 5, 7)), (0.13, longest), (1024.0, 30)):
        whole = rng.integers(-1, 2, n) if spread == 1.0 else rng.choice(8 * n, n, replace=False) - 4 * n
        lists.append((spread * whole + 0.0, some(n)))  # no -0.0
    return lists, every


def _further_lists(objective: Objective, every: np.ndarray, longest: int, other_labels: bool) -> list[Arrays]:
    """Return the longest list; ``other_labels`` adds lists of larger ones and fractions, as far as these are taken."""
    rng = np.random.default_rng(1)
    high = 15 if objective.label_limit is None else min(15, int(objective.label_limit))
    found = [(-0.13 * rng.permutation(longest), rng.choice(every, longest))]
    for parts in (1, 4) if other_labels else ():
        scores, labels = -0.13 * rng.permutation(7), rng.integers(0, high * parts + 1, 7) / parts
        with suppress(LTRError):
            _at(objective, scores, labels)
            found.append((scores, labels))
    return found


def _joined(lists: list[Arrays]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    scores, labels = map(np.concatenate, zip(*lists, strict=True))
    return scores, labels, [len(y) for _, y in lists]


def _untied(scores: np.ndarray) -> bool:
    return len(np.unique(scores)) == len(scores)


def _of(checked: object, scores: np.ndarray, labels: np.ndarray) -> str:
    return f"{checked}: with scores {scores.tolist()} and labels {labels.tolist()}"


def _require_equal(
    found: Any, expected: Any, case: str, otherwise: str, names: Sequence[str] = ("gradient", "Hessian"),
    tolerance: float = 1e-9,
) -> None:  # fmt: skip
    for name, a, b in zip(names, found, expected, strict=True):
        message = f"{case} the {name} is {a.tolist()}, but {otherwise} {b.tolist()}"
        rounding = 1e-3 * tolerance * np.abs(b[np.isfinite(b)]).max(initial=1.0)  # of the largest terms
        require(np.allclose(a, b, rtol=tolerance, atol=rounding), message)


def _compare_value(metric: Metric, scores: np.ndarray, labels: np.ndarray) -> np.float64:
    """Compare the value of a list with ``reference``, in all orders of ties, and return it."""
    orders = [np.argsort(-scores, kind="stable")]
    if not _untied(scores):  # the first of these is that of the rows
        every = map(np.array, itertools.permutations(range(len(scores))))
        orders = [order for order in every if (np.diff(scores[order]) <= 0).all()]
    values = np.array([metric.reference(labels[order]) for order in orders], np.float64)
    [found] = metric.per_query(scores, labels, [len(labels)])
    expected = {"average": values.mean(), "worst": values.min(), "best": values.max(), "input": values[0]}
    case = f"{_of(metric, scores, labels)}, by gain, discount, scale and kind,"
    _require_equal([found], [expected[metric.ties]], case, "by reference it is", ["value"])
    return found


def _has_hessian(objective: Objective, *names: str) -> bool:
    """Return True if the parameter ``hessian``, also of a part, is one of these."""
    return any(getattr(leaf, "hessian", "") in names for leaf in leaves(objective))


def _at(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    return np.array(objective.gradient_hessian(scores, labels, [len(labels)]))


def _reference(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    found = objective.reference(scores.copy(), labels.copy())
    return None if found is None else np.array(found, np.float64).reshape(2, len(scores))


def _compare_calls(objective: Objective, lists: list[Arrays]) -> list[np.ndarray]:
    """Compare one thread with several, and two iterations; return gradient and Hessian of each list."""
    data, case = _joined(lists), f"{objective}: gradient or Hessian"
    first, again, later = (
        np.array(objective.gradient_hessian(*data, iteration=iteration, n_threads=threads))
        for iteration, threads in ((0, 1), (0, 3), (1, 1))
    )
    same, alike = np.array_equal(first, again), np.array_equal(first, later)
    require(same, f"{case} depends on threads or earlier calls; write the query's rows, and draw by call.iteration")
    require(
        alike or objective.facts.random, f"{case} depends on the iteration; do not read it, or set random=True in facts"
    )
    good = not alike or not objective.facts.random or not first[0].any()
    require(good, f"{case} is the same in all iterations; draw by call.iteration, or set random=False in facts")
    return np.split(first, np.cumsum(data[2])[:-1], axis=1)


def _compare_list(quiet: Objective, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Compare what an objective without noise gives for one list with all that must equal it, and return it."""
    case, found = _of(quiet, scores, labels), _at(quiet, scores, labels)
    expected, loss = _reference(quiet, scores, labels), quiet.reference_loss(scores, labels)
    require(expected is not None or loss is not None, f"{quiet}: write reference or reference_loss; both return None")
    if expected is not None:
        _require_equal(found, expected, f"{case}, by fill,", "by reference it is")
    _require_balanced(quiet, found[0], case)
    if quiet.facts.shift_invariant:
        unless = f"set shift_invariant=False in facts if a constant added to all scores matters: {case}"
        _require_equal(found, _at(quiet, scores + 1.0, labels), unless, "after 1 is added to all scores it is")
    if _untied(scores):
        rows = np.random.default_rng(0).permutation(len(scores))
        other = _at(quiet, scores[rows], labels[rows])
        _require_equal(found[:, rows], other, case, "with the rows in another order it is")
        if 0.1 < np.ptp(scores) < 100 and loss is not None:
            _compare_loss(quiet, scores, labels, found)
    return found


def _require_balanced(objective: Objective, grad: np.ndarray, case: str) -> None:
    far = abs(grad.sum()) > 1e-5 * np.abs(grad).max() + 1e-9
    case = f"{case} the gradient {grad.tolist()} does not add up to 0"
    good = not (far and objective.facts.shift_invariant and objective.facts.balanced)
    facts = "set shift_invariant=False in facts if a constant added to all scores matters, else balanced=False"
    require(good, f"{case}; correct fill and reference, or {facts}")


def _compare_loss(objective: Objective, scores: np.ndarray, labels: np.ndarray, found: np.ndarray) -> None:
    """Compare with central differences of ``reference_loss``, at scores too far apart to change order."""

    def loss(at: np.ndarray) -> float:
        return float(np.real(objective.reference_loss(at, labels)))

    (grad, hess), short = found, len(scores) < 10
    directions = np.eye(len(scores)) if short else grad[None] / (np.abs(grad).max() or 1.0)  # one takes less time
    sizes = np.array([[1e-3], [1e-4], [1e-5], [1e-6]])[: None if short else 2]  # steep losses need short steps
    above, below = (np.array([[loss(scores + h * d) for d in directions] for h in s * sizes]) for s in (1.0, -1.0))
    slopes, expected = (above - below) / (2 * sizes), directions @ grad
    share = 1e-3 if short else 0.05  # a loss that stops at a tolerance, as NeuralNDCG does, has jumps
    close = (np.abs(slopes - expected) <= share * np.abs(expected).max() + 1e-6).any(axis=0)
    case, along = _of(objective, scores, labels), "the gradient" if short else "along the gradient the slope"
    otherwise = f"but the slope of reference_loss {slopes[1].tolist()}; it must be the loss of fill"
    require(close.all(), f"{case} {along} is {expected.tolist()}, {otherwise}")
    kind = objective.facts.hessian_kind
    if short and kind != "estimate":
        curves = (above - 2 * loss(scores) + below) / sizes**2
        beyond = np.abs(curves - hess) if kind == "exact" else curves - hess
        good = (beyond <= 1e-2 * np.abs(hess).max() + 1e-4).any(axis=0).all()
        otherwise = f"but the curvature of reference_loss {curves[0].tolist()}; correct fill, or hessian_kind in facts"
        require(good, f"{case} the Hessian is {hess.tolist()} and hessian_kind={kind!r}, {otherwise}")


def _compare_means(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> None:
    """Compare means over draws with the reference, which has expected values if there is always noise."""
    queries = Queries(np.tile(labels, DRAWS), np.full(DRAWS, len(labels)))
    found = np.array(objective.compute(queries, np.tile(scores, DRAWS))).reshape(2, DRAWS, -1)
    mean, spread, expected = found.mean(axis=1), found.std(axis=1), _reference(objective, scores, labels)
    if expected is None:
        raise LTRError(f"{objective}: write reference, with expected values; it returns None")
    _require_balanced(objective, expected[0], _of(objective, scores, labels))
    # A policy such as the absolute value shifts the mean of the Hessian by less than 2 standard deviations. The bound
    # of 5 standard errors fails by chance for one seed in 10,000; so does that of 10 times a draw that was too rare to
    # be seen, and is at most as large as with tied scores.
    tied = np.array(objective.compute(queries, np.zeros(queries.rows)))
    unseen = 10 / DRAWS * np.maximum(np.abs(tied).max(axis=1, keepdims=True), np.abs(found).max(axis=(1, 2))[:, None])
    if _has_hessian(objective, "gradient", "absolute"):  # whose own spread may be small
        spread[1] = spread.max(axis=0)
    close = np.abs(mean - expected) < (5 / np.sqrt(DRAWS) + np.array([[0.0], [2.0]])) * spread + unseen + 1e-9
    case = f"{_of(objective, scores, labels)} gradient and Hessian have the means {mean.tolist()} over {DRAWS} draws"
    require(close.all(), f"{case}, but by reference {expected.tolist()}")
