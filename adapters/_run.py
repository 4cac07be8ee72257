"""One training of an estimator: its data, parameters, objective and metrics."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.adapters._bounds import ROUNDS as ALL_ROUNDS
from ltr_objectives.adapters._bounds import Kept, read_bounds
from ltr_objectives.adapters._callables import ObjectiveCallable, refuse_unread
from ltr_objectives.adapters._tables import Part, as_categories, categorical, named
from ltr_objectives.checks import check_integer, check_list, is_number
from ltr_objectives.errors import did_you_mean, require, warn
from ltr_objectives.goals import check_read, split_goal
from ltr_objectives.language import METRIC_FORM, OBJECTIVE_FORM
from ltr_objectives.libraries import LIBRARIES, Library
from ltr_objectives.metrics import gains
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric, get_metrics, own_metric
from ltr_objectives.objectives.around import UnitHessian, innermost
from ltr_objectives.objectives.base import Objective
from ltr_objectives.objectives.composite import seeded, start
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.position_bias import PositionOffsets
from ltr_objectives.queries import Queries, to_numpy
from ltr_objectives.registry import metric_names, objective_for

Array = ArrayLike | None
Arrays = Sequence[ArrayLike | None] | None  # one for each eval set
Goals = Mapping[str, ArrayLike]  # labels by goal
Records = dict[str, dict[str, list[float]]]  # as of `Trained`
OneMetric = str | Metric | Callable[..., Any]
EvalMetric = OneMetric | Sequence[OneMetric] | None
AnyObjective = Objective | str | Callable[..., Any]  # ours, the name of the library's own, or a function that it calls
AUTO = "auto"
DEFAULT = "ndcg@10"  # what is trained if neither objective nor metric is named, and scored if no metric is
# parameters of our rankers that a training of the library does not get
OURS = {"objective", "eval_metric", "convention", "bounds", "early_stopping_rounds", "callbacks", "importance_type"}
DOCUMENTS = 20.0  # the L2 of leaf values for ours


class OfEstimator(ObjectiveCallable):
    """Our objective in one training of an estimator, which knows the queries."""

    answer: Callable[[Any], tuple[np.ndarray, np.ndarray]]  # copies of parameters do not copy what it refers to

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
    def kept(self) -> Kept | None:
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
        return start(self.objective, self.train.queries)

    def starting_at(self, score: float | None) -> "Run":
        """The run with this initial score in all rows, and the offsets of positions; as it is if there are none."""
        if not score and self.train.offset is None:
            return self

        def begun(part: Part) -> Part:
            margin = np.full(len(part.labels), score or 0.0) if part.margin is None else part.margin
            return part._replace(margin=margin if part.offset is None else margin + part.offset)

        return self._replace(train=begun(self.train), evals=tuple(map(begun, self.evals)))

    def gradients(
        self, library: Library, params: dict[str, Any], offset: np.ndarray | None = None
    ) -> OfEstimator | None:
        """Our objective as the library calls it in a training with ``params``; None if it is not ours.

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
        """Our metrics on the library's data sets ``evals``. Weights may be by row, which a DMatrix cannot hold."""
        known = [(data, part.queries) for data, part in zip(evals, self.evals, strict=True)]

        def values(scores: Any, data: Any) -> list[tuple[str, float]]:
            queries = next(queries for each, queries in known if each is data)
            s = to_numpy(scores, "scores").reshape(-1)
            return [(str(m), m.mean(queries, s, n_threads=self.n_threads)) for m in self.own_metrics]

        return values

    def with_l2(self, library: Library) -> dict[str, Any]:
        """The parameters, with an L2 of ``DOCUMENTS`` if Hessians are in documents and there is no other L2."""
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


def read_run(
    given: Mapping[str, Any], library: Library, train: Part, evals: tuple[Part, ...], init_model: Any,
    callbacks: Sequence[Any] | None, verbose: bool | int, eval_names: Sequence[str] | None,
) -> Run:  # fmt: skip
    """The training that the parameters ``given`` and the arguments of ``fit`` ask for; raises if it cannot be right."""
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


def is_called(given: Any, library: Library, method: str) -> bool:
    """True for what the library calls, and that is not ours."""
    ours = isinstance(given, str | Objective | Metric | type) or hasattr(given, "library")  # such as xgboost_objective
    return not ours and library.calls(given, method)


def chosen_objective(given: Mapping[str, Any], library: Library, queries: Queries) -> Objective:
    """Return the objective for the first metric of these parameters, and its convention, on these queries."""
    first, *_ = read_metrics(given.get("eval_metric", DEFAULT), library, given.get("convention"))
    return objective_for(first if isinstance(first, Metric) else DEFAULT, queries)


def read_objective(objective: Any, library: Library) -> AnyObjective:
    """Return our objective, or what the library gets: the name of its own, functions."""
    if is_called(objective, library, "calc_ders_range"):
        return cast(AnyObjective, objective)
    return read_text(objective, library) if isinstance(objective, str) else get_objective(objective)


