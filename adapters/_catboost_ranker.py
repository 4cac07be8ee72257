"""CatBoost's ranker with our objectives and metrics, trained by ``catboost.CatBoost``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from ltr_objectives.adapters._callables import pairs_of_rows
from ltr_objectives.adapters._catboost import CatBoostMetric, CatBoostObjective, read_model
from ltr_objectives.adapters._catboost_fit import rows_of
from ltr_objectives.adapters._data import BaseEstimator, Part, categories, check_is_fitted
from ltr_objectives.adapters._ranker import Ranker, Records
from ltr_objectives.adapters._run import EvalMetric, Run, in_documents
from ltr_objectives.errors import require
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
    ``fit`` has ``cat_features``, ``text_features`` and ``embedding_features`` too. With ``metric_period`` above 1
    ``best_score_`` is empty. Columns of dtype category are categorical features, in addition to ``cat_features``;
    CatBoost refuses missing values in them. If CatBoost shuffles the training set, as it does for its own objectives,
    it prints 0 as our metric on it. With an ``eval_set`` but without early stopping all rounds are kept, as in the
    other libraries; ``use_best_model=True`` keeps the best, as CatBoost's own ranker does. With ``init_model`` the
    random numbers, such as those of ``subsample``, start again from the seed.
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
        return {**super().__getstate__(), "_fitted": vars(self).get("_fitted")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if (fitted := state.pop("_fitted")) is not None:
            self._fitted = fitted
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

    @staticmethod
    def _own(cat_features: Any = None, text_features: Any = None, embedding_features: Any = None) -> dict[str, Any]:
        own = {"cat_features": cat_features, "text_features": text_features}
        return own | {"embedding_features": embedding_features}

    def _knows_parameter(self, name: str) -> bool:
        return name in inspect.signature(Base.__init__).parameters

    def _train_run(self, run: Run) -> tuple[Any, Records]:
        own, start = isinstance(run.objective, Objective), run.start
        reads_labels = categories(run.train.X) or run.of_the_data
        if isinstance(run.objective, Objective) and reads_labels and not pairs_of_rows(run.objective):
            run = run._replace(train=shuffled(run.train))  # statistics read the labels of the rows above
        pools = [self._pool(part, own, run.of_the_data) for part in (run.train, *run.evals)]
        for pool in pools if start else ():
            pool.set_baseline(np.full(pool.num_row(), start))
        params = _params(run, pools[0])
        stops = bool(run.patience or STOPPING & params.keys() or params.get("use_best_model"))
        if not stops:
            params.setdefault("use_best_model", False)
        records = _set_metrics(params, run, pools, stops)
        data = {"eval_set": pools[1:] or None, "init_model": run.init_model}
        stop = {"early_stopping_rounds": run.patience, "callbacks": run.callbacks or None}
        try:
            model = catboost.CatBoost(params).fit(pools[0], **data, **stop)
        except catboost.CatBoostError as error:
            if str(error).rstrip().endswith("KeyboardInterrupt"):  # else objective="auto" would go on with the next one
                raise KeyboardInterrupt from None
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
        return model, found

    def _pool(self, part: Part, own: bool, of_the_data: dict[str, Any]) -> Any:
        by_query = None if own else part.weight_by_query
        weight = {"weight": part.weight} if by_query is None else {"group_weight": by_query[part.qid]}
        options = dict(of_the_data)
        found = list(categories(part.X))
        if found:
            options["cat_features"] = [*found, *(c for c in options.get("cat_features", ()) if c not in found)]
        return catboost.Pool(part.X, part.labels, group_id=part.qid, **weight, **options)

    def _start(self, init_model: Any, X: Any) -> Any:
        return super()._start(init_model, X).copy()  # trees alone: CatBoost would go on with weights of that training

    def _scores(self, model: Any, X: Any, **options: Any) -> Any:
        return model.predict(X, **options)

    def _rounds(self, model: Any) -> int:
        return int(model.tree_count_)

    def _splits(self, model: Any) -> float:
        return float(np.sum(model.get_tree_leaf_counts() > 1))

    def _load(self, path: str) -> Any:
        return read_model(path)

    def _features(self, model: Any) -> tuple[int, list[str] | None]:
        names: list[str] = model.feature_names_
        return len(names), None if names == [str(i) for i in range(len(names))] else names


def shuffled(part: Part) -> Part:
    """The rows of each query in random order."""
    order = np.random.default_rng(0).random(part.queries.rows)
    return part.take(np.lexsort((order, part.qid)), part.group)


def _params(run: Run, pool: Any) -> dict[str, Any]:
    """The parameters for CatBoost, with our defaults if the objective is ours."""
    params = {"allow_writing_files": False, "loss_function": run.objective, **run.with_l2(CATBOOST)}
    if not LOUDNESS & params.keys():
        params["verbose"] = run.verbose
    if not isinstance(run.objective, Objective):
        return params
    splits = params.pop("newton_splits", True)
    own = in_documents(run.objective)
    made = CatBoostObjective(own, rows_of(pool), run.train.queries, newton_splits=splits, n_threads=run.n_threads)
    params["loss_function"] = made.prepare(pool)
    return {
        "leaf_estimation_method": "Newton",
        "bootstrap_type": "Bernoulli" if "subsample" in params else "No",
        "one_hot_max_size": 10,
        "random_strength": 0,
        **({"has_time": True} if len(pool.get_cat_feature_indices()) > 0 else {}),
        **params,
    }


def _set_metrics(params: dict[str, Any], run: Run, pools: list[Any], stops: bool) -> list[dict[str, list[float]]]:
    """Set what CatBoost evaluates. Training fills what is returned: by eval set, our metrics after the first."""
    own, native = run.own_metrics, run.native_metrics
    if not own:
        if native:
            params["eval_metric"] = native[0]
        if native[1:]:
            params["custom_metric"] = native[1:]
        return []
    require(
        not stops or run.metrics[0] is own[0],
        f"CatBoost stops early on {run.metrics[0]} only if no other metric is ours; name {own[0]} first, or leave "
        "out early stopping or our metrics",
    )
    queries = tuple(part.queries for part in (run.train, *run.evals))
    has_categories = len(pools[0].get_cat_feature_indices()) > 0
    any_order = has_categories and isinstance(run.objective, str) and not params.get("has_time")
    sets = tuple(map(rows_of, pools))
    params["eval_metric"] = made = CatBoostMetric(own[0], sets, queries, run.n_threads, own[1:], any_order)
    if native:
        params["custom_metric"] = native
    return made.records


def _records(found: dict[str, Any]) -> Records:
    """Return the records of CatBoost without the training set; CatBoost calls a single eval set "validation"."""
    return {
        "validation_0" if name == "validation" else name: {metric: list(v) for metric, v in values.items()}
        for name, values in found.items()
        if name != "learn"
    }
