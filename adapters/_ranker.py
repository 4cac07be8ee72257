"""The mixin of the three estimators: queries, our objectives and metrics, model files."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives._files import replacing
from ltr_objectives.adapters._auto import AUTO, train_best
from ltr_objectives.adapters._parameters import refuse_twice
from ltr_objectives.adapters._ranker_inputs import (
    BaseEstimator,
    Part,
    categories,
    check_features,
    check_is_fitted,
    named,
    read_eval_sets,
    read_part,
    read_table,
)
from ltr_objectives.adapters._ranker_plan import (
    OF_THE_END,
    ROUNDS,
    EvalMetric,
    Plan,
    check_plan,
    in_documents,
    own_or_native,
    read_metrics,
    read_param,
)
from ltr_objectives.checks import check_integer, check_list
from ltr_objectives.diagnostics import useless, warn_if_all_relevant, warn_of_equal_orders
from ltr_objectives.errors import LTRError, LTRWarning, require, warn
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric, get_metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import objective_for

if TYPE_CHECKING:
    from typing_extensions import Self

    from ltr_objectives.workbench.auto import Decision

DEFAULT = "ndcg@10"  # what is trained if neither objective nor metric is named, and scored if no metric is
# parameters of our rankers that a training of the library does not get
OURS = {"objective", "eval_metric", "convention", "early_stopping_rounds", "callbacks", "importance_type"}
Records = dict[str, dict[str, list[float]]]


class FromFit:
    """An attribute that ``fit`` sets. It hides the library's property of the same name."""

    def __init__(self, when: str = "") -> None:
        self.when = when

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, ranker: Any, owner: type) -> Any:
        if ranker is None:
            return self
        raise AttributeError(f"this {owner.__name__} has no {self.name}; fit sets it{self.when}")


FROM_FIT: Any = FromFit


