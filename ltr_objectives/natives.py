"""The libraries' own ranking objectives."""

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
# parts of names of those that learn only which documents are relevant
BINARY = {"xgboost": ("rank:map",), "lightgbm": (), "catboost": ("mode=MAP", "mode=MRR", "metric=MRR")}
