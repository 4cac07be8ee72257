"""Stable descending order of short lists, the step that every ranking kernel begins with."""

import numpy as np

from ltr_objectives.kernels._jit import kernel

RUN = 24  # insertion sort below, merging above; 16 to 32 measured alike, 8 and 64 slower


@kernel
def _insertion(key, order, a, b):
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
                key[a:b] = key2[a:b]
                order[a:b] = order2[a:b]
        width *= 2


@kernel
def descending_order(s, key, order, key2, order2):
    """Write into ``order[:len(s)]`` the stable order of descending ``s`` and into ``key`` the sorted scores."""
    n = len(s)
    for i in range(n):
        key[i] = s[i]
        order[i] = i
    sort_descending(key, order, key2, order2, n)


@kernel
def scratch(n):
    """Key, order and their doubles for lists of up to ``n`` documents."""
    return np.empty(n), np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64)


@kernel
def all_finite(x):
    bad = 0
    for v in x:
        bad += not np.isfinite(v)
    return bad == 0


@kernel
def all_equal(x):
    """Whether there is at most one value."""
    others = 0
    for v in x:
        others += v != x[0]
    return others == 0
