"""XGBoost's ranker with our objectives and metrics, trained by ``xgb.train``."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._data import either, read_part, read_parts
from ltr_objectives.adapters._ranker import Ranker, Records
from ltr_objectives.adapters._run import AnyObjective, EvalMetric, Run, read_param, refuse_dart, refuse_same_names
from ltr_objectives.adapters._tables import (
    Part,
    categorical,
    categories,
    is_frame,
    refuse_text,
    require_same_categories,
    require_same_kinds,
)
from ltr_objectives.adapters._xgboost import XGBoostObjective, learner_of, metrics_of, refuse_by_row
from ltr_objectives.errors import did_you_mean, require
from ltr_objectives.libraries import XGBOOST
from ltr_objectives.metrics.base import Convention, Metric
from ltr_objectives.objectives.base import Objective

xgb: Any = XGBOOST.load()
if TYPE_CHECKING:
    from typing_extensions import Self
    from xgboost import Booster
    from xgboost import XGBRanker as Base
else:
    Base = xgb.XGBRanker

READ = ("objective", "eval_metric", "convention", "early_stopping_rounds")  # by us alone
WHOLE = re.compile(rb'\A(\{L.*\x07version\[.{,60}\}|\{\s*".*\}\s*|[^{].*)\Z', re.DOTALL)  # UBJSON, JSON, older formats
CATEGORIES = "ltr_objectives_categories"  # an attribute of models
DEFAULTS = {name: p.default for name, p in inspect.signature(xgb.XGBModel.__init__).parameters.items()}


class XGBRanker(Ranker, Base):  # type: ignore[misc]  # fit, predict and score differ
    """``xgboost.XGBRanker`` with any objective and metric.

    Parameters
    ----------
    objective : str, Objective or function, optional
        Ours, such as ``"yetiloss:map"``, or XGBoost's own, such as ``"rank:ndcg"``; a function as of
        ``xgboost.XGBRegressor``. By default the one for the first metric: :func:`ltr_objectives.objective_for`.
        ``"auto"`` tries several, and keeps the best on ``eval_set``.
    eval_metric : str, Metric, function or list, optional
        Ours, such as ``"map"``; a name that only XGBoost knows, such as ``"ndcg@10-"``, is XGBoost's, and functions are
        as of ``xgboost.XGBRanker``. Early stopping minimises a function, unless its name begins with auc, pre, map
        (but mape) or ndcg.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "scipy": how that library defines our metrics, in
        ``evals_result_`` and ``score``.
    **params
        As of ``xgboost.XGBRanker``: ``n_estimators`` (100), ``learning_rate``, ``max_depth``, ``n_jobs``, ...
        For our objectives two defaults differ. ``reg_lambda=20`` counts as 20 documents, because Hessians are those of
        :class:`ltr_objectives.UnitHessian`. XGBoost's own ``reg_lambda`` stays with ``booster="gblinear"``, and with a
        ``preset``, which also keeps its own Hessians. ``base_score=0``, because a ranking has no mean to start from;
        for :class:`ltr_objectives.RMSE` and sums with it the weighted mean of the labels.

    Notes
    -----
    ``predict`` gives what the trees add to ``base_margin``, an argument that it has too.

    ``evals_result_`` has six digits, as XGBoost prints them. XGBoost warns of names of parameters that it does not
    know. Early stopping is refused with ``booster="dart"``, whose later rounds change the earlier ones, and with
    ``"gblinear"``. Columns of dtype category are categorical features without ``enable_categorical``. Entries that a
    sparse matrix does not store are missing values in XGBoost, zeros in the other libraries. Weights by row, which
    XGBoost itself refuses for ranking, work with our objectives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = XGBRanker(objective="yetiloss:map", n_estimators=3).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = XGBOOST
    if TYPE_CHECKING:
        booster_: Booster
    _defaults = DEFAULTS

    def __init__(
        self,
        *,
        objective: AnyObjective | None = None,
        eval_metric: EvalMetric = None,
        convention: Convention | None = None,
        **params: Any,
    ) -> None:
        # XGBRanker's own constructor refuses objectives that are not XGBoost's
        xgb.XGBModel.__init__(self, objective=objective, eval_metric=eval_metric, **params)
        self.convention = convention

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. XGBoost's own method adds those that the constructor of a subclass may not have."""
        return {**{name: getattr(self, name) for name in self._get_param_names()}, **vars(self).get("kwargs", {})}

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        base_margin: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        init_model: Any = None,
        xgb_model: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_sample_weight: Sequence[ArrayLike | None] | None = None,
        sample_weight_eval_set: Sequence[ArrayLike | None] | None = None,
        base_margin_eval_set: Sequence[ArrayLike | None] | None = None,
        eval_labels: Sequence[Mapping[str, ArrayLike] | None] | None = None,
        early_stopping_rounds: int | None = None,
        feature_weights: ArrayLike | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
    ) -> Self:
        train = read_part(
            X, y, group=group, qid=qid, weight=sample_weight, labels=labels, margin=base_margin, propensity=propensity,
            position=position,
        )  # fmt: skip
        evals = read_parts(
            eval_set,
            group=either(eval_group=eval_group),
            qid=either(eval_qid=eval_qid),
            weight=either(eval_sample_weight=eval_sample_weight, sample_weight_eval_set=sample_weight_eval_set),
            labels=either(eval_labels=eval_labels),
            margin=either(base_margin_eval_set=base_margin_eval_set),
        )
        return self._fit_parts(
            train, evals, init_model=either(init_model=init_model, xgb_model=xgb_model)[1], callbacks=callbacks,
            verbose=verbose, early_stopping_rounds=early_stopping_rounds, feature_weights=feature_weights,
        )  # fmt: skip

    def get_xgb_params(self) -> dict[str, Any]:
        """The parameters that XGBoost knows: without objective and metrics, which may be ours."""
        ours = ("objective", "eval_metric", "convention")
        return {name: read_param(value) for name, value in super().get_xgb_params().items() if name not in ours}

    def apply(self, X: Any, iteration_range: Any = None) -> np.ndarray:
        """The leaf of each row in each tree, shape (rows, trees)."""
        leaves = self.predict(X, pred_leaf=True, iteration_range=iteration_range)
        return leaves if leaves.ndim == 2 else leaves[:, None]  # of one tree

    def _knows_parameter(self, name: str) -> bool:
        return name in DEFAULTS or name in vars(self).get("kwargs", {})

    def _train_run(self, run: Run) -> tuple[Any, Records]:
        before = {} if run.init_model is None else learner_of(run.init_model)
        booster = run.params.get("booster") or before.get("gradient_booster", {}).get("name", "gbtree")
        params = _params(run, booster)
        rounds = params.pop("n_estimators", 100)
        gradients = run.gradients(XGBoostObjective, params) or _as_objective(run)
        refuse_text(run.train.X)
        for name, dtype in categories(run.train.X).items():
            require(
                dtype.categories.inferred_type in ("string", "integer"),
                f"the column {name!r} has categories that are neither text nor whole numbers, or none at all, which "
                "XGBoost does not read; convert them by astype(str).astype('category')",
            )
        known = {i: run.train.X.dtypes.iloc[i].categories.tolist() for i in categorical(run.train.X)}
        stored = json.dumps(known) if known else None  # because slices, as of early stopping, lose the categories

        def data_of(part: Part, weight: np.ndarray | None) -> Any:
            of_rows = {"label": part.labels, "base_margin": part.margin}
            return _matrix(
                part.X, known, group=part.group, weight=weight, nthread=run.n_threads, **of_rows, **run.of_the_data
            )

        train = data_of(run.train, run.train.weight_by_query if gradients else _by_query(run.train))
        weighs = run.native_metrics or not run.metrics  # whether XGBoost itself evaluates metrics
        if weighs and any(part.weight is not None for part in run.evals):
            require(
                run.metrics or str(run.objective).startswith("rank:"),
                f"XGBoost cannot evaluate the default metric of {run.objective} with weights by query, and would abort "
                "the process; name another in eval_metric=",
            )
            refuse_by_row([*run.native_metrics, *metrics_of(before)])
        evals = [data_of(part, _by_query(part) if weighs else None) for part in run.evals]
        for data in evals:
            _name(data, train.feature_names)
        result: Records = {}
        model = xgb.train(
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
        return model, {name: {m: list(map(float, v)) for m, v in values.items()} for name, values in result.items()}

    def _start(self, init_model: Any, X: Any) -> Any:
        model = super()._start(init_model, X).copy()
        require_same_categories(list(categories_of(model).values()), X)
        model.set_attr(best_iteration=None, best_score=None)  # of another training
        return model

    def _known(self, model: Any) -> Sequence[Any]:
        return [*categories_of(model).values()]

    def _scores(self, model: Any, X: Any, base_margin: Any = None, iteration_range: Any = None, **options: Any) -> Any:
        given = self._given()
        options_of_data = {name: given[name] for name in ("missing", "feature_types") if name in given}
        n_threads = XGBOOST.n_threads(given)
        data = _matrix(X, categories_of(model), nthread=n_threads, base_margin=base_margin, **options_of_data)
        _name(data, model.feature_names)
        return model.predict(data, iteration_range=(0, 0) if iteration_range is None else iteration_range, **options)

    def _rounds(self, model: Any) -> int:
        return int(model.num_boosted_rounds())

    def _splits(self, model: Any) -> float:
        return float(np.abs([*model.get_score().values()]).sum())  # of gblinear the coefficients

    def _adopt(self, model: Any) -> None:
        n_threads = XGBOOST.n_threads(self._given())
        if n_threads is not None:
            model.set_param({"nthread": n_threads})  # which a file does not have
        super()._adopt(model)

    def _load(self, path: str) -> Any:
        require_whole(path, "XGBoost", WHOLE.match)  # it would end the process
        return _kept(xgb.Booster(model_file=path))

    def _features(self, model: Any) -> tuple[int, list[str] | None]:
        return model.num_features(), model.feature_names


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
    return xgb.DMatrix(X, **options)


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


def _params(run: Run, booster: str) -> dict[str, Any]:
    """The parameters for XGBoost, with our defaults if the objective is ours."""
    params = dict(run.params) if booster == "gblinear" else run.with_l2(XGBOOST)
    for name in params.keys() - DEFAULTS.keys():
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
    functions = [xgb.sklearn.ltr_metric_decorator(function, run.n_threads) for function in run.functions]

    def evaluate(scores: Any, data: Any) -> list[tuple[str, float]]:
        found = [*values(scores, data), *(each(scores, data) for each in functions)]
        refuse_same_names([*run.native_metrics, *(name for name, _ in found)])
        return found

    return evaluate


def _early_stopping(run: Run, booster: str, before: dict[str, Any]) -> list[Any]:
    """XGBoost's callback if the training stops early. Raises if XGBoost cannot keep the best rounds.

    ``before`` is the learner of the model that the training goes on from. Since version 3.4 a gbtree drops trees too.
    """
    callback, rounds = xgb.callback.EarlyStopping, run.patience
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
