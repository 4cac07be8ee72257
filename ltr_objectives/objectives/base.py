"""What every objective is: frozen parameters, and a gradient and Hessian for each data set and score vector."""

import abc
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.cost import warn_if_long
from ltr_objectives.errors import LTRError, choice, require
from ltr_objectives.objectives.finished import finished_arrays, with_zeros
from ltr_objectives.queries import Queries

if TYPE_CHECKING:
    from ltr_objectives.diagnostics import Report


class Parity(NamedTuple):
    """One native objective that an instance of ours reproduces, and how closely after training."""

    library: str
    params: dict[str, Any]  # of the native training
    ours: "Objective"
    tolerance: float  # of the predictions, relative to their spread
    binary: bool = False  # the native objective takes labels 0 and 1 only
    probability: bool = False  # the native objective takes labels between 0 and 1
    per_leaf: bool = False  # compare leaf values: the library draws other pairs for each step of a tree
    since: str = "0"  # the first version of the library in which the native objective does so


@dataclass(frozen=True)
class Objective(abc.ABC):
    """A ranking loss for gradient-boosted trees.

    An objective holds parameters only. It can be pickled, hashed, compared and used for many trainings at once, and it
    gives the same bytes for the same seed, data and scores, whatever the number of threads.
    """

    name: ClassVar[str]
    takes_clicks: ClassVar[bool] = False  # whether it can correct labels that are clicks for the position
    no_jit: ClassVar[bool] = True  # CatBoost would mark it as compiled, which a frozen object refuses in its own words

    def __new__(cls, *_: object, **__: object) -> "Objective":
        """Refuse a class without a name, as abstract methods are refused."""
        require(hasattr(cls, "name"), f"{cls.__name__} has no name; add one, such as name: ClassVar[str] = 'mine'")
        return super().__new__(cls)

    @abc.abstractmethod
    def fill(
        self,
        queries: Queries,
        scores: np.ndarray,
        grad: np.ndarray,
        hess: np.ndarray,
        *,
        iteration: int,
        n_threads: int | None,
    ) -> None:
        """Write gradient and Hessian into zeroed arrays, which are lent for the call.

        ``iteration`` changes by round if :attr:`random` is true.
        """

    @abc.abstractmethod
    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of one query in plain NumPy, without noise; slow, and the oracle of the tests.

        Where :meth:`without_noise` is None, the expected gradient and Hessian of lists of up to 5 documents.
        """

    @property
    def random(self) -> bool:
        """Whether the gradient depends on the seed and the iteration."""
        return False

    def without_noise(self) -> "Objective | None":
        """This objective without its randomness; None where it is nothing without."""
        return None if self.random else self

    @property
    def negative_hessian(self) -> bool:
        """Whether entries of the Hessian may be negative, which the libraries do not expect."""
        return False

    @property
    def hessian_kind(self) -> str:
        """How the Hessian relates to the second derivatives of :meth:`reference_loss` by each score.

        "exact": equal to them; "bound": never below them, and never negative; "estimate": neither, or there is no loss.
        """
        return "estimate"

    @property
    def shift_invariant(self) -> bool:
        """Whether a constant added to all scores of a query changes nothing; not so for losses of single documents."""
        return True

    @property
    def longest_step(self) -> float | None:
        """What no Newton step, ``|grad| / hess``, exceeds; None where they have no limit."""
        return None

    def hessian_limit(self, n: int) -> float | None:
        """What the Hessians of a query of ``n`` documents never add up to more than; None where it is not known."""
        return None

    @property
    def treats_ties_alike(self) -> bool:
        """Whether the order of rows of equal score changes nothing, in lists that are not cut.

        Not so for losses that take ranks from the present ranking, where such rows stand in the order of the data.
        """
        return False

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        """The loss of one query in plain NumPy, without noise; None where no loss has this gradient.

        Where weights depend on the present ranking they count as constants: the derivative is then the gradient as long
        as no two scores trade places. Scores may be complex, see :mod:`ltr_objectives.objectives.reference`.
        """
        return None

    @property
    def inner(self) -> "Objective":
        """What learns from the labels: this objective itself, or the one that it wraps."""
        return self

    def with_exact_hessian(self) -> "Objective | None":
        """This objective with its second derivative as it is, not repaired or replaced; None if there is no such."""
        if "hessian" not in self.parameters():
            return self
        try:
            return replace(self, hessian="exact")  # type: ignore[call-arg]  # a field of subclasses
        except LTRError:
            return None

    def worth(self, queries: Queries) -> np.ndarray:
        """What each row is worth to this objective: a query whose rows are all worth the same teaches nothing."""
        return queries.labels

    fewer_pairs: ClassVar[str] = "choose an objective of fewer pairs, such as LambdaMART(truncation=30)"  # as advice

    def pairs_visited(self, queries: Queries) -> np.ndarray | None:
        """About how many pairs a gradient looks at, by query; None where its time grows hardly faster than a list."""
        return None

    def part_of_pairs(self, queries: Queries, ranks: int) -> "tuple[Objective, Queries]":
        """This objective and these queries, changed so that about ``ranks`` documents meet all others: to be timed."""
        return self, queries

    def pair_counts(self, queries: Queries, scores: np.ndarray) -> np.ndarray | None:
        """How many pairs of documents of each query have a weight, int64; None where the loss knows no pairs."""
        return None

    @classmethod
    def examples(cls) -> "tuple[Objective, ...]":
        """Instances that between them use every option; the tests run over them."""
        return (cls(),)

    @classmethod
    def parities(cls) -> tuple[Parity, ...]:
        """Native objectives that presets reproduce; the tests train both."""
        return ()

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the parameters, in order."""
        return tuple(f.name for f in fields(cls) if f.init)

    def settings(self) -> dict[str, Any]:
        """Parameters by name, with every default and preset filled in."""
        return {name: getattr(self, name) for name in self.parameters()}

    @property
    def label_limit(self) -> float | None:
        """The largest label allowed, None where there is no limit."""
        return None

    def compute(
        self,
        queries: Queries,
        scores: ArrayLike,
        *,
        iteration: int = 0,
        n_threads: int | None = None,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> tuple[np.ndarray, np.ndarray]:
        """As :meth:`gradient_hessian`, on a data set already validated; ``dtype`` is that of the result."""
        require(
            (queries.propensity is None and queries.position is None) or self.takes_clicks,
            f"{self.name} corrects no position bias; leave propensity and position out, or use LambdaMART or YetiLoss",
        )
        s = queries.check_scores(scores)
        warn_if_long(self, queries, s, n_threads)

        def filled(grad: np.ndarray, hess: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            self.fill(queries, s, grad, hess, iteration=iteration & 0xFFFFFFFFFFFFFFFF, n_threads=n_threads)
            return finished_arrays(queries, grad, hess, self.row_weight(queries), dtype, n_threads)

        return with_zeros(queries, filled)

    def __call__(self, *_: object, **__: object) -> None:
        """Libraries take the adapters, not the objective itself; this says so."""
        raise LTRError(
            f"{type(self).__name__} is no function of a library; wrap it by xgboost_objective(...), "
            "lightgbm_objective(...) or catboost_objective(..., pool) of ltr_objectives.adapters"
        )

    calc_ders_range = __call__  # what CatBoost calls

    def row_weight(self, queries: Queries) -> np.ndarray | None:
        """What each row's gradient and Hessian are multiplied by."""
        return queries.weight_by_row

    def gradient_hessian(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
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
        scores, labels : arrays of shape (rows,)
            Finite numbers; higher scores rank first.
        group : array of shape (queries,), optional
            Group sizes; or ``qid``, one id per row.
        weight : array of shape (queries,) or (rows,), optional
            Multiplies gradient and Hessian, of all rows of a query or of one row.
        propensity : array of shape (rows,), optional
            Where labels are clicks: how likely each document was looked at, up to a common factor; above 0. Pairwise
            objectives divide the weight of a pair by that of its higher label; others refuse it.
        position : array of shape (rows,), optional
            Where labels are clicks and propensities are not known: where each document was shown. Pairwise objectives
            take the gradient at scores to which the logarithm of the estimated propensity is added; others refuse it.
        iteration : int
            Selects the random stream: same seed and iteration, same noise.
        n_threads : int, optional
            All processors by default; the result does not depend on it.

        Returns
        -------
        grad, hess : float64 arrays of shape (rows,)
            Of the loss, to descend: trees fit ``-grad / hess``.

        Raises
        ------
        LTRError
            For input that cannot be right.
        """
        queries = Queries(labels, group, qid=qid, weight=weight, propensity=propensity, position=position)
        return self.compute(queries, scores, iteration=iteration, n_threads=n_threads)

    def report(
        self, scores: ArrayLike, labels: ArrayLike, group: ArrayLike | None = None, weight: ArrayLike | None = None, *,
        qid: ArrayLike | None = None, propensity: ArrayLike | None = None, position: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> "Report":  # fmt: skip
        """What can be learned at these scores, and why no more: for a ranking that does not improve.

        Parameters
        ----------
        scores, labels, group, weight, qid, propensity, position, n_threads
            As for :meth:`gradient_hessian`.

        Returns
        -------
        Report
            Queries without gradient by reason, pairs, Hessian entries, gradient norms; ``print`` shows a table, and
            ``as_dict()`` gives plain numbers.

        Raises
        ------
        LTRError
            For input that cannot be right.

        Examples
        --------
        >>> from ltr_objectives import LambdaMART
        >>> report = LambdaMART().report([0.1, 0.2, 0.3, 0.4, 0.5], [1, 0, 2, 2, 1], group=[2, 2, 1])
        >>> report.useful, report.useless
        (1, {'one document': 1, 'all labels equal': 1})
        """
        from ltr_objectives.diagnostics import diagnose

        queries = Queries(labels, group, qid=qid, weight=weight, propensity=propensity, position=position)
        return diagnose(self, queries, scores, n_threads=n_threads)


STEP_HESSIANS = {"bounded": "bound", "exact": "exact"}  # and their hessian_kind


def from_preset(objective: Objective, presets: dict[str, dict[str, Any]], defaults: dict[str, Any]) -> None:
    """Fill in every parameter left at None: from the preset if there is one, else the default."""
    preset = vars(objective)["preset"]
    if preset is not None:
        choice("preset", preset, tuple(presets))
    chosen = {**defaults, **(presets[preset] if preset else {})}
    for name, value in chosen.items():
        if getattr(objective, name) is None:
            object.__setattr__(objective, name, value)
