"""CatBoost: gradients of whole data sets, answered in calls for blocks of rows.

CatBoost asks for derivatives by ``calc_ders_range``, from several threads, for blocks of rows without queries. It
says neither which rows a block holds nor when the scores have changed. Yet each block is a view of one of two
contiguous vectors. They stay at one place in memory for a whole training, but for the scores of the second:

* *structure*: the labels and scores that a tree is grown on;
* *leaves*: those that its leaf values are estimated on. Its scores are copied anew for each tree.

A *pass* asks for every row of one vector exactly once. Passes go structure, leaves, (leaves ...), structure and so on.
A block is known by the address of its labels. Whatever CatBoost does otherwise raises an error, so that no block gets
the gradients of other rows.

With the structure's blocks comes a third vector, the weights of the rows: CatBoost scores a split by sums of gradients
over sums of weights. While a tree is grown nothing else reads the weights, and they may be written to. Hessians in
their place give the second-order splits of XGBoost and LightGBM, which CatBoost itself offers on the GPU only. Its own
pairwise losses do something similar: the weight of a row is that of its pairs. Neither they nor we scale these weights.
The weights are put back once the tree is grown, because a training that continues this model reads the same vector.
"""

import ctypes
import threading
import time
from collections.abc import Callable

import numpy as np

from ltr_objectives.errors import LTRError, require

Gradients = Callable[[np.ndarray, bool], tuple[np.ndarray, np.ndarray]]

WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.001  # a waiting thread goes on after this time without progress; an answer takes 10 microseconds
EVERY_THREAD = -1  # no thread has this number
TOLERANCE = 1e-9  # of the scores at the start: sums of float64 in another order
LARGEST = 1e30  # weight of a row in splits: float32 has room for what a bootstrap multiplies it by

UNEXPECTED = (
    "CatBoost {}, so which rows it shows is not certain: some training parameter is not supported by this adapter. "
    "Use fit(pool) on the CPU, boosting_type='Plain', and has_time=True wherever there are categorical features"
)
NO_WEIGHTS = "CatBoost keeps no weights for this pool, which its splits by Hessians need; pass newton_splits=False"


def address_of(view: np.ndarray) -> int:
    """Return the address of the first byte of an array."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(view))
    except (TypeError, ValueError):  # read-only or empty; this takes three times as long
        address: int = view.__array_interface__["data"][0]
        return address


def expect(condition: object, otherwise: str) -> None:
    """Raise unless CatBoost behaves as known."""
    if not condition:
        raise LTRError(UNEXPECTED.format(otherwise))


def split_weights(hess: np.ndarray) -> np.ndarray | None:
    """Return the weights of rows in the splits: their Hessians, negative ones as 0; None if all are 0 in float32.

    They are not divided by their mean: ``l2_leaf_reg`` and ``random_strength`` are in the units of these weights.

    >>> split_weights(np.array([2.0, -1.0, 1e300]))
    array([2.e+00, 0.e+00, 1.e+30], dtype=float32)
    """
    weights = np.clip(hess, 0.0, LARGEST).astype(np.float32)
    return weights if weights.any() else None


class Vector:
    """One of the two vectors: its address, and the blocks that CatBoost cuts it into."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.labels: int | None = None  # address of row 0
        self.scores: int | None = None
        self.blocks: list[tuple[int, int]] = []  # first and last rows
        self.proven = False  # whether a pass has shown that the blocks cover each row once, and where their scores lie

    def add(self, address: int, length: int) -> tuple["Vector", int, int]:
        """Learn a block, in the vector's first pass."""
        assert self.labels is not None
        first, odd = divmod(address - self.labels, 4)
        expect(odd == 0 and first >= 0 and first + length <= self.rows, "asks for rows outside of the pool")
        self.blocks.append((first, first + length))
        self.proven = False
        return self, first, first + length

    def tiled(self) -> bool:
        """Return True if the blocks cover each row once."""
        bounds = sorted(self.blocks)
        return [0, *(last for _, last in bounds)] == [*(first for first, _ in bounds), self.rows]

    def locate(self, first: int, view: np.ndarray) -> None:
        """Raise unless all blocks of scores lie in one vector."""
        start = address_of(view) - 8 * first
        if self.scores is None:
            self.scores = start
        expect(start == self.scores, "has moved the scores during a pass")

    def read(self) -> bytes:
        """Return all scores as they are now."""
        expect(self.proven, "begins a pass before the last one is complete")
        assert self.scores is not None
        return ctypes.string_at(self.scores, 8 * self.rows)


