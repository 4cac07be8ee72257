"""Train for a metric of one's own in three libraries: attention that falls by a tenth from rank to rank."""

from dataclasses import dataclass

import numpy as np

from ltr_objectives import Metric, Mixture, YetiLoss, compare_scores
from ltr_objectives.adapters import CatBoostRanker, LGBMRanker, XGBRanker
from ltr_objectives.datasets import make_ranking_fold


@dataclass(frozen=True)
class Attention(Metric):
    name, kind, maximum = "attention", Metric.LINEAR, None  # the sum of gain times discount, without a largest value

    def gain(self, labels):
        return (labels >= 2).astype(float)

    def discount(self, ranks):
        return np.maximum(0.0, 1 - (ranks - 1) / 10)

    def reference(self, labels):
        return sum((y >= 2) * max(0.0, 1 - d / 10) for d, y in enumerate(labels[: self.k]))


train, vali, test = make_ranking_fold((600, 200, 1000), features=40, mean_length=30)  # grades from 0 to 4
vali_set = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
OURS = Mixture([YetiLoss("ndcg"), YetiLoss(Attention())])  # NDCG helps where few documents have grade 2 or more
for maker, native in ((LGBMRanker, "lambdarank"), (XGBRanker, "rank:ndcg"), (CatBoostRanker, "YetiRank")):
    scores = []
    for objective in (OURS, native):
        ranker = maker(objective=objective, eval_metric=Attention(), n_estimators=200, random_state=0)
        ranker.fit(train.X, train.y, qid=train.qid, **vali_set)
        scores.append(ranker.predict(test.X))
    found = compare_scores(Attention(), *scores, test.y, qid=test.qid)
    print(f"{maker.__name__:<15}{found.a:.3f}, {native} {found.b:.3f}, interval {found.low:+.3f} to {found.high:+.3f}")
