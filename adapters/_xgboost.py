"""XGBoost: a training of our estimator."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._names import refuse_same_names
from ltr_objectives.adapters._run import Records, Run, Trained, refuse_dart
from ltr_objectives.adapters._tables import (
    Part,
    as_categories,
    categorical,
    categories,
    is_frame,
    layout_of,
    refuse_categories,
    refuse_text,
    require_same_categories,
    require_same_kinds,
)
from ltr_objectives.errors import did_you_mean, require
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective

BY_QUERY = ("auc", "aucpr", "pre", "map", "ndcg")  # what XGBoost can weigh by query; others abort the process
READ = ("objective", "eval_metric", "convention", "bounds", "early_stopping_rounds")  # by us alone
WHOLE = re.compile(rb'\A(\{L.*\x07version\[.{,60}\}|\{\s*".*\}\s*|[^{].*)\Z', re.DOTALL)  # UBJSON, JSON, older formats
CATEGORIES = "ltr_objectives_categories"  # an attribute of models


class XGBoost(Library):
    """XGBoost, by ``xgb.train``."""

    name = "xgboost"
    ranker = "XGBRanker"
    model = "Booster"
    error = "core.XGBoostError"
    endings = (".json", ".ubj")
    threads = "nthread"
    l2 = "reg_lambda"
    l2_default = 1.0
    usual_leaves: ClassVar = {
        "booster": ("gbtree",), "monotone_constraints": (), "max_delta_step": (0,), "num_parallel_tree": (1,),
    }  # fmt: skip
    limits = ("gamma", "min_child_weight", "reg_lambda", "reg_alpha")
    unread = (
        "scale_pos_weight", "ndcg_exp_gain", "lambdarank_pair_method", "lambdarank_num_pair_per_sample",
        "lambdarank_normalization", "lambdarank_score_normalization", "lambdarank_unbiased", "lambdarank_bias_norm",
        "num_class", "num_target",
    )  # fmt: skip
    by_column = ("feature_weights", "interaction_constraints", "monotone_constraints")
    of_the_data = ("missing", "feature_types", "feature_weights", "enable_categorical")
    objectives = r"(binary|count|rank|reg|survival):\w+"
    metrics = r"[a-z]+(-[a-z]+)*-?|(ndcg|map|pre)@[1-9]\d*-?|(error|ams|tweedie-nloglik)@\d*\.?\d+"
    regression = "reg:squarederror"
    natives: ClassVar = {
        "rank:ndcg": "lambdamart:preset=xgboost", "rank:map": "lambdamart:map;preset=xgboost",
        "rank:pairwise": "ranknet:preset=xgboost",
    }  # fmt: skip
    rivals = ("rank:ndcg", "rank:pairwise")
    rivals_for: ClassVar = {"map": "rank:map"}
    binary = ("rank:map",)
    least_hessian = "min_child_weight"
    least_hessian_default = 1.0

    def aliases(self) -> Sequence[tuple[str, ...]]:
        return (
            ("learning_rate", "eta"), ("reg_lambda", "lambda"), ("reg_alpha", "alpha"), ("gamma", "min_split_loss"),
            ("random_state", "seed"), ("n_jobs", "nthread"),
        )  # fmt: skip

    def shaped(self, leaves: int, l2: float, least_hessian: float) -> dict[str, Any]:
        return {
            "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": leaves, "max_depth": 0,
            "min_child_weight": least_hessian, "reg_lambda": l2,
        }  # fmt: skip

    def train(self, run: Run) -> Trained:
        before = {} if run.init_model is None else learner_of(run.init_model)
        booster = run.params.get("booster") or before.get("gradient_booster", {}).get("name", "gbtree")
        params = _params_of(run, booster)
        rounds = params.pop("n_estimators", 100)
        gradients = run.gradients(self, params) or _as_objective(run)
        known = _known_categories(run.train.X)
        weighs = bool(run.native_metrics or not run.metrics)  # XGBoost itself evaluates metrics
        if weighs and any(part.weight is not None for part in run.evals):
            _refuse_weights(run, before)
        if run.train.offset is not None:
            run = run.starting_at(run.start)
        train, *evals = _matrices(run, known, weighs)
        result: Records = {}
        model = self.load().train(
            params,
            train,
            rounds,
            evals=[*zip(evals, run.names, strict=True)],
            obj=gradients,
            custom_metric=_as_metric(run, evals) if run.own_metrics or run.functions else None,
            callbacks=[*run.callbacks, *_early_stopping(run, booster, before)],
            evals_result=result,
            verbose_eval=run.verbose if evals else False,
            xgb_model=run.init_model,
        )
        model = _up_to_best(model)  # a callback of the user's may have stopped it
        return Trained(run, _with_categories(model, known, lambda: self._fitted_to(run.train.X, known)), result)

    def _fitted_to(self, X: Any, known: Mapping[int, Any]) -> Any:
        """Return a model with the categories of a table, whose callback with ``save_best=True`` has lost them."""
        return self.load().train({"nthread": 1}, _matrix(X.iloc[:1], known, label=[0.0]), num_boost_round=1)

    def may_grow(self, params: Mapping[str, Any]) -> bool:
        return super().may_grow(params) and params.get("process_type") != "update"

    def start(self, model: Any, X: Any) -> Any:
        model = model.copy()
        require_same_categories(list(categories_of(model).values()), X)
        model.set_attr(best_iteration=None, best_score=None)  # of another training
        return model

    def predict(
        self, model: Any, X: Any, params: Mapping[str, Any], base_margin: Any = None, iteration_range: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        of_the_data = {name: params[name] for name in ("missing", "feature_types") if name in params}
        known = categories_of(model)
        if not known and layout_of(X) is not None:
            with np.errstate(over="ignore"):  # XGBoost refuses infinite numbers
                X = X.to_numpy(np.float32)  # which XGBoost would read column by column, far more slowly
        data = _matrix(X, known, nthread=self.n_threads(params), base_margin=base_margin, **of_the_data)
        _name(data, model.feature_names)
        return model.predict(data, iteration_range=(0, 0) if iteration_range is None else iteration_range, **options)

    def rounds(self, model: Any) -> int:
        return int(model.num_boosted_rounds())

    def splits(self, model: Any) -> float:
        return float(np.abs([*model.get_score().values()]).sum())  # of gblinear the coefficients

    def categories(self, model: Any, X: Any) -> Mapping[Any, Sequence[Any]]:
        return {X.columns[i]: values for i, values in categories_of(model).items()} if is_frame(X) else {}

    def features(self, model: Any) -> tuple[int, list[str] | None]:
        return model.num_features(), model.feature_names

    def read(self, path: str) -> Any:
        require_whole(path, "XGBoost", WHOLE.match)  # it would end the process
        return _up_to_best(self.load().Booster(model_file=path))

    def merge(self, models: Sequence[Any]) -> Any:
        """Return the mean: the trees one after the other, leaves divided by the number of models.

        In the JSON of versions 2.0 to 3.4 a gbtree is ``{"model": ...}``, and dart ``{"gbtree": gbtree, "weight_drop":
        [...]}`` or, since 3.4, a gbtree with ``weight_drop`` in its model. The split condition of a leaf is its value.
        """
        texts = [json.loads(model.save_raw("json")) for model in models]
        boosters = [text["learner"]["gradient_booster"] for text in texts]
        parts = [_trees_of(text) for text in texts]
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
        param, start = texts[0]["learner"]["learner_model_param"], np.mean([_base_score(text) for text in texts])
        param["base_score"] = re.sub(r"[^\[\]]+", f"{start:.9g}", param["base_score"])
        for name in ("best_iteration", "best_score"):
            texts[0]["learner"]["attributes"].pop(name, None)
        model = models[0].copy()
        model.load_model(bytearray(json.dumps(texts[0]), "utf8"))
        return model

    def leaves(
        self, model: Any, X: Any, params: Mapping[str, Any]
    ) -> tuple[list[np.ndarray], np.ndarray, list[float], float]:
        text = json.loads(model.save_raw("json"))
        values = [np.array(tree["split_conditions"]) for tree in _trees_of(text)["trees"]]  # of all nodes
        rows = self.predict(model, X, params, pred_leaf=True).reshape(len(X), -1).astype(np.int64)
        rate = float(next(iter(self.given("learning_rate", params).values()), 0.3))
        return values, rows, [rate] * len(values), _base_score(text)

    def with_leaves(self, model: Any, values: Sequence[np.ndarray]) -> Any:
        text = json.loads(model.save_raw("json"))
        for tree, new in zip(_trees_of(text)["trees"], values, strict=True):
            is_leaf = np.array(tree["left_children"]) < 0
            for name in ("split_conditions", "base_weights"):
                tree[name] = np.where(is_leaf, np.float32(new), np.array(tree[name], np.float32)).tolist()
        model = model.copy()
        model.load_model(bytearray(json.dumps(text), "utf8"))
        return model


LIBRARY = XGBoost()


def _known_categories(X: Any) -> dict[int, list[Any]]:
    """Return the categories of a table by number of column; raise for those that XGBoost does not read."""
    refuse_text(X)
    refuse_categories(
        X, lambda known: known.inferred_type in ("string", "integer"), "text alone or whole numbers alone"
    )
    return {i: X.dtypes.iloc[i].categories.tolist() for i in categorical(X)}


def _refuse_weights(run: Run, before: dict[str, Any]) -> None:
    """Raise if weights let XGBoost abort the process; ``before`` is the learner of init_model."""
    known = run.metrics or str(run.objective).startswith("rank:")
    default = "" if known else f"the default metric of {run.objective}"
    refuse_by_row([*run.native_metrics, *metrics_of(before)], default, "name another in eval_metric=")


def _matrices(run: Run, known: Mapping[int, Any], weighs: bool) -> list[Any]:
    """Make the data sets for training, and for evaluation if ``weighs`` with weights; ``known`` are the categories."""

    def data_of(part: Part, weight: np.ndarray | None) -> Any:
        of_rows = {"label": part.labels, "base_margin": part.margin, "weight": weight}
        return _matrix(part.X, known, group=part.group, nthread=run.n_threads, **of_rows, **run.of_the_data)

    native = isinstance(run.objective, str)
    train = data_of(run.train, _by_query(run.train) if native else run.train.weight_by_query)
    evals = [data_of(part, _by_query(part) if weighs else None) for part in run.evals]
    for data in evals:
        _name(data, train.feature_names)
    return [train, *evals]


def _up_to_best(model: Any) -> Any:
    """Return the rounds up to the best, with which XGBoost's own ranker predicts; gblinear has no others."""
    best = {name: model.attr(name) for name in ("best_iteration", "best_score")}
    rounds = int(best["best_iteration"] or -1) + 1
    if rounds in (0, model.num_boosted_rounds()) or learner_of(model)["gradient_booster"]["name"] == "gblinear":
        return model
    part = model[:rounds]
    part.set_attr(**best)
    return _with_categories(part, categories_of(model), lambda: model)


