"""Bags: models trained on resampled queries, merged into one model of the library."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._data import clone
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.adapters._run import AUTO, our_names, read_param
from ltr_objectives.adapters._tables import Part, is_pool
from ltr_objectives.checks import check_integer
from ltr_objectives.errors import require

R = TypeVar("R", bound=Ranker)
OF_ONE_TRAINING = re.compile("(?!eval_metric)eval_.*|.*_eval_set|.*_model|early_stopping_rounds|callbacks|verbose")
SEEDS = ("random_state", "seed", "random_seed")
A_TREE = re.compile(r"^Tree=\d+\n", re.MULTILINE)
OF_A_LEAF = re.compile(r"^(leaf_value|leaf_const|leaf_coeff|internal_value|shrinkage)=.*$", re.MULTILINE)


def bagged(
    ranker: R,
    X: Any,
    y: ArrayLike,
    *,
    group: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    position: ArrayLike | None = None,
    labels: Mapping[str, ArrayLike] | None = None,
    bags: int = 8,
    **own: Any,
) -> R:
    """Train a model on each of several bags of queries, and merge them into one whose raw scores are their mean.

    A bag draws as many queries as there are, with replacement. Its model is evaluated on the queries that were not
    drawn, and stops early on them if the ranker has ``early_stopping_rounds`` (Ganjisaffar, Caruana and Lopes, "Bagging
    Gradient-Boosted Trees for High Precision, Low Variance Ranking Models", SIGIR 2011).

    Parameters
    ----------
    ranker : XGBRanker, LGBMRanker or CatBoostRanker
        Its parameters are used; it is not fitted itself. Bag ``i`` trains with the ranker's seed plus ``i``.
    X, y, group, qid, sample_weight, propensity, position, labels
        As of the ranker's ``fit``.
    bags : int
        Number of models.
    **own
        Further arguments of the ranker's ``fit`` that are not about eval sets or another model, such as ``init_score``,
        ``base_margin`` or ``baseline``.

    Returns
    -------
    XGBRanker, LGBMRanker or CatBoostRanker
        A fitted clone of ``ranker``. Its ``booster_`` has the trees of all bags, with leaf values divided by their
        number, and ``best_iteration_`` is the sum of their rounds. It has no ``evals_result_`` and ``best_score_``.

    Examples
    --------
    >>> import numpy as np
    >>> from ltr_objectives.adapters import LGBMRanker, bagged
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> bagged(LGBMRanker(n_estimators=3, min_child_samples=5), X, y, qid=qid, bags=4).best_iteration_
    12
    """
    given = our_names(ranker.library, ranker._given())
    require(given.get("objective") != AUTO, 'objective="auto" may choose other objectives for other bags; name one')
    require(not is_pool(X), "bags are drawn from a table; give bagged the table of the Pool, with qid=")
    known = inspect.signature(ranker.fit).parameters
    for name in own:
        if name not in known or OF_ONE_TRAINING.fullmatch(name):
            raise TypeError(f"bagged() got an unexpected keyword argument {name!r}")
    data = {"group": group, "qid": qid, "sample_weight": sample_weight, "labels": labels}
    part, params = _read(ranker, X, y, **data, propensity=propensity, position=position, **own)
    weight = part.queries.weight_by_query
    if weight is not None and weight.any():  # else a bag, or what it leaves out, may have no weight at all
        part = part.take(np.flatnonzero(np.repeat(weight > 0, part.group)), part.group[weight > 0])
    require(len(part.queries) > 1, "bags are drawn from the queries with a weight, and the data has only one")
    name = next((name for name in SEEDS if name in given), SEEDS[0])
    seed = read_param(given.get(name, 0))
    rng = np.random.default_rng(seed)
    fitted = []
    for bag in range(check_integer("bags", bags)):
        drawn, left_out = resampled(part, rng)
        fitted.append(clone(ranker).set_params(**{name: seed + bag})._fit_parts(drawn, (left_out,), **params))
    merged = clone(ranker)
    merged._adopt(MERGE[ranker.library.name]([each.booster_ for each in fitted]))
    merged._fitted = fitted[0]._fitted._replace(evals_result_=None, best_score_=None)
    return merged


def _read(ranker: Ranker, X: Any, y: ArrayLike, **given: Any) -> tuple[Part, dict[str, Any]]:
    """The data and the parameters that ``ranker.fit`` reads of these arguments."""
    found: list[tuple[Part, dict[str, Any]]] = []
    reader: Any = clone(ranker)
    reader._fit_parts = lambda train, evals, **params: found.append((train, params))
    reader.fit(X, y, **given)
    return found[0]


def resampled(part: Part, rng: np.random.Generator) -> tuple[Part, Part]:
    """As many queries as there are, drawn with replacement and weighted by how often; and those not drawn."""
    n = len(part.queries)
    times = np.ones(n, np.int64)
    while times.all():
        times = np.bincount(rng.integers(n, size=n), minlength=n)
    by_row, weight = np.repeat(times, part.group), part.queries.weight_by_row
    drawn = np.flatnonzero(by_row), part.group[times > 0], by_row if weight is None else by_row * weight
    return part.take(*drawn), part.take(np.flatnonzero(by_row == 0), part.group[times == 0])


def merged_xgboost(models: Sequence[Any]) -> Any:
    """The mean of the models: their trees one after the other, leaves divided by the number of models.

    In the JSON of versions 2.0 to 3.4 a gbtree is ``{"model": ...}``, and dart ``{"gbtree": gbtree, "weight_drop":
    [...]}`` or, since 3.4, a gbtree with ``weight_drop`` in its model. The split condition of a leaf is its value.
    """
    texts = [json.loads(model.save_raw("json")) for model in models]
    boosters = [text["learner"]["gradient_booster"] for text in texts]
    parts = [booster.get("gbtree", booster)["model"] for booster in boosters]
    weighted = boosters if "weight_drop" in boosters[0] else parts
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
    """The mean of the models, as :func:`merged_xgboost`, by the lines of LightGBM's text, versions 4.0 to 4.7."""

    def divided(line: re.Match[str]) -> str:
        name, _, numbers = line[0].partition("=")
        return f"{name}={re.sub(r'[^ ]+', lambda number: repr(float(number[0]) / len(models)), numbers)}"

    texts = [model.model_to_string() for model in models]
    require("\naverage_output\n" not in texts[0], "bags are a sum of trees, and boosting='rf' averages them")
    heads, ends = zip(*(text.split("end of trees\n") for text in texts), strict=True)
    head, *_ = A_TREE.split(heads[0])
    trees = [tree for each in heads for tree in A_TREE.split(each)[1:]]
    numbered = (f"Tree={i}\n{OF_A_LEAF.sub(divided, tree)}" for i, tree in enumerate(trees))
    head = re.sub(r"^tree_sizes=.*\n", "", head, flags=re.MULTILINE)
    return type(models[0])(model_str="".join([head, *numbered, "end of trees\n", ends[0]]))


def merged_catboost(models: Sequence[Any]) -> Any:
    """The mean of the models, by CatBoost's own function; it cannot save sums of statistics of the same categories."""
    import catboost

    return catboost.sum_models(list(models), [1 / len(models)] * len(models), "FailIfCtrIntersects")


MERGE = {"xgboost": merged_xgboost, "lightgbm": merged_lightgbm, "catboost": merged_catboost}
