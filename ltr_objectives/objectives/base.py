"""The base class of objectives: frozen parameters, and gradient and Hessian of a data set at its scores."""

import abc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives import language
from ltr_objectives.checks import (
    Check,
    Extensible,
    check_draws,
    check_integer,
    check_not_negative,
    check_positive,
    check_seed,
    find_class,
    one_of,
    optional,
)
from ltr_objectives.diagnostics import Report, diagnose, warn_if_long, warn_of_clicks
from ltr_objectives.errors import LTRError, described, require, shown
from ltr_objectives.goals import check_read, split_goal
from ltr_objectives.kernels.rng import NOISES
from ltr_objectives.kernels.scores import Scores
from ltr_objectives.metrics.base import metric_to_learn
from ltr_objectives.metrics.gains import read_gain
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.queries import Labels, Queries

T = TypeVar("T")


class Facts(NamedTuple):
    """Properties of an objective that depend on its parameters only, not on data."""

    random: bool = False  # the gradient depends on the seed and the iteration
    # The relation of the Hessian to the second derivative of ``reference_loss`` by each score. "exact": equal to it;
    # "bound": at least that, and at least 0; "estimate": neither, or ``reference_loss`` is None.
    hessian_kind: str = "estimate"
    shift_invariant: bool = True  # a constant added to all scores of a query changes nothing
    balanced: bool = True  # the gradient of a query adds up to 0, as that of every shift-invariant loss
    takes_clicks: bool = False  # labels that are clicks are corrected for their position
    label_scale: bool = False  # scores are in the units of the labels: a training starts at their weighted mean
    label_limit: float | None = None  # the largest label allowed
    reads_labels: bool = True
    goals: tuple[str, ...] = ()  # whose labels are read beside the first ones
    quadratic: bool | str = False  # the time grows with the pairs of a list; "relevant": with a relevant document


class Member(NamedTuple):
    """An objective inside another one."""

    objective: "Objective"
    factor: float = 1.0  # of its gradient and Hessian
    goal: str | None = None  # whose labels it reads
    place: int = 0  # its number among the members

    def on(self, queries: Queries, compute: Callable[["Objective", Queries], T]) -> T:
        """``compute(objective, queries)`` on the labels of the goal, which errors name."""
        try:
            return compute(self.objective, queries.of(self.goal))
        except LTRError as error:
            raise error if self.goal is None else LTRError(f"labels[{self.goal!r}]: {error}") from None

    def result(self, call: Call) -> Arrays:
        """Gradient and Hessian without the factor."""

        def compute(objective: "Objective", queries: Queries) -> Arrays:
            objective._check_clicks(queries)
            return objective._result(call._replace(queries=queries, place=(*call.place, self.place)))

        return self.on(call.queries, compute)


