"""CatBoost: a training of our estimator."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._callables import pairs_of_rows
from ltr_objectives.adapters._catboost_callables import CatBoostMetric, CatBoostObjective, warn_of_pairs
from ltr_objectives.adapters._catboost_fit import Rows, given_weight
from ltr_objectives.adapters._run import Records, Run, Trained
from ltr_objectives.adapters._tables import (
    Part,
    categorical,
    categories,
    is_frame,
    is_pool,
    names_of,
    read_columns,
    refuse_categories,
)
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.libraries import Library
from ltr_objectives.objectives.base import Objective

LOUDNESS = {"verbose", "silent", "logging_level", "verbose_eval"}
OF_FIT = ("log_cout", "log_cerr", "plot", "plot_file")  # which are not parameters
STOPPING = {"od_type", "od_pval"}


class CatBoost(Library):
    """CatBoost, by ``catboost.CatBoost``."""

    name = "catboost"
    ranker = "CatBoostRanker"
    model = "CatBoost"
    error = "CatBoostError"
    endings = (".cbm",)
    threads = "thread_count"
    l2 = "l2_leaf_reg"
    l2_default = 3.0
    l2_by_weight = True
    usual_leaves: ClassVar = {
        "leaf_estimation_method": ("Newton",), "leaf_estimation_iterations": (1,), "monotone_constraints": (),
        "langevin": (False,), "model_shrink_rate": (0,),
    }  # fmt: skip
    limits = ("depth", "min_data_in_leaf", "l2_leaf_reg")
    unread = ("bayesian_matrix_reg", "class_names", "classes_count", "target_border")
    by_column = (
        "cat_features", "embedding_features", "feature_weights", "first_feature_use_penalties", "fixed_binary_splits",
        "ignored_features", "input_borders", "monotone_constraints", "per_feature_ctr",
        "per_float_feature_quantization", "per_object_feature_penalties", "text_features",
    )  # fmt: skip
    of_the_data = ("cat_features", "text_features", "embedding_features")
    objectives = r"(?!Multi|RMSEWithUncertainty|SurvivalAft)[A-Z]\w*(:.*)?"
    metrics = r"[A-Z]\w*(:.*)?"
    regression = "RMSE"
    natives: ClassVar = {
        "YetiRank": "yetirank:preset=catboost", "YetiRankPairwise": None, "QueryRMSE": "", "StochasticRank": "",
        "QuerySoftMax": "", "PairLogit": "ranknet", "PairLogitPairwise": None, "LambdaMart": None,
        "StochasticFilter": None, "QueryCrossEntropy": None,
    }  # fmt: skip
    rivals = ("YetiRank", "QueryRMSE")
    rivals_for = dict.fromkeys(("ndcg", "dcg", "map", "mrr", "err"), "YetiRank:mode={metric}")
    unusable = (
        "StochasticRank:metric=MAP", "StochasticRank:metric=PRECISION", "YetiRank:mode=PRECISION", "StochasticFilter",
        "QueryCrossEntropy",
    )  # fmt: skip
    binary = ("mode=MAP", "mode=MRR", "metric=MRR")
    chances = ("mode=ERR",)
    capitals = True
    dtype = np.float64
    negative_hessians = True
    seed = "random_seed"

    def twin(self, objective: str) -> str | None:
        if mode := re.fullmatch(r"YetiRank:mode=([A-Z]+)(?:;top=(\d+))?", objective):
            return f"yetiloss:{mode[1].lower()}{f'@{mode[2]}' if mode[2] else ''};preset=catboost"
        name, _, settings = objective.partition(":")
        found = self.natives.get(name, "")
        return None if found and settings else found

    def aliases(self) -> Sequence[tuple[str, ...]]:
        return (
            ("objective", "loss_function"), ("l2_leaf_reg", "reg_lambda"), ("early_stopping_rounds", "od_wait"),
            ("random_state", "random_seed"), ("n_estimators", "iterations", "num_boost_round", "num_trees"),
        )  # fmt: skip

    def calls(self, given: Any, method: str) -> bool:
        return hasattr(given, method)

    def shaped(self, leaves: int, l2: float, least_hessian: float) -> dict[str, Any]:
        return {
            "depth": max(1, round(np.log2(leaves))), "l2_leaf_reg": l2, "boosting_type": "Plain",
            "leaf_estimation_backtracking": "No", **self.defaults({}),
        }  # fmt: skip

    def defaults(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"bootstrap_type": "Bernoulli" if "subsample" in params else "No", "random_strength": 0}

    def train(self, run: Run) -> Trained:
        catboost, start, own = self.load(), run.start, isinstance(run.objective, Objective)
        require(
            run.init_model is None or run.train.offset is None,
            "CatBoost starts from no scores beside init_model=; leave position= out, or train anew",
        )
        run = _reordered(run).starting_at(start)
        parts = run.train, *run.evals
        names = "X", *(f"eval_set[{i}]" for i in range(len(run.evals)))
        pools = [_pool(part, own, run.of_the_data, name) for part, name in zip(parts, names, strict=True)]
        sets = tuple(_rows(part, own) for part in parts)
        params = _params(run, pools[0], sets[0])
        of_fit = {name: params.pop(name) for name in OF_FIT if name in params}
        _set_stopping(params, run)
        evaluated, records = _evaluated(run, pools[0], sets, params)
        given = {"eval_set": pools[1:] or None, "init_model": run.init_model, "callbacks": run.callbacks or None}
        try:
            model = catboost.CatBoost(params | evaluated).fit(pools[0], **given, **of_fit)
        except catboost.CatBoostError as error:
            if str(error).rstrip().endswith("KeyboardInterrupt"):  # else objective="auto" would go on with the next one
                raise KeyboardInterrupt from None
            _raise_in_our_words(str(error))
            raise
        require(
            model.tree_count_,
            f"CatBoost stopped {run.objective} before its first tree, for the reason that it printed; "
            "try smaller labels, a larger l2_leaf_reg or another objective",
        )
        if start:
            model.set_scale_and_bias(1.0, start)
        found = _records(model.evals_result_)
        for i, values in enumerate(records):
            found[f"validation_{i}"] |= values
        return Trained(run, model, found)

    def has_every_round(self, params: Mapping[str, Any]) -> bool:
        return params.get("metric_period", 1) == 1

    def start(self, model: Any, X: Any) -> Any:
        return model.copy()  # trees alone: CatBoost would go on with weights of that training

    def predict(self, model: Any, X: Any, params: Mapping[str, Any], **options: Any) -> Any:
        if is_frame(X):
            _refuse_missing(X, model.get_cat_feature_indices(), "X")
        return model.predict(X, **options)

    def rounds(self, model: Any) -> int:
        return int(model.tree_count_)

    def splits(self, model: Any) -> float:
        return float(np.sum(model.get_tree_leaf_counts() > 1))

    def features(self, model: Any) -> tuple[int, list[str] | None]:
        names: list[str] = model.feature_names_
        return len(names), None if names == [str(i) for i in range(len(names))] else names

    def read(self, path: str) -> Any:
        # of JSON that was cut short CatBoost would read numbers from memory at random; its own format has a length
        content = require_whole(path, "CatBoost", lambda content: content[:4] == b"CBM1" or json.loads(content))
        return self.load().CatBoost().load_model(path, "cbm" if content[:4] == b"CBM1" else "json")

    def merge(self, models: Sequence[Any]) -> Any:
        """Return the mean, by CatBoost's own function, which cannot save sums of statistics of the same categories."""
        return self.load().sum_models(list(models), [1 / len(models)] * len(models), "FailIfCtrIntersects")

    def leaves(
        self, model: Any, X: Any, params: Mapping[str, Any]
    ) -> tuple[list[np.ndarray], np.ndarray, list[float], float]:
        columns = model.get_cat_feature_indices()
        if is_frame(X):
            _refuse_missing(X, columns, "X")
        rows = model.calc_leaf_indexes(self.load().Pool(X, cat_features=columns))
        values = np.split(model.get_leaf_values(), np.cumsum(model.get_tree_leaf_counts())[:-1])
        return values, rows, [model.learning_rate_] * len(values), model.get_scale_and_bias()[1]

    def with_leaves(self, model: Any, values: Sequence[np.ndarray]) -> Any:
        model = model.copy()
        model.shrink(model.tree_count_)  # of no tree; but CatBoost refuses to change a copy that it did not rewrite
        model.set_leaf_values(np.concatenate(values))
        return model


