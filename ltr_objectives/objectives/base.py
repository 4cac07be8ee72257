"""The base class of objectives: frozen parameters, and gradient and Hessian of a data set at its scores."""

import abc
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives import language
from ltr_objectives.checks import (
    Check,
    check_draws,
    check_integer,
    check_not_negative,
    check_positive,
    check_seed,
    one_of,
    optional,
)
from ltr_objectives.errors import require, shown
from ltr_objectives.extensible import Extensible, Named
from ltr_objectives.goals import check_read
from ltr_objectives.kernels.records import Rng
from ltr_objectives.kernels.scores import Scores
from ltr_objectives.metrics.gains import read_gain
from ltr_objectives.metrics.text import metric_to_learn
from ltr_objectives.objectives.call import Arrays, Call
from ltr_objectives.objectives.clicks import warn_of_propensities
from ltr_objectives.queries import Labels, Queries

Noise = Literal["logistic", "gaussian", "gumbel"]


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


@dataclass(frozen=True)
class Objective(Extensible, abc.ABC):
    """A ranking loss for gradient-boosted trees.

    An objective has parameters only. It can be pickled, hashed, compared and used for many trainings at once. The
    same seed, data and scores give the same bytes, whatever the number of threads.

    A subclass overrides ``fill``, which writes the gradients of all queries, and for tests ``reference_loss``, the loss
    of one query; ``checks`` has a check for each parameter, and ``facts`` what depends on the parameters alone.

    Raises
    ------
    LTRError
        For a parameter out of its range; from a training, for labels that the objective does not take.

    See Also
    --------
    check_objective : Whether ``fill`` computes what ``reference_loss`` says.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from ltr_objectives import Objective
    >>> @dataclass(frozen=True)
    ... class Squared(Objective):
    ...     name = "squared"
    ...     def fill(self, call):
    ...         call.grad[:] = call.scores - call.queries.labels
    ...         call.hess[:] = 1
    >>> Squared().gradient_hessian([0.5, 0.0], [1, 0], group=[2])
    (array([-0.5,  0. ]), array([1., 1.]))
    """

    named = Named("objectives")
    checks: ClassVar[dict[str, Check]] = {  # of the parameters that mean the same in all objectives
        "metric": lambda name, metric: metric_to_learn(metric),
        "gain": read_gain,
        **dict.fromkeys(("k", "truncation", "partners"), optional(check_integer)),
        **dict.fromkeys(("sigma", "alpha", "step", "noise_scale"), check_positive),
        "mu": check_not_negative,
        "max_documents": partial(check_integer, least=2),
        "noise": one_of(None, *get_args(Noise)),
        **dict.fromkeys(("samples", "permutations"), check_draws),
        "seed": check_seed,
        **dict.fromkeys(("score_norm", "lambda_norm", "normalize", "transposed"), one_of(True, False)),
    }

    _not_read: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("compute", "gradient_hessian"), "override fill instead"),
        **dict.fromkeys(Facts._fields, "set it in facts instead"),
    }

    def __str__(self) -> str:
        """Return the text that ``get_objective`` reads, such as ``yetiloss:map@5;permutations=20``; else ``repr``.

        ``get_objective`` cannot read the text if the metric is a class of your own.
        """
        return self._text() or repr(self)

    def _text(self) -> str:
        """Return the name and the parameters that differ from their defaults; "" without a name in text."""
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
        """Write ``call.grad`` and ``call.hess``, which are zeros; do not keep them after the call.

        The base class applies the Hessian policy and the weights afterwards.
        """

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Return gradient and Hessian of one query in plain NumPy for :func:`ltr_objectives.check_objective`.

        They are without noise; if :meth:`without_noise` is None, the expected values, for lists of at most 5 documents.
        None, the default, leaves :meth:`reference_loss` alone.
        """
        return None

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        """Return the loss of one query in plain NumPy, without noise; None if the gradient is not that of a loss.

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

    def without_noise(self) -> "Objective | None":
        """Return this objective without randomness, by ``noise=None`` and ``partners=None``; None if always random."""
        if not self.facts.random:
            return self
        changed: dict[str, Any] = {name: None for name in ("noise", "partners") if name in self.parameters()}
        return replace(self, **changed) if changed else None

    def relevance(self, queries: Queries) -> np.ndarray:
        """Return each row's relevance; where it is equal in a whole query, the gradient may be zero.

        With several objectives inside, their numbers are rows of an array of shape (objectives, rows).
        """
        return queries.labels

    def pairs_visited(self, queries: Queries) -> float:
        """Return how many pairs of the longest list a gradient visits; 0 if its time is not that of pairs."""
        return 0.0

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        """Return the factor of each row's gradient and Hessian; None is 1 for all."""
        return queries.weight_by_row

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
        """Compute :meth:`gradient_hessian` of validated queries; the result has type ``dtype``.

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
        """Compute a call's gradient and Hessian times ``factor``; ``call.grad`` and ``call.hess`` are zeros again."""
        returned = self.fill(call)
        require(returned is None, f"{type(self).__name__}.fill must write call.grad and call.hess and return nothing")
        return call._finish(self.policy, self.row_weight(call.queries), factor)

    def _draws(self, call: Call) -> Rng | None:
        """Return the random numbers with which it ranks whole lists, None if it draws no such rankings."""
        return None

    def _check_clicks(self, queries: Queries) -> None:
        """Raise for clicks if the objective does not take them; warn of labels and propensities that are none."""
        propensity = queries.propensity
        if propensity is not None:
            require(
                self.facts.takes_clicks,
                f"{self.name} does not take propensity; leave it out, or use LambdaMART or YetiLoss",
            )
            queries.cached("clicks", lambda: warn_of_propensities(propensity, queries.labels))

    def gradient_hessian(
        self,
        scores: ArrayLike,
        labels: Labels,
        group: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        iteration: int = 0,
        n_threads: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute gradient and Hessian of the loss with respect to each row's score.

        Parameters
        ----------
        scores : array of shape (rows,)
            Finite numbers; higher scores rank first.
        labels, group, weight, qid, propensity
            As in :class:`ltr_objectives.Queries`.
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
        given: dict[str, Any] = {"qid": qid, "weight": weight, "propensity": propensity}
        queries = read_queries(self, labels, group, **given)
        return self.compute(queries, scores, iteration=iteration, n_threads=n_threads)


def read_queries(objective: Objective, labels: Labels, group: ArrayLike | None, **given: Any) -> Queries:
    """Return the queries of arrays; raise for labels that ``objective`` does not read."""
    queries, read = Queries(labels, group, **given), objective.facts.goals
    check_read((goal for goal, y in queries.goals.items() if y is not queries.labels), read, objective.name)
    return queries
