"""XGBoost: a training of our estimator, and a custom objective and a custom metric for ``xgb.train``."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._callables import ByGoal, Memo, MetricCallable, ObjectiveCallable, Params
from ltr_objectives.adapters._frames import Calls, calls_of
from ltr_objectives.adapters._run import Records, Run, Trained, refuse_dart, refuse_same_names
from ltr_objectives.adapters._tables import (
    Part,
    categorical,
    categories,
    is_frame,
    refuse_text,
    require_same_categories,
    require_same_kinds,
)
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.kernels.threads import at_most
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.metrics.text import WeightedSum, get_metrics
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.queries import to_numpy

T = TypeVar("T")

# XGBoost's early stopping maximises metrics whose names start so, and minimises others
MAXIMISED = ("auc", "pre", "map", "ndcg")

BY_QUERY = ("auc", "aucpr", "pre", "map", "ndcg")  # what XGBoost can weigh by query; others abort the process
READ = ("objective", "eval_metric", "convention", "early_stopping_rounds")  # by us alone
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
    first_trees = "iteration_range"
    l2 = "reg_lambda"
    limits = ("gamma", "min_child_weight", "reg_lambda", "reg_alpha")
    unread = (
        "scale_pos_weight", "ndcg_exp_gain", "lambdarank_pair_method", "lambdarank_num_pair_per_sample",
        "lambdarank_normalization", "lambdarank_score_normalization", "lambdarank_unbiased", "lambdarank_bias_norm",
    )  # fmt: skip
    by_column = ("feature_weights", "interaction_constraints", "monotone_constraints")
    of_the_data = ("missing", "feature_types", "feature_weights", "enable_categorical")
    objectives = r"(binary|count|multi|rank|reg|survival):\w+"
    metrics = r"[a-z]+(-[a-z]+)*-?|(ndcg|map|pre)@[1-9]\d*-?|(error|ams|tweedie-nloglik)@\d*\.?\d+"
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
        gradients = run.gradients(XGBoostObjective, params) or _as_objective(run)
        known = _known_categories(run.train.X)
        stored = json.dumps(known) if known else None  # because slices, as of early stopping, lose the categories
        refuse_weights(run, before)
        train, *evals = _matrices(run, known)
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
        model = _kept(model)  # if a callback of the user's has stopped it
        model.set_attr(**{CATEGORIES: stored})
        return Trained(
            run, model, {name: {m: list(map(float, v)) for m, v in values.items()} for name, values in result.items()}
        )

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
        n_threads = self.n_threads(params)
        data = _matrix(X, categories_of(model), nthread=n_threads, base_margin=base_margin, **of_the_data)
        _name(data, model.feature_names)
        return model.predict(data, iteration_range=(0, 0) if iteration_range is None else iteration_range, **options)

    def rounds(self, model: Any) -> int:
        return int(model.num_boosted_rounds())

    def splits(self, model: Any) -> float:
        return float(np.abs([*model.get_score().values()]).sum())  # of gblinear the coefficients

    def categories(self, model: Any) -> Sequence[Any]:
        return [*categories_of(model).values()]

    def features(self, model: Any) -> tuple[int, list[str] | None]:
        return model.num_features(), model.feature_names

    def read(self, path: str) -> Any:
        require_whole(path, "XGBoost", WHOLE.match)  # it would end the process
        return _kept(self.load().Booster(model_file=path))

    def merge(self, models: Sequence[Any]) -> Any:
        """The mean: the trees one after the other, leaves divided by the number of models.

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


LIBRARY = XGBoost()


def _known_categories(X: Any) -> dict[int, list[Any]]:
    """The categories of a table by number of column; raises for those that XGBoost does not read."""
    refuse_text(X)
    for name, dtype in categories(X).items():
        require(
            dtype.categories.inferred_type in ("string", "integer"),
            f"the column {name!r} has categories that are neither text nor whole numbers, or none at all, which "
            "XGBoost does not read; convert them by astype(str).astype('category')",
        )
    return {i: X.dtypes.iloc[i].categories.tolist() for i in categorical(X)}


