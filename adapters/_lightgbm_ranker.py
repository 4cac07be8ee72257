"""LightGBM's ranker with our objectives and metrics, trained by ``lgb.train``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives._files import require_whole
from ltr_objectives.adapters._data import either, read_part, read_parts
from ltr_objectives.adapters._lightgbm import LightGBMObjective, refuse_bagging_by_query
from ltr_objectives.adapters._ranker import Ranker, Records
from ltr_objectives.adapters._run import (
    AnyObjective,
    EvalMetric,
    Run,
    is_off,
    refuse_dart,
    refuse_same_names,
    unknown_metric,
    unknown_objective,
)
from ltr_objectives.adapters._tables import (
    categorical,
    categories,
    is_frame,
    names_of,
    refuse_text,
    require_same_categories,
    require_same_kinds,
)
from ltr_objectives.checks import is_number
from ltr_objectives.errors import LTRError, did_you_mean, require
from ltr_objectives.libraries import LIGHTGBM
from ltr_objectives.metrics.base import Convention, Metric

lgb: Any = LIGHTGBM.load()
if TYPE_CHECKING:
    from lightgbm import Booster
    from lightgbm import LGBMRanker as Base
    from typing_extensions import Self
else:
    Base = lgb.LGBMRanker

END = re.compile(  # of a model file
    rb"\nend of trees\n.*\nend of parameters\s*(\npandas_categorical:(null|\[.*\])\s*)?\Z", re.DOTALL
)
SIZES = re.compile(rb"^tree_sizes=(.*)$", re.MULTILINE)  # one for each tree
SEEN = ("model", "params", "iteration", "begin_iteration", "end_iteration")  # by callbacks, in every version
DEFAULTS = {name: p.default for name, p in inspect.signature(lgb.LGBMModel.__init__).parameters.items()}
DEFAULTS |= {"reg_lambda": None}  # so that 0 can be told from nothing


class LGBMRanker(Ranker, Base):  # type: ignore[misc]  # fit, predict and score differ
    """``lightgbm.LGBMRanker`` with any objective and metric; queries by id or by size.

    Parameters
    ----------
    objective : str, Objective or function, optional
        Ours, such as ``"yetiloss:map"``, or LightGBM's own, such as ``"lambdarank"``; functions are those of
        ``lightgbm.LGBMRanker``. By default the one for the first metric: :func:`ltr_objectives.objective_for`.
        ``"auto"`` tries several, and keeps the best on ``eval_set``.
    eval_metric : str, Metric, function or list, optional
        Ours, such as ``"map"``; a name that only LightGBM knows, such as ``"average_precision"``, is LightGBM's, and
        functions are those of ``lightgbm.LGBMRanker.fit``. Nothing else is evaluated.
    convention : str, optional
        "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "scipy": how that library defines our metrics, in
        ``evals_result_`` and ``score``.
    **params
        As of ``lightgbm.LGBMRanker``: ``n_estimators`` (100), ``learning_rate``, ``num_leaves``, ``n_jobs``, ..., and
        ``categorical_feature``. Names that LightGBM does not know, and would ignore, are refused. LightGBM prints
        nothing unless ``verbose`` or ``verbosity`` is given. For our objectives one default differs: ``reg_lambda=20``
        counts as 20 documents, because Hessians are those of :class:`ltr_objectives.UnitHessian`. An objective with a
        ``preset`` keeps its own Hessians and LightGBM's ``reg_lambda``.

    Notes
    -----
    ``predict`` gives what the trees add to ``init_score``. The ``eval_metric`` of ``fit`` replaces that of the
    constructor, which ``score`` computes.

    For equal models from run to run set ``deterministic=True`` and ``force_col_wise=True``. Early stopping is refused
    with ``boosting="dart"``, whose later rounds change the earlier ones.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat([0, 1, 2], 20)
    >>> ranker = LGBMRanker(objective="yetiloss:map", n_estimators=3, min_child_samples=5).fit(X, y, qid=qid)
    >>> ranker.predict(X).shape
    (60,)
    """

    library = LIGHTGBM
    if TYPE_CHECKING:
        booster_: Booster
    _defaults = DEFAULTS

    def __init__(
        self,
        *,
        objective: AnyObjective | None = None,
        eval_metric: EvalMetric = None,
        convention: Convention | None = None,
        reg_lambda: float | None = None,
        **params: Any,
    ) -> None:
        super().__init__(objective=objective, reg_lambda=reg_lambda, **params)  # type: ignore[arg-type]  # ours
        self.eval_metric = eval_metric
        self.convention = convention

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, those of ``lightgbm.LGBMRanker`` too."""
        names = [*self._get_param_names(), *self._other_params]
        return {name: getattr(self, name) for name in names}

    def fit(  # type: ignore[override]  # all but X and y by name
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        init_score: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        init_model: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_names: Sequence[str] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_sample_weight: Sequence[ArrayLike | None] | None = None,
        eval_init_score: Sequence[ArrayLike | None] | None = None,
        eval_labels: Sequence[Mapping[str, ArrayLike] | None] | None = None,
        eval_metric: EvalMetric = None,
        eval_at: Sequence[int] | None = None,
        early_stopping_rounds: int | None = None,
        feature_name: Sequence[str] | str | None = None,
        categorical_feature: Sequence[str] | Sequence[int] | str | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
    ) -> Self:
        train = read_part(
            X, y, group=group, qid=qid, weight=sample_weight, labels=labels, margin=init_score, propensity=propensity,
            position=position,
        )  # fmt: skip
        evals = read_parts(
            either(eval_set=eval_set, eval_X=_pairs(eval_X, eval_y))[1],
            group=either(eval_group=eval_group),
            qid=either(eval_qid=eval_qid),
            weight=either(eval_sample_weight=eval_sample_weight),
            labels=either(eval_labels=eval_labels),
            margin=either(eval_init_score=eval_init_score),
        )
        return self._fit_parts(
            train, evals, init_model=init_model, callbacks=callbacks, verbose=verbose, eval_names=eval_names,
            early_stopping_rounds=early_stopping_rounds, eval_metric=eval_metric, eval_at=eval_at,
            feature_name=feature_name, categorical_feature=categorical_feature,
        )  # fmt: skip

    def _adopt(self, model: Any) -> None:
        self._Booster, self._n_features, self.fitted_ = model, model.num_feature(), True

    def _knows_parameter(self, name: str) -> bool:
        return name in DEFAULTS or name in LIGHTGBM.of_the_data or name in _names()

    def _train_run(self, run: Run) -> tuple[Any, Records]:
        require(
            run.init_model is None or run.train.margin is None,
            "LightGBM replaces init_score by what init_model predicts; leave it out and add it to init_score",
        )
        refuse_text(run.train.X)
        boosting = "".join(map(str, LIGHTGBM.given("boosting", run.params).values())).lower()
        linear = any(not is_off(each) for each in LIGHTGBM.given("linear_tree", run.params).values())
        # leaves of linear trees, and initial scores of a forest, cannot be set
        start = None if linear or boosting in ("rf", "random_forest") else run.start
        params = _params(run, boosting, start)
        gradients = run.gradients(LightGBMObjective, params)
        rounds = params.pop("n_estimators", 100)
        train, *evals = (
            lgb.Dataset(part.X, part.labels, group=part.group, weight=part.weight, **run.of_the_data,
                        init_score=np.full(len(part.labels), start) if start else part.margin)
            for part in (run.train, *run.evals)
        )  # fmt: skip
        for i, data in enumerate(evals):
            require_same_kinds(run.evals[i].X, categorical(run.train.X), f"eval_set[{i}]")
            data.set_reference(train)
        result: Records = {}
        callbacks = [*run.callbacks, lgb.record_evaluation(result), _refuse_same_names]
        if run.verbose and evals:
            callbacks.append(lgb.log_evaluation(int(run.verbose)))
        if run.patience:
            min_delta = next(iter(LIGHTGBM.given("early_stopping_min_delta", params).values()), 0.0)
            stop = lgb.early_stopping(run.patience, True, bool(run.verbose), min_delta)
            callbacks.append(_looking_at(stop, run))

        def trained(objective: Any) -> Any:
            return lgb.train(
                {"objective": objective, **self._with_threads(params)},
                train,
                rounds,
                valid_sets=evals,
                valid_names=run.names,
                init_model=run.init_model,
                feval=_as_metrics(run, evals),
                callbacks=callbacks,
            )

        try:
            booster = trained(gradients or _as_objective(run.objective))
        except lgb.basic.LightGBMError as error:  # a function needs a column that is not 0 everywhere
            if "num_features" not in str(error):
                raise
            params |= {"boost_from_average": False}
            booster = trained("regression")  # which adds a tree without a split
        booster.free_dataset()
        if start and booster.num_trees():  # as LightGBM's own boost_from_average does
            for leaf in range(booster.dump_model(num_iteration=1)["tree_info"][0]["num_leaves"]):
                booster.set_leaf_output(0, leaf, booster.get_leaf_output(0, leaf) + start)
        return booster, {name: {m: list(v) for m, v in values.items()} for name, values in result.items()}

    def _start(self, init_model: Any, X: Any) -> Any:
        model = super()._start(init_model, X)
        require_same_categories(model.pandas_categorical or [], X)
        known = model.feature_name()
        names = [_stored(c) for c in X.columns] if is_frame(X) else known
        require(
            names == known or known[0].startswith("Column_"),  # LightGBM's names for an array
            f"X has the columns {names}, but init_model was trained on {known}; give these, in this order",
        )
        if not 0 < model.best_iteration < model.current_iteration():
            return model
        return lgb.Booster(model_str=model.model_to_string())  # the rounds that it predicts with

    def _check_columns(self, X: Any) -> None:
        stored = [_stored(name) for name in names_of(X) or ()]  # as a model from a file has them
        super()._check_columns(X.iloc[:1].set_axis(stored, axis=1) if stored == self._fitted.columns else X)
        if self._fitted.categorical is not None:
            require_same_kinds(X, self._fitted.categorical)
        elif is_frame(X):  # a file has no numbers of columns
            found, known = [*categories(X)], len(self._known(self._Booster))
            message = (
                f"X has the dtype category in {found}, and the training had it in {known} columns; give it to these"
            )
            require(len(found) == known, message)

    def _known(self, model: Any) -> Sequence[Any]:
        return model.pandas_categorical or ()

    def _given(self) -> dict[str, Any]:
        given = super()._given()
        for name, n in LIGHTGBM.given(LIGHTGBM.threads, given).items():
            given[name] = self._threads(n)
        return given

    def _threads(self, n: Any) -> Any:
        """The number of threads as LightGBM's own ranker reads it."""
        return self._process_n_jobs(n if n is None else int(n)) if n is None or is_number(n) else n

    def _with_threads(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with the ranker's number of threads, unless they have one."""
        names = LIGHTGBM.names(LIGHTGBM.threads)
        if not params.keys().isdisjoint(names):
            return params
        n = next((n for name in names if (n := getattr(self, name, None)) is not None), None)
        return {**params, LIGHTGBM.threads: self._threads(n)}

    def _scores(self, model: Any, X: Any, **options: Any) -> Any:
        return model.predict(X, **self._with_threads(options))

    def _rounds(self, model: Any) -> int:
        best: int = model.best_iteration
        return best if best > 0 else int(model.current_iteration())

    def _splits(self, model: Any) -> float:
        return float(model.feature_importance("split").sum())

    def _load(self, path: str) -> Any:
        def is_whole(content: bytes) -> bool:  # else LightGBM reads fewer trees, or ends the process
            sizes = SIZES.search(content)
            return bool(END.search(content) and (not sizes or len(sizes[1].split()) == content.count(b"\nTree=")))

        require_whole(path, "LightGBM", is_whole)
        return lgb.Booster(model_file=path)

    def _features(self, model: Any) -> tuple[int, list[str] | None]:
        names: list[str] = model.feature_name()
        return len(names), None if names == [f"Column_{i}" for i in range(len(names))] else names


def _pairs(eval_X: Any, eval_y: Any) -> list[tuple[Any, Any]] | None:
    """The pairs of ``eval_set``, from one table and its labels, or from tuples of them."""
    if eval_X is None and eval_y is None:
        return None
    tables, targets = (() if x is None else x if isinstance(x, tuple) else (x,) for x in (eval_X, eval_y))
    require(len(tables) == len(targets), "eval_X and eval_y must both be given, with as many entries")
    return [*zip(tables, targets, strict=True)]


def _as_objective(objective: Any) -> Any:
    """An objective that is not ours, for ``lgb.train``."""
    return objective if isinstance(objective, str) else lgb.sklearn._ObjectiveFunctionWrapper(objective)


def _as_metrics(run: Run, evals: Sequence[Any]) -> list[Any]:
    """Our metrics and functions, for ``lgb.train``."""
    values, functions = run.metric_values(evals), map(lgb.sklearn._EvalFunctionWrapper, run.functions)
    own = [lambda scores, data: [(*each, True) for each in values(scores, data)]] if run.own_metrics else []
    return [*own, *functions]


def _names() -> set[str]:
    """All names of all parameters; none if LightGBM has no table of them."""
    return {alias for names in LIGHTGBM.aliases() for alias in names}


def _params(run: Run, boosting: str, start: float | None) -> dict[str, Any]:
    """The parameters for LightGBM, with our defaults; raises for those that it would ignore."""
    params = dict(run.params) if start is None and _is_far(run) else run.with_l2(LIGHTGBM)
    for name, value in (("verbosity", -1), ("num_leaves", DEFAULTS["num_leaves"])):  # else it warns of max_depth
        if not LIGHTGBM.given(name, params):
            params[name] = value
    if run.metrics:
        params["metric"] = run.native_metrics or "None"
        for name in run.native_metrics:
            require(_knows(metric=name), unknown_metric(name, LIGHTGBM))
    require(
        "class_weight" not in params,
        "class_weight= is not read; give fit sample_weight=, as compute_sample_weight(class_weight, y) of scikit-learn",
    )
    known = _names()
    for name in sorted(params.keys() - known) if known else ():
        raise LTRError(f"LightGBM knows no parameter {name!r}{did_you_mean(name, LIGHTGBM.aliases())}")
    unread = LIGHTGBM.given("eval_at", params) if run.metrics and not run.native_metrics else {}
    require(not unread, "LightGBM's own metrics alone read eval_at=; name the cutoffs in eval_metric=")
    refuse_dart("boosting='dart'" if boosting == "dart" else "", run.patience)
    require(
        not (is_off(params.get("first_metric_only")) and run.patience and len(run.metrics) > 1),
        "first_metric_only=False: early stopping looks at the first metric alone; leave it out, or name one metric",
    )
    if isinstance(run.objective, str):
        require(_knows(objective=run.objective), unknown_objective(run.objective, LIGHTGBM))
    else:
        refuse_bagging_by_query(params)
        params.setdefault("feature_pre_filter", False)  # LightGBM fails with a function if it drops every column
    return params


def _is_far(run: Run) -> bool:
    """Return True if the first gradients are nearly equal and far from 0: LightGBM ends if an L2 forbids a split."""
    if run.learner is None or not run.learner.facts.label_scale:
        return False
    scores = np.zeros(len(run.train.labels)) if run.train.margin is None else run.train.margin
    if run.init_model is not None:
        scores = run.init_model.predict(run.train.X, raw_score=True, num_threads=run.n_threads or 0)
    grad, _ = run.learner.compute(run.train.queries, scores, n_threads=run.n_threads)
    return bool(abs(grad.mean()) > grad.std())


def _stored(column: Any) -> str:
    """The name of a column as LightGBM's models have it."""
    return str(column).replace(" ", "_")


def _knows(objective: str = "none", metric: str = "None") -> bool:
    """Try an objective or a metric on two rows, because LightGBM leaves out metrics that it does not know."""
    quiet = {"verbosity": -1, "num_threads": 1}
    rows = lgb.Dataset(np.array([[0.0], [1.0]]), [0.0, 1.0], group=[2], params=quiet)
    try:
        found = lgb.Booster({"objective": objective, "metric": metric, **quiet}, rows).eval_train()
    except lgb.basic.LightGBMError as error:  # it may know the metric, which needs other parameters
        return "Unknown objective" not in str(error)
    return bool(found) or metric == "None"


def _refuse_same_names(env: Any) -> None:
    refuse_same_names([each[1] for each in env.evaluation_result_list if each[0] == env.evaluation_result_list[0][0]])


def _looking_at(stop: Callable[[Any], None], run: Run) -> Callable[[Any], None]:
    """LightGBM's early stopping ``stop``, shown only the last eval set and the first metric."""
    first, own = next(iter(run.metrics), None), {str(m) for m in run.own_metrics}
    require(
        first not in run.functions or not run.native_metrics,
        f"LightGBM stops early on {' '.join(run.native_metrics)} if it is evaluated beside functions; name it first",
    )

    def is_first(metric: str) -> bool:
        return metric == str(first) if isinstance(first, Metric) else metric not in own

    def callback(env: Any) -> None:
        seen = [r for r in env.evaluation_result_list if r[0] == run.names[-1] and is_first(r[1])]
        stop(SimpleNamespace(**{field: getattr(env, field) for field in SEEN}, evaluation_result_list=seen))

    callback.order = 30  # type: ignore[attr-defined]  # where LightGBM looks for it
    return callback
