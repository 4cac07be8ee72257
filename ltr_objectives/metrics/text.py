"""Metrics from text, and the sums of metrics that a text can name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.checks import check_weights
from ltr_objectives.errors import LTRError, described, require, shown
from ltr_objectives.extensible import find_class
from ltr_objectives.goals import split_goal
from ltr_objectives.kernels.records import Terms
from ltr_objectives.language import METRIC_FORM, read_values, split_list, split_metric, split_metrics, weight_text
from ltr_objectives.metrics.base import LEARNED, Metric
from ltr_objectives.queries import Queries

ONLY_EVALUATED = "first", "mae", "rmse"  # by metrics.only_evaluated


@dataclass(frozen=True)
class WeightedSum(Metric):
    """A sum of metrics with weights, each on the labels of its goal; read from text such as "ndcg@10 + 0.3*map[sold]".

    The mean is the sum of the means, each over the queries and with the weights of its metric. Values by query, which
    ``compare_scores`` averages, are NaN if a part has none. A metric without a maximum, such as DCG, counts as a share
    of its best possible mean, so that its weight does not depend on its unit.
    """

    parts: tuple[Metric, ...] = ()
    weights: tuple[float, ...] = ()

    name: ClassVar[str] = "a sum of metrics"
    kind: ClassVar[int] = -1
    maximum: ClassVar[float | None] = None
    cutoff: ClassVar[str] = "none"

    def __str__(self) -> str:
        of = zip(self.weights, self.parts, strict=True)
        return "+".join(f"{weight_text(weight)}{part}" for weight, part in of)

    @property
    def goals(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(goal for part in self.parts for goal in part.goals))

    def of_parts(self, value: Callable[[Metric], Any], of: Callable[[str | None], Queries] | None = None) -> Any:
        """Return the weighted sum of the ``value`` of each part in its unit on the queries ``of`` its goal."""
        parts = zip(self.weights, self.parts, strict=True)
        return sum(weight * value(part) / part._with(goal=None).unit(of and of(part.goal)) for weight, part in parts)

    def gain(self, labels: np.ndarray) -> np.ndarray:
        raise NotImplementedError(f"{self.name} has no gains")

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        return self.gain(ranks)  # raises

    def reference(self, labels: np.ndarray) -> float:
        return float(self.gain(labels)[0])  # raises

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        return tuple(terms for part in self.parts for terms in part.layers(queries))

    def values(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> Any:
        return self.of_parts(lambda part: part.values(queries, scores, n_threads=n_threads), queries.of)

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        return float(self.of_parts(lambda part: part.mean(queries, scores, n_threads=n_threads), queries.of))

    def with_convention(self, library: str) -> "WeightedSum":
        return replace(self, parts=tuple(part.with_convention(library) for part in self.parts))

    def _same_for_every_order(self, queries: Queries, n_threads: int | None = None) -> bool:
        return all(part._same_for_every_order(queries, n_threads) for part in self.parts)


def own_metric(written: str) -> str | None:
    """Return the name of our metric in a text, in small letters, the first of a sum; None if one is not ours.

    >>> own_metric("NDCG@10[liked]"), own_metric("ndcg@10-"), own_metric("NDCG:top=10")
    ('ndcg', None, None)
    """
    splits = [split_metric(split_goal(text)[0]) for _, text in split_metrics(written)]
    found = [split is not None and split[0] in Metric.named for split in splits]
    return splits[0][0] if splits[0] and all(found) else None


def get_metric(metric: str | Metric | None, convention: str | None = None) -> Metric:
    """Return the metric of a name, with parameters in brackets, ``@k`` for a cutoff, and ``[goal]`` for its labels.

    As text it is written as it was given: ``str(get_metric("map(threshold=2.5)@10"))`` is ``"map(threshold=2.5)@10"``.

    A sum such as ``"ndcg@10 + 0.3*dcg(gain_type=linear)@10[revenue]"`` is a metric too, of which more is better.

    ``convention`` is "lightgbm", "xgboost", "catboost", "sklearn" or "trec_eval": compute the metric as that library
    does. Options that are written in the text or in the object are kept.

    >>> get_metric("ndcg@10").k
    10
    >>> get_metric("ndcg@10", "lightgbm").empty
    1.0
    >>> get_metric("ndcg@10[liked]").goal
    'liked'
    >>> get_metric("ndcg(gain_type=linear)@5").gain_type
    'linear'
    """
    return read_metric(metric, convention, Metric.named)


def _refuse_only_evaluated(name: str, names: tuple[str, ...], named: Mapping[str, type[Metric]]) -> None:
    require(
        name in named or name not in names,
        f"lower {name} is better, and it does not measure a whole ranking, so only evaluate computes it; take a "
        "ranking metric, such as 'ndcg@10', or a metric of the library itself",
    )


def read_metric(metric: str | Metric | None, convention: str | None, named: Mapping[str, type[Metric]]) -> Metric:
    """As :func:`get_metric`, for the classes in ``named``."""
    if isinstance(metric, Metric):
        _refuse_only_evaluated(metric.name, ("first",), named)
        return metric if convention is None else metric.with_convention(convention)
    if not isinstance(metric, str):
        of = "a string such as 'ndcg@10' or an ltr_objectives.Metric"
        raise LTRError(f"metric must be {of}, got {described(metric)}")
    parts = split_metrics(metric)
    if len(parts) > 1:
        weights = check_weights([1 if weight is None else weight for weight, _ in parts], len(parts), "metrics")
        return WeightedSum(parts=tuple(get_metric(text, convention) for _, text in parts), weights=weights)
    plain, goal = split_goal(metric.strip())
    split = split_metric(plain)
    if split is None:
        form = f"name, name@k or name(parameter=value)@k, {METRIC_FORM}; several metrics are a list"
        raise LTRError(f"metric {shown(metric)} is not of the form {form}; there are {', '.join(sorted(named))}")
    name, settings, k = split
    _refuse_only_evaluated(name, ONLY_EVALUATED, named)
    made = find_class(named, name, "metric")
    values = read_values(split_list(settings), metric, name, made.options()) | ({} if k is None else {"k": k})
    found = made(**values, goal=goal)
    return found if convention is None else found.with_convention(convention)


def get_metrics(
    metrics: Iterable[str | Metric], convention: str | None = None, find: Callable[..., Metric] = get_metric
) -> tuple[Metric, ...]:
    """Return :func:`get_metric` of each. Their names must differ, because they are the keys of the results."""
    found = tuple(find(metric, convention) for metric in metrics)
    require(found, "give at least one metric, such as 'ndcg@10'")
    names = [str(metric) for metric in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    require(
        twice is None,
        f"two metrics are both called {twice}, and results are keyed by name; leave one out, or compute it by itself",
    )
    return found


def metric_to_learn(metric: str | Metric) -> Metric:
    """Return the metric of an objective, which reads the labels of the objective."""
    found = get_metric(metric)
    require(
        not isinstance(found, WeightedSum),
        f"{found} is a sum of metrics; to train for it name a sum of objectives, such as "
        "objective='yetiloss:ndcg + 0.3*yetiloss:dcg(gain_type=linear)[revenue]'",
    )
    trained = found.kind in LEARNED
    require(trained, f"no objective trains for {found.name}; take another metric, such as 'map' or 'spearman'")
    require(
        found.goal is None,
        f"metric={str(found)!r}: an objective names the labels that it reads, not its metric; as text put the goal at "
        f"the end, as in 'yetiloss:map;sigma=2[{found.goal}]', or write Mixture([objective], labels=[{found.goal!r}])",
    )
    return found
