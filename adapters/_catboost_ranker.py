"""CatBoost's ranker with our objectives and metrics, trained by ``catboost.CatBoost``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr_objectives.adapters._catboost import CatBoostMetric, catboost_objective, read_model
from ltr_objectives.adapters._catboost_fit import rows_of
from ltr_objectives.adapters._parameters import pairs_of_rows
from ltr_objectives.adapters._ranker import Ranker, Records
from ltr_objectives.adapters._ranker_inputs import (
    BaseEstimator,
    Part,
    categories,
    check_is_fitted,
    is_frame,
    named,
    read_table,
)
from ltr_objectives.adapters._ranker_plan import EvalMetric, Plan
from ltr_objectives.errors import require, warn
from ltr_objectives.libraries import CATBOOST
from ltr_objectives.metrics.base import Convention
from ltr_objectives.objectives.base import Objective

catboost: Any = CATBOOST.load()
if TYPE_CHECKING:
    from catboost import CatBoostRanker as Base
    from typing_extensions import Self
else:
    Base = catboost.CatBoostRanker

LOUDNESS = {"verbose", "silent", "logging_level", "verbose_eval", "metric_period"}
STOPPING = {"od_type", "od_wait", "od_pval"}


class CatBoostRanker(Ranker, Base, BaseEstimator):
    """``catboost.CatBoostRanker`` with any objective and metric.

    Parameters
    ----------
    objective : str or Objective, optional
        Ours, such as ``"yetiloss:map"``, or CatBoost's own, such as ``"YetiRank"``. Ours are written in small letters,
        CatBoost's begin with a capital. By default the one for the first metric:
        :func:`ltr_objectives.objective_for`. ``"auto"`` tries several, and keeps the best on ``eval_set``.
    eval_metric : str, Metric or list, optional
        Ours, such as ``"map"``, or CatBoost's, such as ``"NDCG:top=10"``. Early stopping on one of CatBoost's is
        refused if another one is ours.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "scipy": how that library defines our metrics, in
        ``evals_result_`` and ``score``.
    **params
        As of ``catboost.CatBoostRanker``: ``iterations`` (1000), ``learning_rate``, ``depth``, ``thread_count``, ...
        Nothing is written to the working folder unless ``allow_writing_files=True``. ``newton_splits`` is as of
        :func:`ltr_objectives.adapters.catboost_objective`. For our objectives six defaults differ:

        * ``l2_leaf_reg=20`` counts as 20 documents: Hessians are those of :class:`ltr_objectives.UnitHessian`. An
          objective with a ``preset`` keeps its own Hessians and CatBoost's ``l2_leaf_reg``.
        * ``leaf_estimation_method="Newton"``, because our objectives have Hessians.
        * ``bootstrap_type="No"``, or ``"Bernoulli"`` if ``subsample`` is given: CatBoost's MVS stops with an error
          when nearly all gradients are zero, and did not rank better in our benchmarks.
        * ``random_strength=0``: the noise that CatBoost adds to the scores of splits depends on the size of Hessians
          and weights, and did not rank better either.
        * ``one_hot_max_size=10``, CatBoost's default for its own ranking losses; for others it is 2.
        * ``has_time=True`` if there are categorical features: CatBoost would otherwise shuffle the rows without
          saying how. The estimator shuffles the rows of each query itself, because target statistics read the labels
          of the rows above.

    Notes
    -----
    With ``metric_period`` above 1 ``best_score_`` is empty. Columns of dtype category are categorical features, in
    addition to ``cat_features``; CatBoost refuses missing values in them. If CatBoost shuffles the training set, as it
    does for its own objectives, it prints 0 as our metric on it. With an ``eval_set`` but without early stopping all
    rounds are kept, as in the other libraries; ``use_best_model=True`` keeps the best, as CatBoost's own ranker does.
    With ``init_model`` the random numbers, such as those of ``subsample``, start again from the seed.
    :func:`ltr_objectives.adapters.catboost_objective` lists what is refused with our objectives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = CatBoostRanker(objective="yetiloss:map", iterations=3).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = CATBOOST

    def __init__(
        self,
        *,
        objective: str | Objective | None = None,
        eval_metric: EvalMetric = None,
        convention: Convention | None = None,
        **params: Any,
    ) -> None:
        catboost.CatBoost.__init__(self)
        given = {"objective": objective, "eval_metric": eval_metric, "convention": convention, **params}
        self._init_params = {name: value for name, value in given.items() if value is not None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that were given, by name."""
        return dict(self._init_params)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of a fitted ranker, for which CatBoost itself refuses it."""
        self._init_params |= params
        self._canonized_params = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "__fit": {n: v for n, v in vars(self).items() if n[-1] == "_"}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state.pop("__fit"))
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags  # since version 1.6, which alone calls this

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()  # as catboost.CatBoostRanker has them
        return tags

    @property
    def _Booster(self) -> Any:
        model = catboost.CatBoost()  # without parameters, which may be objects of ours
        model._object = self._object
        model._set_trained_model_attributes()
        return model

    def _adopt(self, model: Any) -> None:
        self._object = model._object
        self._set_trained_model_attributes()

    @property
    def feature_importances_(self) -> Any:
        """One number a feature, of the kind ``importance_type``, by default "PredictionValuesChange"."""
        check_is_fitted(self)
        kind = self._init_params.get("importance_type", "PredictionValuesChange")
        return np.asarray(self.get_feature_importance(type=kind))

    def _knows_parameter(self, name: str) -> bool:
        return name in inspect.signature(Base.__init__).parameters

    def _train_plan(self, plan: Plan) -> tuple[Any, Records]:
        own, start = isinstance(plan.objective, Objective), plan.start
        reads_labels = categories(plan.train.X) or plan.of_the_data
        if isinstance(plan.objective, Objective) and reads_labels and not pairs_of_rows(plan.objective):
            plan = plan._replace(train=plan.train.shuffled())  # statistics read the labels of the rows above
        pools = [self._pool(part, own, plan.of_the_data) for part in (plan.train, *plan.evals)]
        for pool in pools if start else ():
            pool.set_baseline(np.full(pool.num_row(), start))
        columns = [plan.train.X.columns[i] for i in pools[0].get_cat_feature_indices() if is_frame(plan.train.X)]
        self.categories_ = {c: _texts(plan.train.X[c]) for c in columns}
        params = _params(plan, pools[0])
        _warn_of_thresholds(plan)
        if plan.init_model is not None:
            _warn_of_statistics(plan.train.X, pools[0], params)
        stops = bool(plan.early_stopping_rounds or STOPPING & params.keys() or params.get("use_best_model"))
        if not stops:
            params.setdefault("use_best_model", False)
        records = _set_metrics(params, plan, pools, stops)
        data = {"eval_set": pools[1:] or None, "init_model": plan.init_model}
        stop = {"early_stopping_rounds": plan.early_stopping_rounds, "callbacks": plan.callbacks or None}
        try:
            model = catboost.CatBoost(params).fit(pools[0], **data, **stop)
        except catboost.CatBoostError as error:
            if "KeyboardInterrupt" in str(error):  # else objective="auto" would go on with the next one
                raise KeyboardInterrupt from None
            raise
        require(
            model.tree_count_,
            f"CatBoost stopped {plan.objective} before its first tree, for the reason that it printed; "
            "try smaller labels, a larger l2_leaf_reg or another objective",
        )
        if start:
            model.set_scale_and_bias(1.0, start)
        found = _records(model.evals_result_)
        for i, values in enumerate(records):
            found[f"validation_{i}"] |= values
        return model, found

    def _pool(self, part: Part, own: bool, of_the_data: dict[str, Any]) -> Any:
        by_query = None if own else part.weight_by_query
        weight = {"weight": part.weight} if by_query is None else {"group_weight": by_query[part.qid]}
        options = dict(of_the_data)
        found = list(categories(part.X))
        if found:
            options["cat_features"] = [*found, *(c for c in options.get("cat_features", ()) if c not in found)]
        return catboost.Pool(part.X, part.labels, group_id=part.qid, **weight, **options)

    def _prepare_train_params(self, *arguments: Any, **options: Any) -> Any:
        """Refuse CatBoost's searches, which train without our ``fit``, if they would train for CatBoost's default."""
        require(
            "objective" in self._init_params,
            "CatBoost would search for YetiRank, its default; name objective='YetiRank' or another one of CatBoost's",
        )
        return super()._prepare_train_params(*arguments, **options)

    def _start(self, init_model: Any, X: Any) -> Any:
        return super()._start(init_model, X).copy()  # trees alone: CatBoost would go on with weights of that training

    def _process_predict_input_data(self, data: Any, *arguments: Any, **options: Any) -> Any:
        """Read tables as ``predict`` does: in other methods CatBoost dies of some columns that polars has."""
        if is_frame(data) or hasattr(data, "to_pandas"):
            data = named(read_table(data)[0])
        elif isinstance(data, np.ndarray):
            data = data.view()  # CatBoost leaves arrays in Fortran order read-only
        return super()._process_predict_input_data(data, *arguments, **options)

    def _scores(self, X: Any, **options: Any) -> Any:
        return catboost.CatBoost.predict(self, X, **options)

    def _unknown(self, X: Any) -> list[str]:
        columns = self.categories_.items() if is_frame(X) else ()
        return [c for c, known in columns if known.isdisjoint(_texts(X[c]))]

    def _rounds(self, model: Any) -> int:
        return int(model.tree_count_)

    def _splits(self, model: Any) -> float:
        return float(np.sum(model.get_tree_leaf_counts() > 1))

    def _load(self, path: str) -> Any:
        return read_model(path)

    def _features(self) -> tuple[int, list[str] | None]:
        names: list[str] = self.feature_names_
        return len(names), None if names == [str(i) for i in range(len(names))] else names


