"""Goals: names of labels, for data sets that have labels of several kinds, such as relevance and revenue."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from ltr_objectives.errors import did_you_mean, require, shown

NAME = r"[^\s\[\]:;,+*=]+"  # the others have a meaning in the text of objectives, or in what XGBoost prints
AT_THE_END = re.compile(rf"(.*?)(?<!=)\[({NAME})\]\s*", re.DOTALL)  # "gain=[1]" is a parameter
LEAST, LIMIT = (int(np.float32(2.0**exponent).view(np.int32)) for exponent in (64, 120))  # bits of codes


class CodedLabels(dict[str, np.ndarray]):
    """The labels of several goals by code, for libraries that have one label a row.

    Codes are float32 numbers of consecutive bits from ``start``, between 2^64 and 2^120: stored exactly, and no labels.
    """

    start: int = LEAST

    def read(self, codes: np.ndarray) -> dict[str, np.ndarray]:
        """The labels by goal of rows with these codes."""
        places = codes.view(np.int32) - self.start
        return {goal: labels[places] for goal, labels in self.items()}


def coded_by(labels: Any, tables: Iterable[CodedLabels]) -> CodedLabels | None:
    """The one of ``tables`` that has the codes in ``labels``; None if ``labels`` are no codes.

    >>> table, bits = CodedLabels(relevance=np.array([0, 1]), revenue=np.array([7, 0])), np.array([1, 0, 0], np.int32)
    >>> coded_by((codes := (LEAST + bits).view(np.float32)), [table]).read(codes)
    {'relevance': array([1, 0, 0]), 'revenue': array([0, 7, 7])}
    """
    if getattr(labels, "dtype", None) != np.float32 or not labels.size or not (labels >= 2.0**64).all():
        return None
    first, last = labels.min().view(np.int32), labels.max().view(np.int32)
    found = [t for t in tables if t.start <= first and last < t.start + len(next(iter(t.values())))]
    require(len(found) == 1, "the labels are codes of goals; pass labels=data.labels of data = dask_by_query(...)")
    return found[0]


def check_goal(goal: object) -> None:
    """Raise unless ``goal`` can name labels."""
    good = isinstance(goal, str) and re.fullmatch(NAME, goal)
    require(good, f"{shown(goal)} cannot name labels; choose a name without spaces and without any of [ ] : ; , + * =")


def split_goal(text: str) -> tuple[str, str | None]:
    """Text and the goal in brackets at its end, None without one.

    >>> split_goal("ndcg@10[revenue]"), split_goal("ndcg@10")
    (('ndcg@10', 'revenue'), ('ndcg@10', None))
    """
    found = AT_THE_END.fullmatch(text)
    return (text, None) if found is None else (found[1], found[2])


def with_goal(text: str, goal: str | None) -> str:
    """``text`` with the goal in brackets, as :func:`split_goal` reads it."""
    return text if goal is None else f"{text}[{goal}]"


def check_read(given: Iterable[str], read: Iterable[str], reader: str) -> None:
    """Raise for labels that are ``given`` but not ``read``: probably a goal was left out, or misspelt."""
    known = tuple(read)
    unused = next((goal for goal in given if goal not in known), None)
    have = f"it reads {', '.join(map(repr, known))}" if known else "it reads no goal"
    require(
        unused is None,
        f"labels has {unused!r}, which {reader} does not read ({have}); leave it out, or name it in brackets, as in "
        f"'yetiloss:ndcg@10+0.3*yetiloss:ndcg@10[{unused}]'{did_you_mean(unused, known)}",
    )