def _with_categories(model: Any, known: Mapping[int, Any], whole: Callable[[], Any]) -> Any:
    """Give a model the categories of its training, which slices lose and the model of ``whole`` has.

    Since version 3.1 XGBoost has them in its file, and reads tables by them. The attribute is for others, and for us.
    """
    model.set_attr(**{CATEGORIES: json.dumps(known) if known else None})
    if known and hasattr(model, "get_categories") and model.get_categories().empty():
        text, other = (json.loads(each.save_raw("json")) for each in (model, whole()))
        _trees_of(text)["cats"] = _trees_of(other)["cats"]
        model.load_model(bytearray(json.dumps(text), "utf8"))
    return model


def _trees_of(text: dict[str, Any]) -> dict[str, Any]:
    """Return the gbtree in a model's JSON: ``{"model": ...}``, or within ``{"gbtree": ...}`` of dart before 3.4."""
    booster = text["learner"]["gradient_booster"]
    trees: dict[str, Any] = booster.get("gbtree", booster)["model"]
    return trees


def _base_score(text: dict[str, Any]) -> float:
    return float(text["learner"]["learner_model_param"]["base_score"].strip("[]"))


def _matrix(X: Any, known: Mapping[int, Any], **options: Any) -> Any:
    """Make the DMatrix of a table, with the categories ``known`` of the training by column."""
    X = _coded(X, known) if is_frame(X) else X
    if categories(X):
        options["enable_categorical"] = True
    data = LIBRARY.load().DMatrix(X, **options)
    if is_frame(X) and "feature_types" not in options:  # dumps of whole numbers and bools would have no true thresholds
        data.feature_types = ["c" if each == "c" else "float" for each in data.feature_types]
    return data


