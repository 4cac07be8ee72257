"""The mixin of the three estimators: queries, our objectives and metrics, for a ranker of a library."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._auto import Candidate, train_best
from ltr_objectives.adapters._bounds import Kept, warn_if_missed
from ltr_objectives.adapters._data import (
    BaseEstimator,
    Named,
    check_is_fitted,
    clone,
    either,
    read_part,
    read_parts,
    read_table,
    validate_data,
)
from ltr_objectives.adapters._names import (
    AUTO,
    DEFAULT,
    AnyObjective,
    Array,
    Arrays,
    Goals,
    our_names,
    read_metrics,
    usual_metric,
)
from ltr_objectives.adapters._position_offsets import corrected
from ltr_objectives.adapters._run import Records, Run, Trained, read_run
from ltr_objectives.adapters._tables import (
    Part,
    as_categories,
    categorical,
    counts_columns,
    is_pool,
    layout_of,
    named,
    names_of,
    orders_rows,
    require_same_columns,
    warn_of_unknown,
)
from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.equal_orders import warn_if_all_relevant, warn_of_equal_orders
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.bounded import Bounded
from ltr_objectives.position_bias import PositionOffsets

OF_FIT = ("init_model", "callbacks", "verbose", "eval_names")  # arguments of fit that are no parameters of a library


class Fitted(NamedTuple):
    """The result of the last `fit` or `load_model`, beside the library's model."""

    n_features_in_: int
    feature_names_in_: np.ndarray | None
    objective_: AnyObjective | None = None
    evals_result_: Records | None = None
    best_score_: dict[str, dict[str, float]] | None = None
    report_: list[Candidate] | None = None
    bounds_: dict[str, float] | None = None
    multipliers_: dict[str, list[float]] | None = None
    position_offsets_: PositionOffsets | None = None
    columns: list[str] | None = None  # the names of all columns as text; None for arrays
    categorical: list[int] | None = None  # the numbers of the categorical columns; None if they are not known
    layout: list[Any] | None = None  # as in `layout_of`
    chained: bool = True  # each tree was trained at the scores of those before it
    scored_by: str = DEFAULT  # without eval_metric
    metric_of_fit: str = ""  # our metric that was the first eval_metric of `fit`


def of_fit(name: str) -> Any:
    """Make the property that reads a field of `Fitted`; the library's own of this name is hidden."""

    def read(ranker: Any) -> Any:
        value = getattr(vars(ranker).get("_fitted"), name, None)
        if value is None:
            only = {"feature_names_in_": " if X has names", "report_": " if objective='auto'"}
            only |= dict.fromkeys(("bounds_", "multipliers_"), " if it has bounds")
            only |= {"position_offsets_": " if it has position="}
            raise AttributeError(f"this {type(ranker).__name__} has no {name}; fit sets it{only.get(name, '')}")
        return value

    return property(read)


