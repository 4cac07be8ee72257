"""CatBoost's ranker with our objectives and metrics, trained by ``catboost.CatBoost``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np

from ltr_objectives.adapters._bounds import Limits
from ltr_objectives.adapters._catboost import LIBRARY
from ltr_objectives.adapters._data import BaseEstimator, RegressorTags, check_is_fitted
from ltr_objectives.adapters._names import AnyObjective, Array, Arrays, EvalMetric, Goals
from ltr_objectives.adapters._ranker import Ranker
from ltr_objectives.errors import LTRError
from ltr_objectives.metrics.base import Convention

catboost: Any = LIBRARY.load()
if TYPE_CHECKING:
    from catboost import CatBoostRanker as Base
else:
    Base = catboost.CatBoostRanker

OF_STATE = ("_object", "_init_params", "_Booster")  # which CatBoost's own state has


class CatBoostRanker(Ranker, Base, BaseEstimator):
    """``catboost.CatBoostRanker`` with any objective and metric.

    Parameters
    ----------
    objective : str, Objective or object, optional
        Ours, such as ``"yetiloss:map"``, or CatBoost's own, such as ``"YetiRank"``, or an object as in
        ``catboost.CatBoost``. Ours are written in small letters, CatBoost's begin with a capital. By default the one
        for the first metric: :func:`ltr_objectives.objective_for`. ``"auto"`` tries several, and keeps the best on
        ``eval_set``. ``loss_function`` is another name.
    eval_metric : str, Metric, object or list, optional
        Ours, such as ``"map"``, or CatBoost's, such as ``"NDCG:top=10"``, or one object as in ``catboost.CatBoost``.
        Early stopping on one of CatBoost's is refused if another one is ours or an object.
    convention, bounds
        As in :class:`LGBMRanker`.
    iterations, learning_rate, depth, l2_leaf_reg, random_seed, thread_count, **params
        As in ``catboost.CatBoostRanker``. Nothing is written to the working folder unless ``allow_writing_files=True``.
        ``newton_splits`` is as in :func:`ltr_objectives.adapters.catboost_objective`. For our objectives six defaults
        differ:

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
    ``X`` may be a ``catboost.Pool`` and ``eval_set`` one or a list of them, which have labels, queries, weights by row
    and a baseline. The rows are then not shuffled, and ours train on a copy. With ``metric_period`` above 1
    ``best_score_`` is empty.

    Columns of dtype category are categorical features, in addition to ``cat_features``; CatBoost refuses missing values
    in them. If CatBoost shuffles the training set, as it does for its own objectives, it prints 0 as our metric on it.
    With an ``eval_set`` but without early stopping all rounds are kept, as in the other libraries;
    ``use_best_model=True`` keeps the best, as CatBoost's own ranker does. With ``init_model`` the random numbers, such
    as those of ``subsample``, start again from the seed. :func:`ltr_objectives.adapters.catboost_objective` lists what
    is refused with our objectives.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = CatBoostRanker(objective="yetiloss:map", iterations=3).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = LIBRARY
    _margins = "baseline", ""  # eval sets have none
    _aliases: ClassVar = {"qid": "group_id", "sample_weight": "group_weight"}

    def __init__(
        self, *, objective: AnyObjective | None = None, eval_metric: EvalMetric = None,
        convention: Convention | None = None, bounds: Limits | None = None, iterations: int | None = None,
        learning_rate: float | None = None, depth: int | None = None, l2_leaf_reg: float | None = None,
        random_seed: int | None = None, thread_count: int | None = None, **params: Any,
    ) -> None:  # fmt: skip
        named = {name: value for name, value in locals().items() if name in SIGNATURE and value is not None}
        catboost.CatBoost.__init__(self)
        self._init_params = named | params

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that were given, and those of the signature, by name."""
        return dict.fromkeys(sorted(SIGNATURE.intersection(self._get_param_names()))) | self._init_params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of a fitted ranker, for which CatBoost itself refuses it."""
        self._init_params |= params
        self._canonized_params = None
        return self

    def fit(
        self, X: Any, y: Array = None, *, group: Array = None, qid: Array = None, group_id: Array = None,
        sample_weight: Array = None, group_weight: Array = None, baseline: Array = None, propensity: Array = None,
        position: Array = None, labels: Goals | None = None, cat_features: Sequence[Any] | None = None,
        text_features: Sequence[Any] | None = None, embedding_features: Sequence[Any] | None = None,
        init_model: Any = None, eval_set: Any = None, eval_group: Arrays = None, eval_qid: Arrays = None,
        eval_sample_weight: Arrays = None, eval_labels: Sequence[Goals | None] | None = None,
        early_stopping_rounds: int | None = None, use_best_model: bool | None = None,
        callbacks: Sequence[Any] | None = None, verbose: bool | int = False, verbose_eval: bool | int | None = None,
        silent: bool | None = None, logging_level: str | None = None, metric_period: int | None = None,
        plot: bool | None = None, plot_file: Any = None, save_snapshot: bool | None = None,
        snapshot_file: str | None = None, snapshot_interval: int | None = None, log_cout: Any = None,
        log_cerr: Any = None,
    ) -> Self:  # fmt: skip
        return self._fit_with(locals())

    def __getstate__(self) -> dict[str, Any]:
        attributes = {name: value for name, value in vars(self).items() if name not in OF_STATE}
        return {**super().__getstate__(), "attributes": attributes}  # CatBoost's own state has no others

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state.pop("attributes"))
        super().__setstate__(state)
        if self.__sklearn_is_fitted__():
            self._adopt(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # those of catboost.CatBoostRanker, for partial_dependence
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    def _adopt(self, model: Any) -> None:
        self._Booster = catboost.CatBoost()  # without parameters, which may be our objects
        for each in (self, self._Booster):
            each._object = model._object
            each._set_trained_model_attributes()

    @property
    def feature_importances_(self) -> Any:
        """PredictionValuesChange of each feature, which CatBoost itself leaves out after its ranking objectives."""
        check_is_fitted(self)
        return np.asarray(self.get_feature_importance(type="PredictionValuesChange"))

    def _given(self) -> dict[str, Any]:
        given = {name: _by_name(value) for name, value in super()._given().items()}
        return given | ({"thread_count": -1} if given.get("thread_count") == 0 else {})  # 0 would end the process

    def _knows_parameter(self, name: str) -> bool:
        return name in inspect.signature(Base.__init__).parameters

    def _refuse_search(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: CatBoost would train its own objective on parts of the pool."""
        raise LTRError(
            "CatBoost's own searches know none of our objectives; use GridSearchCV of scikit-learn with GroupKFold, or "
            "catboost.CatBoostRanker for CatBoost's own objectives"
        )

    grid_search = randomized_search = select_features = _refuse_search


SIGNATURE = {*inspect.signature(CatBoostRanker).parameters} - {"params"}


def _by_name(value: Any) -> Any:
    """Return the name of an object of ``catboost.metrics``, and anything else as it is."""
    if isinstance(value, list):
        return [_by_name(each) for each in value]
    return str(value) if isinstance(value, catboost.metrics.BuiltinMetric) else value
