"""Values of metrics by query, with every treatment of tied scores."""

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.records import Terms
from ltr_objectives.kernels.sorting import Sorter, descending_order, head_order, longest_list, sort_descending, sorter
from ltr_objectives.kernels.swaps import AVERAGE, CASCADE, LINEAR, NEGLIGIBLE, discounted

RELEVANT = 6  # beside the families of swaps, and not learned: the scale is one over a cutoff
AVERAGE_TIES, INPUT_TIES, WORST_TIES, BEST_TIES = range(4)


@kernel
def _order_ties(g, ties, n, order, more, r: Sorter):
    """Reorder each run of equal keys by gain: ascending for the worst case, descending for the best."""
    key, sign = r.key, -1.0 if ties == WORST_TIES else 1.0
    a = 0
    while a < n:
        b = a + 1
        while b < n and key[b] == key[a]:
            b += 1
        if b - a > 1:
            for d in range(a, b):
                more[d] = sign * g[d]
            sort_descending(more[a:b], order[a:b], r.key2, r.order2, b - a)
            for d in range(a, b):
                g[d] = sign * more[d]
        a = b


@inlined_kernel
def _end_of_tie(key, a, n, average):
    """Return the rank below the run of equal keys from rank ``a`` on; only averaged ties have runs of several."""
    b = a + 1
    while average and b < n and key[b] == key[a]:
        b += 1
    return b


@kernel
def _linear(key, g, w, n, average):
    """Return the sum of gain times discount; documents of a tie have its mean gain."""
    total, a = 0.0, 0
    while a < n and w[a] > 0.0:
        b = _end_of_tie(key, a, n, average)
        sum_g, sum_w = g[a], w[a]
        for d in range(a + 1, b):
            sum_g += g[d]
            sum_w += w[d]
        total += sum_g * sum_w if b == a + 1 else sum_g * sum_w / (b - a)
        a = b
    return total


@kernel
def _chances_of_tie(g, most, p):
    """Fill ``p[j]``, the chance that j documents of a tie all fail to satisfy the user, averaged over all choices of j.

    Documents without gain come first: for them ``p`` is 1. ``p`` decreases, and what is beyond ``most`` or negligible
    is left out, so that a tie of m documents takes O(m log m), not O(m^2). Returns the last j that is kept.
    """
    i = 0
    for x in g:
        i += x == 0.0
    top = min(i, most)
    p[: top + 1] = 1.0
    for x in g:
        if x == 0.0:
            continue
        i += 1
        if top < most:
            top += 1
            p[top] = 0.0
        for j in range(top, 0, -1):
            share = j / i
            p[j] = (1.0 - share) * p[j] + share * (1.0 - x) * p[j - 1]
        while p[top] < NEGLIGIBLE:
            top -= 1
    return top


@kernel
def _cascade(key, g, w, n, average, p):
    """Return the value of a cascade, averaged over the orders of each tie; ``p`` is scratch."""
    total, open_, a = 0.0, 1.0, 0
    while a < n and w[a] > 0.0:
        b = _end_of_tie(key, a, n, average)
        if b - a == 1:
            total += w[a] * g[a] * open_
            open_ *= 1.0 - g[a]
        else:
            most = discounted(w[a:b], b - a)
            top = _chances_of_tie(g[a:b], most, p)
            for j in range(min(top + 1, most)):
                total += w[a + j] * open_ * (p[j] - (p[j + 1] if j < top else 0.0))
            open_ *= p[b - a] if top == b - a else 0.0
        a = b
    return total


@kernel
def _average(key, g, w, n, average):
    """Return average precision; ties as in McSherry and Najork, "Computing information retrieval performance measures
    efficiently in the presence of tied scores", ECIR 2008."""
    total, count, a = 0.0, 0.0, 0
    while a < n and w[a] > 0.0:
        b = _end_of_tie(key, a, n, average)
        m, r = b - a, g[a]
        for d in range(a + 1, b):
            r += g[d]
        slope = (r - 1.0) / (m - 1.0) if m > 1 else 0.0
        for j in range(m):
            total += w[a + j] * (r / m) * (count + 1.0 + j * slope)
        count += r
        a = b
    return total


@kernel
def _scaled(value, scale):
    """Return ``value * scale``, or over 1 / scale if that is whole: 3 hits of 5 are 0.6, which 3 * 0.2 is not."""
    whole = np.rint(1.0 / scale)
    return value / whole if scale == 1.0 / whole else value * scale


@allocating
def metric_values(first, last, ptr, s, terms: Terms, ties, out: np.ndarray):
    """Write the value of each query ``first <= q < last``."""
    longest, w = longest_list(ptr, first, last), terms.discount
    sort, order = sorter(longest), np.empty(longest, np.int64)
    g, more = np.empty(longest), np.empty(longest + 1)
    ranks = discounted(w, longest)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        if terms.scale[q] == 0.0:
            out[q] = terms.offset[q]
            continue
        n = head_order(s[a:b], min(ranks, b - a), False, order, sort)
        for d in range(n):
            g[d] = terms.gain[a + order[d]]
        if ties in (WORST_TIES, BEST_TIES):
            _order_ties(g, ties, n, order, more, sort)
        key, average = sort.key, ties == AVERAGE_TIES
        if terms.kind == LINEAR:
            value = _linear(key, g, w, n, average)
        elif terms.kind == CASCADE:
            value = _cascade(key, g, w, n, average, more)
        elif terms.kind == AVERAGE:
            value = _average(key, g, w, n, average)
        else:
            more[:n] = 0.0
            more[: np.intp(np.rint(1.0 / terms.scale[q]))] = 1.0
            value = _linear(key, g, more, n, average)
        out[q] = terms.offset[q] + _scaled(value, terms.scale[q])


@allocating
def best_terms(first, last, ptr, values, by_label, discount, terms):
    """Sort the values of the queries ``first <= q < last`` and write value times discount at each rank."""
    longest = longest_list(ptr, first, last)
    sort, order = sorter(longest), np.empty(longest, np.int64)
    for q in range(first, last):
        a, n, rises = ptr[q], ptr[q + 1] - ptr[q], 0
        best = terms[a - ptr[first] : a - ptr[first] + n]
        for d in range(n):
            best[d] = values[a + by_label[a + d]]
            rises += d > 0 and best[d] > best[d - 1]
        if rises > 0:  # a gain need not grow with the label
            descending_order(values[a : a + n], order, sort)
            for d in range(n):
                best[d] = sort.key[d]
        for d in range(n):
            best[d] *= discount[d]
