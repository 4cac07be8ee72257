"""A metric and objectives of the user, which tests change."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ltr_objectives import (
    Metric,
    Objective,
)
from ltr_objectives.objectives.base import Facts

LABELS, GROUP = np.array([0.0, 1.0, 0.0, 2.0, 1.0]), [3, 2]
SCORES = -np.arange(5.0)


class Half(Objective):
    name: ClassVar[str] = "half"

    def fill(self, call):
        call.grad[:] = call.hess[:] = 1.0
        (call.grad if call.iteration else call.hess)[3] = np.nan


class Right(Metric):
    """The sum of labels over the rank."""

    name: ClassVar[str] = "right"
    kind: ClassVar[int] = Metric.LINEAR
    maximum: ClassVar[float | None] = None

    def gain(self, labels):
        return labels

    def discount(self, ranks):
        return 1.0 / ranks

    def reference(self, labels):
        return sum(y / d for d, y in enumerate(labels[: self.k], 1))


@dataclass(frozen=True)
class Centred(Objective):
    """Squared error without the mean of each query."""

    noise: str | None = None
    noise_scale: float = 1.0

    name: ClassVar[str] = "centred"

    @property
    def facts(self):
        return Facts(random=self.noise is not None)

    def draw(self, call):
        return np.random.default_rng(call.iteration).normal(size=len(call.scores))

    def fill(self, call):
        error = call.scores - call.queries.labels
        if self.noise:
            error = error + self.noise_scale * self.draw(call)
        sizes = np.diff(call.queries.ptr)
        call.grad[:] = error - np.repeat(np.add.reduceat(error, call.queries.ptr[:-1]) / sizes, sizes)
        call.hess[:] = 1.0

    def reference(self, scores, labels):
        error = scores - labels
        return error - error.mean(), np.ones(len(labels))

    def reference_loss(self, scores, labels):
        error = scores - labels
        return np.sum((error - error.mean()) ** 2) / 2


@dataclass(frozen=True)
class Noisy(Centred):
    noise: str | None = "gaussian"