class Ranker:
    """The methods that the three estimators share; each class has its library's methods too."""

    library: ClassVar[Library]
    _defaults: ClassVar[Mapping[str, Any]] = {}
    _margins: ClassVar[tuple[str, str]]  # the arguments of fit with initial scores, of training data and eval sets
    _aliases: ClassVar[Mapping[str, str]] = {}  # the library's names of arguments of fit, by ours
    _estimator_type = "ranker"

    _Booster: Any  # the library's model
    _fitted: Fitted

    objective_: AnyObjective = of_fit("objective_")
    evals_result_: Records = of_fit("evals_result_")
    best_score_: dict[str, dict[str, float]] = of_fit("best_score_")
    report_: list[Candidate] = of_fit("report_")
    bounds_: dict[str, float] = of_fit("bounds_")
    multipliers_: dict[str, list[float]] = of_fit("multipliers_")
    position_offsets_: PositionOffsets = of_fit("position_offsets_")
    n_features_in_: int = of_fit("n_features_in_")
    feature_names_in_: np.ndarray = of_fit("feature_names_in_")

    if TYPE_CHECKING:  # of the library's class; scikit-learn makes the other two when a class is derived

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_fit_request(self, **routed: bool | str | None) -> Self: ...
        def set_score_request(self, **routed: bool | str | None) -> Self: ...

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name. :meth:`fit` refuses those that the library does not know."""
        super().set_params(**params)  # type: ignore[misc]
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._set().items())})"

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        """Return the parameters of the constructors, up to the first that passes none on, for scikit-learn."""
        names: set[str] = set()
        for each in cls.__mro__:
            if "__init__" in vars(each):
                parameters = inspect.signature(vars(each)["__init__"]).parameters.values()
                names |= {p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
                if all(p.kind is not p.VAR_KEYWORD for p in parameters):
                    break
        return sorted(names - {"self"})

    def fit(
        self, X: Any, y: Array = None, *, group: Array = None, qid: Array = None, sample_weight: Array = None,
        propensity: Array = None, position: Array = None, labels: Goals | None = None, init_model: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None, eval_group: Arrays = None, eval_qid: Arrays = None,
        eval_sample_weight: Arrays = None, eval_labels: Sequence[Goals | None] | None = None,
        early_stopping_rounds: int | None = None, callbacks: Sequence[Any] | None = None, verbose: bool | int = False,
    ) -> Self:  # fmt: skip
        """Train. Each class has arguments of its library's own ``fit`` too.

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
            For labels that are clicks; as in :class:`ltr_objectives.Queries`. Only our pairwise objectives take it.
        position : array of shape (rows,), optional
            For labels that are clicks, instead of ``propensity``: where each document was shown, from 0 or 1.
            :func:`ltr_objectives.adapters.position_offsets` estimates an offset for each position, from which the
            training starts, with the library's own objectives too, but with none that fits documents without a click,
            such as QueryRMSE; ``predict`` adds none. If its advice is not to correct, there is a warning instead. The
            labels of goals must be of the same log, such as orders.
        labels : mapping of goals to arrays of shape (rows,), optional
            For an objective or metrics that read several labels, such as ``"dcg(gain_type=linear)@10[revenue]"``:
            ``{"revenue": array}``.
        init_model : model of the library or fitted ranker, optional
            Go on from what this model predicts. Its rounds come first in the new model; it is not changed itself.
            Categorical features must have the same categories.
        eval_set : list of (X, y), optional
            Data sets to evaluate each round on.
        eval_group, eval_qid, eval_sample_weight, eval_labels : list, optional
            ``group``, ``qid``, ``sample_weight`` and ``labels`` of each pair in ``eval_set``.
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
            ``{"validation_0": {"map": ...}}``, at the last round kept. With ``objective="auto"`` also ``report_``: a
            list of all candidates, the chosen one first, each with its metric and its difference from the chosen one.
            With ``bounds``, ``bounds_``, the value that each metric reached, and ``multipliers_``, the weights of their
            objectives beside the first, one a round. With ``position``, ``position_offsets_``, the estimate.

        Raises
        ------
        LTRError
            For arrays that do not fit the rows or queries, are not finite or in another order; for labels that the
            objective or a metric does not take; and for settings under which the library would train something else
            than they say, such as parameters that it ignores, early stopping without ``eval_set``, or with dart.
        """
        raise NotImplementedError

    def _fit_with(self, arguments: Mapping[str, Any]) -> Self:
        """Train with the arguments of the class's own ``fit`` by name, of which the library may have other names."""
        rest = {name: value for name, value in arguments.items() if name != "self"}

        def named(name: str) -> Named:
            names = dict.fromkeys((name, self._aliases.get(name, name)))
            return either(**{each: rest.pop(each, None) for each in names})

        def given(name: str) -> Any:
            return named(name)[1]

        margin, eval_margin = self._margins
        train = read_part(
            rest.pop("X"), rest.pop("y"), group=given("group"), qid=given("qid"), weight=given("sample_weight"),
            labels=given("labels"), margin=named(margin), propensity=given("propensity"), position=given("position"),
        )  # fmt: skip
        evals = read_parts(
            given("eval_set"), group=named("eval_group"), qid=named("eval_qid"), weight=named("eval_sample_weight"),
            labels=named("eval_labels"), margin=named(eval_margin),
        )  # fmt: skip
        return self._fit_parts(train, evals, init_model=given("init_model"), **rest)

    def _read_fit(self, X: Any, y: Any, **arguments: Any) -> tuple[Part, tuple[Part, ...], dict[str, Any]]:
        """Return the data, the eval sets and the parameters that ``fit`` reads, also that of a subclass."""
        found: list[tuple[Part, tuple[Part, ...], dict[str, Any]]] = []
        reader: Any = clone(self)
        reader._fit_parts = lambda train, evals, **params: found.append((train, evals, params))
        reader.fit(X, y, **arguments)
        return found[0]

    def _fit_parts(
        self, train: Part, evals: tuple[Part, ...], *, init_model: Any = None, callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False, eval_names: Sequence[str] | None = None, **params: Any,
    ) -> Self:  # fmt: skip
        """Train on data that was read, with ``params`` beside those of the constructor, unless they are None."""
        _check_parts(train, evals)
        given = self._asked(params)
        if train.had_ids:
            _refuse_counted(self.library, given, names_of(train.X) or ())
        start = None if init_model is None else self._start(init_model, train.X)
        given |= self._of_before(init_model, given)
        run = corrected(
            read_run(given, self.library, train, evals, start, callbacks, verbose, eval_names), self.library
        )
        if given.get("objective") == AUTO:
            trained, report = train_best(run, self.library, self._given())
        else:
            for i, part in enumerate(run.evals):
                try:
                    warn_of_equal_orders(run.own_metrics, part.queries, f"eval_set[{i}]", run.n_threads)
                except LTRError as error:
                    raise LTRError(f"eval_set[{i}]: {error}") from None
            trained, report = self.library.train(run), None
        rounds = self.library.rounds(trained.model) - (0 if start is None else self.library.rounds(start))
        if without := self._without_splits(trained.model, run, rounds):
            warn(without)
        for i, part in enumerate(trained.run.evals):
            warn_of_unknown(part.X, self.library.categories(trained.model, part.X), f"eval_set[{i}]")
        self._keep(trained, report, train.X, rounds)
        first = next((each for each in run.metrics if each is not run.chooser), None)
        if params.get("eval_metric") is not None and isinstance(first, Metric):
            self._fitted = self._fitted._replace(metric_of_fit=str(first))
        return self

    def _keep(self, trained: Trained, report: list[Candidate] | None, X: Any, rounds: int) -> None:
        """Keep the result of a training on ``X``; its model has so many new rounds."""
        run, model, columns = trained.run, trained.model, names_of(X)
        records, best = trained.records_at(rounds)
        if not self.library.has_every_round(run.params):
            best = {}
        elif run.verbose and run.patience and rounds in map(len, records.get(run.names[-1], {}).values()):
            print(f"the last of {rounds} rounds was the best; try more rounds")
        named_by_text = is_pool(X) or (columns is not None and isinstance(X.columns[0], str))
        names = np.array(columns, object) if columns is not None and named_by_text else None
        self._adopt(model)
        fitted = Fitted(
            X.shape[1], names, run.objective, records, best, report, columns=columns, categorical=categorical(X),
            layout=layout_of(X), position_offsets_=run.offsets,
        )  # fmt: skip
        if [*map(str, run.metrics[:1])] != [DEFAULT]:
            fitted = fitted._replace(scored_by=usual_metric((run.train, *run.evals)))
        self._fitted = fitted if run.chooser is None or rounds == 0 else of_bounds(fitted, run.chooser, rounds - 1)

    def _without_splits(self, model: Any, run: Run, rounds: int) -> str:
        """Return the warning if no round has a split."""
        before = 0.0 if run.init_model is None else self.library.splits(run.init_model)
        if not self.library.may_grow(run.params):
            return ""
        if self.library.splits(model) != before:
            alike = "no column orders the rows of a query, because each has one value there; add features of documents"
            return "" if orders_rows(run.train.X, run.train.queries.ptr) else alike
        given = [f"{n}={v}" for name in self.library.limits for n, v in self.library.given(name, run.params).items()]
        limits = ", ".join(given or self.library.limits)
        return (
            f"{f'0 of {rounds}' if rounds else 'no new'} rounds have a split: no column orders the rows of a query, or "
            f"a parameter forbids every split, such as {limits}"
        )

    def predict(self, X: Any, **options: Any) -> np.ndarray:
        """Return the scores, of shape (rows,); higher ranks first. After early stopping, those of the best round.

        The initial scores of the training are not part of them. The baseline of a ``catboost.Pool`` is.

        ``options`` are the further arguments of the library's own ``predict``, by name.
        """
        check_is_fitted(self)
        if is_pool(X):  # CatBoost checks its columns, and adds its baseline
            return self.library.predict(self._Booster, X, self._given(), **options)
        return self.library.predict(self._Booster, self._as_trained(X), self._given(), **options)

    def _as_trained(self, X: Any) -> Any:
        """Return the features ``X`` as the library's model reads them; raise unless they are those of the training."""
        if self._fitted.layout is not None and layout_of(X) == self._fitted.layout:
            return X
        table, _ = read_table(X)
        table = as_categories(table, self._fitted.categorical or ())
        self._check_columns(table)
        table = named(table)
        warn_of_unknown(table, self.library.categories(self._Booster, table), "X")
        return table

    def score(
        self, X: Any, y: ArrayLike | None = None, *, group: ArrayLike | None = None, qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None, labels: Mapping[str, ArrayLike] | None = None,
    ) -> float:  # fmt: skip
        """Return the mean of the first ``eval_metric`` under the ranker's ``convention``; higher is better.

        Without ``eval_metric`` it is NDCG@10, whatever the objective, so that scores of several objectives compare; or
        Spearman's correlation if labels of ``fit`` were below 0 or above 31. If the first is the library's own, it is
        that too, with a warning, as after another ``eval_metric`` in ``fit``. ``labels`` are those of its goal.

        ``score(pool)`` of a ``catboost.Pool`` has no ``y``, and adds the pool's baseline to the scores. With ``X`` and
        ``y`` there are no initial scores.
        """
        given = self._asked()
        convention, n_threads = given.get("convention"), self.library.n_threads(given)
        check_is_fitted(self)
        usual = self._fitted.scored_by
        metric, *_ = read_metrics(given.get("eval_metric", usual), self.library, convention)
        if not isinstance(metric, Metric):
            warn(
                f"score is the mean {usual}, because eval_metric={metric!r} is the library's own; to score by one of "
                "ours, such as 'map', name it first"
            )
            metric = get_metric(usual, convention)
        elif "eval_metric" not in given and self._fitted.metric_of_fit not in ("", str(metric)):
            warn(
                f"score is the mean {metric}, not {self._fitted.metric_of_fit}, the eval_metric= of fit; to score by "
                "that, give it as eval_metric= of the constructor"
            )
        part = read_part(X, y, group=group, qid=qid, weight=sample_weight, labels=labels)
        warn_if_all_relevant([metric], part.queries, "y", n_threads)
        return metric.mean(part.queries, self.predict(X), n_threads=n_threads)

    @property
    def booster_(self) -> Any:
        """The library's model alone, which needs nothing of this package."""
        check_is_fitted(self)
        return self._Booster

    @property
    def best_iteration_(self) -> int:
        """Number of rounds that ``predict`` uses: what to set as ``n_estimators`` to train on more data."""
        return self.library.rounds(self.booster_)

    def save_model(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the trees in the library's own format, which it reads without this package.

        ``options`` are those of the library's ``save_model``.
        """
        self.library.write(self.booster_, os.fspath(path), **options)

    def load_model(self, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save_model` or the library wrote; parameters are not part of it. Returns ``self``."""
        model = self.library.read(os.fspath(path))
        self._adopt(model)
        n, columns = self.library.features(model)
        numbered = columns is None or columns == [str(i) for i in range(n)]
        self._fitted = Fitted(n, None if numbered else np.array(columns, object), columns=columns)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = BaseEstimator.__sklearn_tags__(self)
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    def _given(self) -> dict[str, Any]:
        """Return the parameters that were set, without those that a subclass adds for itself."""
        ours = next(each for each in type(self).__mro__ if "library" in vars(each))
        added = {*self._get_param_names()} - {*cast("type[Ranker]", ours)._get_param_names()}
        return {name: v for name, v in self._set().items() if name not in added or self._knows_parameter(name)}

    def _asked(self, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the parameters that were set, and ``params`` that are not None in their place, by our names."""
        given = {name: v for name, v in (params or {}).items() if v is not None and name not in OF_FIT}
        return our_names(self.library, self._given() | given)

    def _knows_parameter(self, name: str) -> bool:
        """Return True for the name of a parameter of the library's ranker."""
        raise NotImplementedError

    def _set(self) -> dict[str, Any]:
        """Return the parameters that were set: not None, and not as the library's constructor sets them."""

        def is_default(name: str, value: Any) -> bool:  # also if both are NaN, of which a pickle makes another object
            default = self._defaults.get(name)
            equal = type(value) is type(default) and (value == default or (value != value and default != default))
            return value is default or bool(equal)

        return {name: v for name, v in self.get_params(deep=False).items() if v is not None and not is_default(name, v)}

    def _start(self, init_model: Any, X: Any) -> Any:
        """Return the library's model that training continues from; ``X`` is the training table."""
        name = type(self).__name__
        model = init_model.booster_ if isinstance(init_model, type(self)) else init_model
        require(
            isinstance(model, getattr(self.library.load(), self.library.model)),
            f"init_model must be a {self.library.name}.{self.library.model} or a fitted {name}, got {init_model!r}; "
            f"read a file by {name}().load_model(file)",
        )
        return self.library.start(model, X)

    def _of_before(self, ranker: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the objective with which a training goes on, if the same metric named it for the labels of before."""
        if not isinstance(ranker, type(self)) or ranker._fitted.objective_ is None:
            return {}
        before = ranker._asked()
        same = all(before.get(name) == given.get(name) for name in ("objective", "eval_metric", "convention", "bounds"))
        named = given.get("objective") is not None or given.get("bounds") is not None
        if named or not same:
            return {}
        return {"objective": ranker._fitted.objective_, "eval_metric": given.get("eval_metric", DEFAULT)}

    def _adopt(self, model: Any) -> None:
        self._Booster = model

    def _check_columns(self, X: Any) -> None:
        """Raise unless ``X`` has the columns of the training in their order, at which LightGBM would not look."""
        names, known = names_of(X), self._fitted.columns
        if names is None or names != known:  # scikit-learn compares their number, and names that are text
            by_text = names is not None and hasattr(self, "feature_names_in_")
            some = X.iloc[:1].set_axis(names, axis=1) if by_text else X
            validate_data(self, some, reset=False, skip_check_array=True)
        require(
            names is None or known is None or names == known,
            f"X has the columns {names}, but the training had {known}; give these, in this order",
        )


def of_bounds(fitted: Fitted, kept: Kept, at: int) -> Fitted:
    """Return the result with what the bounds did up to the round that is kept; warn if it misses one."""
    warn_if_missed(kept, at)
    multipliers = kept.multipliers
    return fitted._replace(
        objective_=cast(Bounded, fitted.objective_).at(multipliers.used[at]),
        bounds_=kept.by_metric(multipliers.values[at].tolist()),
        multipliers_=kept.by_metric(np.transpose(multipliers.used).tolist()),
    )


def _check_parts(train: Part, evals: Sequence[Part]) -> None:
    """Raise for data without any weight, and for eval sets with other columns than the training data."""
    for i, part in enumerate((train, *evals)):
        weight, where = part.queries.weight_by_row, f"eval_set[{i - 1}]: " if i else ""
        require(weight is None or weight.any(), f"{where}weight is zero everywhere; give some row a weight above 0")
    for i, part in enumerate(evals):
        require_same_columns(part.X, train.X, f"eval_set[{i}]")
        require(
            (part.margin is None) == (train.margin is None),
            f"eval_set[{i}] and the training data must both have initial scores, or none; they may be 0",
        )


def _refuse_counted(library: Library, given: Mapping[str, Any], columns: Collection[str]) -> None:
    """Raise for parameters that count the columns of ``X``, from which a column of query ids was taken."""
    for each in library.by_column:
        for name, value in library.given(each, given).items():
            message = f"{name}= counts columns, and X has a column 'qid'; name the columns, or pass qid= beside X"
            require(not counts_columns(value, columns), message)
