"""Train LightGBM for mean average precision, and compare it with LightGBM's own lambdarank by a paired test."""

from ltr_objectives import compare_scores
from ltr_objectives.adapters import LGBMRanker
from ltr_objectives.datasets import make_ranking_fold

METRIC = "map(threshold=1.5)"  # grades above 1.5 are relevant
train, vali, test = make_ranking_fold((600, 200, 1000), features=40, mean_length=30)  # grades from 0 to 4
vali_set = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
scores = {}
for name, objective in (("ours", None), ("lambdarank", "lambdarank")):  # None: the objective for the metric
    ranker = LGBMRanker(objective=objective, eval_metric=METRIC, n_estimators=200, random_state=0)
    ranker.fit(train.X, train.y, qid=train.qid, **vali_set)
    scores[name] = ranker.predict(test.X)

found = compare_scores(METRIC, scores["ours"], scores["lambdarank"], test.y, qid=test.qid)
print(f"MAP: our objective {found.a:.3f}, lambdarank {found.b:.3f}")
print(f"difference {found.difference:+.3f}, 95% interval {found.low:+.3f} to {found.high:+.3f}")