@dataclass(frozen=True)
class Objective(Extensible, abc.ABC):
    """A ranking loss for gradient-boosted trees.

    An objective holds parameters only. It can be pickled, hashed, compared and used for many trainings at once. The
    same seed, data and scores give the same bytes, whatever the number of threads.
    """

    named: ClassVar[dict[str, Any]] = {}
    checks: ClassVar[dict[str, Check]] = {  # of the parameters that mean the same in all objectives
        "metric": lambda name, metric: metric_to_learn(metric),
        "gain": read_gain,
        **dict.fromkeys(("k", "truncation", "partners"), optional(check_integer)),
        **dict.fromkeys(("sigma", "alpha", "step", "noise_scale"), check_positive),
        "mu": check_not_negative,
        "max_documents": partial(check_integer, least=2),
        "noise": one_of(*NOISES),
        **dict.fromkeys(("samples", "permutations"), check_draws),
        "seed": check_seed,
        **dict.fromkeys(("score_norm", "lambda_norm", "normalize", "transposed"), one_of(True, False)),
    }
    sum_class: ClassVar[Any]  # Mixture, which enters itself here
    native: ClassVar[dict[str, str]] = {}  # what a library calls its own objective of this kind

    _not_read: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("compute", "gradient_hessian", "report"), "override fill instead"),
        **dict.fromkeys(Facts._fields, "set it in facts instead"),
    }

    def __str__(self) -> str:
        """The text that ``get_objective`` reads, such as ``yetiloss:map@5;permutations=20``; as ``repr`` without one.

        It is not read if the metric is of your own class.
        """
        text = self._text()
        with suppress(LTRError):  # of a metric that has no name in text
            text = text if get_objective(text) == self else ""
        return text or repr(self)

    def _text(self) -> str:
        """The name and the parameters that differ from their defaults."""
        if self.named.get(self.name) is not type(self):
            return ""
        preset = {"preset": value} if (value := getattr(self, "preset", None)) else {}
        default = type(self)(**preset).settings()
        changed = preset | {name: value for name, value in self.settings().items() if value != default[name]}
        metric = changed.pop("metric", None)
        first = [] if metric is None else [metric._text(metric._changed())]  # also if made from other text
        return ":".join([self.name, ";".join([*first, *language.setting_texts(changed)])]).removesuffix(":")

    @abc.abstractmethod
    def fill(self, call: Call) -> None:
        """Write ``call.grad`` and ``call.hess``, which hold zeros; do not keep them after the call.

        The base class applies the Hessian policy and the weights afterwards.
        """

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Gradient and Hessian of one query in plain NumPy, without noise, for :func:`ltr_objectives.check_objective`.

        If :meth:`without_noise` is None, they are the expected values, for lists of at most 5 documents. The default is
        None: there is :meth:`reference_loss` alone.
        """
        return None

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        """The loss of one query in plain NumPy, without noise; None if the gradient is not that of a loss.

        Weights that depend on the ranking count as constants, so its derivative is the gradient as long as the ranking
        stays the same. Scores may be complex: the tests take its derivative by complex steps.
        """
        return None

    @property
    def facts(self) -> Facts:
        """The properties of the objective; a subclass overrides them by an attribute, or by a property."""
        return Facts()

    @property
    def label_limit(self) -> float | None:
        """The largest label allowed, None if there is no limit."""
        return self.facts.label_limit

    @property
    def policy(self) -> str:
        """The change of the Hessian that ``fill`` wrote, a name in ltr_objectives.kernels.finish.POLICIES."""
        return str(getattr(self, "hessian", "exact"))

    @property
    def members(self) -> tuple[Member, ...]:
        """The objectives that this one wraps, adds up or draws from, with their weights."""
        return ()

    @property
    def inner(self) -> "Objective":
        """The objective that learns from the labels: this one, or the one that it wraps."""
        return self

    def summands(self, queries: Queries, n_threads: int | None = None) -> tuple[Member, ...]:
        """The members with their factors in the gradient, if it is the sum of theirs."""
        return self.members

    def _around(self, *objectives: "Objective") -> "Objective":
        """This objective with other members."""
        return self

    def _whole(self) -> "Objective":
        """This objective on all queries, if it takes a random share of them."""
        return self._around(*(member.objective._whole() for member in self.members))

    def without_noise(self) -> "Objective | None":
        """This objective without its randomness, by ``noise=None`` and ``partners=None``; None if always random."""
        if not self.facts.random:
            return self
        if self.members:
            quiet = [member.objective.without_noise() for member in self.members]
            known = [objective for objective in quiet if objective is not None]
            return self._around(*known) if len(known) == len(quiet) else None
        changed: dict[str, Any] = {name: None for name in ("noise", "partners") if name in self.parameters()}
        return replace(self, **changed) if changed else None

    def _worth(self, queries: Queries) -> np.ndarray:
        """A number a row, or one for each member and row.

        Documents of equal worth are equally relevant, and a query of such has zero gradient.
        """
        worth = [member.on(queries, lambda objective, own: objective._worth(own)) for member in self.members]
        return np.vstack(worth) if worth else queries.labels

    def _start(self, queries: Queries) -> float:
        """The score at which a training starts."""
        parts = [part for part in self.summands(queries) if part.objective.facts.label_scale and part.factor > 0]
        if parts:
            starts = [part.on(queries, lambda objective, own: objective._start(own)) for part in parts]
            return float(np.average(starts, weights=[part.factor for part in parts]))
        weight = queries.weight_by_row
        learns = self.facts.label_scale and (weight is None or weight.any())
        return float(np.average(queries.labels, weights=weight)) if learns else 0.0

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        """The factor of each row's gradient and Hessian; None is 1 for all."""
        return queries.weight_by_row

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(f.name for f in fields(cls) if f.init)

    def settings(self) -> dict[str, Any]:
        """Parameters by name, with every default and preset filled in."""
        return {name: getattr(self, name) for name in self.parameters()}

    def compute(
        self,
        queries: Queries,
        scores: ArrayLike | Scores,
        *,
        iteration: int = 0,
        n_threads: int | None = None,
        dtype: type[np.floating[Any]] = np.float64,
        skip: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As :meth:`gradient_hessian`, for validated queries; the result has type ``dtype``.

        Scores may be what ``queries.check_scores`` returned, as those of the adapters are. Queries that ``skip`` marks,
        a bool array of shape (queries,), get zeros.
        """
        self._check_clicks(queries)
        s = queries.check_scores(scores, n_threads).values
        whole = isinstance(iteration, Integral) and not isinstance(iteration, np.timedelta64)
        require(whole, f"iteration={shown(iteration)} must be a whole number")
        skip = np.zeros(len(queries), np.bool_) if skip is None else skip
        require(len(skip) == len(queries), f"skip has {len(skip)} entries; pass one per query ({len(queries)})")
        iteration = int(iteration) & 0xFFFFFFFFFFFFFFFF
        call = Call(queries, s, *queries._borrow_zeros(), skip, iteration, n_threads, dtype)
        result = self._result(call)
        queries._give_back_zeros(call.grad, call.hess)
        return result

    def _result(self, call: Call, factor: float = 1.0) -> Arrays:
        """Gradient and Hessian of a call, times ``factor``; ``call.grad`` and ``call.hess`` hold zeros again."""
        returned = self.fill(call)
        require(returned is None, f"{type(self).__name__}.fill must write call.grad and call.hess and return nothing")
        return call._finish(self.policy, self.row_weight(call.queries), factor)

    def _check_clicks(self, queries: Queries) -> None:
        if queries.propensity is not None or queries.position is not None:
            require(
                self.facts.takes_clicks,
                f"{self.inner.name} does not take propensity or position; leave them out, or use LambdaMART or "
                "YetiLoss",
            )
            queries.once("clicks", lambda: warn_of_clicks(queries))

    def gradient_hessian(
        self,
        scores: ArrayLike,
        labels: Labels,
        group: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        position: ArrayLike | None = None,
        iteration: int = 0,
        n_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the loss with respect to each row's score.

        Parameters
        ----------
        scores : array of shape (rows,)
            Finite numbers; higher scores rank first.
        labels : array of shape (rows,), or mapping of goals to such arrays
            Finite numbers; higher is more relevant. For an objective that reads several labels, a mapping such as
            ``{"relevance": y, "revenue": r}``: the first is read by parts that name no goal.
        group : array of shape (queries,), optional
            Group sizes; or pass ``qid``, one id per row.
        weight : array of shape (queries,) or (rows,), optional
            Multiplies gradient and Hessian of all rows of a query, or of one row.
        propensity : array of shape (rows,), optional
            For labels that are clicks: the probability that each document was examined, above 0. Pairwise objectives
            divide the weight of a pair by the propensity of the larger label. Others raise.
        position : array of shape (rows,), optional
            For labels that are clicks of unknown propensity: where each document was shown. Pairwise objectives add an
            offset to the scores of each position, one Newton step of their loss, and take the gradient there. Others
            raise.
        iteration : int
            Selects the random stream: the same seed and iteration give the same noise.
        n_threads : int, optional
            All processors by default; the result does not depend on it.

        Returns
        -------
        grad : float64 array of shape (rows,)
            First derivatives of the loss.
        hess : float64 array of shape (rows,)
            Second derivatives, or what takes their place; trees fit ``-grad / hess``.
        """
        queries = self._queries(labels, group, qid=qid, weight=weight, propensity=propensity, position=position)
        warn_if_long(self, queries)
        return self.compute(queries, scores, iteration=iteration, n_threads=n_threads)

    def _queries(self, labels: Labels, group: ArrayLike | None, **given: Any) -> Queries:
        queries = Queries(labels, group, **given)
        check_read((goal for goal, y in queries.goals.items() if y is not queries.labels), self.facts.goals, self.name)
        return queries

    def report(
        self, scores: ArrayLike, labels: Labels, group: ArrayLike | None = None, weight: ArrayLike | None = None, *,
        qid: ArrayLike | None = None, propensity: ArrayLike | None = None, position: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> Report:  # fmt: skip
        """Report the queries with a gradient at these scores, and the reasons why others have none.

        Parameters
        ----------
        scores, labels, group, weight, qid, propensity, position, n_threads
            As for :meth:`gradient_hessian`.

        Returns
        -------
        Report
            Queries with zero gradient by reason, pairs, Hessian entries, gradient norms. ``print`` shows a table,
            ``as_dict()`` gives plain numbers.

        Examples
        --------
        >>> from ltr_objectives import LambdaMART
        >>> report = LambdaMART().report([0.1, 0.2, 0.3, 0.4, 0.5], [1, 0, 2, 2, 1], group=[2, 2, 1])
        >>> report.useful, report.useless
        (1, {'one document': 1, 'all labels equal': 1})
        """
        queries = self._queries(labels, group, qid=qid, weight=weight, propensity=propensity, position=position)
        return diagnose(self, queries, scores, n_threads=n_threads)


def get_objective(objective: str | Objective) -> Objective:
    """An objective from ``"name"``, ``"name:metric"`` or ``"name:metric;parameter=value;..."``, or a sum of these.

    Parts of a sum may have weights, and goals at their end, whose labels they read: see
    :class:`ltr_objectives.Mixture`.

    >>> str(get_objective("yetiloss:map@5").metric)
    'map@5'
    >>> get_objective("lambdamart:sigma=2;hessian=ones").sigma
    2
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:mrr").weights
    (1.0, 0.3)
    >>> get_objective("yetiloss:ndcg@10 + 0.3*yetiloss:ndcg@10[revenue]").labels
    (None, 'revenue')
    """
    if isinstance(objective, Objective):
        return objective
    if not isinstance(objective, str):
        of = "a string such as 'yetiloss:map' or an ltr_objectives.Objective"
        raise LTRError(f"objective must be {of}, got {described(objective)}")
    parts = language.split_sum(objective)
    if len(parts) == 1:
        return on_goal(*read_part(objective))
    weighted = [language.split_weight(part) for part in parts]
    made: Objective = Objective.sum_class(
        [part for _, part in weighted], [1.0 if weight is None else weight for weight, _ in weighted]
    )
    return made


def metric_of(objective: Objective) -> Any:
    """The metric of the first member on its goal, None if it has none."""
    first = objective.members[0]
    metric = getattr(first.objective, "metric", None)
    return metric if metric is None or metric.goal is not None else metric._with(goal=first.goal)


def read_part(objective: str | Objective) -> tuple[Objective, str | None]:
    """An objective, and the goal at the end of its text."""
    if not isinstance(objective, str) or len(language.split_sum(objective)) > 1:
        return get_objective(objective), None
    plain, goal = split_goal(objective)
    name, settings = language.split_objective(plain.strip())
    start, bracket, inside = name.partition("(")
    require(
        not bracket or start not in Objective.named,
        f"{shown(plain)}: the parameters of an objective follow a colon; write "
        f"'{start}:{';'.join(language.split_list(inside.removesuffix(')')))}'",
    )
    found = find_class(Objective.named, name, "objective")
    return found(**language.read_settings(settings, name, found.parameters())), goal


def on_goal(objective: Objective, goal: str | None) -> Objective:
    """The objective on the labels of a goal."""
    made: Objective = objective if goal is None else Objective.sum_class([objective], labels=[goal], normalize=False)
    return made
