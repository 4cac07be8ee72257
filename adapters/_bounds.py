"""Bounds: one metric is maximised while others keep their bounds on the last eval set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ltr_objectives.checks import check_positive
from ltr_objectives.errors import require, shown, warn
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.sums import WeightedSum
from ltr_objectives.metrics.text import get_metric, get_metrics
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.bounded import START, Bounded, Multipliers, flat
from ltr_objectives.queries import Queries
from ltr_objectives.registry import objective_for

Limits = Mapping[Any, float]  # the least value by metric, or its name
MISSED = -1e6  # below every value of a metric
ROUNDS = 1_000_000  # more than any training has: the patience if all rounds are trained and the best is kept


@dataclass(frozen=True)
class Kept(WeightedSum):
    """The metric by which the best round is chosen: the first of ``parts`` if the others keep their bounds.

    Otherwise it is far below, and higher the smaller the largest shortfall is. Its mean on ``queries``, which is
    computed once a round, moves the multipliers.
    """

    queries: Queries | None = field(default=None, kw_only=True, compare=False)
    multipliers: Multipliers = field(default_factory=lambda: Multipliers([]), kw_only=True, compare=False)

    name: ClassVar[str] = "kept"

    def __str__(self) -> str:
        return self.name

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        first, *bounded = (part.mean(queries, scores, n_threads=n_threads) for _, part in self.parts)
        if queries is self.queries:  # which ends a round
            self.multipliers.follow(bounded)
        missing = float(self.multipliers.missing(bounded).max())
        return first if missing <= 0 else MISSED - missing

    def by_metric(self, values: Any) -> dict[str, Any]:
        """Return what belongs to each bound, by its metric."""
        return {str(metric): each for (_, metric), each in zip(self.parts[1:], values, strict=True)}


def read_bounds(
    bounds: Limits, first: Any, objective: Any, convention: str | None, train: Queries, evals: Queries | None
) -> tuple[Bounded, Kept]:
    """Return objective and metric of a training that maximises ``first``, for which ``objective`` trains, in bounds."""
    require(
        isinstance(bounds, Mapping) and bounds,
        f"bounds must be a mapping of metrics to their least values, such as {{'ndcg@10': 0.74}}, got {shown(bounds)}",
    )
    least = [check_positive(f"bounds[{str(metric)!r}]", value) for metric, value in bounds.items()]
    metrics = get_metrics([get_metric(metric, convention) for metric in bounds])
    for metric, value in zip(metrics, least, strict=True):
        known = metric.maximum is not None and value > metric.maximum
        require(not known, f"bounds[{str(metric)!r}]={value:g} is above {metric.maximum}, the largest value")
    require(
        isinstance(first, Metric) and isinstance(objective, Objective),
        "bounds= follow our metrics, and weigh our objectives; name one of our metrics first in eval_metric=, and "
        "leave objective= out, or name one of ours for that metric",
    )
    names = [str(metric) for metric in metrics]
    require(
        str(first) not in names,
        f"the first eval_metric is maximised while the others keep their bounds, and {first} has a bound itself; "
        "name another one first in eval_metric=",
    )
    require(evals is not None, "bounds= are kept on an eval_set; pass eval_set=[(X, y)] and eval_qid=")
    parts, goals = zip(*map(flat, (objective, *(objective_for(metric, train) for metric in metrics))), strict=True)
    multipliers = Multipliers(least)
    weights = [1.0, *(START for _ in least)]
    return (
        Bounded(parts, weights, labels=goals, multipliers=multipliers),
        Kept(parts=tuple((1.0, metric) for metric in (first, *metrics)), queries=evals, multipliers=multipliers),
    )


def warn_if_missed(kept: Kept, at: int) -> None:
    """Warn of the bounds that the kept round misses, which is then the nearest of all rounds."""
    values, bounds = kept.by_metric(kept.multipliers.values[at]), kept.multipliers.bounds
    found = zip(values.items(), bounds, strict=True)
    texts = [f"{name} is {value:.6g} of {bound:g}" for (name, value), bound in found if value < bound]
    if texts:
        warn(
            f"no round keeps all bounds on the last eval set; in the nearest {', '.join(texts)}. Lower the bounds, "
            "which are values of the metric, not shares, or train more rounds"
        )
