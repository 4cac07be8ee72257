"""One training of an estimator: its data, parameters, objective and metrics."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.adapters._bounds import ROUNDS as ALL_ROUNDS
from ltr_objectives.adapters._bounds import Kept, read_bounds
from ltr_objectives.adapters._callables import ObjectiveCallable, refuse_unread
from ltr_objectives.adapters._names import (
    AUTO,
    DEFAULT,
    OURS,
    AnyObjective,
    OneMetric,
    chosen_objective,
    optimised,
    read_metrics,
    read_objective,
    read_param,
)
from ltr_objectives.adapters._tables import Part, as_categories, categorical, named
from ltr_objectives.checks import check_list, is_number
from ltr_objectives.errors import require
from ltr_objectives.goals import check_read
from ltr_objectives.libraries import Library
from ltr_objectives.metrics.base import Metric
from ltr_objectives.objectives.around import UnitHessian, innermost
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.composite import initial_score, seeded
from ltr_objectives.position_bias import PositionOffsets
from ltr_objectives.queries import to_numpy

Records = dict[str, dict[str, list[float]]]  # as in `Trained`
DOCUMENTS = 20.0  # the L2 of leaf values for ours


class OfEstimator(ObjectiveCallable):
    """Our objective in one training of an estimator, which knows the queries."""

    answer: Callable[[Any], tuple[np.ndarray, np.ndarray]]  # LightGBM's deep copy of it leaves the queries out

    def __call__(self, scores: Any, *_: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.answer(scores)


class Run(NamedTuple):
    """One training."""

    train: Part
    evals: tuple[Part, ...]
    names: list[str]  # of the eval sets
    objective: AnyObjective
    metrics: tuple[OneMetric, ...]
    params: dict[str, Any]  # the library's, of the training
    of_the_data: dict[str, Any]  # the library's, of its data sets
    patience: int  # 0 if the training does not stop early
    callbacks: list[Any]
    verbose: bool | int
    n_threads: int | None
    seed: int
    init_model: Any  # the library's
    offsets: PositionOffsets | None = None

    @property
    def learner(self) -> Objective | None:
        """Our objective as it trains; None if it is not ours. Presets keep the Hessians of their library."""
        if not isinstance(self.objective, Objective):
            return None
        found = seeded(self.objective, self.seed)
        preset = getattr(innermost(found), "preset", None) is not None
        return found if preset or isinstance(found, UnitHessian) else UnitHessian(found)

    @property
    def own_metrics(self) -> tuple[Metric, ...]:
        """Our metrics."""
        return tuple(m for m in self.metrics if isinstance(m, Metric))

    @property
    def chooser(self) -> Kept | None:
        """The metric that chooses the best round if there are bounds."""
        first = next(iter(self.metrics), None)
        return first if isinstance(first, Kept) else None

    @property
    def native_metrics(self) -> list[str]:
        """The names of the library's metrics."""
        return [m for m in self.metrics if isinstance(m, str)]

    @property
    def functions(self) -> list[Any]:
        """The metrics that the library calls as they are."""
        return [m for m in self.metrics if not isinstance(m, str | Metric)]

    @property
    def start(self) -> float | None:
        """The score at which our objective starts; None if the training goes on from others, or if there is none."""
        off = is_off(self.params.get("boost_from_average"))  # LightGBM's and CatBoost's
        given = self.init_model is not None or self.train.margin is not None
        if off or given or not isinstance(self.objective, Objective):
            return None
        return initial_score(self.objective, self.train.queries)

    def starting_at(self, score: float | None) -> "Run":
        """Return the run with this initial score in all rows, and the offsets of positions, if there are any."""
        if not score and self.train.offset is None:
            return self

        def begun(part: Part) -> Part:
            margin = np.full(len(part.labels), score or 0.0) if part.margin is None else part.margin
            return part._replace(margin=margin if part.offset is None else margin + part.offset)

        return self._replace(train=begun(self.train), evals=tuple(map(begun, self.evals)))

    def gradients(
        self, library: Library, params: dict[str, Any], offset: np.ndarray | None = None
    ) -> OfEstimator | None:
        """Return our objective as the library calls it in a training with ``params``; None if it is not ours.

        The ``offset`` is added to the scores that the library gives.
        """
        if self.learner is None:
            return None
        made, queries = OfEstimator(self.learner, n_threads=self.n_threads), self.train.queries

        def answer(scores: Any) -> tuple[np.ndarray, np.ndarray]:
            return made.gradients(queries, scores if offset is None else scores + offset, params)

        made.of, made.answer = library.name, answer
        return made

    def metric_values(self, evals: Sequence[Any]) -> Callable[[Any, Any], list[tuple[str, float]]]:
        """Return our metrics on the library's data sets ``evals``. Weights may be by row, unlike those of a DMatrix."""
        known = [(data, part.queries) for data, part in zip(evals, self.evals, strict=True)]

        def values(scores: Any, data: Any) -> list[tuple[str, float]]:
            queries = next(queries for each, queries in known if each is data)
            s = to_numpy(scores, "scores").reshape(-1)
            return [(str(m), m.mean(queries, s, n_threads=self.n_threads)) for m in self.own_metrics]

        return values

    def with_l2(self, library: Library) -> dict[str, Any]:
        """Return the parameters, with an L2 of ``DOCUMENTS`` if Hessians are in documents and there is no other L2."""
        free = isinstance(self.learner, UnitHessian) and not library.given(library.l2, self.params)
        return {**self.params, library.l2: DOCUMENTS} if free else dict(self.params)

    def refuse_unread(self, library: Library) -> None:
        """Raise for what the training would not read: parameters, labels of goals, clicks, and patience."""
        queries, goals = self.train.queries, [goal for metric in self.own_metrics for goal in metric.goals]
        if isinstance(self.objective, Objective):
            refuse_unread(library, self.params)
            goals += self.objective.facts.goals
        else:
            require(queries.propensity is None, f"objective={self.objective!r} is not ours; leave propensity= out")
        for part in (self.train, *self.evals):
            check_read(part.queries.goals, goals, "the ranker")
        require(
            self.evals or not self.patience,
            "early_stopping_rounds needs an eval_set to look at; pass eval_set=[(X, y)] and eval_qid=",
        )


