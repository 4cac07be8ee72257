"""The libraries' own ranking objectives."""

import re

from ltr_objectives.registry import METRICS

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


def native_of(objective: str) -> tuple[str, str]:
    """The library whose own ranking objective this text names, and ours that is nearest; both may be empty.

    >>> native_of("rank:map"), native_of("YetiRank:mode=MAP;top=10"), native_of("yetiloss:map")
    (('xgboost', 'lambdamart:map;preset=xgboost'), ('catboost', 'yetiloss:map@10'), ('', ''))
    """
    head = objective.partition(":")[0]
    for library, natives in NATIVES.items():
        for native in {objective, head} & natives.keys():
            metric = re.search(rf"(?i)\b(?:mode|metric)=({'|'.join(METRICS)})\b", objective)
            top = re.search(r"\btop=(\d+)", objective)
            name = natives[native] if native in ("StochasticRank", "LambdaMart") else "yetiloss"
            ours = f"{name}:{metric[1].lower()}" + (f"@{top[1]}" if top else "") if metric else ""
            return library, ours or natives[native]
    return "", ""
