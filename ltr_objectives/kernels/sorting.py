"""Stable descending order of lists, the first step of every ranking kernel.

* Up to ``SHORT`` documents, the rank of a score is the number of larger scores. Each score is compared with all, in
  whole vectors and without a branch: 3 to 5 ns a document for 120 documents. Insertion would take 12 for 24, because it
  mispredicts every second branch. The scores are compared in float32, twice as many at once. If two are equal there, a
  merge sort follows.
* A longer list is sorted by a map from scores to twice as many buckets as documents, then by insertion: 8 to 11 ns a
  document for any length. Merging would take 41 for 120 documents and 100 for 10,000. The map uses the quartiles of a
  few scores, so outliers do not crowd the buckets. It has two forms: one for scores with or without noise, one for
  positive numbers of different magnitude, such as odds. If many documents share buckets nevertheless, a merge sort
  replaces the insertion.

A score must not be NaN: ``order`` would not be sorted.
"""

from typing import NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, apart, inlined, inlined_kernel, kernel

RUN = 24  # runs are sorted by insertion, then merged; 16 to 32 are equally fast, 8 and 64 slower
SHORT = 192  # the longest list to compare; from here on buckets are faster
BLOCK = 8  # scores that are compared with all in one loop
SAMPLE = 9  # scores whose quartiles stand for the quartiles of all
CROWDED = 16  # from this mean number of documents in a document's bucket on, merging is faster than insertion


class Sorter(NamedTuple):
    """The sorted scores, and scratch. Numba checks whether a signed index is negative, so counts are unsigned."""

    key: np.ndarray
    key2: np.ndarray
    order2: np.ndarray
    rounded: np.ndarray  # float32, for short lists
    counts: np.ndarray  # uint32 by document: larger scores, or the bucket
    start: np.ndarray  # uint32 by bucket
    taken_s: np.ndarray  # of ``head_order``: the scores that it sorts
    taken: np.ndarray  # and their documents


@allocating
def sorter(n):
    """Return scratch to sort lists of up to ``n`` documents."""
    return Sorter(
        key=np.empty(n), key2=np.empty(n + BLOCK), order2=np.empty(n + BLOCK, np.int64),
        rounded=np.empty(SHORT + BLOCK, np.float32), counts=np.empty(n + BLOCK, np.uint32),
        start=np.empty(2 * n, np.uint32), taken_s=np.empty(n + BLOCK), taken=np.empty(n + 1, np.int64),
    )  # fmt: skip


@kernel
def _insertion(key, order, a, b):
    """Sort the ranks from a to b by insertion."""
    for i in range(a + 1, b):
        k = key[i]
        o = order[i]
        j = i
        while j > a and key[j - 1] < k:
            key[j] = key[j - 1]
            order[j] = order[j - 1]
            j -= 1
        key[j] = k
        order[j] = o


@kernel
def _merge(key, order, key2, order2, a, m, b):
    """Merge the sorted ranks from a to m and from m to b into ``key2`` and ``order2``."""
    i, j = a, m
    for t in range(a, b):
        if i < m and (j >= b or key[i] >= key[j]):
            key2[t] = key[i]
            order2[t] = order[i]
            i += 1
        else:
            key2[t] = key[j]
            order2[t] = order[j]
            j += 1


@kernel
def sort_descending(key, order, key2, order2, n):
    """Sort ``key[:n]`` in place, descending and stable, and let ``order[:n]`` follow; the other two are scratch."""
    for a in range(0, n, RUN):
        _insertion(key, order, a, min(a + RUN, n))
    width = RUN
    while width < n:
        for a in range(0, n, 2 * width):
            m = min(a + width, n)
            b = min(a + 2 * width, n)
            if m < b and key[m - 1] < key[m]:
                _merge(key, order, key2, order2, a, m, b)
                for d in range(a, b):
                    key[d], order[d] = key2[d], order2[d]
        width *= 2


