"""Gains, cutoff and ideal of the losses that approximate NDCG."""

from dataclasses import KW_ONLY, dataclass

from ltr_objectives.kernels.records import Terms
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.gains import GainType
from ltr_objectives.metrics.linear import NDCG
from ltr_objectives.objectives.base import Facts, Objective
from ltr_objectives.queries import Queries


@dataclass(frozen=True)
class GainObjective(Objective):
    """Base of the losses that read labels as gains."""

    _: KW_ONLY
    gain: GainType = "exp"

    @property
    def facts(self) -> Facts:
        return super().facts._replace(label_limit=gains.gain_limit(self.gain))


@dataclass(frozen=True)
class NDCGObjective(GainObjective):
    """Base of the losses that approximate NDCG@k, or take its gains and cutoff."""

    k: int | None = None

    def terms(self, queries: Queries) -> Terms:
        """Return the terms of NDCG@k: gains, discounts up to the cutoff, one over the ideal."""
        return NDCG(self.k, gain_type=self.gain).terms(queries)
