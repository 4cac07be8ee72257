"""What a gradient over all pairs of a long list costs, said before the first one is computed."""

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np

from ltr_objectives.errors import LTRWarning
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.queries import Queries

if TYPE_CHECKING:
    from ltr_objectives.objectives.base import Objective

LONG = 10_000  # documents of a query: shorter ones take seconds at most
MANY_PAIRS = 2e9  # of a query: fewer take seconds at most
WORTH_SAYING = 10.0  # seconds of a gradient


def warn_if_long(objective: "Objective", queries: Queries, scores: np.ndarray, n_threads: int | None) -> None:
    """Warn, once for a data set, where a gradient takes long for the pairs of its longest query."""
    if queries.longest > LONG:
        queries.once(("cost", objective.name), lambda: _warn(objective.inner, queries, scores, n_threads))


def _warn(objective: "Objective", queries: Queries, scores: np.ndarray, n_threads: int | None) -> None:
    pairs = objective.pairs_visited(queries)
    if pairs is None or pairs.max() < MANY_PAIRS:
        return
    threads = available_threads() if n_threads in (None, -1) else int(n_threads)
    seconds = _seconds_per_pair(objective, queries, scores) * max(pairs.max(), pairs.sum() / threads)
    if seconds < WORTH_SAYING:
        return
    warnings.warn(
        f"{objective.name} looks at {pairs.max():.1e} pairs of documents in a query of {queries.longest} documents, so "
        f"that each gradient takes about {in_words(seconds)} here: {objective.fewer_pairs}, or cut or split the query",
        LTRWarning,
        stacklevel=7,
    )


def _seconds_per_pair(objective: "Objective", queries: Queries, scores: np.ndarray) -> float:
    """Timed on part of the pairs of the longest query; 0 where its time does not grow with the pairs.

    All its documents take part, since a pair takes several times as long in a list that does not fit into the
    processor's caches. The part grows until it takes twice as long as what the documents take without pairs.
    """
    q = int(np.argmax(np.diff(queries.ptr)))
    rows = slice(queries.ptr[q], queries.ptr[q + 1])
    propensity = None if queries.propensity is None else queries.propensity[rows]
    query = Queries(queries.labels[rows], [queries.longest], propensity=propensity)

    def measure(ranks: int) -> tuple[float, float]:
        part, of = objective.part_of_pairs(query, ranks)
        of.once(("cost", part.name), lambda: None)  # nothing to say of the part
        start = time.process_time()  # of the process: the time that others take says nothing
        part.compute(of, scores[rows], n_threads=1)
        seconds = time.process_time() - start
        [pairs] = part.pairs_visited(of)  # type: ignore[misc]  # None was seen before
        return seconds, float(pairs)

    ranks = 2
    without, few = min(measure(ranks), measure(ranks))  # the first may compile
    while 4 * ranks < queries.longest:
        ranks *= 4
        seconds, pairs = measure(ranks)
        if seconds > 2 * without:
            seconds = min(seconds, measure(ranks)[0])
        if seconds > 2 * without:
            return (seconds - without) / (pairs - few)
    return 0.0


def in_words(seconds: float) -> str:
    """A time, to two digits.

    >>> in_words(12.3), in_words(200.0), in_words(7000.0)
    ('12 seconds', '3.3 minutes', '1.9 hours')
    """
    for unit, length in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= length:
            return f"{seconds / length:,.2g} {unit}" if seconds < 10 * length else f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} seconds"
