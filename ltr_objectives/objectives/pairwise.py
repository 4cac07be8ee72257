"""The base of weighted losses over pairs of documents, with or without noise."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from ltr_objectives.checks import Check, check_choice, check_integer, one_of
from ltr_objectives.errors import require
from ltr_objectives.kernels.by_gain import pairs_by_gain
from ltr_objectives.kernels.by_rank import pairs_by_rank
from ltr_objectives.kernels.pairs import LOGISTIC, Inputs, Part, scale
from ltr_objectives.kernels.rankings import KEEP_NONE
from ltr_objectives.kernels.records import MANY, Out, Rng, Terms
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR, UPPER
from ltr_objectives.kernels.threads import LONG, run
from ltr_objectives.objectives.base import Facts, Noise, Objective
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.reference import brute_force_changes, softplus
from ltr_objectives.queries import Queries

XGBOOST = ("xgboost",)  # presets that divide the weights of queries by their mean
NO_PROPENSITY = np.empty(0)
NO_ORDER = np.empty(0, np.int32)
NO_DELTA = np.empty(0)
PAIRS_OF_PART = 500_000_000  # each part draws and sorts the list anew, which takes about 0.03 of the time
MOST_PARTS = 32


Hessian = Literal["exact", "double", "ones"]
Difference = Literal["exact", "noisy"]


class PairLoss(NamedTuple):
    """The loss of a pair in NumPy, by its margin :math:`\\sigma (s_{hi} - s_{lo})`."""

    code: int  # of ltr_objectives.kernels.pairs
    value: Callable[[np.ndarray], Any]  # takes complex numbers
    slope: Callable[[np.ndarray], np.ndarray]  # minus the first derivative
    curve: Callable[[np.ndarray], np.ndarray]  # the second derivative, or a bound of it
    hessian_kind: str = "exact"  # how the kernel's curve relates to the second derivative


def _chance(margin: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0.0, margin))


LOGISTIC_LOSS = PairLoss(LOGISTIC, lambda x: softplus(-x), _chance, lambda x: _chance(x) * _chance(-x))


def share_of_ranks(gain: np.ndarray) -> float:
    """Return the share of the ranks of a cascade that count: those below several relevant documents do not."""
    return float(min(1.0, 10.0 / max(gain.sum(), 1.0)))


def _check_neighbors(name: str, value: object) -> object:
    return value if isinstance(value, str) and value == "all" else check_integer(name, value)


class PairSettings(NamedTuple):
    """The pairs that count, and how."""

    sigma: float = 1.0
    truncation: int | None = None  # at least one document of a pair is among this many first ranks
    neighbors: int | Literal["all"] = "all"  # documents of a pair are at most this many ranks apart
    partners: int | None = None  # of a document of a longer list, drawn at random
    score_norm: bool = False
    lambda_norm: bool | None = False  # None normalises, unless there are propensities or queries count by their amounts
    draws: int = 1
    noise: Noise | None = None
    noise_scale: float = 1.0
    difference: Difference = "exact"
    hessian: Hessian = "exact"
    seed: int = 0

    @property
    def random(self) -> bool:
        return self.noise is not None or self.partners is not None

    @property
    def near(self) -> int:
        return MANY if self.neighbors == "all" else self.neighbors


def _ranks_all(inputs: Inputs, queries: Queries) -> bool:
    """Return True if the rankings of a draw are whole, so that other metrics can read them."""
    return inputs.ordered >= queries.longest and not inputs.noisy


def _add_parts(call: Call, kernel: Callable[..., Any], q: int, parts: int, inputs: Inputs) -> None:
    """Compute the pairs of one list in parts on several threads, and add these up in their order."""
    a, b = call.queries.ptr[q : q + 2]
    sums, totals, stop = np.zeros((parts, 2, b - a)), np.zeros((parts, 1)), call.skip.copy()

    def add(first: int, last: int) -> None:
        for k in range(first, last):
            of_part = inputs._replace(part=Part(start=k, step=parts, total=totals[k]), kept=KEEP_NONE)
            kernel(q, q + 1, call.queries.ptr, call.scores, of_part, Out(sums[k, 0], sums[k, 1], stop, first=a))

    run(add, np.arange(parts + 1), (), call.n_threads, stop)
    grad, hess = call.grad[a:b], call.hess[a:b]
    grad[:], hess[:] = sums.sum(axis=0)
    scale(grad, hess, totals.sum(), inputs)


class PairwiseObjective(Objective):
    r"""Base of the losses over pairs, each weighted by the change of a metric, with or without noise.

    The formula is in :mod:`ltr_objectives.kernels.pairs`. A subclass overrides ``pair_settings`` if its parameters have
    other names, ``layers`` and ``pair_weights`` if the weights are not the change of ``metric``, and ``loss`` if it is
    not logistic.
    """

    preset: str | None = None
    presets: ClassVar[dict[Any, dict[str, Any]]] = {}  # values of the parameters that are not written
    loss: ClassVar[PairLoss] = LOGISTIC_LOSS
    checks: ClassVar[dict[str, Check]] = {
        "neighbors": _check_neighbors,
        "difference": one_of(*get_args(Difference)),
        "hessian": one_of(*get_args(Hessian)),
    }

    def __post_init__(self) -> None:
        if self.preset is not None:
            check_choice("preset", self.preset, tuple(self.presets))
        for name, value in self.presets.get(self.preset, {}).items():
            usual = getattr(type(self), name)  # a copy has the value of the preset
            if name not in (*self._written, *self._given) and getattr(self, name) == usual:
                object.__setattr__(self, name, value)
        super().__post_init__()
        pairs = self.pair_settings()
        both = pairs.neighbors != "all" and pairs.partners is not None
        require(not both, "neighbors and partners both choose the pairs; pass one of them")

    def pair_settings(self) -> PairSettings:
        """Return the settings of the pairs; by default the parameters with their names."""
        return PairSettings(**{name: value for name, value in self.settings().items() if name in PairSettings._fields})

    @property
    def facts(self) -> Facts:
        pairs, metric = self.pair_settings(), self.weighing_metric
        return Facts(
            random=pairs.random,
            hessian_kind=self.loss.hessian_kind if pairs.hessian == "exact" and self._has_loss else "estimate",
            takes_clicks=True,
            label_limit=None if metric is None else metric.label_limit,
        )

    @property
    def weighing_metric(self) -> Any:
        """The metric whose change weighs the pairs; None if the weights are of another kind."""
        return getattr(self, "metric", None)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        """Return the weights of the pairs, as the kernels take them: the sum over layers."""
        found: tuple[Terms, ...] = self.weighing_metric.layers(queries)
        return found

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        """Return the weight, at least 0, of each pair of ranks of one list, by definition: O(n^2) or slower."""
        return np.abs(brute_force_changes(self.weighing_metric, labels))

    def _inputs(self, queries: Queries) -> Inputs:
        """Return the pairs that count, as the kernels read them, without random numbers."""
        layers, chosen = self.layers(queries), self.pair_settings()
        cutoff = max(terms.cutoff for terms in layers)
        near, ranks = chosen.near, min(cutoff, chosen.truncation or MANY)
        # If the order beyond the cutoff changes no weight, only the first ranks and their neighbors are sorted.
        same_weight = ranks == cutoff and all(terms.kind in (LINEAR, UPPER) for terms in layers)
        ordered = min(ranks + (0 if near == MANY else near), MANY) if same_weight else MANY
        propensity = NO_PROPENSITY if queries.propensity is None else queries.propensity
        return Inputs(
            layers=layers, rng=None, loss=self.loss.code, sigma=float(chosen.sigma), truncation=ranks, ordered=ordered,
            neighbors=near, partners=chosen.partners or MANY, noisy=chosen.difference == "noisy",
            score_norm=bool(chosen.score_norm), lambda_norm=self._normalizes(queries.propensity),
            propensity=propensity, by_label=NO_ORDER, delta=NO_DELTA,
        )  # fmt: skip

    def _normalizes(self, propensity: np.ndarray | None) -> bool:
        asked, metric = self.pair_settings().lambda_norm, self.weighing_metric
        if asked is not None:
            return bool(asked)
        return propensity is None and (metric is None or metric.maximum is not None)

    def _rng(self, call: Call) -> Rng | None:
        pairs = self.pair_settings()
        if not pairs.random:
            return None
        return call.rng(pairs.seed, pairs.draws, NOISES[pairs.noise], pairs.noise_scale)

    def _draws(self, call: Call) -> Rng | None:
        rng = self._rng(call)
        return rng if rng is not None and _ranks_all(self._inputs(call.queries), call.queries) else None

    def fill(self, call: Call) -> None:
        inputs, rng, kernel = self._inputs(call.queries), self._rng(call), pairs_by_rank
        if rng is not None:
            kept = call.rankings.get(call._ranked(rng), KEEP_NONE) if _ranks_all(inputs, call.queries) else KEEP_NONE
            inputs = inputs._replace(rng=rng, kept=kept)
        if self._is_by_gain(inputs):
            kernel, inputs = pairs_by_gain, inputs._replace(by_label=call.queries.by_label)
        found = {q: self._parts(call.queries, q, inputs) for q in call.queries.longer_than(LONG) if not call.skip[q]}
        in_parts = {q: parts for q, parts in found.items() if parts > 1}
        others = call
        if in_parts:
            others = call._replace(skip=call.skip.copy())
            others.skip[[*in_parts]] = True
        others.run(kernel, inputs)
        for q, parts in in_parts.items():
            _add_parts(call, kernel, q, parts, inputs)

    def _parts(self, queries: Queries, q: int, inputs: Inputs) -> int:
        """Return in how many parts the pairs of a list are computed."""
        if min(inputs.neighbors, inputs.partners) < MANY:
            return 1
        rows = slice(*queries.ptr[q : q + 2])
        gain = np.sum([terms.gain[rows] for terms in inputs.layers], axis=0)
        return int(min(max(self._visits(gain, inputs) // PAIRS_OF_PART, 1), MOST_PARTS))

    def _is_by_gain(self, inputs: Inputs) -> bool:
        """Return True if the kernel by gain applies, else the general one.

        It sums the weights over the draws before it visits the pairs, so it knows no rank or score of a pair.
        """
        some = min(inputs.neighbors, inputs.partners) < MANY
        by_pair = some or inputs.noisy or inputs.score_norm or len(inputs.propensity)
        kinds = [terms.kind if terms.cap == np.inf else None for terms in inputs.layers]
        return inputs.loss == LOGISTIC and not by_pair and (set(kinds) == {AVERAGE} or kinds == [LINEAR])

    def pairs_visited(self, queries: Queries) -> float:
        return self._visits(queries.in_longest(self.relevance(queries)), self._inputs(queries))

    def _visits(self, gain: np.ndarray, inputs: Inputs) -> float:
        """Return how many pairs a gradient visits of a list with these gains."""
        pairs, n = self.pair_settings(), len(gain)
        draws = pairs.draws if pairs.random else 1
        reach = min(n, inputs.truncation, inputs.neighbors, inputs.partners)
        if self._is_by_gain(inputs):  # a draw takes a fifth of the time
            return float(n) * min(reach, int(np.count_nonzero(gain))) * (1 + draws / 5)
        share = share_of_ranks(gain) if inputs.layers[0].kind == CASCADE else 1.0
        return float(n) * reach * draws * share

    def relevance(self, queries: Queries) -> np.ndarray:
        return np.sum([terms.gain for terms in self.layers(queries)], axis=0)

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        weight = queries.weight_by_query
        if self.preset not in XGBOOST or weight is None:
            return queries.weight_by_row
        return queries.cached("weights of XGBoost", lambda: np.repeat(weight / weight.mean(), np.diff(queries.ptr)))

    @property
    def _has_loss(self) -> bool:
        pairs = self.pair_settings()
        return not (pairs.random or pairs.score_norm or self._normalizes(None))

    def _ranked(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the documents in rank order, the ranks of the higher and lower label of pairs, and their weights."""
        order = np.argsort(-scores.real, kind="stable")
        y = labels[order]
        d, e = np.triu_indices(len(y), 1)
        pairs = self.pair_settings()
        counts = (d < (pairs.truncation or MANY)) & (e - d <= pairs.near) & (y[d] != y[e])
        d, e = d[counts], e[counts]
        return order, np.where(y[d] > y[e], d, e), np.where(y[d] > y[e], e, d), self.pair_weights(y)[d, e]

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        if not self._has_loss:
            return None
        order, rank_high, rank_low, delta = self._ranked(scores, labels)
        gap = scores[order[rank_high]] - scores[order[rank_low]]
        return np.sum(delta * self.loss.value(self.pair_settings().sigma * gap))

    def reference(
        self, scores: np.ndarray, labels: np.ndarray, propensity: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        pairs = self.pair_settings()
        if pairs.random:
            return None
        order, rank_high, rank_low, delta = self._ranked(scores, labels)
        gap = scores[order[rank_high]] - scores[order[rank_low]]
        if pairs.score_norm and scores.min() != scores.max():
            delta = delta / (0.01 + np.abs(gap))
        if propensity is not None:
            delta = delta / propensity[order[rank_high]]
        slope = pairs.sigma * delta * self.loss.slope(pairs.sigma * gap)
        curve = pairs.sigma**2 * delta * self.loss.curve(pairs.sigma * gap)
        grad, hess = np.zeros(len(scores)), np.zeros(len(scores))
        for sign, rank in ((-1.0, rank_high), (1.0, rank_low)):
            np.add.at(grad, order[rank], sign * slope)
            np.add.at(hess, order[rank], curve)
        total = float(np.sum(2.0 * slope))
        if self._normalizes(propensity) and total > 0:
            grad, hess = (x * np.log2(1.0 + total) / total for x in (grad, hess))
        return grad, {"exact": hess, "double": 2.0 * hess, "ones": np.ones(len(hess))}[pairs.hessian]
