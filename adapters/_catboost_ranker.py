"""CatBoost's ranker with our objectives and metrics, trained by ``catboost.CatBoost``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._callables import pairs_of_rows
from ltr_objectives.adapters._catboost import CatBoostMetric, CatBoostObjective, read_model, warn_of_pairs
from ltr_objectives.adapters._catboost_fit import Rows, given_weight
from ltr_objectives.adapters._data import BaseEstimator, check_is_fitted, either, read_part, read_parts
from ltr_objectives.adapters._ranker import Ranker, Records
from ltr_objectives.adapters._run import AnyObjective, EvalMetric, Run
from ltr_objectives.adapters._tables import Part, categories, is_pool
from ltr_objectives.errors import LTRError, require
from ltr_objectives.libraries import CATBOOST
from ltr_objectives.metrics.base import Convention
from ltr_objectives.objectives.base import Objective

catboost: Any = CATBOOST.load()
if TYPE_CHECKING:
    from catboost import CatBoostRanker as Base
    from typing_extensions import Self
else:
    Base = catboost.CatBoostRanker

LOUDNESS = {"verbose", "silent", "logging_level", "verbose_eval"}
OF_FIT = ("log_cout", "log_cerr", "plot", "plot_file")  # which are not parameters
STOPPING = {"od_type", "od_pval"}


class CatBoostRanker(Ranker, Base, BaseEstimator):
    """``catboost.CatBoostRanker`` with any objective and metric.

    Parameters
    ----------
    objective : str, Objective or object, optional
        Ours, such as ``"yetiloss:map"``, or CatBoost's own, such as ``"YetiRank"``, or an object as of
        ``catboost.CatBoost``. Ours are written in small letters, CatBoost's begin with a capital. By default the one
        for the first metric: :func:`ltr_objectives.objective_for`. ``"auto"`` tries several, and keeps the best on
        ``eval_set``. ``loss_function`` is another name.
    eval_metric : str, Metric, object or list, optional
        Ours, such as ``"map"``, or CatBoost's, such as ``"NDCG:top=10"``, or one object as of ``catboost.CatBoost``.
        Early stopping on one of CatBoost's is refused if another one is ours or an object.
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

    library = CATBOOST

    def __init__(
        self,
        *,
        objective: AnyObjective | None = None,
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

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group_id: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        group_weight: ArrayLike | None = None,
        baseline: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        cat_features: Sequence[Any] | None = None,
        text_features: Sequence[Any] | None = None,
        embedding_features: Sequence[Any] | None = None,
        init_model: Any = None,
        eval_set: Any = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_sample_weight: Sequence[ArrayLike | None] | None = None,
        eval_labels: Sequence[Mapping[str, ArrayLike] | None] | None = None,
        early_stopping_rounds: int | None = None,
        use_best_model: bool | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
        verbose_eval: bool | int | None = None,
        silent: bool | None = None,
        logging_level: str | None = None,
        metric_period: int | None = None,
        plot: bool | None = None,
        plot_file: Any = None,
        save_snapshot: bool | None = None,
        snapshot_file: str | None = None,
        snapshot_interval: int | None = None,
        log_cout: Any = None,
        log_cerr: Any = None,
    ) -> Self:
        train = read_part(
            X, y, group=group, qid=either(qid=qid, group_id=group_id)[1],
            weight=either(sample_weight=sample_weight, group_weight=group_weight)[1], labels=labels, margin=baseline,
            propensity=propensity, position=position,
        )  # fmt: skip
        evals = read_parts(
            eval_set,
            group=either(eval_group=eval_group),
            qid=either(eval_qid=eval_qid),
            weight=either(eval_sample_weight=eval_sample_weight),
            labels=either(eval_labels=eval_labels),
        )
        return self._fit_parts(
            train, evals, init_model=init_model, callbacks=callbacks, verbose=verbose,
            early_stopping_rounds=early_stopping_rounds, cat_features=cat_features, text_features=text_features,
            embedding_features=embedding_features, use_best_model=use_best_model, metric_period=metric_period,
            silent=silent, logging_level=logging_level, verbose_eval=verbose_eval, save_snapshot=save_snapshot,
            snapshot_file=snapshot_file, snapshot_interval=snapshot_interval, log_cout=log_cout, log_cerr=log_cerr,
            plot=plot, plot_file=plot_file,
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        attributes = {name: value for name, value in vars(self).items() if name not in ("_object", "_init_params")}
        return {**super().__getstate__(), "attributes": attributes}  # CatBoost's own state has no others

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state.pop("attributes"))
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import RegressorTags  # since version 1.6, which alone calls this

        tags = super().__sklearn_tags__()  # those of catboost.CatBoostRanker, for partial_dependence
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
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

    def _train_run(self, run: Run) -> tuple[Any, Records]:
        own, start = isinstance(run.objective, Objective), run.start or 0.0
        of_pool = is_pool(run.train.X)  # whose rows CatBoost does not reorder
        reads_labels = not of_pool and (categories(run.train.X) or run.of_the_data)
        if isinstance(run.objective, Objective) and reads_labels and not pairs_of_rows(run.objective):
            run = run._replace(train=shuffled(run.train))  # statistics read the labels of the rows above
        pools = [self._pool(part, own, run.of_the_data) for part in (run.train, *run.evals)]
        for pool in pools if start else ():
            pool.set_baseline(np.full(pool.num_row(), start))
        sets = tuple(_rows(part, own, start) for part in (run.train, *run.evals))
        params = _params(run, pools[0], sets[0])
        params |= run.of_the_data if of_pool else {}  # CatBoost compares them with the pool's
        of_fit = {name: params.pop(name) for name in OF_FIT if name in params}
        params |= {"od_wait": run.patience} if run.patience else {}
        for name in sorted(STOPPING & params.keys()):
            require(run.evals, f"{name}= needs an eval_set to look at; pass eval_set=[(X, y)] and eval_qid=")
        stops = bool(run.patience or STOPPING & params.keys() or params.get("use_best_model"))
        if not stops:
            params.setdefault("use_best_model", False)
        records = _set_metrics(params, run, pools[0], sets, stops)
        data = {"eval_set": pools[1:] or None, "init_model": run.init_model}
        try:
            model = catboost.CatBoost(params).fit(pools[0], **data, callbacks=run.callbacks or None, **of_fit)
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
        if is_pool(part.X):
            return part.X.slice(np.arange(part.queries.rows)) if own else part.X  # ours set weights and a baseline
        by_query = None if own else part.weight_by_query
        weight = {"weight": part.weight} if by_query is None else {"group_weight": by_query[part.qid]}
        options = {"baseline": part.margin, **of_the_data}
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


