"""Train XGBoost for mean average precision, and compare it with XGBoost's own rank:ndcg by a paired test."""

from ltr_objectives import compare_scores
from ltr_objectives.adapters import XGBRanker
from ltr_objectives.datasets import load_example

train, vali, test = load_example()  # the rows of a query stand together, and labels are 0 or more
vali_set = {"eval_set": [(vali.X, vali.y)], "eval_qid": [vali.qid], "early_stopping_rounds": 20}
scores = {}
for name, objective in (("ours", None), ("rank:ndcg", "rank:ndcg")):  # None: the objective for the metric
    ranker = XGBRanker(objective=objective, eval_metric="map", n_estimators=200, random_state=0)
    ranker.fit(train.X, train.y, qid=train.qid, **vali_set)
    scores[name] = ranker.predict(test.X)

found = compare_scores("map", scores["ours"], scores["rank:ndcg"], test.y, qid=test.qid)
print(f"MAP of ours {found.a:.3f}, of rank:ndcg {found.b:.3f}; p {found.p:.2f}")
