"""The trade-off of two metrics: trainings with several bounds or weights, and what each gains and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._bounds import ROUNDS
from ltr_objectives.adapters._data import clone
from ltr_objectives.adapters._names import DEFAULT, read_metrics
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._tables import Part, is_pool
from ltr_objectives.checks import check_list, check_positive
from ltr_objectives.errors import each_once, require
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.sums import WeightedSum
from ltr_objectives.objectives.bounded import flat
from ltr_objectives.objectives.mixture import Mixture
from ltr_objectives.registry import objective_for
from ltr_objectives.statistics import interval

LOSE = (0.005, 0.01, 0.02, 0.05)


class Line(NamedTuple):
    """One line of a trade-off.

    Changes are differences of the mean, as shares of what the training for the first metric alone reaches: 0.01 is 1%.
    ``low`` and ``high`` are the ends of their 95% intervals, from paired differences over the queries.
    """

    training: str  # "ndcg@10 alone", "may lose 0.5%" or "weight 0.3"
    first: float  # the mean of the first metric
    first_change: float
    first_low: float
    first_high: float
    second: float
    second_change: float
    second_low: float
    second_high: float
    rounds: int  # that its model predicts with
    on_front: bool  # no other line is as good in both metrics and better in one


class Tradeoff(NamedTuple):
    """Trainings of :func:`ltr_objectives.adapters.tradeoff`, and what each loses and gains.

    Attributes
    ----------
    metrics : tuple of str
        The two metrics.
    queries : int
        How many the last eval set has.
    lines : list of Line
        One for each training: ``pandas.DataFrame(found.lines)`` is a table.
    rankers : dict
        The fitted ranker of each training, by its name in the lines.
    """

    metrics: tuple[str, str]
    queries: int
    lines: list[Line]
    rankers: dict[str, Any]

    @property
    def resolution(self) -> tuple[float, float]:
        """The changes of both metrics below which the queries cannot tell a training from the first, as shares.

        Each is half the median length of the intervals.
        """
        ends = np.array([(x.first_low, x.first_high, x.second_low, x.second_high) for x in self.lines[1:]])
        first, second = np.median(ends[:, 1::2] - ends[:, ::2], axis=0) / 2
        return float(first), float(second)


@each_once()
def tradeoff(
    ranker: Ranker, X: Any, y: ArrayLike | None = None, *, lose: Sequence[float] | None = None,
    weights: Sequence[float] | None = None, **fit: Any,
) -> Tradeoff:  # fmt: skip
    """Train for one metric, and for as much of another as several bounds or weights leave, and compare both metrics.

    Parameters
    ----------
    ranker : XGBRanker, LGBMRanker or CatBoostRanker
        Its parameters are used; it is not fitted itself. ``eval_metric`` has two of our metrics: the one that may lose,
        and the one that shall gain.
    X, y
        As in the ranker's ``fit``.
    lose : list of numbers, optional
        Shares of the first metric that a training may lose, with a bound on it: 0.01 is 1% of what the training for it
        alone reaches. Without ``weights`` 0.005, 0.01, 0.02 and 0.05.
    weights : list of numbers, optional
        Weights of the second metric's objective in a sum whose first part has weight 1. The round is chosen by the sum
        of both metrics with this weight, each as a share of what the training for the first alone reaches.
    **fit
        Further arguments of the ranker's ``fit``, such as ``qid``, ``labels``, ``eval_set``, ``eval_qid`` and
        ``eval_labels``. Without ``early_stopping_rounds`` all rounds are trained, and the best is kept.

    Returns
    -------
    Tradeoff
        With a line and a fitted ranker for each training. Rounds are chosen on the queries that compare them, so that
        values are larger than on others; compare the ranker of your choice with the first by
        :func:`ltr_objectives.compare_scores` on test queries.

    Raises
    ------
    LTRError
        Without an eval set, or for a ranker with an objective, bounds or other metrics.

    Examples
    --------
    >>> import numpy as np
    >>> from ltr_objectives.adapters import LGBMRanker
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(400, 3)), np.repeat(np.arange(20), 20)
    >>> y, price = np.digitize(X[:, 1], [0, 1]), np.exp(X[:, 0])
    >>> ranker = LGBMRanker(eval_metric=["ndcg@10", "dcg(gain_type=linear)@10[price]"], n_estimators=20)
    >>> goals = {"labels": {"price": price}, "eval_labels": [{"price": price}]}
    >>> found = tradeoff(ranker, X, y, qid=qid, lose=[0.01, 0.05], eval_set=[(X, y)], eval_qid=[qid], **goals)
    >>> [line.training for line in found.lines]
    ['ndcg@10 alone', 'may lose 1%', 'may lose 5%']
    """
    train, evals, params = ranker._read_fit(X, y, **fit)
    given = ranker._asked(params)
    for name in ("objective", "bounds"):
        require(given.get(name) is None, f"tradeoff chooses {name}= of each training; leave it out")
    require(evals, "tradeoff compares on an eval_set; pass eval_set=[(X, y)] and eval_qid=")
    read = read_metrics(given.get("eval_metric", DEFAULT), ranker.library, given.get("convention"))
    metrics = [metric for metric in read if isinstance(metric, Metric)]
    require(
        len(metrics) == len(read) == 2,
        "eval_metric must be two of our metrics, the one that may lose and the one that shall gain, such as "
        "['ndcg@10', 'dcg(gain_type=linear)@10[revenue]']",
    )
    if lose is None and weights is None:
        lose = LOSE
    losses = [check_positive("lose", x) for x in check_list("lose", lose, "shares")]
    require(all(x < 1 for x in losses), f"lose has shares of the first metric, such as 0.01 for 1%, got {losses}")
    factors = [check_positive("weights", x) for x in check_list("weights", weights, "numbers")]
    if not given.get("early_stopping_rounds"):
        params["early_stopping_rounds"] = ROUNDS
    n_threads, part, rankers = ranker.library.n_threads(given), evals[-1], {}

    def trained(**settings: Any) -> Any:
        return clone(ranker).set_params(**settings)._fit_parts(train, evals, **params)

    first, second = metrics
    rankers[f"{first} alone"] = alone = trained(eval_metric=[first, second])
    scores = scores_of(alone, part)
    values = [metric.mean(part.queries, scores, n_threads=n_threads) for metric in metrics]
    for metric, value in zip(metrics, values, strict=True):
        require(value > 0, f"{metric} of the training for {first} alone is {value:g}, of which there are no shares")
    for loss in losses:
        bounds = {first: (1.0 - loss) * values[0]}
        rankers[f"may lose {100 * loss:g}%"] = trained(eval_metric=[second, first], bounds=bounds)
    parts, goals = zip(*(flat(objective_for(metric, train.queries)) for metric in metrics), strict=True)
    reached = [sum_of({metric: 1.0}).mean(part.queries, scores, n_threads=n_threads) for metric in metrics]
    for weight in factors:
        both = sum_of({first: 1.0 / reached[0], second: weight / reached[1]})
        objective = Mixture(parts, [1.0, weight], labels=goals)
        rankers[f"weight {weight:g}"] = trained(objective=objective, eval_metric=[both, first, second])
    return compared(rankers, metrics, part, n_threads)


def sum_of(weights: Mapping[Metric, float]) -> WeightedSum:
    """Return the sum of metrics, which may be sums themselves."""
    parts = [(weight * factor, part) for metric, weight in weights.items() for factor, part in metric.parts]
    return WeightedSum(parts=tuple(parts))


def scores_of(ranker: Any, part: Part) -> np.ndarray:
    """Return the scores of the rounds that are kept, with the initial scores of the data."""
    scores: np.ndarray = ranker.predict(part.X)
    return scores if part.margin is None or is_pool(part.X) else scores + part.margin


def compared(rankers: dict[str, Any], metrics: Sequence[Any], part: Part, n_threads: int | None) -> Tradeoff:
    """Compare the rankers with the first of them."""
    scores = [scores_of(each, part) for each in rankers.values()]
    columns = []
    for metric in metrics:
        base, *_ = values = [metric.values(part.queries, s, n_threads=n_threads) for s in scores]
        means = [metric.mean(part.queries, s, n_threads=n_threads) for s in scores]
        gaps = [np.array(interval(v - base, metric.weight_by_query(part.queries))) for v in values]
        columns.append([(mean, *(gap / means[0]).tolist()) for mean, gap in zip(means, gaps, strict=True)])
    points = np.array([[mean for mean, *_ in column] for column in columns]).T
    front = [not ((points >= p).all(axis=1) & (points > p).any(axis=1)).any() for p in points]
    lines = [
        Line._make((name, *a, *b, each.best_iteration_, on_front))
        for (name, each), a, b, on_front in zip(rankers.items(), *columns, front, strict=True)
    ]
    return Tradeoff((str(metrics[0]), str(metrics[1])), len(part.queries), lines, rankers)
