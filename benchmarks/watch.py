"""Early stopping on several metrics at once, in any library."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.datasets import RankingData
from ltr_objectives.kernels.records import Terms
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries

Report = Callable[[float], None]  # called after each tree with the first vali metric
DRAWS, NOISE = 8, 0.1  # of a smoothed metric: noisy scores, and their noise in standard deviations of the scores


def silent(value: float) -> None:
    """Report nothing."""


class Watch(Metric):
    """A metric that records others on the vali part after each tree.

    Its own value counts how often any of them reached a new best. A library that stops early on it therefore goes on
    while one of them improves.
    """

    name = "watch"
    maximum = None

    def __init__(
        self, metrics: Sequence[Metric], vali: RankingData, report: Report, n_threads: int, smooth: Sequence[str] = ()
    ) -> None:
        super().__init__()
        noise = np.random.default_rng(0).standard_normal((DRAWS if smooth else 0, len(vali.y)))
        found = {"metrics": tuple(metrics), "vali": vali, "report": report, "n_threads": n_threads,
                 "curves": {str(m): [] for m in metrics}, "bests": [0], "smooth": smooth, "noise": noise}  # fmt: skip
        self.__dict__.update(found)

    metrics: tuple[Metric, ...]
    vali: RankingData
    report: Report
    n_threads: int
    curves: dict[str, list[float]]
    bests: list[int]
    smooth: Sequence[str]  # metrics that are recorded as means over noisy scores
    noise: np.ndarray

    def mean(self, queries: Queries, scores: ArrayLike, *, n_threads: int | None = None) -> float:
        """Record the metrics, and return the number of new bests; 0 for other data, which CatBoost evaluates too."""
        if not (np.array_equal(queries.labels, self.vali.y) and np.array_equal(np.diff(queries.ptr), self.vali.group)):
            return 0.0
        better = False
        for metric in self.metrics:
            curve = self.curves[str(metric)]
            value = self._value(metric, queries, np.asarray(scores, np.float64))
            better |= not curve or value > max(curve)
            curve.append(value)
        self.bests[0] += better
        self.report(self.curves[str(self.metrics[0])][-1])
        return float(self.bests[0])

    def _value(self, metric: Metric, queries: Queries, scores: np.ndarray) -> float:
        if str(metric) not in self.smooth:
            return metric.mean(queries, scores, n_threads=self.n_threads)
        noisy = (scores + NOISE * scores.std() * noise for noise in self.noise)
        return float(np.mean([metric.mean(queries, each, n_threads=self.n_threads) for each in noisy]))

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        """As the first metric's; all of them check the labels."""
        for metric in self.metrics:
            metric.layers(queries)
        return self.metrics[0].layers(queries)

    def gain(self, labels: np.ndarray) -> np.ndarray:
        """As the first metric's."""
        return self.metrics[0].gain(labels)

    def discount(self, ranks: np.ndarray) -> np.ndarray:
        """As the first metric's."""
        return self.metrics[0].discount(ranks)

    def reference(self, labels: np.ndarray) -> float:
        """As the first metric's."""
        return self.metrics[0].reference(labels)
