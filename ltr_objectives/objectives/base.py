"""What every objective is: frozen parameters, and a gradient and Hessian for each data set and score vector."""

import abc
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ltr_objectives.errors import choice
from ltr_objectives.queries import Queries


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
        """Write the gradient and Hessian of the loss into zeroed float64 arrays."""

    @abc.abstractmethod
    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of one query in plain NumPy, without noise; slow, and the oracle of the tests."""

    @property
    def random(self) -> bool:
        """Whether the gradient depends on the seed and the iteration; by default, whether there is any ``noise``."""
        return getattr(self, "noise", None) is not None

    def without_noise(self) -> "Objective":
        """The same objective without its randomness: what :meth:`reference` computes."""
        return replace(self, noise=None) if self.random else self  # type: ignore[call-arg]

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
        self, queries: Queries, scores: ArrayLike, *, iteration: int = 0, n_threads: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """As :meth:`gradient_hessian`, on a data set already validated."""
        s = queries.check_scores(scores)
        grad, hess = np.zeros(queries.rows), np.zeros(queries.rows)
        self.fill(queries, s, grad, hess, iteration=iteration & 0xFFFFFFFFFFFFFFFF, n_threads=n_threads)
        weight = self.row_weight(queries)
        if weight is not None:
            grad *= weight
            hess *= weight
        return grad, hess

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
        queries = Queries(labels, group, qid=qid, weight=weight)
        return self.compute(queries, scores, iteration=iteration, n_threads=n_threads)


def from_preset(objective: Objective, presets: dict[str, dict[str, Any]], defaults: dict[str, Any]) -> None:
    """Fill in every parameter left at None: from the preset if there is one, else the default."""
    preset = getattr(objective, "preset")  # noqa: B009
    if preset is not None:
        choice("preset", preset, tuple(presets))
    chosen = {**defaults, **(presets[preset] if preset else {})}
    for name, value in chosen.items():
        if getattr(objective, name) is None:
            object.__setattr__(objective, name, value)