def _weighs(run: Run) -> bool:
    """Return True if XGBoost itself evaluates metrics, for which it needs the weights."""
    return bool(run.native_metrics or not run.metrics)


def refuse_weights(run: Run, before: dict[str, Any]) -> None:
    """Raise for weights with which XGBoost would abort the process; ``before`` is the learner of init_model."""
    if _weighs(run) and any(part.weight is not None for part in run.evals):
        known = run.metrics or str(run.objective).startswith("rank:")
        require_weighable(known, f"the default metric of {run.objective}", "name another in eval_metric=")
        refuse_by_row([*run.native_metrics, *metrics_of(before)])


def _matrices(run: Run, known: Mapping[int, Any]) -> list[Any]:
    """The data sets for training and for evaluation, with the categories ``known`` of the training."""

    def data_of(part: Part, weight: np.ndarray | None) -> Any:
        of_rows = {"label": part.labels, "base_margin": part.margin, "weight": weight}
        return _matrix(part.X, known, group=part.group, nthread=run.n_threads, **of_rows, **run.of_the_data)

    native = isinstance(run.objective, str)
    train = data_of(run.train, _by_query(run.train) if native else run.train.weight_by_query)
    evals = [data_of(part, _by_query(part) if _weighs(run) else None) for part in run.evals]
    for data in evals:
        _name(data, train.feature_names)
    return [train, *evals]


def _kept(model: Any) -> Any:
    """Return the rounds up to the best, with which XGBoost's own ranker predicts; gblinear has no others."""
    best = {name: model.attr(name) for name in ("best_iteration", "best_score")}
    rounds = int(best["best_iteration"] or -1) + 1
    if rounds in (0, model.num_boosted_rounds()) or learner_of(model)["gradient_booster"]["name"] == "gblinear":
        return model
    known = categories_of(model)  # which slices lose
    model = model[:rounds]
    model.set_attr(**best, **{CATEGORIES: json.dumps(known) if known else None})
    return model


def _matrix(X: Any, known: Mapping[int, Any], **options: Any) -> Any:
    """The DMatrix of a table, with the categories ``known`` of the training by column."""
    X = _coded(X, known) if is_frame(X) else X
    if categories(X):
        options["enable_categorical"] = True
    return LIBRARY.load().DMatrix(X, **options)


def _name(data: Any, names: list[str] | None) -> None:
    """Give an array the names of the training's features, without which XGBoost refuses it; scikit-learn has warned."""
    if data.feature_names is None:
        data.feature_names = names


def categories_of(model: Any) -> dict[int, list[Any]]:
    """The categories of a model by column; empty if it was trained on their codes."""
    if model.attr(CATEGORIES):
        return {int(i): values for i, values in json.loads(model.attr(CATEGORIES)).items()}
    if "c" not in (model.feature_types or ()) or not hasattr(model, "get_categories"):  # since version 3.1
        return {}
    known = model.get_categories(export_to_arrow=True).to_arrow()  # of a model that XGBoost itself trained
    return {i: values.to_pylist() for i, (_, values) in enumerate(known) if values is not None}


def _coded(X: Any, known: Mapping[int, Sequence[Any]]) -> Any:
    """``X`` with the categories of the training; unknown ones are missing. XGBoost would read numbers as codes."""
    require_same_kinds(X, known)
    changed = {X.columns[i]: X.iloc[:, i].astype("category").cat.set_categories(c) for i, c in known.items()}
    return X.assign(**changed) if changed else X


def _params_of(run: Run, booster: str) -> dict[str, Any]:
    """The parameters for XGBoost, with our defaults if the objective is ours."""
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
    """A function as XGBoost's other estimators call it, for ``xgb.train``; a DMatrix has no weights by row."""
    function: Any = run.objective
    labels, weight = run.train.labels, run.train.weight
    weights = {} if weight is None else {"sample_weight": weight}
    return None if isinstance(function, str) else lambda scores, data: function(labels, scores, **weights)