LIBRARY = CatBoost()


def _reordered(run: Run) -> Run:
    """Shuffle rows within queries if statistics of categories read the labels of the rows above."""
    if not isinstance(run.objective, Objective) or is_pool(run.train.X):  # CatBoost does not reorder a pool
        return run
    reads_labels = (categories(run.train.X) or run.of_the_data) and not pairs_of_rows(run.objective)
    return run._replace(train=shuffled(run.train)) if reads_labels else run


def _raise_in_our_words(message: str) -> None:
    """Raise what our objects said during a training, and for a parameter that CatBoost does not know."""
    if ours := re.search(r"LTRError: (.*)", message):
        raise LTRError(ours[1]) from None
    if found := re.search(r"Unknown option \{(\w+)\}", message):
        known = inspect.signature(LIBRARY.load().CatBoostRanker).parameters
        meant = did_you_mean(found[1], [*known, "objective", "eval_metric", "convention", "bounds", "newton_splits"])
        raise LTRError(f"CatBoost knows no parameter {found[1]!r}{meant}") from None


def _refuse_missing(X: Any, columns: Iterable[int], name: str) -> None:
    """Raise for missing values in the categorical ``columns`` of a frame."""
    for column in (X.columns[i] for i in columns):
        require(
            not X[column].isna().any(),
            f"{name}: the categorical column {column!r} has missing values, which CatBoost does not read; make them a "
            "category of their own, in pandas by X[column].astype(object).fillna('missing').astype('category')",
        )