class Trained(NamedTuple):
    """The result of a training."""

    run: Run
    model: Any  # the library's
    records: Mapping[str, Mapping[str, Sequence[float]]]  # by eval set and metric, one value a round

    def records_at(self, rounds: int) -> tuple[Records, dict[str, dict[str, float]]]:
        """Return the records, and the values after so many rounds, without the metric that only chooses the round."""
        hidden = None if self.run.chooser is None else str(self.run.chooser)
        records = {n: {m: [*map(float, v)] for m, v in of.items() if m != hidden} for n, of in self.records.items()}
        best = {n: {m: v[rounds - 1] for m, v in of.items() if 0 < rounds <= len(v)} for n, of in records.items()}
        return records, best


def read_run(
    given: Mapping[str, Any], library: Library, train: Part, evals: tuple[Part, ...] = (), init_model: Any = None,
    callbacks: Sequence[Any] | None = None, verbose: bool | int = False, eval_names: Sequence[str] | None = None,
) -> Run:  # fmt: skip
    """Return the training that the parameters ``given`` and the arguments of ``fit`` ask for; raise if it is wrong."""
    chosen = None if given.get("objective") == AUTO else given.get("objective")
    objective = chosen_objective(given, library, train.queries) if chosen is None else read_objective(chosen, library)
    metrics = given.get("eval_metric", DEFAULT if chosen is None else optimised(objective, (train, *evals)))
    params = {name: read_param(value) for name, value in given.items() if name not in OURS}
    names = check_list("eval_names", eval_names, "names") or [f"validation_{i}" for i in range(len(evals))]
    require(
        len(set(names)) == len(evals) and "training" not in names,  # on which LightGBM would not stop early
        f"eval_names must have one name for each eval set ({len(evals)}), and none 'training', got {names}",
    )
    run = Run(
        train=train._replace(X=named(train.X)),
        evals=tuple(part._replace(X=named(as_categories(part.X, categorical(train.X)))) for part in evals),
        names=names,
        objective=objective,
        metrics=() if metrics is None else read_metrics(metrics, library, given.get("convention")),
        of_the_data={name: params.pop(each) for name in library.of_the_data for each in library.given(name, params)},
        params=params,
        patience=max(0, given.get("early_stopping_rounds", 0)),
        callbacks=[
            each for some in (given.get("callbacks"), callbacks) for each in check_list("callbacks", some, "callables")
        ],
        verbose=verbose,
        n_threads=library.n_threads(given),
        seed=next((int(n) % 2**64 for n in library.given("random_state", params).values() if is_number(n)), 0),
        init_model=init_model,
    )
    if given.get("bounds") is not None:
        run = with_bounds(run, given, library)
    run.refuse_unread(library)
    return run


def with_bounds(run: Run, given: Mapping[str, Any], library: Library) -> Run:
    """Return the run with the bounds among the parameters ``given``; it keeps the best round in any case."""
    require(given.get("objective") != AUTO, 'objective="auto" chooses by one metric; leave it out, or bounds=')
    require(library.has_every_round(run.params), "bounds= need values after each round; leave metric_period= out")
    evals = run.evals[-1].queries if run.evals else None
    first = next(iter(run.metrics), None)
    objective, kept = read_bounds(
        given["bounds"], first, run.objective, given.get("convention"), run.train.queries, evals
    )
    known = {str(metric) for metric in run.metrics}
    more = [metric for _, metric in kept.parts if str(metric) not in known]
    return run._replace(objective=objective, metrics=(kept, *run.metrics, *more), patience=run.patience or ALL_ROUNDS)


def is_off(value: object) -> bool:
    """Return True if a parameter of LightGBM or CatBoost is False, or says so."""
    return str(value).lower() in ("false", "0")


def refuse_dart(setting: str, stops: object) -> None:
    """Raise for early stopping with a ``setting`` such as "booster='dart'"; an empty one never raises."""
    require(
        not (setting and stops),
        f"{setting} changes earlier rounds in later ones, so that the best round cannot be kept; leave early stopping "
        "and bounds out",
    )
