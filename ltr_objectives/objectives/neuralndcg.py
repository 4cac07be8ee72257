r"""NeuralNDCG: NDCG of a differentiable sorting of the documents.

Documents are in the order of descending scores. In the relaxed permutation matrix a row i is a rank and a column j is a
document:

    K_ij = softmax_j(c_ij / tau),  c_i,j+1 - c_ij = (s_j - s_j+1) (2 (i - j) - 1).

c falls off on both sides of the diagonal, quadratically in the distance if gaps are even. So K is a band: only
entries above 4e-18 times that on the diagonal are kept. The diagonal is at least 1/n, so that no sum is near 0.

Sinkhorn scaling multiplies rows by u and columns by v until the rows and columns of P = u K v add up to 1. A round is
one sweep over K. For each row it takes ``u_i = 1 / (K v)_i`` and, while the row is in cache, adds ``u_i K_i`` to the
next column sums. The factors of all rounds are kept, O(n) each. The exact gradient goes back through them, one sweep a
round. The derivative of the loss by K is then a sum of outer products of known vectors. Up to a constant of each row,
c_ij is rho_i s_j - sum_k |s_j - s_k| with rho_i = n - 1 - 2i. So with dc_ij, the derivative of the loss by c_ij, only
``C1_j = sum_i rho_i dc_ij`` and ``C0_j = -sum_i dc_ij`` are needed.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ltr_objectives.checks import check_choice, check_integer, check_not_negative, check_positive
from ltr_objectives.kernels._jit import inlined, kernel
from ltr_objectives.kernels.heads import head
from ltr_objectives.kernels.sorting import all_equal, longest_list, sorter
from ltr_objectives.objectives.call import Call
from ltr_objectives.objectives.ndcg import NDCGObjective
from ltr_objectives.objectives.reference import derivatives, reference_head

NEGLIGIBLE = -40.0  # exp(-40) = 4e-18


class Scaling(NamedTuple):
    """The parameters of sorting, and the number of documents that are sorted."""

    tau: float
    rounds: int
    tolerance: float
    transposed: bool
    most: int


@dataclass(frozen=True)
class NeuralNDCG(NDCGObjective):
    r"""NeuralNDCG (Pobrotyn and Białobrzeski, "NeuralNDCG: Direct Optimisation of a Ranking Metric via Differentiable
    Relaxation of Sorting", 2021), eqs. 3, 5 and 6.

    .. math:: -\frac{1}{N} \sum_{d \le k} \frac{(\operatorname{scale}(\hat P)\, G)_d}{\log_2(1 + d)}, \quad
        \hat P_{d \cdot} = \operatorname{softmax} \frac{(n + 1 - 2d)\, s - \sum_j |s - s_j|}{\tau}

    with gains G, ideal DCG N, and Sinkhorn's scaling, which divides columns and rows by their sums in turn. The
    gradient is exact, through every round. The Hessian is an estimate: the absolute value of the gradient, so that no
    leaf exceeds the learning rate. A score gap of about :math:`\tau / n` suffices to separate two documents. So
    gradients grow with the length n of the list: for tied scores the absolute gradients of a query add up to the order
    of :math:`n / (\tau \log n)`. A query takes at most O(n^2) a round. It takes far less if scores differ, because
    each rank mixes only documents close to it.

    Parameters
    ----------
    k : int, optional
        Cutoff; None is the whole list.
    temperature : float
        :math:`\tau`; the loss approaches NDCG as it goes to 0. The paper has 1, for scores between -1 and 1. Here 10
        trained far better than 1 and 100 in XGBoost and LightGBM: each tree changes scores by up to the learning rate.
    rounds : int
        Largest number of rounds of Sinkhorn's scaling, each of columns and rows; 0 leaves :math:`\hat P` as it is. The
        paper has 30, allRank 50. At most 1,000: every round is kept, and scaling converges or stalls long before.
    tolerance : float
        Scaling stops when all sums are this close to 1.
    transposed : bool
        Scale :math:`\hat P^T` and sum over documents, not ranks: the paper's NeuralNDCG Transposed. The weights of one
        document, a column of :math:`\hat P`, then add up to 1 after any number of rounds; the rows do not. Once scaling
        has converged both losses are the same, with any cutoff.
    max_documents : int
        Longer lists are cut to this many documents: half of them the first ranks, half the most relevant of the others.
        The rest has zero gradient.
    gain : "exp", "linear" or table
        As in :class:`NDCG`.

    Examples
    --------
    >>> grad, hess = NeuralNDCG().gradient_hessian([0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(6), hess.round(6)
    (array([ 0.009227, -0.009227]), array([0.009227, 0.009227]))
    """

    temperature: float = 10.0
    rounds: int = 30
    tolerance: float = 1e-6
    transposed: bool = False
    max_documents: int = 1000

    name: ClassVar[str] = "neuralndcg"
    hessian: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("temperature", self.temperature)
        check_integer("rounds", self.rounds, 0, 1000)
        check_not_negative("tolerance", self.tolerance)
        check_choice("transposed", self.transposed, (True, False))
        check_integer("max_documents", self.max_documents, 2)

    def fill(self, call: Call) -> None:
        how = Scaling(float(self.temperature), int(self.rounds), float(self.tolerance), bool(self.transposed),
                      int(self.max_documents))  # fmt: skip
        call.run(_neuralndcg, call.queries.labels, self.terms(call.queries), how)

    def reference_sort(self, scores: np.ndarray) -> np.ndarray:
        """The scaled relaxed permutation matrix, of shape (ranks, documents), by definition."""
        n = len(scores)
        away = np.sum((scores[:, None] - scores) * np.sign(scores.real[:, None] - scores.real), axis=1)
        x = ((n + 1 - 2 * np.arange(1, n + 1))[:, None] * scores - away) / self.temperature
        p = np.exp(x - np.take_along_axis(x, np.argmax(x.real, axis=1)[:, None], 1))
        p = p / p.sum(axis=1, keepdims=True)
        axes = (1, 0) if self.transposed else (0, 1)  # transposed, the first division changes nothing
        for _ in range(self.rounds):
            for axis in axes:
                p = p / p.sum(axis=axis, keepdims=True)
            if max(np.abs(p.real.sum(axis=axis) - 1.0).max() for axis in axes) < self.tolerance:
                break
        return p

    def reference_loss(self, scores: np.ndarray, labels: np.ndarray) -> Any:
        chosen = reference_head(scores.real, labels, self.max_documents)
        gain = self.reference_gains(labels)[chosen]
        ranks = np.arange(1, len(chosen) + 1)
        weights = np.where(ranks <= (self.k or len(ranks)), 1.0 / np.log2(1.0 + ranks), 0.0)
        return -weights @ self.reference_sort(scores[chosen]) @ gain

    def reference(self, scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return derivatives(self, scores, labels, np.zeros(len(scores)))


@inlined
def _dot(x, y):
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@inlined
def _add_two(row, a, b, x, y):
    for j in range(len(row)):
        x[j] += a * row[j]
        y[j] += b * row[j]


@inlined
def _scale(x, factor):
    for j in range(len(x)):
        x[j] *= factor


class Sorting(NamedTuple):
    """The relaxed permutation matrix and its scaling.

    Row i starts at ``K[i * n]`` and is 0 except at ``lo[i] <= j < hi[i]``. ``U[t]`` and ``V[t]`` are the factors of
    round t, ``X[t]`` the sums of ``rho U[t] K``.
    """

    tau: float
    K: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    U: np.ndarray
    V: np.ndarray
    X: np.ndarray


class Backward(NamedTuple):
    """Derivatives of the loss by the steps of the scaling."""

    by_column: np.ndarray  # the column sums of U K
    by_v: np.ndarray
    x: np.ndarray  # scratch
    C0: np.ndarray  # as at the head of this module, as far as they are known
    C1: np.ndarray
    out: np.ndarray  # by U[tu], at last by the scores


@kernel
def _relaxed_sort(s, sort):
    """Fill the matrix, each row from the diagonal outwards."""
    n, tau, K, lo, hi = len(s), sort.tau, sort.K, sort.lo, sort.hi
    for i in range(n):
        row = K[i * n : (i + 1) * n]
        row[i] = 1.0
        total, c, j = 1.0, 0.0, i
        while j + 1 < n:
            c -= (s[j] - s[j + 1]) * (2.0 * (j - i) + 1.0) / tau
            if not c > NEGLIGIBLE:
                break
            j += 1
            row[j] = math.exp(c)
            total += row[j]
        hi[i] = j + 1
        c, j = 0.0, i
        while j > 0:
            c -= (s[j - 1] - s[j]) * (2.0 * (i - j) + 1.0) / tau
            if not c > NEGLIGIBLE:
                break
            j -= 1
            row[j] = math.exp(c)
            total += row[j]
        lo[i] = j
        _scale(row[j : hi[i]], 1.0 / total)


@kernel
def _sinkhorn(n, how, sort, w, stop):
    """Fill the factors; return the last round of V and that of U. ``w`` is scratch."""
    K, lo, hi, U, V, X = sort.K, sort.lo, sort.hi, sort.U, sort.V, sort.X
    rounds, tolerance, transposed = how.rounds, how.tolerance, how.transposed
    U[0, :n], V[0, :n] = 1.0, 1.0
    w[:n], X[0, :n] = 0.0, 0.0
    for i in range(n):
        a, b = lo[i], hi[i]
        _add_two(K[i * n + a : i * n + b], 1.0, n - 1.0 - 2.0 * i, w[a:b], X[0, a:b])
    for t in range(1, rounds + 1):
        if stop[0]:
            return 0, 0
        for j in range(n):
            V[t, j] = 1.0 / w[j]
        w[:n], X[t, :n] = 0.0, 0.0
        worst = 0.0
        for i in range(n):
            a, b = lo[i], hi[i]
            row = K[i * n + a : i * n + b]
            total = _dot(row, V[t, a:b])
            U[t, i] = 1.0 / total
            worst = max(worst, abs(U[t - 1, i] * total - 1.0)) if transposed else worst
            _add_two(row, U[t, i], U[t, i] * (n - 1.0 - 2.0 * i), w[a:b], X[t, a:b])
        if transposed:
            if worst < tolerance or t == rounds:
                return t, t - 1
            continue
        for j in range(n):
            worst = max(worst, abs(w[j] * V[t, j] - 1.0))
        if worst < tolerance:
            return t, t
    return rounds, rounds


@kernel
def _by_matrix(n, g, d, tv, tu, sort, space, stop):
    """Take the derivatives of ``-sum_i d_i (P g)_i``, with ``P = U[tu] K V[tv]``, back to K.

    The derivatives go back through the steps of each round t: the column sums of U[t - 1] K, V[t] = 1 / column sums,
    the row sums of K V[t], U[t] = 1 / row sums. Each of the two sums adds an outer product to the derivative by K. Of
    these, C1 takes the sums over rows, with the factor rho_i. C0 needs none of them: scaling undoes a factor of a
    column, so the derivative by K has no part along the columns of K.
    """
    K, lo, hi, U, V, X = sort.K, sort.lo, sort.hi, sort.U, sort.V, sort.X
    by_column, by_v, x, C0, C1, out = space.by_column, space.by_v, space.x, space.C0, space.C1, space.out
    for j in range(n):
        by_v[j], x[j], C1[j] = 0.0, 0.0, 0.0
        by_column[j] = V[tv, j] * g[j]  # for now: the factor of U[tu] K in the loss
    for i in range(n):
        a, b = lo[i], hi[i]
        row = K[i * n + a : i * n + b]
        out[i] = -d[i] * _dot(row, by_column[a:b])
        direct = -d[i] * U[tu, i]
        _add_two(row, direct, direct * (n - 1.0 - 2.0 * i), by_v[a:b], x[a:b])
    for j in range(n):
        by_v[j] *= g[j]
        C1[j] += by_column[j] * x[j]
        C0[j] = -by_v[j] if tv == 0 else 0.0  # without a round nothing undoes a factor
        by_column[j] = 0.0
    for t in range(tv, 0, -1):
        if stop[0]:
            return
        if t <= tu:  # U[t] is used, in the loss or by the column sums of the next round
            x[:n] = 0.0
            for i in range(n):
                a, b = lo[i], hi[i]
                row = K[i * n + a : i * n + b]
                by_u = (out[i] if t == tu else 0.0) + (_dot(row, by_column[a:b]) if t < tv else 0.0)
                by_row = -U[t, i] * U[t, i] * by_u
                _add_two(row, by_row, by_row * (n - 1.0 - 2.0 * i), by_v[a:b], x[a:b])
            for j in range(n):
                C1[j] += V[t, j] * x[j]
        for j in range(n):
            by_column[j] = -V[t, j] * V[t, j] * by_v[j]
            C1[j] += by_column[j] * X[t - 1, j]
            by_v[j] = 0.0


@kernel
def _by_scores(s, tu, sort, space):
    """Turn the derivatives by column sums and by U[0] into those by the scores, in ``space.out``."""
    n, tau, K, lo, hi = len(s), sort.tau, sort.K, sort.lo, sort.hi
    by_column, x, C0, C1, out = space.by_column, space.x, space.C0, space.C1, space.out
    x[:n] = 0.0
    for i in range(n):  # through the softmax of each row, which removes the mean of the derivative
        a, b = lo[i], hi[i]
        row = K[i * n + a : i * n + b]
        mean = _dot(row, by_column[a:b]) + (out[i] if tu == 0 else 0.0)
        _add_two(row, mean, mean * (n - 1.0 - 2.0 * i), C0[a:b], x[a:b])
    above, total = 0.0, 0.0
    for j in range(n):
        C0[j] /= tau  # the derivative by sum_k |s_j - s_k|
        C1[j] = (C1[j] - x[j]) / tau
        total += C0[j]
    a = 0
    while a < n:
        b, tied = a, 0.0
        while b < n and s[b] == s[a]:
            tied += C0[b]
            b += 1
        for j in range(a, b):
            out[j] = C1[j] + C0[j] * (n - b - a) + (total - above - tied) - above
        above += tied
        a = b


@kernel
def _neuralndcg(first, last, ptr, scores, labels, terms, how, out):
    longest = longest_list(ptr, first, last)
    sort_space, order, chosen = sorter(longest), np.empty(longest, np.int64), np.empty(longest, np.int64)
    m, rounds = min(longest, how.most), how.rounds
    sort = Sorting(how.tau, np.empty(m * m), np.empty(m, np.int64), np.empty(m, np.int64), np.empty((rounds + 1, m)),
                   np.empty((rounds + 1, m)), np.empty((rounds + 1, m)))  # fmt: skip
    space = Backward(np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m))
    s, g = np.empty(m), np.empty(m)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if terms.scale[q] == 0.0 or all_equal(terms.gain[a:b]) or out.skip[q]:
            continue
        if out.stop[0]:
            return
        n = head(scores[a:b], labels[a:b], how.most, order, chosen, sort_space)
        for i in range(n):
            s[i], g[i] = scores[a + chosen[i]], terms.gain[a + chosen[i]] * terms.scale[q]
        _relaxed_sort(s[:n], sort)
        tv, tu = _sinkhorn(n, how, sort, space.by_column, out.stop)
        _by_matrix(n, g, terms.discount, tv, tu, sort, space, out.stop)
        _by_scores(s[:n], tu, sort, space)
        for i in range(n):
            out.grad[a + chosen[i]] = space.out[i]