def _texts(column: Any) -> set[str]:
    """The values of a categorical column as CatBoost reads them."""
    return {str(int(v)) if isinstance(v, bool | np.bool_) else str(v) for v in column.unique()}


def _warn_of_thresholds(plan: Plan) -> None:
    """Warn of a native objective to which every label above 0 is relevant, and a metric to which it is not."""
    native = isinstance(plan.objective, str) and CATBOOST.is_binary(plan.objective)
    labels = plan.train.queries.labels
    for metric in plan.own_metrics if native else ():
        threshold = vars(metric).get("threshold", 0.0)
        if ((labels > 0) & (labels <= threshold)).any() and labels.max() > threshold:
            warn(
                f"objective={plan.objective!r} learns which labels are above 0, and {metric} has another threshold; "
                f"give y > {threshold:g}, or train 'yetiloss:{metric}'"
            )


def _params(plan: Plan, pool: Any) -> dict[str, Any]:
    """The parameters for CatBoost, with our defaults if the objective is ours."""
    params = {"allow_writing_files": False, "loss_function": plan.objective, **plan.params}
    if not LOUDNESS & params.keys():
        params["verbose"] = plan.verbose
    if isinstance(plan.objective, str):
        return params
    newton_splits = params.pop("newton_splits", True)
    params["loss_function"] = catboost_objective(
        plan.objective,
        pool,
        propensity=plan.train.queries.propensity,
        position=plan.train.queries.position,
        labels=plan.labels,
        n_threads=plan.n_threads,
        newton_splits=newton_splits,
    )
    params = plan.with_l2(params, CATBOOST)
    return {
        "leaf_estimation_method": "Newton",
        "bootstrap_type": "Bernoulli" if "subsample" in params else "No",
        "one_hot_max_size": 10,
        "random_strength": 0,
        **({"has_time": True} if len(pool.get_cat_feature_indices()) > 0 else {}),
        **params,
    }


