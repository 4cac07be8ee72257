"""XGBoost trained by several workers: each has rows of its own, all must go on together, and metrics are global."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ltr_objectives.errors import LTRError

T = TypeVar("T")


def workers() -> int:
    """How many workers train this model: 1 unless Dask, Spark or the like has connected several."""
    from xgboost import collective

    return int(collective.get_world_size())


def agreed(compute: Callable[[], T], rows: int, empty: T) -> T:
    """``compute()``, or ``empty`` on a worker without rows; an error on one worker is raised on all.

    Without that the others would wait for the one that failed.
    """
    from xgboost import collective

    result, failure = empty, None
    try:
        if rows:
            result = compute()
    except Exception as error:
        failure = error
    here = 0 if failure is None else collective.get_rank() + 1
    failed = int(collective.allreduce(np.array([here], np.int32), collective.Op.MAX)[0])
    if failed:
        message = collective.broadcast(str(failure), failed - 1)
        raise failure or LTRError(message)
    return result


def added(values: np.ndarray) -> np.ndarray:
    """The sum over all workers."""
    from xgboost import collective

    return collective.allreduce(values, collective.Op.SUM).reshape(values.shape)
