"""Right and wrong calls of the public names: mypy and pyright find an error in each line that is marked."""

import numpy as np
from numpy.typing import NDArray

import ltr_objectives as ltr
from ltr_objectives import adapters
from ltr_objectives.datasets import make_ranking_fold

train, valid, test = make_ranking_fold((20, 5, 5), seed=0)
for maker in (adapters.XGBRanker, adapters.LGBMRanker, adapters.CatBoostRanker):
    ranker = maker(objective=ltr.YetiLoss("map"), eval_metric=["map", ltr.NDCG(k=3)], n_estimators=3)
    fitted = ranker.fit(train.X, train.y, qid=train.qid, eval_set=[(valid.X, valid.y)], eval_qid=[valid.qid])
    rounds: int = fitted.best_iteration_
    value: float = fitted.score(test.X, test.y, qid=test.qid) + fitted.best_score_["validation_0"]["map"]
    scores: NDArray[np.float64] = fitted.set_params(max_depth=3).load_model("model").predict(test.X)
    fitted.set_fit_request(qid=True).set_score_request(qid=True)
adapters.LGBMRanker().fit(train.X, train.y, qid=train.qid, init_score=train.y, eval_names=["valid"])
adapters.XGBRanker().fit(train.X, train.y, qid=train.qid, base_margin=train.y, sample_weight_eval_set=None)
adapters.CatBoostRanker().fit(train.X, train.y, group_id=train.qid, baseline=train.y, cat_features=[0])
adapters.LGBMRanker().fit(train.X, train.y, qid=train.qid, init_scores=train.y)  # error
adapters.CatBoostRanker().fit(train.X, train.y, qid=train.qid, use_best_model="yes")  # error
adapters.LGBMRanker(objective=3)  # error
adapters.XGBRanker(convention="treceval")  # error
adapters.CatBoostRanker().predict()  # error
model: str = adapters.LGBMRanker().booster_  # error

noisy = [ltr.YetiLoss("map", noise="gaussian"), ltr.NDCG(ties="worst"), ltr.LambdaMART(hessian="double")]
ltr.YetiLoss("map", noise="laplace")  # error
ltr.NDCG(ties="first")  # error
mean: float = ltr.evaluate("ndcg@10", scores, test.y, qid=test.qid, convention="lightgbm")
means: dict[str, float] = ltr.evaluate(["map", "mrr"], scores, test.y, test.group)
difference: float = ltr.compare_scores("map", scores, scores, test.y, test.group, level=0.9).difference
ltr.evaluate("map", scores, test.y, groups=test.group)  # error
ltr.evaluate("map", scores, test.y, test.group, convention="lightgm")  # error
ltr.compare_scores("map", scores, scores, test.y, users=test.qid)  # error
ltr.compare_scores("map", scores, test.y)  # error

cutoff: int | None = ltr.get_metric("ndcg@10", "xgboost").k
names: tuple[str, ...] = (*ltr.metric_names(), *ltr.objective_names(), ltr.get_objective("yetiloss:map").name)
grad, hess = ltr.LambdaMART("map", truncation=5).gradient_hessian(scores, test.y, test.group)
print(grad.sum(), ltr.LTRError, adapters.xgboost_objective("yetiloss:map", n_threads=2), adapters.catboost_objective)
print(adapters.lightgbm_objective(ltr.YetiLoss("map")), adapters.catboost_metric, adapters.lightgbm_metric("map"))
print(adapters.xgboost_metric("map", ltr.NDCG(k=3), convention="xgboost"), ltr.objective_for("map").name)
ltr.YetiLoss(nonsense=3)  # error
ltr.LambdaMART(truncation="5")  # error
ltr.YetiLoss("map").gradient_hessian(scores, labels=test.y, groups=test.group)  # error
ltr.NDCG(k="ten")  # error
ltr.NDCG(gain_type="exponential")  # error
adapters.xgboost_objective(3)  # error
adapters.lightgbm_metric("map", conventions="xgboost")  # error
adapters.catboost_metric("map", convention=3)  # error
print(ltr.get_metric("map").kk)  # error
print(ltr.metric_names().keys())  # error
print(ltr.nonsense)  # error
print(adapters.Nowhere)  # error
