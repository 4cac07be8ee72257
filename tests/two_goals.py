"""Data whose documents have a grade and a revenue."""

import numpy as np

from ltr_objectives.datasets import make_ranking_fold

TRAIN, VALI, TEST = make_ranking_fold((120, 80, 40), seed=5, features=10, mean_length=15)
MONEY, NDCG, MAP = "dcg(gain_type=linear)@10[revenue]", "ndcg@10", "map"


def revenue(data):
    return np.where(data.y > 0, 10 * np.exp(data.X[:, 3]), 0.0)


LABELS = {"labels": {"revenue": revenue(TRAIN)}}
EVAL = {"eval_set": [(VALI.X, VALI.y)], "eval_qid": [VALI.qid], "eval_labels": [{"revenue": revenue(VALI)}]}
BOTH = {"relevance": VALI.y, "revenue": revenue(VALI)}