class Passes:
    """Follows one training and answers every derivative call of it.

    Parameters
    ----------
    labels, weight : float32 arrays of shape (rows,)
        What CatBoost must show for each row; ``weight`` may be None.
    start : float64 array of shape (rows,)
        The scores that training starts from.
    gradients : callable
        From scores, and whether a new tree begins, to gradient and Hessian.
    newton_splits : bool
        If true, Hessians are the weights of rows when CatBoost scores splits.
    """

    def __init__(
        self, labels: np.ndarray, weight: np.ndarray | None, start: np.ndarray, gradients: Gradients,
        newton_splits: bool,
    ) -> None:  # fmt: skip
        self._labels = labels
        self._weight = weight
        self._start = start
        self._gradients = gradients
        self._owner = threading.get_ident()  # the thread that called fit; its first block of a vector starts at row 0
        self._lock = threading.RLock()  # written in C, so that Ctrl-C cannot leave it locked
        self._turn = threading.Condition(self._lock)
        self._failure: Exception | None = None
        self._structure = Vector(len(labels))
        self._leaves = Vector(len(labels))
        self._blocks: dict[int, tuple[Vector, int, int]] = {}  # address of a block's labels -> first and last row
        self._now: Vector | None = None
        self._seen: set[int] = set()  # blocks answered in this pass
        self._left = 0  # rows not yet answered in this pass
        self._scores: bytes | None = None  # of this pass; None while they are those at the start
        self._newton_splits = newton_splits
        self._alone: int | None = None  # the thread that answers, or EVERY_THREAD
        self._waiting = 0  # rows of the blocks whose threads stand aside
        self._lent: list[tuple[np.ndarray, np.ndarray]] = []  # weights of blocks, and what was in them
        self._answers = np.empty((0, 2))
        self._split_weights: np.ndarray | None = None
        self._compute(start, self._structure)

    def answer(self, scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return the derivatives of one block, asked for in any thread. After a failure every later call raises it."""
        try:
            with self._lock:
                self._stand_aside(len(labels))
                if self._failure is None:
                    return self._answer(scores, labels, weight)
        except Exception as error:
            self._failure = self._failure or error
            raise self._failure from None
        except BaseException:  # Ctrl-C in the thread that called fit; others may wait for it
            self._failure = LTRError("the training was interrupted")
            raise
        raise self._failure.with_traceback(None) from None

    def _stand_aside(self, rows: int) -> None:
        """Wait while another thread answers.

        To hand the interpreter's lock from one thread to the next takes several times as long as an answer. A thread
        that waits here leaves its other blocks to the first one. Once that one has no more, every thread goes on.
        """
        me = threading.get_ident()
        if self._alone is None:
            self._alone = me
        self._waiting += rows
        try:
            while self._alone not in (me, EVERY_THREAD) and self._failure is None:
                left = self._left
                if left > self._waiting:
                    self._turn.wait(PAUSE_SECONDS)
                if left == self._left:
                    self._let_every_thread_go_on()
        finally:
            self._waiting -= rows

    def _let_every_thread_go_on(self) -> None:
        """Let all threads answer until the pass ends."""
        self._alone = EVERY_THREAD
        self._turn.notify_all()

    def _answer(self, scores: np.ndarray, labels: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        address = address_of(labels)
        vector, first, last = self._blocks.get(address) or self._learn(address, labels, weight)
        expect(len(scores) == len(labels) == last - first, "cuts the rows into other blocks than before")
        if vector is not self._now or address in self._seen:
            self._begin(vector, address_of(scores) - 8 * first)
        if not vector.proven:
            vector.locate(first, scores)
        self._check_scores(first, last, scores)
        self._seen.add(address)
        self._left -= last - first
        if self._left <= 0:
            expect(self._left == 0 and (vector.proven or vector.tiled()), "asks for a row twice")
            vector.proven, self._alone = True, None
        elif self._left <= self._waiting:
            self._let_every_thread_go_on()
        if vector is self._structure and self._split_weights is not None:
            require(weight is not None and weight.flags.writeable, NO_WEIGHTS)
            assert weight is not None
            self._lent.append((weight, weight.copy()))
            weight[:] = self._split_weights[first:last]
        return self._answers[first:last]

    def _learn(self, address: int, labels: np.ndarray, weight: np.ndarray | None) -> tuple[Vector, int, int]:
        """Find the vector of a block never seen before, and note the block's place in it."""
        if self._now is None:
            vector = self._structure
        elif self._now is self._structure and self._left == 0:
            vector = self._leaves
        else:
            vector = self._now
        if vector.labels is None:
            self._locate(vector, address)
        self._blocks[address] = block = vector.add(address, len(labels))
        _, first, last = block
        expect(np.array_equal(labels, self._labels[first:last]), "shows other labels, or another order, than the pool")
        self._check_weight(weight, first, last)
        return block

    def _locate(self, vector: Vector, address: int) -> None:
        """Note that row 0 lies at ``address``, in the thread that called fit; the others wait for that."""
        if threading.get_ident() == self._owner:
            vector.labels = address
            self._turn.notify_all()
            return
        until = time.monotonic() + WAIT_SECONDS
        while vector.labels is None and self._failure is None and time.monotonic() < until:
            self._turn.wait(0.1)  # an interrupted thread does not notify
        if self._failure is not None:
            raise self._failure
        expect(vector.labels is not None, "does not begin in the thread that called fit")

    def _check_weight(self, shown: np.ndarray | None, first: int, last: int) -> None:
        known = np.ones(1, np.float32) if self._weight is None else self._weight[first:last]
        require(
            np.all((1.0 if shown is None else shown) == known),
            "CatBoost uses other weights than those known; a pool does not show its group_weight: pass the same values "
            "to catboost_objective(..., group_weight=...)",
        )

    def _begin(self, vector: Vector, scores: int) -> None:
        """Start a pass whose first call is for ``vector``, with row 0 of its scores at ``scores``."""
        before = self._now
        expect(self._left == 0, "begins a pass before the last one is complete")
        if vector is self._leaves and before is self._structure:
            for weight, before_it in self._lent:
                weight[:] = before_it
            self._lent = []
            vector.scores, vector.proven = None, False  # a new tree has new leaves, which start from these scores
        elif before is not None:
            expect(vector is self._leaves or before is self._leaves, "grows a tree without estimating leaves")
            # Reading is safe: the whole vector lay here before, and is in use here now.
            expect(scores == vector.scores, "has moved the scores")
            self._scores = vector.read()
            self._compute(np.frombuffer(self._scores), vector)
        self._now, self._seen, self._left = vector, set(), vector.rows

    def _compute(self, scores: np.ndarray, vector: Vector) -> None:
        """Keep the derivatives in CatBoost's signs, and the weights of a structure."""
        grad, hess = self._gradients(scores, vector is self._structure)
        self._answers = np.empty((len(grad), 2))
        np.negative(grad, out=self._answers[:, 0])
        np.negative(hess, out=self._answers[:, 1])
        if self._newton_splits and vector is self._structure:
            self._split_weights = split_weights(hess)

    def _check_scores(self, first: int, last: int, scores: np.ndarray) -> None:
        if self._scores is not None:
            expect(scores.tobytes() == self._scores[8 * first : 8 * last], "changes scores during a pass")
            return
        start = self._start[first:last]
        require(
            np.all(np.abs(scores - start) <= TOLERANCE * np.maximum(1.0, np.abs(start))),
            "training starts from other scores than those of the pool's baseline or of fit(init_model=...)",
        )
