r"""YetiRank: neighbours in randomised rankings, weighted by label difference and decay."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ltr_objectives.checks import Check, check_fraction
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.swaps import UPPER
from ltr_objectives.objectives.base import Noise
from ltr_objectives.objectives.pairwise import Hessian, PairSettings, PairwiseObjective
from ltr_objectives.queries import Queries

CATBOOST_FACTOR = 0.15


@dataclass(frozen=True)
class YetiRank(PairwiseObjective, text="yetirank"):
    r"""YetiRank (Gulin, Kuralenok and Pavlov, "Winning the Transfer Learning Track of Yahoo!'s LTR Challenge", 2011).

    The weight :math:`w` of a pair is a mean over several rankings by noisy scores. Each ranking in which the two are
    neighbours, at ranks :math:`d` and :math:`d+1`, adds :math:`|y_{hi} - y_{lo}| \, b^{d-1}`. Up to a constant that is
    the change of ExpDCG (Lyzhin et al., ICML 2023, eqs. 10, 11 and 13). The loss is
    :math:`\sum w_{hi,lo} \log(1 + e^{-(s_{hi} - s_{lo})})` at the scores without noise.

    Parameters
    ----------
    decay : float
        :math:`b`, above 0 and at most 1.
    permutations, noise, noise_scale, hessian, seed
        As in :class:`YetiLoss`.
    preset : "catboost", optional
        Multiply every weight by 0.15, as CatBoost's YetiRank does.

    Examples
    --------
    >>> grad, hess = YetiRank(noise=None).gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad, hess
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    decay: float = 0.85
    permutations: int = 10
    noise: Noise | None = "logistic"
    noise_scale: float = 1.0
    hessian: Hessian = "exact"
    preset: str | None = None
    seed: int = 0

    presets: ClassVar[dict[Any, dict[str, Any]]] = {"catboost": {}}
    checks: ClassVar[dict[str, Check]] = {"decay": check_fraction}

    def pair_settings(self) -> PairSettings:
        return super().pair_settings()._replace(neighbors=1, draws=self.permutations)

    def layers(self, queries: Queries) -> tuple[Terms, ...]:
        return queries.cached(("layers", self), lambda: (self._terms(queries),))

    @property
    def _factor(self) -> float:
        return CATBOOST_FACTOR if self.preset else 1.0

    def _terms(self, queries: Queries) -> Terms:
        discount = np.power(self.decay, np.arange(queries.longest))
        scale = np.full(len(queries), self._factor)
        return Terms(UPPER, queries.labels.copy(), discount, scale, np.zeros(len(queries)))

    def pair_weights(self, labels: np.ndarray) -> np.ndarray:
        decay = self.decay ** np.arange(len(labels))[:, None]
        return np.abs(labels[:, None] - labels) * decay * self._factor
