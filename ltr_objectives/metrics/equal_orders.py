"""Warnings of metrics for which every ranking of some data is as good."""

from collections.abc import Iterable

import numpy as np

from ltr_objectives.errors import warn
from ltr_objectives.metrics.base import Metric
from ltr_objectives.queries import Queries


def warn_of_equal_orders(metrics: Iterable[Metric], queries: Queries, where: str, n_threads: int | None = None) -> None:
    """Warn if every order of the documents has the same value of a metric, or of a part of a sum, on data ``where``."""
    for metric in _parts(metrics):
        if not metric._same_for_every_order(queries, n_threads):
            continue
        labels, threshold = np.unique(queries.for_goal(metric.goal).labels), getattr(metric, "threshold", None)
        remedy = "correct the labels, or name another metric"
        if len(labels) > 1 and threshold is not None and not labels[0] <= threshold < labels[-1]:  # as of stars 1 to 5
            middle = labels[(len(labels) - 1) // 2 :][:2].mean()
            written = f"{metric.name}(threshold={middle:g})" + (f"@{metric.k}" if metric.k else "")
            remedy = (
                f"labels are from {labels[0]:g} to {labels[-1]:g}, and those above {threshold:g} are relevant; set the "
                f"threshold, as in {written!r}"
            )
        warn(f"{where}: every order of the documents has the same {metric}; {remedy}")


def warn_if_all_relevant(metrics: Iterable[Metric], queries: Queries, where: str, n_threads: int | None = None) -> None:
    """Warn of a metric whose threshold is below or above all labels, such as MAP of stars 1 to 5."""
    for metric in _parts(metrics) if len(queries) > 1 else ():
        labels, threshold = queries.for_goal(metric.goal).labels, getattr(metric, "threshold", None)
        if threshold is not None and labels.min() < labels.max() and not labels.min() <= threshold < labels.max():
            warn_of_equal_orders([metric], queries, where, n_threads)


def _parts(metrics: Iterable[Metric]) -> list[Metric]:
    """Return each metric once; of a sum its parts."""
    return [*dict.fromkeys(part for metric in metrics for _, part in metric.parts)]
