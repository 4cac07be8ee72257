"""The loop over queries around the loss of one list."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ltr_objectives.kernels._jit import allocating, inlined_kernel, kernel
from ltr_objectives.kernels.sorting import longest_list


class OneList(NamedTuple):
    """The documents of one query."""

    q: int
    first: int  # row
    last: int  # the row after the last one
    s: np.ndarray  # scores
    grad: np.ndarray  # zeros, to be written
    hess: np.ndarray
    skip: np.ndarray  # one bool, which becomes True if the rest is not wanted any more


@kernel
def no_scratch(longest, data):
    """Return the scratch of a loss that needs none."""


def each_list(scratch: Any, loss: Any) -> Callable[..., Any]:
    """Return the kernel that calls ``loss(one, data, arrays)``, which writes derivatives, for the queries not skipped.

    ``data`` is what the objective passes, with all rows. ``arrays`` is what ``scratch(longest, data)`` returns, for
    lists of up to ``longest`` documents.
    """

    @inlined_kernel
    def add_list(q, ptr, s, data, arrays, out):  # allocates nothing, so numba counts no references here
        a, b, first = ptr[q], ptr[q + 1], out.first
        grad, hess = out.grad[a - first : b - first], out.hess[a - first : b - first]
        one = OneList(q=q, first=a, last=b, s=s[a:b], grad=grad, hess=hess, skip=out.skip[q : q + 1])
        loss(one, data, arrays)

    @allocating
    def lists(first, last, ptr, s, data, out):
        arrays = scratch(longest_list(ptr, first, last), data)
        for q in range(first, last):
            if not out.skip[q]:
                add_list(q, ptr, s, data, arrays, out)

    return lists