def _name(data: Any, names: list[str] | None) -> None:
    """Give an array the names of the training's features, without which XGBoost refuses it; scikit-learn has warned."""
    if data.feature_names is None:
        data.feature_names = names


def categories_of(model: Any) -> dict[int, list[Any]]:
    """Return the categories of a model by column; empty if it was trained on their codes."""
    if model.attr(CATEGORIES):
        return {int(i): values for i, values in json.loads(model.attr(CATEGORIES)).items()}
    if "c" not in (model.feature_types or ()) or not hasattr(model, "get_categories"):  # since version 3.1
        return {}
    known = model.get_categories(export_to_arrow=True).to_arrow()  # of a model that XGBoost itself trained
    return {i: values.to_pylist() for i, (_, values) in enumerate(known) if values is not None}


def _coded(X: Any, known: Mapping[int, Sequence[Any]]) -> Any:
    """Return ``X`` with the categories of the training, unknown ones missing. XGBoost would read numbers as codes."""
    X = as_categories(X, known)
    require_same_kinds(X, known)
    changed = {X.columns[i]: X.iloc[:, i].cat.set_categories(c) for i, c in known.items()}
    return X.assign(**changed) if changed else X


def _params_of(run: Run, booster: str) -> dict[str, Any]:
    """Return the parameters for XGBoost, with our defaults if the objective is ours."""
    params = dict(run.params) if booster == "gblinear" else run.with_l2(LIBRARY)
    for name in params.keys() - inspect.signature(LIBRARY.load().XGBModel).parameters.keys():
        meant = did_you_mean(name, READ)
        require(not meant, f"XGBoost knows no parameter {name!r}{meant}")
    if isinstance(run.objective, str):
        params["objective"] = run.objective
    elif isinstance(run.objective, Objective) and run.init_model is None:  # a model has its own
        params.setdefault("base_score", run.start or 0.0)
    if run.own_metrics or run.functions:
        params["disable_default_eval_metric"] = 1
    if run.native_metrics:
        params["eval_metric"] = run.native_metrics
    return params


