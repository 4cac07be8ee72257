"""The libraries' own objectives that rankers train."""

# by library: the name, and ours that is nearest, "" if none is near
NATIVES = {
    "xgboost": {
        "rank:ndcg": "lambdamart:preset=xgboost", "rank:map": "lambdamart:map;preset=xgboost",
        "rank:pairwise": "ranknet:preset=xgboost",
    },
    "lightgbm": {"lambdarank": "lambdamart:preset=lightgbm", "rank_xendcg": "xendcg:hessian=exact"},
    "catboost": {
        "YetiRank": "yetirank", "YetiRankPairwise": "yetirank", "PairLogit": "ranknet", "PairLogitPairwise": "ranknet",
        "LambdaMart": "lambdamart", "StochasticRank": "stochasticrank", "StochasticFilter": "",
        "QueryRMSE": "queryrmse", "QuerySoftMax": "listnet:target=labels", "QueryCrossEntropy": "",
    },
}  # fmt: skip
POINTWISE = {  # what else their own rankers train
    "xgboost": (),
    "lightgbm": ("regression", "binary", "cross_entropy"),
    "catboost": ("RMSE",),
}
# parts of names of those that learn only which documents are relevant
BINARY = {"xgboost": ("rank:map",), "lightgbm": (), "catboost": ("mode=MAP", "mode=MRR", "metric=MRR")}


def is_native(objective: str, library: str) -> bool:
    """Return True if this text names an objective of the library's own; settings may follow CatBoost's.

    >>> is_native("YetiRank:mode=MAP", "catboost"), is_native("YetiRank", "lightgbm")
    (True, False)
    """
    name = objective.partition(":")[0] if library == "catboost" else objective
    return name in NATIVES[library] or name in POINTWISE[library]
