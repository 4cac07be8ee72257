"""What the three rankers share: scikit-learn's conventions, queries, validation, metrics."""

from __future__ import annotations

import abc
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from typing_extensions import Self

    from ltr_objectives.workbench.auto import Decision

    def check_is_fitted(estimator: object, attributes: str) -> None: ...

    class BaseEstimator:
        """What we use of scikit-learn's class. The class itself is untyped: mypy would accept any attribute."""

        def __sklearn_tags__(self) -> Any: ...
        def set_fit_request(self, **routed: bool | str | None) -> Self: ...
        def set_score_request(self, **routed: bool | str | None) -> Self: ...

else:
    try:
        from sklearn.base import BaseEstimator
        from sklearn.utils.validation import check_is_fitted
    except ModuleNotFoundError:
        raise ImportError(
            "the rankers need scikit-learn: pip install ltr-objectives[xgboost] (or [lightgbm], [catboost])"
        ) from None

from ltr_objectives._files import replacing
from ltr_objectives.adapters._auto import AUTO, choose
from ltr_objectives.adapters._libraries import Library
from ltr_objectives.adapters._model_files import require_sound
from ltr_objectives.adapters._parameters import refuse_twice, with_gain
from ltr_objectives.adapters._ranker_inputs import (
    check_features,
    named,
    read_eval_sets,
    read_goals,
    read_part,
    read_table,
)
from ltr_objectives.adapters._ranker_plan import (
    EvalMetric,
    Plan,
    check_plan,
    in_documents,
    own_or_native,
    read_metrics,
    read_param,
    refuse_others,
)
from ltr_objectives.checks import check_integer, check_list
from ltr_objectives.errors import require, warn
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.base import Objective
from ltr_objectives.registry import get_metric, objective_for

OF_FIT = ("init_model", "xgb_model")
DEFAULT = "ndcg@10"  # what is trained if neither objective nor metric is named, and scored if no metric is
# parameters of our rankers that the libraries do not get under these names
OURS = {"objective", "eval_metric", "convention", "early_stopping_rounds", "callbacks", "importance_type"}
OF_TRAINING = (
    "objective_", "evals_result_", "best_score_", "report_", "categories_", "feature_names_in_", "label_columns_",
)  # fmt: skip
Records = dict[str, dict[str, list[float]]]


