"""What holds of gradients and Hessians of the objectives, as far as it can be proven."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ltr_objectives import Mixture, Objective
from ltr_objectives.objectives.around import innermost

_STEPS: dict[str, Callable[[Any], float | None]] = {
    "listnet": lambda o: 1.0 if o.hessian == "bounded" else None,
    "xendcg": lambda o: 1.0 if o.hessian == "bounded" else None,
    "listmle": lambda o: 1.0 if o.hessian == "bounded" else None,
    "approxndcg": lambda o: o.step / o.alpha,
    "approxmrr": lambda o: o.step / o.alpha,
    "approxmap": lambda o: o.step / o.alpha,
    "neuralndcg": lambda o: 1.0,
    "neuralsort": lambda o: 1.0,
    "softrank": lambda o: o.step * o.sigma,
    "hinge": lambda o: 1.0 / o.sigma,
}


_TIES_ALIKE = {
    "approxndcg", "approxmrr", "approxmap", "listmle", "listnet", "neuralndcg", "neuralsort", "ordinal", "queryrmse",
    "rmse", "softrank",
}  # fmt: skip


def longest_step(objective: Objective) -> float | None:
    """Return the upper limit of a Newton step, ``|grad| / hess``; None if there is none."""
    return _STEPS.get(objective.name, lambda o: None)(objective)


def hessian_limit(objective: Any, n: int) -> float | None:
    """Return the upper limit of the sum of Hessians of a query of ``n`` documents; None if it is not known."""
    if objective.name == "listnet" and objective.target != "unnormalized":
        return 2.0 if objective.hessian == "bounded" else 1.0
    if objective.name == "lambdaloss" and objective.k is None:
        # A pair of weight w adds at most w sigma^2 / (4 ln 2) to the Hessian of either document. Gains over the ideal
        # add up to at most log2(1 + n), and also to at most n over the sum of discounts.
        far = 2.0 * np.log2(1.0 + n)
        units = {"ndcg2": far, "ndcg2++": objective.mu * far + 2.0 * n}[objective.weights]
        return float(objective.sigma**2 / (2.0 * np.log(2.0)) * units)
    return None


def treats_ties_alike(objective: Any) -> bool:
    """Return True if the order of rows with equal scores does not matter, in lists without truncation.

    It matters in losses that take ranks from the current ranking, where such rows are in the order of the data.
    """
    if objective.name == "ranknet":
        return objective.truncation is None
    return objective.name in _TIES_ALIKE or (objective.name == "xendcg" and not objective.facts.random)


def may_be_negative(objective: Objective) -> bool:
    """Return True if entries of the Hessian may be negative, which the libraries do not expect."""
    inner = innermost(objective)
    return inner.policy == "exact" and getattr(inner, "hessian", None) == "exact" and inner.name in (
        "plrank", "stochasticrank"
    )  # fmt: skip


def balances_roughly(objective: Any) -> bool:
    """Return True if gradients of a query add up to zero only in the mean over samples, or up to a truncated series."""
    inner = innermost(objective)
    if isinstance(inner, Mixture):
        return any(balances_roughly(member.objective) for member in inner.members)
    return not inner.facts.balanced or inner.name in ("plrank", "neuralndcg", "neuralsort")  # to a tolerance of scaling
