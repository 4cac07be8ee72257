r"""What the pairwise objectives share: weighted logistic losses over pairs of documents, with or without noise."""

import abc
import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ltr_objectives.errors import choice, draws, positive, require, seed, whole
from ltr_objectives.kernels.counts import count_pairs
from ltr_objectives.kernels.graded import graded_gradients
from ltr_objectives.kernels.pairs import pair_gradients
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.kernels.swaps import HEAD, LINEAR
from ltr_objectives.kernels.threads import run
from ltr_objectives.metrics.base import Metric, Terms
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.reference import softplus
from ltr_objectives.propensity import examination
from ltr_objectives.queries import Queries

HESSIANS = ("exact", "double", "ones")
MANY = 2**62
NOTHING = np.empty(0)


class PairwiseObjective(Objective):
    r"""Base of the objectives with gradient :math:`\sigma \delta \rho` for each pair.

    The formula stands in :mod:`ltr_objectives.kernels.pairs`.

    A subclass states the weights of the pairs by ``terms`` and overrides the settings below by fields of its own. This
    class is no dataclass itself: the order of a subclass's parameters would start with these settings.
    """

    sigma: Any = 1.0
    truncation: Any = None
    neighbors: Any = "all"
    score_norm: Any = False
    lambda_norm: Any = False
    permutations: Any = 1
    noise: Any = None
    noise_scale: Any = 1.0
    hessian: Any = "exact"
    preset: Any = None
    seed: Any = 0

    def __post_init__(self) -> None:
        positive("sigma", self.sigma)
        positive("noise_scale", self.noise_scale)
        draws("permutations", self.permutations)
        if self.truncation is not None:
            whole("truncation", self.truncation)
        if self.neighbors != "all":
            whole("neighbors", self.neighbors)
        choice("noise", self.noise, tuple(NOISES))
        choice("hessian", self.hessian, HESSIANS)
        for name in ("score_norm", "lambda_norm"):
            choice(name, getattr(self, name), (True, False))
        seed(self.seed)

    takes_clicks = True

    @property
    def random(self) -> bool:
        return self.noise is not None

    def without_noise(self) -> Objective:
        settings: dict[str, Any] = {"noise": None}
        return replace(self, **settings) if self.random else self

    @abc.abstractmethod
    def terms(self, queries: Queries) -> Terms:
        """Weights of the pairs, as the kernels take them."""

    @abc.abstractmethod
    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        """The non-negative weight of each pair of ranks of one list in rank order, by definition: O(n^2) or slower."""

    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
    ) -> None:
        kind, gain, discount, scale, _, cap = terms = self.terms(queries)
        rows = min(terms.ranks, self.truncation or MANY)
        neighbors = MANY if self.neighbors == "all" else int(self.neighbors)
        beyond = 0 if self.neighbors == "all" else neighbors
        alike = rows == terms.ranks and kind <= HEAD  # beyond, all documents weigh the same
        head = min(rows + beyond, MANY) if alike else MANY
        if queries.position is not None:
            seen = np.log(examination(queries, scores, self.sigma))[queries.position] / self.sigma
            require(np.isfinite(seen).all(), "labels are too large to estimate what was seen where; scale them down")
            scores = scores + seen  # an array more: positions differ from row to row
        permutations, noise = int(self.permutations) if self.noise else 1, NOISES[self.noise]
        drawn = (permutations, noise, float(self.noise_scale), np.uint64(self.seed), np.uint64(iteration), grad, hess)
        propensity = NOTHING if queries.propensity is None else queries.propensity
        if kind == LINEAR and cap == np.inf and neighbors == MANY and not self.score_norm and not len(propensity):
            weights: tuple[Any, ...] = (
                queries.by_label,
                gain,
                discount,
                scale,
                float(self.sigma),
                rows,
                head,
                bool(self.lambda_norm),
            )
            run(graded_gradients, queries.ptr, (queries.ptr, scores, *weights, *drawn), n_threads, stoppable=True)
        else:
            weights = (propensity, kind, gain, discount, scale, float(cap), float(self.sigma), rows, head, neighbors,
                       bool(self.score_norm), bool(self.lambda_norm))  # fmt: skip
            run(pair_gradients, queries.ptr, (queries.ptr, scores, *weights, *drawn), n_threads, stoppable=True)
        if self.hessian == "double":
            hess *= 2.0
        elif self.hessian == "ones":
            hess[:] = 1.0

    def worth(self, queries: Queries) -> np.ndarray:
        return self.terms(queries).gain

    @property
    def fewer_pairs(self) -> str:  # type: ignore[override]  # depends on the parameters
        options = {"truncation": "truncation=30", "neighbors": "neighbors=1"}
        found = [text for name, text in options.items() if name in self.parameters()]
        return f"choose fewer, such as {' or '.join(found)}"

    def pairs_visited(self, queries: Queries) -> np.ndarray:
        n = np.diff(queries.ptr).astype(np.float64)
        rows = np.minimum(n - 1, np.minimum(self.terms(queries).reach(queries.ptr), self.truncation or MANY))
        near = MANY if self.neighbors == "all" else int(self.neighbors)
        full = np.clip(n - near, 0, rows)  # ranks with so many neighbours; below, one less at each
        rest = rows - full
        pairs = full * np.minimum(near, n) + rest * (n - full) - rest * (rest + 1) / 2
        return pairs * (self.permutations if self.noise else 1)

    def part_of_pairs(self, queries: Queries, ranks: int) -> tuple[Objective, Queries]:
        part = copy.copy(self)
        object.__setattr__(part, "truncation", ranks)  # which not all have as a parameter
        object.__setattr__(part, "permutations", 1)
        return part, queries

    def pair_counts(self, queries: Queries, scores: np.ndarray) -> np.ndarray:
        """Pairs in the ranking by these scores, without noise."""
        kind, gain, discount, scale, _, _ = terms = self.terms(queries)
        rows = min(terms.ranks, self.truncation or MANY)
        neighbors = MANY if self.neighbors == "all" else int(self.neighbors)
        count = np.zeros(len(queries), np.int64)
        run(
            count_pairs,
            queries.ptr,
            (queries.ptr, scores, kind, gain, discount, scale, rows, neighbors, count),
            1,
            stoppable=True,
        )
        return count

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        weight = queries.weight_by_query
        if self.preset != "xgboost" or weight is None:
            return queries.weight_by_row
        return queries.once(  # XGBoost divides by the mean
            "weights of XGBoost", lambda: np.repeat(weight / weight.mean(), np.diff(queries.ptr))
        )

    @property
    def hessian_kind(self) -> str:
        return "exact" if self.hessian == "exact" and self._has_loss else "estimate"

    @property
    def _has_loss(self) -> bool:
        return not (self.random or self.score_norm or self.lambda_norm)

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if not self._has_loss:
            return None
        order = np.argsort(-scores.real, kind="stable")
        s, y = scores[order], labels[order]
        d, e = np.triu_indices(len(s), 1)
        near = (d < (self.truncation or MANY)) & (e - d <= (MANY if self.neighbors == "all" else self.neighbors))
        d, e = d[near], e[near]
        ahead = np.sign(y[d] - y[e]) * (s[d] - s[e])
        return np.sum(np.where(y[d] != y[e], self.pair_weights(y)[d, e], 0.0) * softplus(-self.sigma * ahead))

    def reference(
        self, scores: np.ndarray, labels: np.ndarray, propensity: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        n = len(scores)
        order = np.argsort(-scores, kind="stable")
        s, y = scores[order], labels[order]
        d, e = np.triu_indices(n, 1)
        near = (
            (d < (self.truncation or n))
            & (e - d <= (n if self.neighbors == "all" else self.neighbors))
            & (y[d] != y[e])
        )
        d, e = d[near], e[near]
        delta = self.pair_weights(y)[d, e]
        if self.score_norm and s[0] != s[-1]:
            delta = delta / (0.01 + np.abs(s[d] - s[e]))
        hi, lo = np.where(y[d] > y[e], d, e), np.where(y[d] > y[e], e, d)
        if propensity is not None:
            delta = delta / propensity[order][hi]
        rho = np.exp(-np.logaddexp(0.0, self.sigma * (s[hi] - s[lo])))
        grad, hess = np.zeros(n), np.zeros(n)
        curve = self.sigma**2 * delta * rho * np.exp(-np.logaddexp(0.0, self.sigma * (s[lo] - s[hi])))
        for sign, rank in ((-1.0, hi), (1.0, lo)):
            np.add.at(grad, order[rank], sign * self.sigma * delta * rho)
            np.add.at(hess, order[rank], curve)
        total = float(np.sum(2.0 * self.sigma * delta * rho))
        if self.lambda_norm and total > 0:
            grad, hess = (x * np.log2(1.0 + total) / total for x in (grad, hess))
        return grad, {"exact": hess, "double": 2.0 * hess, "ones": np.ones(n)}[self.hessian]


def brute_force_changes(metric: Metric, labels: np.ndarray) -> np.ndarray:
    """|change| of ``metric.reference`` for each pair of ranks that trades places."""
    n = len(labels)
    out = np.zeros((n, n))
    before = metric.reference(labels)
    for d in range(n):
        for e in range(d + 1, n):
            swapped = labels.copy()
            swapped[[d, e]] = swapped[[e, d]]
            out[d, e] = abs(metric.reference(swapped) - before)
    return out


def metric_examples(make: Any) -> tuple[Objective, ...]:
    """``make(metric)`` for every example of every metric; how ties are evaluated makes no difference here."""
    from ltr_objectives.registry import metric_class, metrics

    examples = [example for name in metrics() for example in metric_class(name).examples()]
    return tuple(make(example) for example in examples if example.ties == "average")