def _as_metric(run: Run, evals: list[Any]) -> Any:
    """Our metrics, and functions as XGBoost's own ranker calls them, query by query, for ``xgb.train``."""
    values = run.metric_values(evals)
    functions = [LIBRARY.load().sklearn.ltr_metric_decorator(function, run.n_threads) for function in run.functions]

    def evaluate(scores: Any, data: Any) -> list[tuple[str, float]]:
        found = [*values(scores, data), *(each(scores, data) for each in functions)]
        refuse_same_names([*run.native_metrics, *(name for name, _ in found)])
        return found

    return evaluate


def _early_stopping(run: Run, booster: str, before: dict[str, Any]) -> list[Any]:
    """XGBoost's callback if the training stops early. Raises if XGBoost cannot keep the best rounds.

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
    return [callback(rounds=rounds, metric_name=name, maximize=maximize, save_best=True)]


def _by_query(part: Part) -> np.ndarray | None:
    """Weights for what XGBoost computes itself. Raises if they differ within a query."""
    weight = part.weight_by_query
    require(
        weight is not None or part.weight is None,
        "XGBoost's own objectives and metrics take one weight a query, but sample_weight differs within queries; give "
        "one number a query, or choose an objective and metrics of ours",
    )
    return weight


def _unpack(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels, sizes of queries and weights, if any, of a DMatrix of XGBoost or of a library with its interface."""
    has_ptr = hasattr(data, "get_uint_info")  # in version 3.4 perhaps an array of CuPy, as labels and weights
    sizes = np.diff(to_numpy(data.get_uint_info("group_ptr")).astype(np.int64)) if has_ptr else data.get_group()
    require(len(sizes) > 0, "the DMatrix has no queries; make it with DMatrix(X, y, group=sizes)")
    labels = data.get_label()
    require(min(len(labels), data.num_row()) > 0, "the DMatrix has no labels; make it with DMatrix(X, y, group=sizes)")
    weight = data.get_weight()
    return labels, sizes, weight if len(weight) else None