def _set_metrics(params: dict[str, Any], plan: Plan, pools: list[Any], stops: bool) -> list[dict[str, list[float]]]:
    """Set what CatBoost evaluates. Training fills what is returned: by eval set, our metrics after the first."""
    own, native = plan.own_metrics, plan.native_metrics
    if not own:
        if native:
            params["eval_metric"] = native[0]
        if native[1:]:
            params["custom_metric"] = native[1:]
        return []
    require(
        not stops or plan.metrics[0] is own[0],
        f"CatBoost stops early on {plan.metrics[0]} only if no other metric is ours; name {own[0]} first, or leave "
        "out early stopping or our metrics",
    )
    goals = tuple(part.queries.goals for part in (plan.train, *plan.evals))
    params["eval_metric"] = made = CatBoostMetric(own[0], tuple(map(rows_of, pools)), plan.n_threads, goals)
    has_categories = len(pools[0].get_cat_feature_indices()) > 0
    made.any_order = has_categories and isinstance(plan.objective, str) and not params.get("has_time")
    if native:
        params["custom_metric"] = native
    return made.record(*own[1:])


def _warn_of_statistics(X: Any, pool: Any, params: dict[str, Any]) -> None:
    """Warn if training goes on with target statistics, whose values in training are not those in predictions."""
    most = params.get("one_hot_max_size", 2)
    columns = (X.iloc[:, i] if is_frame(X) else X[:, i] for i in pool.get_cat_feature_indices())
    if any(len(np.unique(column.astype(str))) > most for column in columns):
        warn(
            f"a categorical feature has more than one_hot_max_size={most} values, so CatBoost uses target statistics, "
            "and goes on from predictions with those of all rows: the model differs from one of an uninterrupted "
            "training; for equal models train without init_model, or set one_hot_max_size higher in both trainings"
        )


def _records(found: dict[str, Any]) -> Records:
    """Return the records of CatBoost without the training set; CatBoost calls a single eval set "validation"."""
    return {
        "validation_0" if name == "validation" else name: {metric: list(v) for metric, v in values.items()}
        for name, values in found.items()
        if name != "learn"
    }
