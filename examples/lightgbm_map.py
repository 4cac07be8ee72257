"""Train LightGBM for mean average precision, and compare it with LightGBM's own lambdarank by a paired test."""

from ltr_objectives import compare_scores
from ltr_objectives.adapters import LGBMRanker
from ltr_objectives.datasets import load_example

train, vali, test = load_example()  # the rows of a query stand together, and labels are 0 or more
vali_set = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
scores = {}
for name, objective in (("ours", None), ("lambdarank", "lambdarank")):  # None: the objective for the metric
    ranker = LGBMRanker(objective=objective, eval_metric="map", n_estimators=200, random_state=0)
    ranker.fit(train.X, train.y, qid=train.qid, **vali_set)
    scores[name] = ranker.predict(test.X)

found = compare_scores("map", scores["ours"], scores["lambdarank"], test.y, qid=test.qid)
print(f"MAP of ours {found.a:.3f}, of lambdarank {found.b:.3f}; p {found.p:.2f}")
