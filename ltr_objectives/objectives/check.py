"""``check_objective``: whether the methods of an objective agree, on small random lists."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import LTRError, require
from ltr_objectives.metrics.check import random_labels
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.call import Arrays
from ltr_objectives.queries import Queries, vector
from ltr_objectives.registry import described

DRAWS = 800  # of an objective whose randomness cannot be turned off


def check_objective(objective: Objective, labels: ArrayLike | None = None) -> None:
    """Raise unless ``fill`` of an objective computes what its ``reference`` does.

    Gradient and Hessian are compared on small random lists, with ties, equal labels and scores far apart, and the
    gradient with differences of ``reference_loss``, if the class has it. Hessians must not be negative. The result must
    not depend on the number of threads, nor a list on other lists; a constant added to all scores must change nothing,
    unless the class sets ``shift_invariant = False``; and the gradient must raise better documents. Call it in a test
    of an objective of your own.

    Parameters
    ----------
    objective : Objective
        An object of the class, such as ``SquaredHinge()``. It may not read the labels of goals.
    labels : array, optional
        The labels to draw from. By default 0 to 4, or as far as the objective's ``label_limit`` allows; for a limit of
        at most 1 also fractions.

    Raises
    ------
    LTRError
        It names what disagrees, and a list for which it does.

    Examples
    --------
    >>> from ltr_objectives import RankNet
    >>> check_objective(RankNet())
    """
    require(
        isinstance(objective, Objective),
        f"objective must be an object of a subclass of ltr_objectives.Objective, got {described(objective)}",
    )
    require(not objective.goals, f"{objective} reads the labels of {objective.goals}; check its parts one by one")
    try:
        hash(objective)
    except TypeError as error:
        raise LTRError(f"{objective!r}: {error}; parameters must be hashable: give a tuple instead of a list") from None
    rng, known = np.random.default_rng(0), None if labels is None else vector("labels", labels)
    require(known is None or len(known), "labels is empty; give the labels to draw from")
    lists = []
    for scale, n in (*itertools.product((0.0, 2.0**-13, 0.125, 8.0, 1024.0), (1, 2, 3, 7)), (0.125, 30), (1024.0, 30)):
        some = random_labels(objective.label_limit, rng, n) if known is None else rng.choice(known, n)
        lists.append((np.round(8 * rng.normal(size=n)) * scale + 0.0, some))  # no -0.0; 1 is added without rounding
    quiet = objective.without_noise()
    for scores, some in lists:
        if quiet is not None:
            found, told = _at(quiet, scores, some), _told(quiet, scores, some)
            _require_equal(found, _reference(quiet, scores, some), f"{told} fill gives", "but reference gives")
            if quiet.shift_invariant:
                told = f"set shift_invariant = False if a constant that is added to all scores matters: {told}"
                _require_equal(found, _at(quiet, scores + 1.0, some), told, "but after 1 is added to all scores")
            if 2 <= len(some) <= 7 and 0 < np.ptp(scores) < 100:
                _compare_loss(quiet, rng.permutation(len(some)) + rng.uniform(0.2, 0.4, len(some)), some)
        elif len(some) < 4:
            _compare_means(objective, scores.clip(-3, 3), some)
    _compare_calls(objective, quiet, lists)


def _allows_negative(objective: Objective) -> bool:
    """True if a parameter allows negative Hessians, also one of a part."""
    return getattr(objective, "hessian", "") == "exact" or any(map(_allows_negative, objective._inside))


def _told(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> str:
    return f"{objective}: with scores {scores.tolist()} and labels {labels.tolist()}"


def _at(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> Arrays:
    try:
        return objective.gradient_hessian(scores, labels, [len(labels)])
    except LTRError as error:
        far = "; training may bring scores as far apart, so bound what fill computes" if np.ptp(scores) > 100 else ""
        raise LTRError(f"{_told(objective, scores, labels)} {error}{far}") from error


def _reference(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> Arrays:
    told = f"{_told(objective, scores, labels)} reference must return gradient and Hessian, one number each a document"
    try:
        grad, hess = (np.asarray(x, np.float64) for x in objective.reference(scores.copy(), labels.copy()))
    except (TypeError, ValueError, IndexError, ArithmeticError) as error:
        raise LTRError(f"{told}, but raised {error!r}") from error
    require(grad.shape == hess.shape == labels.shape, f"{told}, but returned shapes {grad.shape} and {hess.shape}")
    return grad, hess


def _require_equal(found: Arrays, expected: Arrays, told: str, but: str) -> None:
    for name, a, b in zip(("gradient", "Hessian"), found, expected, strict=True):
        require(np.allclose(a, b, rtol=1e-9, atol=1e-12), f"{told} the {name} {a.tolist()}, {but} {b.tolist()}")


def _compare_loss(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> None:
    """Compare the gradient with central differences of ``reference_loss``, at scores too far apart to change order."""
    told = _told(objective, scores, labels)

    def loss(at: np.ndarray) -> float:
        value = np.real(np.asarray(objective.reference_loss(at, labels)))
        require(value.shape == (), f"{told} reference_loss must return one number, but returned shape {value.shape}")
        return float(value)

    if objective.reference_loss(scores, labels) is None:
        return
    grad, _ = objective.gradient_hessian(scores, labels, [len(labels)])
    # steep losses need short steps, flat ones are rounded
    sizes, directions = (1e-3, 1e-4, 1e-5, 1e-6), np.eye(len(scores))
    slopes = np.array([[(loss(scores + h * d) - loss(scores - h * d)) / (2 * h) for d in directions] for h in sizes])
    close = (np.abs(slopes - grad) <= 1e-3 * np.abs(grad).max() + 1e-6).any(axis=0)
    require(
        close.all(),
        f"{told} the gradient is {grad.tolist()}, but the slope of reference_loss {slopes[1].tolist()}; it must be the "
        "loss of fill",
    )


def _compare_means(objective: Objective, scores: np.ndarray, labels: np.ndarray) -> None:
    """Compare means over draws with the reference, which has expected values if there is always noise."""
    queries = Queries(np.tile(labels, DRAWS), np.full(DRAWS, len(labels)))
    found = objective.compute(queries, np.tile(scores, DRAWS))
    # A policy such as the absolute value shifts the mean of the Hessian by less than 2 standard deviations. The bound
    # of 5 standard errors fails by chance for one seed in 10,000.
    for name, x, mean, bias in zip(
        ("gradient", "Hessian"), found, _reference(objective, scores, labels), (0.0, 2.0), strict=True
    ):
        each = x.reshape(DRAWS, -1)
        allowed = (5 / np.sqrt(DRAWS) + bias) * each.std(axis=0) + 1e-9
        told = f"{_told(objective, scores, labels)} the mean {name} of {DRAWS} draws is {each.mean(axis=0).tolist()}"
        require((np.abs(each.mean(axis=0) - mean) < allowed).all(), f"{told}, but by reference {mean.tolist()}")


def _compare_calls(objective: Objective, quiet: Objective | None, lists: list[Arrays]) -> None:
    """Compare calls with one thread and several, and with all lists and one alone; check the gradient's sign."""
    scores, labels = map(np.concatenate, zip(*lists, strict=True))
    group = [len(y) for _, y in lists]
    parts = [slice(*ends) for ends in itertools.pairwise(np.cumsum([0, *group]))]
    one, three = (objective.gradient_hessian(scores, labels, group, n_threads=n) for n in (1, 3))
    told = f"{objective}: gradient or Hessian"
    require(
        (one[1] >= 0).all() or _allows_negative(objective),
        f"{objective}: the Hessian is negative for some lists; return 0 or its absolute value",
    )
    require(
        all(map(np.array_equal, one, three)), f"{told} depends on the number of threads; write the query's rows only"
    )
    pull = sum(one[0][rows] @ (labels[rows] - labels[rows].mean()) for rows in parts[:8])  # scores are nearly equal
    require(
        pull <= 0, f"{objective}: the gradient is largest for the best documents, which lowers them; change its sign"
    )
    if quiet is None or quiet._inside:  # what is around an objective may depend on the whole data set
        return
    found = quiet.gradient_hessian(scores, labels, group)
    for (s, y), rows in zip(lists, parts, strict=True):
        alone, together = quiet.gradient_hessian(s, y, [len(y)]), (found[0][rows], found[1][rows])
        _require_equal(together, alone, f"{_told(quiet, s, y)}, beside other lists,", "but alone")
