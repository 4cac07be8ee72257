"""Bags: models trained on resampled queries, merged into one model of the library.

Ganjisaffar, Caruana and Lopes, "Bagging Gradient-Boosted Trees for High Precision, Low Variance Ranking Models" (SIGIR
2011): a bag draws queries with replacement and stops early on the queries that it did not draw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._ranker_inputs import Part
from ltr_objectives.adapters._ranker_plan import Plan, check_plan, in_documents
from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require
from ltr_objectives.objectives.base import Objective

if TYPE_CHECKING:
    from ltr_objectives.adapters._ranker import Ranker, Records

SEEDS = ("random_state", "seed", "random_seed")
TRANSFORMED = ("binary", "cross_entropy", "cross_entropy_lambda", "poisson", "gamma", "tweedie", "multiclass")
OF_A_LEAF = re.compile(r"^(leaf_value|leaf_const|leaf_coeff|internal_value|shrinkage)=.*$", re.MULTILINE)


class Bags(NamedTuple):
    """The merged model, the metrics of each bag by round, and the rounds that it kept."""

    model: Any
    records: Records
    rounds: list[int]


def count_of(bags: Any, objectives: Sequence[Any]) -> int:
    """The number of bags, by default one for each objective; 0 trains a single model."""
    if bags is None:
        return len(objectives) if len(objectives) > 1 else 0
    count = check_integer("bags", bags)
    require(
        count % len(objectives) == 0,
        f"bags={count} must be a multiple of the {len(objectives)} objectives, which take turns",
    )
    return 0 if count == 1 else count


def train(ranker: Ranker, plan: Plan, objectives: Sequence[Objective | str], count: int) -> Bags:
    """Train ``count`` models, each on resampled queries, and merge them."""
    require(plan.init_model is None, "bags= train new models; leave init_model= out")
    require(
        not plan.callbacks, "callbacks= belong to one training, and bags= runs several; leave callbacks= or bags= out"
    )
    require(len(plan.train.queries) > 1, "bags= resamples queries, and the data has only one; leave bags= out")
    require(
        not plan.params.get("save_snapshot"),
        "save_snapshot= saves one training, and bags= runs several; leave one of the two out",
    )
    unread = next((m for m in plan.own_metrics if m.goal is not None and m.goal not in plan.train.queries.goals), None)
    require(
        unread is None,
        f"bags= evaluate {unread} on the train queries that they leave out; pass their labels too: "
        f"labels={{{unread and unread.goal!r}: array}}",
    )
    for objective in objectives:
        stopping = plan._replace(evals=(*plan.evals, plan.train), objective=in_documents(objective))
        check_plan(stopping, ranker.library)
    name = next((name for name in SEEDS if name in plan.params), SEEDS[0])
    seed = check_integer(name, plan.params.get(name, 0), least=0)
    rng = np.random.default_rng(seed)
    merge = MERGE[ranker.library.name]
    models: list[Any] = []
    records: Records = {}
    for bag in range(count):
        drawn, left_out = resampled(plan.train, rng)
        each = plan._replace(
            train=drawn,
            evals=(*plan.evals, left_out),
            objective=in_documents(objectives[bag % len(objectives)]),
            params=plan.params | {name: seed + bag},
        )
        model, found = ranker._train_known(each)
        models.append(model)
        if bag == 0:
            merge([model, model])  # raises before the other bags train
        own = f"validation_{len(plan.evals)}"
        records |= {f"bag_{bag}" if key == own else f"bag_{bag}_{key}": values for key, values in found.items()}
    return Bags(merge(models), records, [ranker._rounds(model) for model in models])


def resampled(part: Part, rng: np.random.Generator) -> tuple[Part, Part]:
    """As many queries as there are, drawn with replacement and weighted by how often; and those not drawn."""
    n = len(part.queries)
    times = np.ones(n, np.int64)
    while times.all():
        times = np.bincount(rng.integers(n, size=n), minlength=n)
    return selected(part, times > 0, times), selected(part, times == 0)


def selected(part: Part, chosen: np.ndarray, times: np.ndarray | None = None) -> Part:
    """The ``chosen`` queries; ``times`` multiplies their weights."""
    weight = part.queries.weight_by_row
    if times is not None:
        by_row = np.repeat(times, part.group)
        weight = by_row if weight is None else by_row * weight
    return part.take(np.flatnonzero(np.repeat(chosen, part.group)), part.group[chosen], weight)


def merged_xgboost(models: Sequence[Any]) -> Any:
    """The mean of the models: their trees one after the other, leaves divided by the number of models."""
    texts = [json.loads(model.save_raw("json")) for model in models]
    boosters = [text["learner"]["gradient_booster"] for text in texts]
    require(boosters[0]["name"] != "gblinear", "bags= merges trees, and gblinear has none; leave bags= out")
    parts = [booster.get("gbtree", booster)["model"] for booster in boosters]
    weighted = boosters if "weight_drop" in boosters[0] else parts  # parts since version 3.4
    if weighted[0].get("weight_drop"):  # dart: prediction multiplies each tree by its weight
        weighted[0]["weight_drop"] = [w / len(models) for each in weighted for w in each["weight_drop"]]
    else:
        for tree in (tree for part in parts for tree in part["trees"]):
            is_leaf = np.array(tree["left_children"]) < 0
            split = np.array(tree["split_conditions"], np.float32)
            tree["split_conditions"] = np.where(is_leaf, split / np.float32(len(models)), split).tolist()
            tree["base_weights"] = (np.array(tree["base_weights"], np.float32) / np.float32(len(models))).tolist()
    trees = [tree | {"id": i} for i, tree in enumerate(tree for part in parts for tree in part["trees"])]
    parts[0]["trees"], parts[0]["tree_info"] = trees, [info for part in parts for info in part["tree_info"]]
    parts[0]["gbtree_model_param"]["num_trees"] = str(len(trees))
    if "iteration_indptr" in parts[0]:
        sizes = np.concatenate([np.diff(part["iteration_indptr"]) for part in parts])
        parts[0]["iteration_indptr"] = [0, *np.cumsum(sizes).tolist()]
    params = [text["learner"]["learner_model_param"] for text in texts]
    start = np.mean([float(each["base_score"].strip("[]")) for each in params])
    params[0]["base_score"] = re.sub(r"[^\[\]]+", f"{start:.9g}", params[0]["base_score"])
    for name in ("best_iteration", "best_score"):
        texts[0]["learner"]["attributes"].pop(name, None)
    model = models[0].copy()
    model.load_model(bytearray(json.dumps(texts[0]), "utf8"))
    return model


def merged_lightgbm(models: Sequence[Any]) -> Any:
    """The mean of the models, as :func:`merged_xgboost`."""

    def divided(line: re.Match[str]) -> str:
        name, _, numbers = line[0].partition("=")
        return f"{name}={re.sub(r'[^ ]+', lambda number: repr(float(number[0]) / len(models)), numbers)}"

    texts = [model.model_to_string() for model in models]
    require(
        "\naverage_output\n" not in texts[0], "bags= adds up boosted trees, and boosting='rf' has none; leave one out"
    )
    heads: list[str] = []
    trees: list[str] = []
    for text in texts:
        head, *found = re.split(r"^Tree=\d+\n", text.partition("end of trees\n")[0], flags=re.MULTILINE)
        heads.append(re.sub(r"^tree_sizes=.*\n", "", head, flags=re.MULTILINE))
        trees += found
    changed = re.search(rf"^objective=({'|'.join(TRANSFORMED)})\b", "".join(heads), re.MULTILINE)
    require(
        not changed, f"bags= average scores, and objective={changed and changed[1]!r} transforms them; name another"
    )
    numbered = (f"Tree={i}\n{OF_A_LEAF.sub(divided, tree)}" for i, tree in enumerate(trees))
    end = texts[0].partition("end of trees\n")[2]
    return type(models[0])(model_str="".join([heads[0], *numbered, "end of trees\n", end]))


def merged_catboost(models: Sequence[Any]) -> Any:
    """The mean of the models, by CatBoost's own function."""
    import catboost

    share = [1 / len(models)] * len(models)
    try:  # CatBoost cannot save a sum of models that each have statistics of the same categories
        return catboost.sum_models(list(models), weights=share, ctr_merge_policy="FailIfCtrIntersects")
    except catboost.CatBoostError as error:
        require(
            "CtrIntersects" not in str(error),
            "CatBoost cannot merge models with target statistics of categories; set one_hot_max_size= to the largest "
            "number of categories, at most 255, or leave bags= out",
        )
        raise


MERGE = {"xgboost": merged_xgboost, "lightgbm": merged_lightgbm, "catboost": merged_catboost}