@kernel
def _buckets(s, sample, scratch, bucket, most):
    """Write a bucket below ``most`` for each of ``s``, the higher the lower the score."""
    # find the quartiles of a few scores
    step = len(s) // SAMPLE
    for k in range(SAMPLE):
        sample[k] = s[k * step]
    _insertion(sample, scratch, 0, SAMPLE)
    high, middle, low = sample[SAMPLE // 4], sample[SAMPLE // 2], sample[SAMPLE - 1 - SAMPLE // 4]
    last = most - 1.0
    # map positive numbers of different magnitude by their ratio to the middle
    if high > 2.0 * low > 0.0:
        for i in range(len(s)):
            x = most * (middle / (middle + (s[i] if s[i] > 0.0 else 0.0)))
            bucket[i] = np.int32(x if x < last else last)
        return
    # map others by the difference
    half, spread = 0.5 * most, 0.5 * (high - low) + 1e-300
    for i in range(len(s)):
        t = middle - s[i]
        x = half + half * (t / (abs(t) + spread))
        bucket[i] = np.int32(x if x < last else last)  # the last one also if the difference overflows


@kernel
def _distribute(s, order, r: Sorter):
    """Sort ``s`` by buckets."""
    n, key, bucket, start = len(s), r.key, r.counts, r.start[: 2 * len(s)]
    _buckets(s, key, r.order2, bucket, 2 * n)
    # find the first rank of each bucket, and count the documents in the bucket of a document, summed over all
    before, company = np.uint32(0), np.int64(0)
    start[:] = 0
    for i in range(n):
        start[bucket[i]] += np.uint32(1)
    for b in range(2 * n):
        count = start[b]
        start[b] = before
        before += count
        company += np.int64(count) * np.int64(count)
    # write each document at the next rank of its bucket
    for i in range(n):
        d = start[bucket[i]]
        key[d], order[d] = s[i], i
        start[bucket[i]] += np.uint32(1)
    # sort within the buckets
    if company < CROWDED * n:
        _insertion(key, order, 0, n)
    else:
        sort_descending(key, order, r.key2, r.order2, n)


@inlined
def _count_larger(x, blocks, count):
    """Write how many of the ``x`` are larger than each, for whole blocks of them."""
    apart()
    for i in range(blocks * BLOCK):
        count[i] = 0
    for j in range(0, blocks * BLOCK, BLOCK):
        a, b, c, d, e, f, g, h = x[j], x[j + 1], x[j + 2], x[j + 3], x[j + 4], x[j + 5], x[j + 6], x[j + 7]
        for i in range(blocks * BLOCK):
            v = x[i]
            count[i] = count[i] + (a > v) + (b > v) + (c > v) + (d > v) + (e > v) + (f > v) + (g > v) + (h > v)


@inlined_kernel
def _compare(s, order, r: Sorter):
    """Sort ``s`` by comparing all pairs in float32."""
    n, key, x, rank, blocks = len(s), r.key, r.rounded, r.counts, (len(s) + BLOCK - 1) // BLOCK
    # the rank of a score is the number of larger ones
    for i in range(n):
        x[i] = s[i]
    x[n : blocks * BLOCK] = -np.inf
    _count_larger(x, blocks, rank)
    # equal numbers have the same rank, so the sum is smaller; they take ranks in the order of the list
    total = 0
    for i in range(n):
        total += rank[i]
    equal = total < n * (n - 1) // 2
    if equal:
        order[:n] = 0  # by rank: how many equal numbers have been placed from this rank on
        for i in range(n):
            d = rank[i]
            rank[i] += order[d]
            order[d] += 1
    # sort, and correct the order of those that float32 cannot tell apart
    for i in range(n):
        d = np.uint64(rank[i])
        key[d], order[d] = s[i], i
    if equal:
        sort_descending(key, order, r.key2, r.order2, n)


@kernel
def descending_order(s, order, r: Sorter):
    """Write the stable order of descending ``s`` into ``order[:len(s)]``, and the sorted scores into ``r.key``."""
    n = len(s)
    if n <= SHORT:
        _compare(s, order, r)
    else:
        _distribute(s, order, r)


@kernel
def _bound(s, top, groups, order, r: Sorter):
    """Return a bound that ``top`` scores reach, and few more: the ``top``-th largest of the maxima of groups."""
    best = r.taken_s[:groups]
    for i in range(groups):
        best[i] = s[i]
    for a in range(groups, len(s), groups):
        part = s[a : a + groups]
        for i in range(len(part)):
            best[i] = part[i] if part[i] > best[i] else best[i]
    descending_order(best, order, r)
    return r.key[top - 1]


@kernel
def _take_head(s, top, order, r: Sorter):
    """Take the documents that score as high as the ``top``-th, and a few more; return how many, all of a short list."""
    n, groups = len(s), (2 * top + BLOCK - 1) // BLOCK * BLOCK
    if 2 * groups > n or top < 1:
        return n
    bound, found = _bound(s, top, groups, order, r), 0
    for i in range(n):
        r.taken[found] = i
        found += s[i] >= bound
    return found


@kernel
def head_order(s, top, append_rest, order, r: Sorter):
    """Sort at least the documents that score as high as the ``top``-th; return how many are sorted.

    The sorted documents come first in ``order``, their scores in ``r.key``. With ``append_rest``, the rest follow in
    ``order``, in the order of the list. Sorting a tenth of a list takes a quarter of the time of sorting all.
    """
    n, found = len(s), _take_head(s, top, order, r)
    if 2 * found >= n:
        descending_order(s, order, r)
        return n
    # sort those that were taken
    for i in range(found):
        r.taken_s[i] = s[r.taken[i]]
    descending_order(r.taken_s[:found], order, r)
    for d in range(found):
        order[d] = r.taken[order[d]]
    # leave out those that score less than the ``top``-th
    least = r.key[top - 1]
    while r.key[found - 1] < least:
        found -= 1
    # append the rest
    if append_rest:
        rest, count = order[found:n], 0
        for i in range(n):
            if s[i] < least:
                rest[count] = i
                count += 1
    return found


@kernel
def longest_list(ptr, first, last):
    """Count the documents of the longest list of the queries ``first <= q < last``."""
    longest = 0
    for q in range(first, last):
        longest = ptr[q + 1] - ptr[q] if ptr[q + 1] - ptr[q] > longest else longest
    return longest


@kernel
def all_equal(x):
    """Return True if all values are equal."""
    others = 0
    for v in x:
        others += v != x[0]
    return others == 0


@allocating
def sort_lists(first, last, ptr, values, order):
    """Write the stable order of the descending ``values`` of each list, counted from its first row."""
    longest = longest_list(ptr, first, last)
    sort, own = sorter(longest), np.empty(longest, np.int64)
    for q in range(first, last):
        a, b = ptr[q], ptr[q + 1]
        descending_order(values[a:b], own, sort)
        for d in range(b - a):
            order[a + d] = own[d]
