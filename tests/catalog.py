"""Examples of every option of the objectives and metrics.

An objective or metric without an entry has its defaults as the only example, and no other claim is tested.
"""

from typing import Any

import ltr_objectives as ltr
from ltr_objectives import Metric, Mixture, Objective, registry

TABLE = (0.0, 0.5, 2.0, 2.0, 9.0)
LARGEST_SEED = 2**64 - 1


def _metric_examples(cls: type[Metric]) -> tuple[Metric, ...]:
    whole = () if cls.cutoff == "required" else (cls(),)
    if cls.cutoff in ("none", "query"):
        some = (cls(ties="worst"), cls(ties="best"), cls(ties="input", empty=0.5))
    else:
        some = (cls(k=3), cls(k=1), cls(k=10), cls(k=5, ties="worst"), cls(k=2, ties="input"), cls(k=8, ties="best"))
    least = {"k": 4} if cls.cutoff == "required" else {}
    return whole + some + tuple(cls(**(least | more)) for name in _bases(cls) for more in MORE.get(name, ()))


def some_metrics(name: str) -> tuple[Metric, ...]:
    """Return the examples of one cutoff, and those of all other options."""
    examples = METRICS[name]
    options = sum(len(MORE.get(base, ())) for base in _bases(type(examples[0])))
    return (examples[0], *examples[-1 - options :])


def _bases(cls: type[Metric]) -> list[str]:
    return [base.name for base in reversed(cls.__mro__) if "name" in vars(base)]


MORE = {
    "map": ({"k": 4, "threshold": 1.0}, {"k": 3, "normalizer": "relevant"}),
    "gap": (
        {"k": 4, "weights": (0.0, 1.0)},
        {"k": 2, "weights": (1.0, 2.0, 0.0, 1.0)},
        {"weights": (3.0,)},
    ),
    "precision": ({"threshold": 1.0, "short_lists": "shrink"},),
    "auc": ({"threshold": 1.0},),
    "rprec": ({"threshold": 1.0},),
    "mrr": ({"k": 4, "threshold": 1.0},),
    "hit": ({"threshold": 1.0},),
    "rbp": ({"k": 4, "threshold": 1.0, "patience": 0.5},),
    "err": ({"k": 4, "grades": "linear"}, {"grades": "exp", "max_label": 7}, {"k": 3, "grades": "identity"}),
    "pfound": ({"k": 4, "decay": 0.5, "grades": "linear"},),
    "dcg": (
        {"gain_type": "linear", "discount_type": "reciprocal"},
        {"k": 4, "gain_type": TABLE, "discount_type": (3.0, 3.0, 1.0), "ties": "worst"},
    ),
    "ndcg": ({"ideal_k": 2},),
}  # options beside the cutoff and ties; a metric also has those of its base classes
METRICS = {name: _metric_examples(Metric.named[name]) for name in registry.metric_names()}
ONE_OF_EACH = [examples[0] for examples in METRICS.values()]
LEARNED = {name: examples for name, examples in METRICS.items() if name != "rprec"}
EVERY_LEARNED = [metric for examples in LEARNED.values() for metric in examples if metric.ties == "average"]
SOME_LEARNED = [examples[0] for examples in LEARNED.values()]