def _as_objective(run: Run) -> Any:
    """Return a function as XGBoost's other estimators call it, for ``xgb.train``; a DMatrix has no weights by row."""
    function: Any = run.objective
    labels, weight = run.train.labels, run.train.weight
    weights = {} if weight is None else {"sample_weight": weight}
    return None if isinstance(function, str) else lambda scores, data: function(labels, scores, **weights)


def _as_metric(run: Run, evals: list[Any]) -> Any:
    """Return our metrics, and functions as XGBoost's own ranker calls them, query by query, for ``xgb.train``."""
    values = run.metric_values(evals)
    functions = [LIBRARY.load().sklearn.ltr_metric_decorator(function, run.n_threads) for function in run.functions]

    def evaluate(scores: Any, data: Any) -> list[tuple[str, float]]:
        found = [*values(scores, data), *(each(scores, data) for each in functions)]
        refuse_same_names([*run.native_metrics, *(name for name, _ in found)])
        return found

    return evaluate


def _early_stopping(run: Run, booster: str, before: dict[str, Any]) -> list[Any]:
    """Return XGBoost's callback if the training stops early; raise if XGBoost cannot keep the best rounds.

    ``before`` is the learner of the model that the training goes on from. Since version 3.4 a gbtree drops trees too.
    """
    callback, rounds = LIBRARY.load().callback.EarlyStopping, run.patience
    params = {**before.get("gradient_booster", {}).get("dart_train_param", {}), **run.params}
    dropped = [f"{name}={params[name]}" for name in ("rate_drop", "one_drop") if params.get(name) not in (None, 0, "0")]
    setting = f"booster={booster!r}" if booster in ("dart", "gblinear") else next(iter(dropped), "")
    refuse_dart(setting, rounds or any(isinstance(given, callback) for given in run.callbacks))
    if not rounds:
        return []
    first = run.metrics[0] if run.metrics else None
    name = None if first is None else getattr(first, "__name__", str(first))
    maximize = isinstance(first, Metric) or None
    return [callback(rounds=rounds, metric_name=name, maximize=maximize)]  # `_up_to_best` keeps the best


def _by_query(part: Part) -> np.ndarray | None:
    """Return weights for what XGBoost computes itself; raise if they differ within a query."""
    weight = part.weight_by_query
    require(
        weight is not None or part.weight is None,
        "XGBoost's own objectives and metrics take one weight a query, but sample_weight differs within queries; give "
        "one number a query, or choose an objective and metrics of ours",
    )
    return weight


def learner_of(booster: Any) -> dict[str, Any]:
    """Return the learner's part of a booster's configuration: every parameter as XGBoost read it."""
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config


def metrics_of(learner: dict[str, Any]) -> list[str]:
    """Return the names of XGBoost's own metrics that a configuration evaluates."""
    return [metric["name"] for metric in learner.get("metrics", ())]


def refuse_by_row(metrics: list[str], default: str, remedy: str) -> None:
    """Raise for metrics of XGBoost's that abort the process if weights are by query, or for a ``default`` metric."""
    by_row = [name for name in metrics if name.partition("@")[0].rstrip("-") not in BY_QUERY]
    if by_row and not default:
        default, remedy = f"eval_metric={', '.join(by_row)}", (
            "leave it out, and pass custom_metric=xgboost_metric(...); if it comes with xgb_model, train that with "
            "'disable_default_eval_metric': 1"
        )  # fmt: skip
    require(
        not default,
        f"XGBoost cannot evaluate {default} with weights by query, and would abort the process: {remedy}",
    )