def _by_name(value: Any) -> Any:
    """The name of an object of ``catboost.metrics``; anything else is returned as it is."""
    if isinstance(value, list):
        return [_by_name(each) for each in value]
    return str(value) if isinstance(value, catboost.metrics.BuiltinMetric) else value


def shuffled(part: Part) -> Part:
    """The rows of each query in random order."""
    order = np.random.default_rng(0).random(part.queries.rows)
    return part.take(np.lexsort((order, part.qid)), part.group)


def _rows(part: Part, own: bool, start: float) -> Rows:
    """The rows of the pool of a part, which ``rows_of`` would read from the pool, far more slowly."""
    weight = part.weight if own or part.weight_by_query is None else None  # a pool does not show weights by query
    baseline = np.full(len(part.labels), start) if start else part.margin
    return Rows(
        part.labels, part.group, given_weight(weight), None if baseline is None else baseline.astype(np.float32)
    )


def _params(run: Run, pool: Any, rows: Rows) -> dict[str, Any]:
    """The parameters for CatBoost, with our defaults if the objective is ours."""
    params = {"allow_writing_files": False, "loss_function": run.objective, **run.with_l2(CATBOOST)}
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
        "bootstrap_type": "Bernoulli" if "subsample" in params else "No",
        "one_hot_max_size": 10,
        "random_strength": 0,
        **({"has_time": True} if len(pool.get_cat_feature_indices()) > 0 else {}),
        **params,
    }


def _set_metrics(
    params: dict[str, Any], run: Run, pool: Any, sets: tuple[Rows, ...], stops: bool
) -> list[dict[str, list[float]]]:
    """Set what CatBoost evaluates. Training fills what is returned: by eval set, our metrics after the first."""
    own, native, objects = run.own_metrics, run.native_metrics, run.functions
    require(len(objects) + bool(own) < 2, f"CatBoost calls one metric object, perhaps ours; leave {objects} out")
    first, chosen = (next(iter(metrics), None) for metrics in (run.metrics, [*own, *objects, *native]))
    require(
        not stops or first is chosen,
        f"CatBoost stops early on {first} only if no other metric is ours or an object; name {chosen} first, or leave "
        "out early stopping or one of them",
    )
    custom = native if own or objects else native[1:]
    if custom:
        params["custom_metric"] = custom
    if not own:
        params |= {} if chosen is None else {"eval_metric": chosen}
        return []
    queries = tuple(part.queries for part in (run.train, *run.evals))
    has_categories = len(pool.get_cat_feature_indices()) > 0
    any_order = has_categories and not isinstance(run.objective, Objective) and not params.get("has_time")
    params["eval_metric"] = made = CatBoostMetric(own[0], sets, queries, run.n_threads, own[1:], any_order)
    return made.records


def _records(found: dict[str, Any]) -> Records:
    """Return the records of CatBoost without the training set; CatBoost calls a single eval set "validation"."""
    return {
        "validation_0" if name == "validation" else name: {metric: list(v) for metric, v in values.items()}
        for name, values in found.items()
        if name != "learn"
    }