def _pool(part: Part, own: bool, of_the_data: dict[str, Any], name: str) -> Any:
    """Make the pool of a part, which errors call ``name``, for our objective if ``own``, else for CatBoost's."""
    if is_pool(part.X):
        if not own:
            return part.X
        pool = part.X.slice(np.arange(part.queries.rows))  # because ours set weights and a baseline
        return pool if part.margin is None else pool.set_baseline(part.margin)
    by_query = None if own else part.weight_by_query
    weight = {"weight": part.weight} if by_query is None else {"group_weight": by_query[part.qid]}
    options: dict[str, Any] = {"baseline": part.margin}
    columns = names_of(part.X) or []
    for role, given in of_the_data.items():
        chosen = read_columns(given, columns, part.X.shape[1], role)
        options[role] = [columns.index(c) if isinstance(c, str) else c for c in chosen]
    if is_frame(part.X):
        refuse_categories(part.X, _are_hashed, "text or whole numbers")
        options["cat_features"] = sorted({*categorical(part.X), *options.get("cat_features", ())})
        _refuse_missing(part.X, options["cat_features"], name)
    return LIBRARY.load().Pool(part.X, part.labels, group_id=part.qid, **weight, **options)


def _are_hashed(categories: Any) -> bool:
    """Return True for categories that CatBoost reads as text."""
    return all(isinstance(each, str | int) for each in categories.tolist())


def shuffled(part: Part) -> Part:
    """Return the rows of each query in random order."""
    order = np.random.default_rng(0).random(part.queries.rows)
    return part.take(np.lexsort((order, part.qid)), part.group)


def _rows(part: Part, own: bool) -> Rows:
    """Return the rows of the pool of a part, which ``rows_of`` would read from the pool, far more slowly."""
    weight = part.weight if own or part.weight_by_query is None else None  # a pool does not show weights by query
    baseline = None if part.margin is None else part.margin.astype(np.float32)
    return Rows(part.labels, part.group, given_weight(weight), baseline)


def _params(run: Run, pool: Any, rows: Rows) -> dict[str, Any]:
    """Return the parameters for CatBoost, with our defaults if the objective is ours."""
    params = {"allow_writing_files": False, "loss_function": run.objective, **run.with_l2(LIBRARY)}
    params |= run.of_the_data if is_pool(run.train.X) else {}  # CatBoost compares them with the pool's
    if not LOUDNESS & params.keys():
        params["verbose"] = run.verbose
    if run.learner is None:
        return params
    splits = params.pop("newton_splits", True)
    warn_of_pairs(pool, run.learner)
    made = CatBoostObjective(run.learner, rows, run.train.queries, newton_splits=splits, n_threads=run.n_threads)
    params["loss_function"] = made.prepare(pool)
    return {
        "leaf_estimation_method": "Newton",
        "allow_const_label": True,  # because goals are other labels
        "one_hot_max_size": 10,
        **LIBRARY.defaults(params),
        **({"has_time": True} if len(pool.get_cat_feature_indices()) > 0 else {}),
        **params,
    }


def _set_stopping(params: dict[str, Any], run: Run) -> None:
    """Set how the training stops. Without early stopping all rounds are kept."""
    params |= {"od_wait": run.patience} if run.patience else {}
    for name in sorted(STOPPING & params.keys()):
        require(run.evals, f"{name}= needs an eval_set to look at; pass eval_set=[(X, y)] and eval_qid=")
    if not _stops(params):
        params.setdefault("use_best_model", False)


def _stops(params: Mapping[str, Any]) -> bool:
    return bool(params.get("od_wait") or STOPPING & params.keys() or params.get("use_best_model"))


def _evaluated(
    run: Run, pool: Any, sets: tuple[Rows, ...], params: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, list[float]]]]:
    """Return the parameters for CatBoost's metrics, and by eval set our other metrics, which the training fills.

    CatBoost takes one metric object, so that ours computes the others too.
    """
    own, native, objects = run.own_metrics, run.native_metrics, run.functions
    require(len(objects) + bool(own) < 2, f"CatBoost calls one metric object, perhaps ours; leave {objects} out")
    first, chosen = (next(iter(metrics), None) for metrics in (run.metrics, [*own, *objects, *native]))
    require(
        not _stops(params) or first is chosen,
        f"CatBoost stops early on {first} only if no other metric is ours or an object; name {chosen} first, or leave "
        "out early stopping or one of them",
    )
    others = native if own or objects else native[1:]
    custom = {"custom_metric": others} if others else {}
    if not own:
        return custom | ({} if chosen is None else {"eval_metric": chosen}), []
    queries = tuple(part.queries for part in (run.train, *run.evals))
    has_categories = len(pool.get_cat_feature_indices()) > 0
    any_order = has_categories and not isinstance(run.objective, Objective) and not params.get("has_time")
    made = CatBoostMetric(own[0], sets, queries, run.n_threads, own[1:], any_order)
    return custom | {"eval_metric": made}, made.records


def _records(found: dict[str, Any]) -> Records:
    """Return the records of CatBoost without the training set; CatBoost calls a single eval set "validation"."""
    return {
        "validation_0" if name == "validation" else name: values for name, values in found.items() if name != "learn"
    }