class XGBoostObjective(ObjectiveCallable):
    """Callable ``(predictions, DMatrix) -> (gradient, Hessian)``; made by :func:`xgboost_objective`."""

    library = LIBRARY

    def answer(self, predictions: Any, data: Any, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        calls = calls_of(LIBRARY)

        def compute() -> tuple[np.ndarray, np.ndarray]:
            params = _params(self._memo, calls, data)
            return self.gradients(self.queries(*_unpack(data)), predictions, params, training=calls.booster)

        return _agreed(compute, predictions, (np.zeros(0, np.float32), np.zeros(0, np.float32)))


class XGBoostMetric(MetricCallable):
    """Callable ``(predictions, DMatrix) -> [(name, value), ...]``; made by :func:`xgboost_metric`."""

    library = LIBRARY

    def answer(self, predictions: Any, data: Any, *_: Any) -> list[tuple[str, float]]:
        params = _params(self._memo, calls_of(LIBRARY))
        parts = [part for m in self.metrics for part in (m.parts if isinstance(m, WeightedSum) else (m,))]

        def sums() -> np.ndarray:
            """For each part the weighted sum over queries, and the sum of the weights."""
            queries, s = self.queries(data, *_unpack(data)), to_numpy(predictions, "predictions").reshape(-1)
            n_threads = LIBRARY.n_threads(params, self.n_threads)
            values = [(m, m.values(queries, s, n_threads=n_threads)) for m in parts]
            return np.array([m.sums(v, m.weight_by_query(queries)) for m, v in values])

        if _workers() == 1:  # by `mean`, which a metric may define in its own way
            found = self.means(self.queries(data, *_unpack(data)), predictions, params)
        else:
            from xgboost import collective

            here = _agreed(sums, predictions, np.zeros((len(parts), 2)))
            total = collective.allreduce(here, collective.Op.SUM).reshape(here.shape)
            mean = {m: m.average(*pair) for m, pair in zip(parts, total.tolist(), strict=True)}.__getitem__
            found = [(m, m.of_parts(mean) if isinstance(m, WeightedSum) else mean(m)) for m in self.metrics]
        return [_as_xgboost(m, mean) for m, mean in found]


def _as_xgboost(metric: Metric, value: float) -> tuple[str, float]:
    name = str(metric)
    if name.startswith(MAXIMISED):
        return name, value
    return (f"-{name}", -value) if metric.maximum is None else (f"1-{name}", 1.0 - value)


def _params(memo: Memo, calls: Calls, data: Any = None) -> Params | None:
    """The parameters of the training that makes these calls, as its first round had them.

    With ``data``, whose gradient is asked for, raises in the first round for what would abort the process.
    """
    if calls.booster is None:
        return None
    training = memo.training(calls.booster)
    if training.params is None:
        learner = learner_of(calls.booster)
        if data is not None:
            _refuse_abort(calls, data, learner)
        training.params = read_params(learner)
    return training.params


def learner_of(booster: Any) -> dict[str, Any]:
    """The learner's part of a booster's configuration: every parameter as XGBoost read it."""
    config: dict[str, Any] = json.loads(booster.save_config())["learner"]
    return config


def read_params(learner: dict[str, Any]) -> Params:
    """Limits of leaves, and the number of threads. The latter may also be set for all of XGBoost."""
    import xgboost

    model = learner["gradient_booster"]
    model = model.get("gbtree", model)  # if the booster is dart
    n_threads = at_most(learner["generic_param"]["nthread"]) or xgboost.get_config().get("nthread")
    return {**model.get("tree_train_param", {}), "nthread": n_threads}


def metrics_of(learner: dict[str, Any]) -> list[str]:
    """The names of XGBoost's own metrics that a configuration evaluates."""
    return [metric["name"] for metric in learner.get("metrics", ())]


def _refuse_abort(calls: Calls, data: Any, learner: dict[str, Any]) -> None:
    """Raise if XGBoost would abort the process, or drop the weights.

    With weights by query it aborts on metrics by row, such as rmse, its default for custom objectives. Neither the
    predictions nor the DMatrix show which data sets are evaluated; the calling functions do.
    """
    whole = calls.local("cv").get("dtrain")
    require(
        whole is None or len(data.get_weight()) > 0 or len(whole.get_weight()) == 0,
        "xgb.cv drops weights by query without saying so; call xgb.train on folds of your own",
    )
    train = calls.local("train")  # in the user's own loop around Booster.update nothing shows what else is evaluated
    evaluated = [item[0] for item in train["evals"] or ()] if "evals" in train else [data]
    if not any(len(d.get_weight()) and len(d.get_uint_info("group_ptr")) for d in evaluated):
        return
    params, names = learner["learner_train_param"], metrics_of(learner)
    known = params.get("disable_default_eval_metric") == "1" or names or params["objective"].startswith("rank:")
    require_weighable(known, "its default metric", "add 'disable_default_eval_metric': 1 to the parameters")
    refuse_by_row(names)


def refuse_by_row(metrics: list[str]) -> None:
    """Raise for metrics of XGBoost's that abort the process if weights are by query."""
    by_row = [name for name in metrics if name.partition("@")[0].rstrip("-") not in BY_QUERY]
    require_weighable(
        not by_row,
        f"eval_metric={', '.join(by_row)}",
        "leave it out, and pass custom_metric=xgboost_metric(...); if it comes with xgb_model, train that with "
        "'disable_default_eval_metric': 1",
    )


def require_weighable(good: object, metric: str, remedy: str) -> None:
    """Raise unless ``good``: XGBoost would abort the process on the metric."""
    require(good, f"XGBoost cannot evaluate {metric} with weights by query, and would abort the process: {remedy}")


def _workers() -> int:
    if sys.modules.get("xgboost") is None:  # the DMatrix is another library's
        return 1
    from xgboost import collective

    return int(collective.get_world_size())


def _agreed(compute: Callable[[], T], predictions: Any, empty: T) -> T:
    """``compute()``, or ``empty`` on a worker without rows; an error of one worker is raised on all.

    Dask, Spark and the like train one model on several workers. Without this the others would wait for one that failed.
    """
    if _workers() == 1:
        return compute()
    from xgboost import collective

    result, failure = empty, None
    try:
        if np.size(predictions):
            result = compute()
    except Exception as error:
        failure = error
    here = 0 if failure is None else collective.get_rank() + 1
    failed = int(collective.allreduce(np.array([here], np.int32), collective.Op.MAX)[0])
    if failed:
        message = collective.broadcast(str(failure), failed - 1)
        raise failure or LTRError(message)
    return result


def xgboost_objective(
    objective: str | Objective, *, weight: ArrayLike | None = None, propensity: ArrayLike | None = None,
    position: ArrayLike | None = None, labels: ByGoal | None = None, n_threads: int | None = None,
) -> XGBoostObjective:  # fmt: skip
    """An objective for ``xgb.train(..., obj=...)``.

    Parameters
    ----------
    objective : str or Objective
        Such as ``YetiLoss("map")`` or ``"yetiloss:map"``.
    weight : array of shape (queries,) or (rows,), optional
        Used instead of the weights of the training DMatrix, which holds weights by query only.
    propensity, position, labels
        Of the rows of the training set, as of :class:`ltr_objectives.Queries`; ``labels`` by goal beside its own.
    n_threads : int, optional
        By default ``nthread`` of the training, at most all processors. The model does not depend on it.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> (gradient, Hessian)``, float32 arrays of shape (rows,). The DMatrix needs ``group``
        or an ascending ``qid``; its weights are one per query. With weights, set ``disable_default_eval_metric`` to 1.

    Examples
    --------
    >>> import numpy as np, xgboost as xgb
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> dtrain = xgb.DMatrix(X, y, qid=qid)
    >>> booster = xgb.train({"max_depth": 2}, dtrain, 3, obj=xgboost_objective("yetiloss:map"))
    >>> booster.predict(dtrain).shape
    (60,)
    """
    own, by_row = get_objective(objective), {"weight": weight, "propensity": propensity, "position": position}
    return XGBoostObjective(own, labels=labels, n_threads=n_threads, **by_row)


def xgboost_metric(
    *metrics: str | Metric, convention: Convention | None = None, labels: Mapping[Any, ByGoal] | None = None,
    n_threads: int | None = None,
) -> XGBoostMetric:  # fmt: skip
    """A metric, or several, for ``xgb.train(..., custom_metric=...)``.

    XGBoost's early stopping maximises metrics whose name starts with auc, pre, map or ndcg, and minimises others. So
    the others are reported as losses: ``mrr`` as ``1-mrr``, ``dcg`` as ``-dcg``. Leave ``maximize`` out: if True,
    XGBoost would maximise these losses. ``early_stopping_rounds`` looks at the last metric on the last of ``evals``;
    ``xgb.callback.EarlyStopping(rounds, metric_name="map", data_name="valid")`` looks at another. Leave both out with
    ``booster="dart"``, whose later rounds change the earlier ones.

    Parameters
    ----------
    *metrics : str or Metric
        Such as ``"ndcg@10"``.
    convention : str, optional
        As of :func:`ltr_objectives.get_metric`.
    labels : mapping of DMatrices to mappings of goals to arrays, optional
        For metrics of goals, such as ``"ndcg@10 + 0.3*ndcg@10[revenue]"``: ``{dvalid: {"revenue": array}}``, for each
        DMatrix that is evaluated.
    n_threads : int, optional
        By default ``nthread`` of the training, at most all processors.

    Returns
    -------
    callable
        ``(predictions, DMatrix) -> [(name, value), ...]``, means over queries, weighted by the DMatrix's weights.

    Examples
    --------
    >>> xgboost_metric("map")  # doctest: +ELLIPSIS
    xgboost_metric(MAP(...))
    """
    return XGBoostMetric(get_metrics(metrics, convention), n_threads, labels)