_OF_METRICS: dict[str, tuple[list[Metric], dict[str, Any]]] = {  # metrics, and the options beside them
    "lambdamart": (EVERY_LEARNED, {}),
    "stochasticrank": (EVERY_LEARNED, {"sfa": 0.0, "hessian": "absolute"}),
    "hinge": (SOME_LEARNED, {}),  # LambdaMART, whose kernel these two share, is tried with every metric
    "yetiloss": (SOME_LEARNED, {"noise": None, "neighbors": "all"}),
    "neuralsort": ([metric for metric in SOME_LEARNED if metric.name != "gap"], {"rounds": 3}),
}
_SETTINGS: dict[str, tuple[dict[str, Any], ...]] = {
    "lambdamart": (
        {"sigma": 2.0, "truncation": 3, "lambda_norm": True},
        {"metric": "map", "score_norm": True, "hessian": "double"},
        {"metric": "err", "lambda_norm": True, "hessian": "ones"},
        {"preset": "lightgbm"},
        {"preset": "xgboost"},
        {"partners": 2, "truncation": 5, "seed": LARGEST_SEED},
    ),
    "yetirank": (
        {},
        {"noise": None},
        {"noise": "gaussian", "decay": 0.5, "noise_scale": 2.0, "permutations": 3},
        {"noise": "gumbel", "hessian": "double", "seed": 7},
        {"noise": None, "preset": "catboost", "hessian": "ones"},
    ),
    "yetiloss": (
        {},
        {"metric": "map", "neighbors": 2, "noise": "gaussian", "noise_scale": 0.5, "permutations": 3},
        {"metric": "err@5", "neighbors": 3, "noise": "gumbel", "hessian": "double", "seed": LARGEST_SEED},
        {"metric": "ndcg@5", "noise": "gumbel", "difference": "noisy", "permutations": 3},
        {"metric": "mrr", "noise": None, "neighbors": 2, "change": "catboost"},
        {"metric": "map", "noise": None, "neighbors": "all", "preset": "catboost", "hessian": "ones"},
        {"metric": "map", "permutations": 3, "partners": 2, "seed": LARGEST_SEED},
    ),
    "stochasticrank": (
        {},
        {"metric": "ndcg@5", "sfa": 1.0, "hessian": "ones"},
        {"metric": "map", "sigma": 0.3, "mu": 0.5, "samples": 3, "hessian": "bounded"},
        {"metric": "err@5", "sfa": 0.5, "nu": 1.0, "hessian": "clipped", "seed": LARGEST_SEED},
        {"metric": "mrr", "sigma": 2.0, "mu": 0.2, "sfa": 0.7, "hessian": "clipped"},
        {"metric": "ndcg", "sigma": 0.1, "hessian": "bounded"},
    ),
    "hinge": ({}, {"metric": "map", "sigma": 0.5, "truncation": 3}, {"partners": 1}),
    "ranknet": (
        {},
        {"weights": "difference", "sigma": 2.0, "truncation": 3},
        {"score_norm": True, "hessian": "ones"},
        {"weights": "difference", "lambda_norm": True},
        {"weights": "all", "sigma": 2.0, "truncation": 3},
        {"weights": "all"},
        {"preset": "xgboost"},
        {"partners": 3},
    ),
    "plrank": (
        {},
        {"k": 3, "hessian": "exact", "normalize": False},
        {"k": None, "samples": 30, "hessian": "absolute", "gain": "linear", "discount": "reciprocal"},
        {"k": 1, "samples": 50, "hessian": "clipped", "seed": LARGEST_SEED},
        {"k": 5, "samples": 7, "hessian": "ones", "gain": TABLE, "discount": (1.0, 3.0, 0.0, 2.0)},
    ),
    "listnet": ({}, {"target": "labels"}, {"target": "unnormalized"}, {"hessian": "exact"}),
    "xendcg": (
        {},
        {"noise": None},
        {"terms": 1, "hessian": "exact", "noise": None},
        {"terms": 1, "seed": LARGEST_SEED},
    ),
    "listmle": ({}, {"hessian": "exact"}),
    "lambdaloss": (
        {},
        {"weights": "ndcg2", "sigma": 0.5},
        {"k": 3, "weights": "ndcg2", "sigma": 2.0},
        {"k": 5, "mu": 0.5, "gain": "linear"},
        {"k": 2, "gain": TABLE},
        {"partners": 2, "weights": "ndcg2"},
        {"partners": 1, "k": 4, "seed": LARGEST_SEED},
        {"noise": "gumbel", "samples": 3, "noise_scale": 0.5, "seed": LARGEST_SEED},
        {"noise": "gaussian", "samples": 2, "partners": 2, "weights": "ndcg2"},
    ),
    "approxndcg": ({}, {"alpha": 10.0}, {"step": 1}, {"gain": "linear"}, {"alpha": 0.3, "gain": TABLE}),
    "approxmrr": ({}, {"alpha": 10.0}, {"step": 1}),
    "approxmap": ({}, {"alpha": 10.0}, {"step": 1}),
    "ordinal": ({}, {"thresholds": (0.0, 0.0, 3.0)}),
    "neuralndcg": (
        {},
        {"k": 3, "temperature": 0.1, "gain": "linear"},
        {"k": 5, "transposed": True, "rounds": 2, "temperature": 3.0},
        {"temperature": 1.0, "rounds": 0, "gain": TABLE},
        {"noise": "gumbel", "samples": 3, "rounds": 5, "seed": LARGEST_SEED},
        {"k": 2, "rounds": 4, "tolerance": 0.0, "transposed": True, "max_documents": 6},
    ),
    "neuralsort": (
        {"noise": "logistic", "samples": 2, "rounds": 4},
        {"metric": "err@3", "temperature": 1.0, "max_documents": 6},
        {"metric": "map", "temperature": 0.3, "rounds": 2, "transposed": True},
    ),
    "softrank": ({}, {"sigma": 0.1, "gain": "linear", "step": 1}, {"sigma": 3.0, "gain": TABLE, "max_documents": 6}),
}  # fmt: skip


def _objective_examples(name: str, some: list[Metric] | None = None) -> tuple[Objective, ...]:
    cls = Objective.named[name]
    metrics, settings = _OF_METRICS.get(name, ([], {}))
    of_metrics = tuple(cls(metric=metric, **settings) for metric in (metrics if some is None else some))
    return of_metrics + tuple(cls(**settings) for settings in _SETTINGS.get(name, ({},)))


EXAMPLES = {name: _objective_examples(name) for name in registry.objective_names()}
MIXTURES = tuple(
    Mixture(parts, weights, normalize=False)
    for parts, weights in (
        (["yetiloss:ndcg@3", "yetiloss:mrr", "yetirank:decay=.5;permutations=5"], (1.0, 0.3, 2.0)),
        (["lambdamart:map", "lambdamart:err@2", "listnet"], (0.5, 3.0, 1.0)),
        (["lambdamart:ndcg;truncation=2", "approxndcg"], (1.0, 0.1)),
        (["plrank", "lambdamart:lambda_norm=True", "rmse"], (1.0, 0.5, 0.0)),
    )
)
EXAMPLES["mixture"] = MIXTURES
OBJECTIVES = {name: EXAMPLES[name][-1] for name in registry.objective_names()}
KINDS = {name: OBJECTIVES[name] for name in ("lambdamart", "yetiloss", "stochasticrank", "plrank", "listnet", "rmse")}
PATHS = {  # one objective of each path through an adapter
    "constant Hessian": ltr.QueryRMSE(),
    "own Hessian": ltr.LambdaMART("map"),
    "random": ltr.YetiLoss("ndcg@10"),
    "mixture": Mixture(["yetiloss:ndcg@10", "listnet"], normalize=False),
    "goals": Mixture(["yetiloss:ndcg@10", "lambdamart:map"], (1.0, 0.3), labels=[None, "revenue"], normalize=False),
    "propensity": ltr.LambdaMART(),
}
SOME = {  # every option, and in LambdaMART one metric of each kind
    **{
        name: _objective_examples(name, SOME_LEARNED if name == "lambdamart" else [])
        for name in registry.objective_names()
    },
    "mixture": MIXTURES,
}