def read_text(text: str, library: Library) -> Objective | str:
    """Our objective, whose name may be in any case, or the name of the library's own; in CatBoost's spelling that."""
    head = text.partition(":")[0].strip()
    twin = next((name for name in library.natives if name.lower() == head.lower()), None)
    if library.capitals and head in ("RMSE", *library.natives):
        return text
    if head.lower() in Objective.named or "+" in text or split_goal(text)[1] is not None:
        if twin is not None and head != head.lower():
            warn(f"objective={text!r} is our objective; write {head.lower()!r}, or {twin!r} for {library.name}'s own")
        return get_objective(text)
    require(re.fullmatch(library.objectives, text), unknown_objective(text, library))
    return text


def unknown_objective(text: str, library: Library) -> str:
    """The message for an objective that neither we nor the library have."""
    owner = next((each.name for each in LIBRARIES.values() if each.knows(text)), None)
    if owner is not None:
        meant = f"; {owner} has it"
    elif own_metric(text):
        meant = f"; to train for this metric write 'yetiloss:{text}'"
    else:
        head, colon, settings = text.partition(":")
        meant = did_you_mean(head, [*Objective.named, *library.natives], colon + settings)
    return f"objective={text!r} is neither ours, {OBJECTIVE_FORM}, nor one of {library.name}'s for rankers{meant}"


def read_metrics(eval_metric: EvalMetric, library: Library, convention: str | None = None) -> tuple[OneMetric, ...]:
    """The metrics that were named. In the result those of the library are strings, functions or objects."""

    def called(metric: Any) -> bool:
        return is_called(metric, library, "evaluate")

    one = isinstance(eval_metric, str | Metric) or callable(eval_metric) or called(eval_metric)
    given: list[Any] = [eval_metric] if one else check_list("eval_metric", eval_metric, "metrics, or one")
    found = tuple(m if called(m) or _is_native(m, library) else get_metric(m, convention) for m in given)
    own = [m for m in found if isinstance(m, Metric)]
    if own or not found:
        get_metrics(own)  # raises for two of one name, and for none
    refuse_same_names([m for m in found if isinstance(m, str)])
    return found


def _is_native(metric: Any, library: Library) -> bool:
    """True if the metric is the library's own; raises if it is neither that nor ours."""
    if not isinstance(metric, str):
        return False
    known = bool(re.fullmatch(library.metrics, metric))
    if own_metric(metric) and not (library.capitals and known):
        return False
    require(known and metric.lower() != "none", unknown_metric(metric, library))
    return True


def unknown_metric(metric: str, library: Library) -> str:
    """The message for a metric that neither we nor the library have."""
    theirs = dir(library.load().metrics) if library.capitals else ("rmse", "mae", "auc", "logloss")
    name, options = re.findall(r"\A(\w*)((?:\(.*\))?(?:@\d+)?(?:\[\w+\])?)", metric)[0]
    meant = did_you_mean(name, [*metric_names(), *theirs], options)
    meant = "; leave it out to evaluate what the objective optimises" if metric.lower() == "none" else meant
    return f"eval_metric={metric!r} is neither ours, {METRIC_FORM}, nor the library's{meant}"


def optimised(objective: AnyObjective, parts: Sequence[Part]) -> Metric | str | None:
    """Return the metric that our objective optimises, else the usual one; None if the library names the objective."""
    if isinstance(objective, str):
        return None
    metric = getattr(objective, "metric", None)
    return metric if isinstance(metric, Metric) else usual_metric(parts, "ndcg")


def usual_metric(parts: Iterable[Part], graded: str = DEFAULT) -> str:
    """Return NDCG, or for labels that are no grades Spearman's correlation."""
    grades = all(part.labels.min() >= 0 and part.labels.max() <= gains.LARGEST_GRADE for part in parts)
    return graded if grades else "spearman"


def is_off(value: object) -> bool:
    """Return True if a parameter of LightGBM or CatBoost is False, or says so."""
    return str(value).lower() in ("false", "0")


def read_param(value: Any) -> Any:
    """A parameter as the libraries read it: a generator as a seed."""
    if isinstance(value, np.random.Generator):
        return int(value.integers(2**31 - 1))
    if isinstance(value, np.random.RandomState):
        return int(value.randint(2**31 - 1))
    return value


def our_names(library: Library, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with our names of those that we read; raise for one under two names."""
    for name in given:
        twice = " and ".join(f"{each}=" for each in library.given(name, given))
        require(twice == f"{name}=", f"{twice} are names of one parameter; give one")
    least = dict.fromkeys(library.names("early_stopping_rounds"), library.least_patience)
    least |= dict.fromkeys(library.names("n_estimators"), 0)
    whole = {name: check_integer(name, value, least[name]) for name, value in given.items() if name in least}
    ours = {each: name for name in OURS for each in library.names(name)}
    return {ours.get(name, name): value for name, value in {**given, **whole}.items()}


def refuse_same_names(names: Sequence[object]) -> None:
    """Raise for two metrics of one name, whose values the libraries would mix in one record."""
    twice = next((name for name in names if names.count(name) > 1), None)
    require(twice is None, f"two metrics have the name {twice!r}; give each function a name of its own")


def refuse_dart(setting: str, stops: object) -> None:
    """Raise for early stopping with a ``setting`` such as "booster='dart'"; an empty one never raises."""
    require(
        not (setting and stops),
        f"{setting} changes earlier rounds in later ones, so that the best round cannot be kept; leave early stopping "
        "and bounds out",
    )