class Ranker(BaseEstimator, abc.ABC):
    """What the three rankers share; see each for what differs."""

    library: ClassVar[Library]
    _estimator_type = "ranker"

    booster_: Any
    objective_: Objective | str
    evals_result_: Records
    best_score_: dict[str, dict[str, float]]
    report_: Decision
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        *,
        objective: str | Objective | None = None,
        eval_metric: EvalMetric = None,
        convention: str | None = None,
        **params: Any,
    ) -> None:
        """Store the parameters; :meth:`fit` checks them.

        Parameters
        ----------
        objective : str or Objective, optional
            Ours, such as ``"yetiloss:map"``, or the library's own. By default what :func:`ltr_objectives.objective_for`
            names for the first metric, or ``"yetiloss:ndcg@10"`` where that is the library's own or none is given.
            ``"auto"`` trains several, ours and the library's own, and keeps the model with the largest first metric on
            the last pair of ``eval_set``.
        eval_metric : str, Metric or list, optional
            Ours, such as ``"map"``, or a name that only the library knows. By default the metric that our objective
            optimises, or ``"ndcg"``; with the library's own objective, what the library evaluates by default.
        convention : str, optional
            "lightgbm", "xgboost", "catboost", "sklearn", "trec_eval" or "scipy": how that library defines our metrics,
            in ``evals_result_`` and ``score``.
        **params
            As of the library's own ranker. Names that it does not know are refused.
        """
        self.library.load()
        self.objective = objective
        self.eval_metric = eval_metric
        if convention is not None:  # else cloning would pass it to derived classes whose constructor does not take it
            self.convention = convention
        self.set_params(**params)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name: ``objective``, ``eval_metric``, and whatever else was given."""
        return {name: value for name, value in vars(self).items() if _is_parameter(name)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Every name is taken here; :meth:`fit` refuses those that the library does not know."""
        for name, value in params.items():
            free = _is_parameter(name) and not hasattr(type(self), name)
            require(free, f"{name} is not a parameter, but what a ranker has or does; leave it out")
            better = next((ours for its, ours in self.library.renamed.items() if name in self.library.names(its)), name)
            require(name not in OF_FIT, f"{name}= is not a parameter; call fit(..., init_model=) to go on from a model")
            require(better == name, f"{name}= is called {better}= in this {type(self).__name__}")
            setattr(self, name, value)
        return self

    def fit(
        self,
        X: Any,
        y: ArrayLike = None,  # type: ignore[assignment]  # needed: read_part says so better than Python
        *more: NoReturn,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | Sequence[str] | None = None,
        init_model: Any = None,
        eval_set: Sequence[tuple[Any, Any]] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[ArrayLike] | None = None,
        eval_sample_weight: Sequence[ArrayLike | None] | None = None,
        sample_weight_eval_set: Sequence[ArrayLike | None] | None = None,
        eval_labels: Sequence[Mapping[str, ArrayLike] | None] | None = None,
        early_stopping_rounds: int | None = None,
        callbacks: Sequence[Any] | None = None,
        verbose: bool | int = False,
        **others: NoReturn,  # so that type checkers refuse them
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
        propensity, position : array of shape (rows,), optional
            For labels that are clicks: how likely each document was examined, or where it was shown. Only our pairwise
            objectives take one. See :meth:`ltr_objectives.Objective.gradient_hessian`.
        labels : mapping of goals to arrays of shape (rows,), or names of columns, optional
            For an objective or metrics that read several labels, such as ``"ndcg@10[revenue]"``:
            ``{"revenue": array}``, or ``["revenue"]`` where that is a column of the table ``X``. Such columns are not
            features, here, in ``eval_set``, in ``predict`` and in ``score``.
        init_model : file name, model of the library or fitted ranker, optional
            Go on from what this model predicts. Its rounds come first in the new model; it is not changed itself.
            Categorical features must have the same categories.
        eval_set : list of (X, y), optional
            Data sets to evaluate each round on.
        eval_group, eval_qid, eval_sample_weight : lists, optional
            ``group``, ``qid`` and ``sample_weight`` of each pair in ``eval_set``; one of the first two is needed.
            ``sample_weight_eval_set``, XGBoost's name, is another name of the last.
        eval_labels : list of mappings, optional
            ``labels`` of each pair in ``eval_set``, for metrics that read them, unless they are columns of the tables.
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
            With ``booster_``, the library's model; ``objective_``, what was trained; ``evals_result_``, such as
            ``{"validation_0": {"map": [...]}}``, one value a round; ``best_score_``, such as
            ``{"validation_0": {"map": ...}}``, at the last round kept. With ``objective="auto"`` also ``report_``: what
            was tried, the metric of each, and its difference from the chosen one.

        Raises
        ------
        LTRError
            Before training, for anything that cannot be right.
        """
        refuse_others(more, others, type(self).__name__)
        given = {name: value for name, value in self.get_params().items() if value is not None}
        params = {name: read_param(name, value) for name, value in given.items() if name not in OURS}
        of_the_data = {name: params.pop(name) for name in self.library.of_the_data if name in params}
        patience = given.get("early_stopping_rounds") if early_stopping_rounds is None else early_stopping_rounds
        refuse_twice(self.library, given if patience is None else {**given, "early_stopping_rounds": patience})
        objective = with_gain(self.library, params, self._objective())
        by_goal, columns = read_goals(labels)
        train = read_part(X, y, group, qid, sample_weight, by_goal, columns, propensity=propensity, position=position)
        weights = eval_sample_weight, sample_weight_eval_set
        plan = Plan(
            train=train,
            evals=read_eval_sets(eval_set, eval_group, eval_qid, *weights, eval_labels, columns),
            params=params,
            of_the_data=of_the_data,
            objective=in_documents(objective),
            metrics=self._metrics(objective),
            early_stopping_rounds=None if patience is None else check_integer("early_stopping_rounds", patience),
            callbacks=[
                *check_list("callbacks", given.get("callbacks"), "callables"),
                *check_list("callbacks", callbacks, "callables"),
            ],
            verbose=verbose,
            n_threads=self._n_threads(),
            init_model=None if init_model is None else self._start(init_model, train.X),
        )
        check_plan(plan, self.library)
        self.nameless_ = False
        check_features(self, train.X, reset=True)
        for part in plan.evals:
            check_features(self, part.X)
        train, *evals = (part._replace(X=named(part.X)) for part in (plan.train, *plan.evals))
        plan = plan._replace(train=train, evals=tuple(evals))
        vars(self).pop("report_", None)  # of another training
        if self.objective == AUTO:
            objective, self.evals_result_, self.report_ = choose(self, plan)
        else:
            self.booster_, self.evals_result_ = self._train(plan)
        self.objective_, self.label_columns_ = objective, columns
        before = 0 if plan.init_model is None else self._rounds(plan.init_model)
        each = params.get("metric_period", 1) == 1  # CatBoost's, which leaves rounds out of the records
        self.best_score_ = _at_round(self._rounds(self.booster_) - before, self.evals_result_) if each else {}
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Scores, of shape (rows,); higher ranks first. After early stopping, those of the best round."""
        check_is_fitted(self, "booster_")
        table = read_table(X, getattr(self, "label_columns_", ())).X
        check_features(self, table, nameless=self.nameless_)
        return np.asarray(self._predict(named(table)))

    def score(
        self,
        X: Any,
        y: ArrayLike = None,  # type: ignore[assignment]  # needed: read_part says so better than Python
        *more: NoReturn,
        group: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
    ) -> float:
        """Mean over queries of the first ``eval_metric``, under the ranker's ``convention``; higher is better.

        Without ``eval_metric`` it is NDCG@10, whatever the objective, so that scores of several objectives compare. If
        the first is the library's own, it is NDCG@10 too, with a warning. ``labels`` are those of the metric's goal,
        unless :meth:`fit` was given their column.
        """
        refuse_others(more, (), type(self).__name__)
        first = next(iter(self._metrics(None)), None)
        if isinstance(first, str):
            warn(
                f"score is the mean {DEFAULT}, because eval_metric={first!r} is the library's own; to score by one of "
                "ours, such as 'map', name it first"
            )
        metric = first if isinstance(first, Metric) else get_metric(DEFAULT, self.get_params().get("convention"))
        part = read_part(X, y, group, qid, sample_weight, labels, getattr(self, "label_columns_", ()))
        return metric.mean(part.queries, self.predict(X), n_threads=self._n_threads())

    @property
    def best_iteration_(self) -> int:
        """Number of rounds that ``predict`` uses: what to set as ``n_estimators`` to train on more data."""
        check_is_fitted(self, "booster_")
        return self._rounds(self.booster_)

    @property
    def feature_importances_(self) -> np.ndarray:
        """One number a feature, of the kind that the library's ranker reports unless ``importance_type`` is given."""
        check_is_fitted(self, "booster_")
        return np.asarray(self._importances(getattr(self, "importance_type", None)))

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the trees in the library's own format, which it reads without this package.

        An existing file is replaced only after the new one was written and read back.
        """
        check_is_fitted(self, "booster_")
        require(isinstance(path, str | os.PathLike), f"path must be the name of a file, got {path!r}")
        with replacing(path) as new:
            self.booster_.save_model(os.fspath(new))
            if new.is_file():
                try:  # on a full disk XGBoost and CatBoost lose the end of the file without a word
                    self._load(os.fspath(new))
                except Exception as error:
                    raise OSError(
                        f"{os.fspath(path)} could not be written whole, perhaps the disk is full; nothing has changed"
                    ) from error

    def load_model(self, path: str | os.PathLike[str]) -> Self:
        """Read what :meth:`save_model` or the library wrote; parameters are not part of it. Returns ``self``.

        Another process reads the file first, which takes one to three seconds, because the libraries end the process
        on many damaged files.
        """
        require(isinstance(path, str | os.PathLike), f"path must be the name of a file, got {path!r}")
        self.booster_ = self._load(require_sound(self.library.name, os.fspath(path)))
        for name in OF_TRAINING:  # of another one
            vars(self).pop(name, None)
        self.n_features_in_, names = self._features()
        self.nameless_ = names is None  # then any names are accepted
        if names is not None:
            self.feature_names_in_ = np.array(names, object)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6
        return {"allow_nan": True, "requires_y": True}

    def _n_threads(self) -> int | None:
        return self.library.threads(self.get_params())

    def _objective(self) -> Objective | str:
        """What to train: the objective as given, or what suits the first metric."""
        if self.objective not in (None, AUTO):
            return own_or_native(self.objective, self.library)
        first = next(iter(read_metrics(self.eval_metric, "", self._knows_metric)), None)
        if isinstance(first, str) and self.objective is None:
            warn(f"eval_metric={first!r} is {self.library.name}'s own, so this trains for {DEFAULT}; to train for a "
                 "metric name ours first, such as 'map', or pass objective=")  # fmt: skip
        return objective_for(first if isinstance(first, Metric) else DEFAULT)

    def _metrics(self, objective: Objective | str | None) -> tuple[Metric | str, ...]:
        """The metrics of a training for ``objective``, or to score by if that is None."""
        by_default = DEFAULT if objective is None or self.objective in (None, AUTO) else None
        given = by_default if self.eval_metric is None else self.eval_metric
        return read_metrics(given, objective or "", self._knows_metric, self.get_params().get("convention"))

    def _start(self, init_model: Any, X: Any) -> Any:
        """The library's model that training continues from; ``X`` is the training table."""
        if isinstance(init_model, str | os.PathLike):
            return self._load(require_sound(self.library.name, os.fspath(init_model)))
        if isinstance(init_model, type(self)):
            check_is_fitted(init_model, "booster_")
            return init_model.booster_
        name = type(self).__name__
        require(
            isinstance(init_model, getattr(self.library.load(), self.library.model)),
            f"init_model must be a file name, a {self.library.name}.{self.library.model} or a fitted {name}, "
            f"got {init_model!r}",
        )
        return init_model

    @abc.abstractmethod
    def _knows_metric(self, name: str) -> bool:
        """Whether the library has a metric of that name, as its documentation writes it."""

    @abc.abstractmethod
    def _train(self, plan: Plan) -> tuple[Any, Records]:
        """The library's trained model, and the values of the metrics on each eval set."""

    @abc.abstractmethod
    def _predict(self, X: Any) -> Any: ...

    @abc.abstractmethod
    def _rounds(self, model: Any) -> int:
        """Number of rounds that the library's model predicts with."""

    @abc.abstractmethod
    def _importances(self, kind: str | None) -> Any: ...

    @abc.abstractmethod
    def _load(self, path: str) -> Any: ...

    @abc.abstractmethod
    def _features(self) -> tuple[int, list[str] | None]:
        """Number of features, and their names if the model has them."""


def _at_round(n: int, records: Records) -> dict[str, dict[str, float]]:
    return {name: {m: v[n - 1] for m, v in values.items() if 0 < n <= len(v)} for name, values in records.items()}


def _is_parameter(name: str) -> bool:
    return not name.startswith("_") and not name.endswith("_")  # attributes set by fit end with _