class Ranker:
    """The methods that the three estimators share; each class has its library's methods too."""

    library: ClassVar[Library]
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _estimator_type = "ranker"

    # the methods of each class
    get_params: Callable[..., dict[str, Any]]  # those of the library's class too
    _knows_parameter: Callable[[str], bool]  # true for the name of a parameter of the library's ranker
    _train_plan: Callable[[Plan], tuple[Any, Records]]  # the library's model, and the metrics on each eval set
    _scores: Callable[..., Any]  # of a table
    _known: Callable[[], Sequence[Any]]  # the categories of the model, by categorical column
    _rounds: Callable[[Any], int]  # that a model of the library predicts with
    _splits: Callable[[Any], float]  # 0 if no tree of a model has a split
    _load: Callable[[str], Any]  # the model in a file
    _features: Callable[[], tuple[int, list[str] | None]]  # their number, and their names if the model has them
    _stored_name: Callable[[Any], str] = str  # of a column, in a model

    _Booster: Any
    objective_: Objective | str = FROM_FIT()
    evals_result_: Records = FROM_FIT()
    best_score_: dict[str, dict[str, float]] = FROM_FIT()
    report_: Decision = FROM_FIT()
    n_features_in_: int = FROM_FIT()
    feature_names_in_: np.ndarray = FROM_FIT(" if the columns of X have names")
    nameless_ = False  # read from a file without names of features
    categories_: Mapping[str, Any] = {}  # by column, in the training of a library whose models do not name them

    if TYPE_CHECKING:  # scikit-learn makes them when a class is derived

        def set_fit_request(self, **routed: bool | str | None) -> Self: ...
        def set_score_request(self, **routed: bool | str | None) -> Self: ...

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. :meth:`fit` refuses those that the library does not know."""
        super().set_params(**params)  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._set().items())})"

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The parameters of the constructors, up to the first that does not pass others on, for scikit-learn."""
        names: set[str] = set()
        for each in cls.__mro__:
            if "__init__" in vars(each):
                parameters = inspect.signature(vars(each)["__init__"]).parameters.values()
                names |= {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
                if all(p.kind is not p.VAR_KEYWORD for p in parameters):
                    break
        return sorted(names - {"self"})

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        init_model: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_X: Any = None,
        eval_y: Any = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_sample_weight: Sequence[ArrayLike | None] | None = None,
        sample_weight_eval_set: Sequence[ArrayLike | None] | None = None,
        eval_labels: Sequence[Mapping[str, ArrayLike] | None] | None = None,
        early_stopping_rounds: int | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : array, DataFrame or sparse matrix of shape (rows, features)
            NumPy, pandas, polars, pyarrow or SciPy; rows of one query stand together. NaN is a missing value. pandas
            columns of dtype category are categorical features. A column ``qid`` of a table holds the query ids.
        y : array of shape (rows,)
            Labels; finite, higher is more relevant.
        group : array of shape (queries,), optional
            Number of rows of each query. Give this or ``qid``.
        qid : array of shape (rows,), optional
            Query id of each row.
        sample_weight : array of shape (queries,) or (rows,), optional
            Weights by query or by row, not negative. They multiply gradients and Hessians. Metrics weigh a query by the
            mean weight of its rows.
        propensity : array of shape (rows,), optional
            For labels that are clicks: the probability that each document was examined. Only our pairwise objectives
            take it. See :meth:`ltr_objectives.Objective.gradient_hessian`.
        position : array of shape (rows,), optional
            For labels that are clicks of unknown propensity: where each document was shown. Only our pairwise
            objectives take it.
        labels : mapping of goals to arrays of shape (rows,), optional
            For an objective or metrics that read several labels, such as ``"ndcg@10[revenue]"``:
            ``{"revenue": array}``.
        init_model : model of the library or fitted ranker, optional
            Go on from what this model predicts. Its rounds come first in the new model; it is not changed itself.
            Categorical features must have the same categories.
        eval_set : list of (X, y), optional
            Data sets to evaluate each round on.
        eval_X, eval_y : table and labels, or a tuple of each, optional
            LightGBM's form of ``eval_set``.
        eval_group : list, optional
            ``group`` of each pair in ``eval_set``. Give this or ``eval_qid``.
        eval_qid : list, optional
            ``qid`` of each pair in ``eval_set``.
        eval_sample_weight : list, optional
            ``sample_weight`` of each pair in ``eval_set``. ``sample_weight_eval_set`` is XGBoost's name of it.
        eval_labels : list of mappings, optional
            ``labels`` of each pair in ``eval_set``, for metrics that read them.
        early_stopping_rounds : int, optional
            Stop when the first metric has not improved on the last pair of ``eval_set`` for this many rounds, and keep
            the rounds up to the best. Without it all rounds are kept. May also be given to the constructor.
        callbacks : list, optional
            The library's own.
        verbose : bool or int
            Print the metrics: True after every round, a number once in that many rounds.

        Returns
        -------
        self
            With ``booster_``, the library's model alone; ``objective_``, what was trained; ``evals_result_``, such as
            ``{"validation_0": {"map": [...]}}``, one value a round; ``best_score_``, such as
            ``{"validation_0": {"map": ...}}``, at the last round kept. With ``objective="auto"`` also ``report_``: what
            was tried, the metric of each, and its difference from the chosen one.
        """
        if eval_X is not None or eval_y is not None:
            require(eval_set is None, "eval_set and eval_X are two forms of one argument; pass one of them")
            tables, targets = (each if isinstance(each, tuple) else (each,) for each in (eval_X, eval_y))
            eval_set = list(zip(tables, targets, strict=True))
        train = read_part(X, y, group, qid, sample_weight, labels, propensity=propensity, position=position)
        lists = {
            "eval_group": eval_group,
            "eval_qid": eval_qid,
            "eval_sample_weight": eval_sample_weight,
            "sample_weight_eval_set": sample_weight_eval_set,
            "eval_labels": eval_labels,
        }
        evals = read_eval_sets(eval_set, lists)
        return self._fit_parts(train, evals, init_model, early_stopping_rounds, callbacks, verbose)

    def _fit_parts(
        self,
        train: Part,
        evals: tuple[Part, ...],
        init_model: Any = None,
        early_stopping_rounds: int | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
    ) -> Self:
        """Train on data that was read."""
        given = self._given()
        if early_stopping_rounds is not None:
            given["early_stopping_rounds"] = early_stopping_rounds
        refuse_twice(self.library, given)
        patience = given.get("early_stopping_rounds")
        params = {name: read_param(name, value) for name, value in given.items() if name not in OURS}
        of_the_data = {name: params.pop(name) for name in self.library.of_the_data if name in params}
        objective, auto = self._read_objective(given), given.get("objective") == AUTO
        plan = Plan(
            train=train._replace(X=named(train.X)),
            evals=tuple(part._replace(X=named(part.X)) for part in evals),
            params=params,
            of_the_data=of_the_data,
            objective=in_documents(objective),
            metrics=self._read_metrics(given, objective),
            early_stopping_rounds=None if patience is None else check_integer("early_stopping_rounds", patience),
            callbacks=[
                *check_list("callbacks", given.get("callbacks"), "callables"),
                *check_list("callbacks", callbacks, "callables"),
            ],
            verbose=verbose,
            n_threads=self._n_threads(given),
            init_model=None if init_model is None else self._start(init_model, train.X),
        )
        check_plan(plan, self.library)
        for i, part in enumerate(() if auto else plan.evals):  # "auto" refuses such eval sets
            warn_of_equal_orders(plan.own_metrics, part.queries, f"eval_set[{i}]", plan.n_threads)
        with _unchanged_by_errors(self):
            self.nameless_ = False
            check_features(self, train.X, reset=True)
            for i, part in enumerate(evals):
                try:
                    check_features(self, part.X)
                except ValueError as error:
                    raise type(error)(f"eval_set[{i}]: {error}") from None
            vars(self).pop("report_", None)  # of another training
            if auto:
                objective, self.evals_result_, self.report_ = train_best(self, plan)
            else:
                self.booster_, self.evals_result_ = self._train_known(plan)
            self.objective_ = objective
            before = 0 if plan.init_model is None else self._rounds(plan.init_model)
            of_model = plan._replace(objective=in_documents(objective))  # by "auto" another one
            if few := self._few_splits(of_model, self.best_iteration_ - before):
                warnings.warn(few, LTRWarning, stacklevel=3)  # at the call of fit or bagged
            each = params.get("metric_period", 1) == 1  # CatBoost's, which leaves rounds out of the records
            self.best_score_ = _at_round(self.best_iteration_ - before, self.evals_result_) if each else {}
            for i, part in enumerate(evals):
                self._warn_of_unknown(named(part.X), f"eval_set[{i}]")
        return self

    def _train_known(self, plan: Plan) -> tuple[Any, Records]:
        """Train as ``plan`` says; data without a column to split get our message."""
        try:
            return self._train_plan(plan)
        except self.library.exception() as error:
            counted = " or too few rows for min_child_samples= and min_data_in_bin=; set these to 1, or see the data"
            require(
                not re.search(r"num_features\(\)\) > \(0\)|All features are either constant", str(error)),
                f"{self.library.name} finds no column to split: each has one value in all rows"
                + (f",{counted}" if self.library.name == "lightgbm" else "; see the data"),
            )
            raise

    def _few_splits(self, plan: Plan, kept: int) -> str:
        """The warning if no round has a split, unless the training has warned that all gradients are zero."""
        before = 0.0 if plan.init_model is None else self._splits(plan.init_model)
        if 0 in (plan.params.get(name) for name in ROUNDS) or self._splits(self.booster_) != before:
            return ""
        if plan.params.get("process_type") == "update":  # XGBoost's, which grows no trees
            return ""
        queries, own = plan.train.queries, plan.objective
        clicks = queries.propensity is not None or queries.position is not None  # of which it does not warn
        if isinstance(own, Objective) and not clicks:
            start = np.full(queries.rows, plan.start)
            grad, _ = own.compute(queries, start, n_threads=plan.n_threads)
            if not grad.any() and 2 * useless(own, queries, start, grad, plan.n_threads).sum() > len(queries):
                return ""
        why, limits = (
            "no column orders the rows of a query, or other parameters forbid every split",
            self.library.limits,
        )
        for freed in (*([name] for name in limits), [*limits]):  # tried in one round
            names = {each for name in (*freed, *ROUNDS, *OF_THE_END) for each in self.library.names(name)}
            params = {name: value for name, value in plan.params.items() if name not in names}
            params |= {name: limits[name] for name in freed} | {"n_estimators": 1}
            one = plan._replace(params=params, evals=(), early_stopping_rounds=None, callbacks=[], verbose=False)
            with warnings.catch_warnings(), contextlib.suppress(LTRError, self.library.exception()):
                warnings.simplefilter("ignore")
                if self._splits(self._train_plan(one)[0]) > before:
                    given = (f"{n}={v}" for name in freed for n, v in self.library.given(name, plan.params).items())
                    what = " and ".join(given) or f"the default of {' or '.join(freed)}"
                    why = f"{what} forbids every split; {', '.join(f'{n}={limits[n]}' for n in freed)} does not"
                    break
        stopped = f" that early_stopping_rounds={plan.early_stopping_rounds} kept" if plan.early_stopping_rounds else ""
        return f"0 of {kept} rounds{stopped} have a split: {why}"

    def predict(self, X: Any, **options: Any) -> np.ndarray:
        """Scores, of shape (rows,); higher ranks first. After early stopping, those of the best round.

        ``options`` are the further arguments of the library's own ``predict``, by name.
        """
        check_is_fitted(self)
        table, _ = read_table(X)
        check_features(self, table)
        table = named(table)
        self._warn_of_unknown(table, "X")
        return cast(np.ndarray, self._scores(table, **options))

    def score(
        self,
        X: Any,
        y: ArrayLike,
        *,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
    ) -> float:
        """Mean over queries of the first ``eval_metric``, under the ranker's ``convention``; higher is better.

        Without ``eval_metric`` it is NDCG@10, whatever the objective, so that scores of several objectives compare. If
        the first is the library's own, it is NDCG@10 too, with a warning. ``labels`` are those of the metric's goal.
        """
        given = self._given()
        first = next(iter(self._read_metrics(given, None)), None)
        if isinstance(first, str):
            warn(
                f"score is the mean {DEFAULT}, because eval_metric={first!r} is the library's own; to score by one of "
                "ours, such as 'map', name it first"
            )
        metric = first if isinstance(first, Metric) else get_metric(DEFAULT, given.get("convention"))
        part = read_part(X, y, group, qid, sample_weight, labels)
        warn_if_all_relevant([metric], part.queries, "y", self._n_threads(given))
        return metric.mean(part.queries, self.predict(X), n_threads=self._n_threads(given))

    @property
    def booster_(self) -> Any:
        """The library's model alone, which needs nothing of this package."""
        check_is_fitted(self)
        return self._Booster

    @booster_.setter
    def booster_(self, model: Any) -> None:
        self._adopt(model)

    @property
    def best_iteration_(self) -> int:
        """Number of rounds that ``predict`` uses: what to set as ``n_estimators`` to train on more data."""
        return self._rounds(self.booster_)

    def save_model(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the trees in the library's own format, which it reads without this package.

        An existing file is replaced only after the new one was written and read back. ``options`` are those of the
        library's ``save_model``; a file of another format is not read back.
        """
        require(isinstance(path, str | os.PathLike), f"path must be the name of a file, got {path!r}")
        model = self.booster_
        with replacing(path) as new:
            model.save_model(os.fspath(new), **options)
            if new.is_file() and "format" not in options:
                try:  # on a full disk XGBoost and CatBoost lose the end of the file without a word
                    self._load(os.fspath(new))
                except Exception as error:
                    raise OSError(
                        f"{os.fspath(path)} could not be written whole, perhaps the disk is full; nothing has changed"
                    ) from error

    def load_model(self, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save_model` or the library wrote; parameters are not part of it. Returns ``self``."""
        require(isinstance(path, str | os.PathLike), f"path must be the name of a file, got {path!r}")
        loaded = self._load(os.fspath(path))
        self.booster_, self.categories_ = loaded, {}
        for name, attribute in vars(Ranker).items():  # of another training
            if isinstance(attribute, FromFit):
                vars(self).pop(name, None)
        self.n_features_in_, names = self._features()
        self.nameless_ = names is None  # then any names are accepted
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    def _get_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6, as the next one
        return cast(dict[str, Any], BaseEstimator._get_tags(self))

    def _more_tags(self) -> dict[str, Any]:
        return {"allow_nan": True, "requires_y": True}

    def _given(self) -> dict[str, Any]:
        """The parameters that were set, without those that a subclass adds for itself."""
        ours = next(each for each in type(self).__mro__ if "library" in vars(each))
        added = {*self._get_param_names()} - {*cast("type[Ranker]", ours)._get_param_names()}
        return {name: v for name, v in self._set().items() if name not in added or self._knows_parameter(name)}

    def _set(self) -> dict[str, Any]:
        """The parameters that were set: not None, and not as the library's constructor sets them."""
        given = {name: value for name, value in self.get_params(deep=False).items() if value is not None}
        return {name: value for name, value in given.items() if not _same(value, self._defaults.get(name))}

    def _knows_metric(self, name: str) -> bool:
        """True for a text of the form of the library's metrics, which refuses what is none of its names."""
        return bool(re.fullmatch(self.library.metrics, name))

    def _n_threads(self, given: Mapping[str, Any]) -> int | None:
        return self.library.n_threads(given)

    def _read_objective(self, given: Mapping[str, Any]) -> Objective | str:
        """The objective to train: as given, or what suits the first metric."""
        objective = given.get("objective")
        if objective not in (None, AUTO):
            return own_or_native(objective, self.library)
        first = next(iter(read_metrics(given.get("eval_metric"), "", self._knows_metric)), None)
        if isinstance(first, str) and objective is None:
            warn(f"eval_metric={first!r} is {self.library.name}'s own, so this trains for {DEFAULT}; to train for a "
                 "metric name ours first, such as 'map', or pass objective=")  # fmt: skip
        return objective_for(first if isinstance(first, Metric) else DEFAULT)

    def _read_metrics(self, given: Mapping[str, Any], objective: Objective | str | None) -> tuple[Metric | str, ...]:
        """The metrics of a training for ``objective``, or to score by if that is None."""
        by_default = DEFAULT if objective is None or given.get("objective") in (None, AUTO) else None
        metrics: EvalMetric = given.get("eval_metric", by_default)
        return read_metrics(metrics, objective or "", self._knows_metric, given.get("convention"))

    def _start(self, init_model: Any, X: Any) -> Any:
        """The library's model that training continues from; ``X`` is the training table."""
        if isinstance(init_model, type(self)):
            return init_model.booster_
        name = type(self).__name__
        require(
            isinstance(init_model, getattr(self.library.load(), self.library.model)),
            f"init_model must be a {self.library.name}.{self.library.model} or a fitted {name}, got {init_model!r}; "
            f"read a file by {name}().load_model(file)",
        )
        return init_model

    def _adopt(self, model: Any) -> None:
        self._Booster = model

    def _warn_of_unknown(self, X: Any, name: str) -> None:
        for column in self._unknown(X):
            warn(
                f"{name}: the training had no value of the categorical column {column!r}, so all of them count as "
                "unknown; give the values the type of the training, such as text instead of numbers"
            )

    def _unknown(self, X: Any) -> list[str]:
        """The categorical columns that have values, none of which the training had."""
        known = zip(categories(X), self._known(), strict=False)  # of other numbers the library complains
        return [c for c, values in known if X[c].notna().any() and X[c].cat.set_categories(values).isna().all()]


@contextmanager
def _unchanged_by_errors(ranker: Ranker) -> Iterator[None]:
    """Give the ranker its attributes back if the block raises."""
    before = dict(vars(ranker))
    try:
        yield
    except BaseException:
        vars(ranker).clear()
        vars(ranker).update(before)
        raise


def _same(value: Any, default: Any) -> bool:
    """True for equal values of one type, and for two NaN, of which a pickle makes another object."""
    if value is default or type(value) is not type(default):
        return value is default
    return bool(value == default or (value != value and default != default))


def _at_round(n: int, records: Records) -> dict[str, dict[str, float]]:
    return {name: {m: v[n - 1] for m, v in values.items() if 0 < n <= len(v)} for name, values in records.items()}
