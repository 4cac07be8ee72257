"""Gains and discounts that metrics take by name, and relevance by threshold."""

from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ltr_objectives.checks import check_choice, is_number
from ltr_objectives.errors import LTRError, require, shown
from ltr_objectives.kernels.threads import chunk_bounds
from ltr_objectives.kernels.values import best_terms
from ltr_objectives.queries import Queries, vector

PART = 100_000  # rows
LARGEST_GRADE = 31  # as in LightGBM's table of gains
SMALLEST = 1e-290  # the reciprocal of a smaller ideal or mean may overflow, so it counts as 0
GainType = Literal["exp", "linear"] | tuple[float, ...]
DiscountType = Literal["log2", "log2-rank", "reciprocal"] | tuple[float, ...]
DISCOUNTS = ("log2", "log2-rank", "reciprocal")
LARGEST_EXPONENT = 1000.0  # 2^1000 is finite, and so are sums of ten thousand of them


def read_gain(argument: str, gain: object) -> str | tuple[float, ...]:
    """Return the name of a gain, or a table of non-decreasing gains by label as a tuple."""
    return _read_table(argument, gain, ("exp", "linear"), "label 0, 1, 2, ...", "not decrease with the label")


def read_discount(argument: str, discount: object) -> str | tuple[float, ...]:
    """Return the name of a discount, or a table of non-increasing discounts by rank as a tuple."""
    return _read_table(argument, discount, DISCOUNTS, "rank 1, 2, ...", "not increase with the rank")


def _read_table(argument: str, value: object, names: tuple[str, ...], each: str, must: str) -> str | tuple[float, ...]:
    if isinstance(value, str):
        check_choice(argument, value, names)
        return value
    table = numbers_of(argument, value, "a name or a table of numbers")
    require(table, f"{argument} must be {', '.join(map(repr, names))} or a table: one number per {each}")
    ordered = sorted(table, reverse=names == DISCOUNTS)
    good = np.isfinite(table).all() and min(table) >= 0 and list(table) == ordered
    require(good, f"{argument}={table!r} must be finite, not negative and {must}")
    return table


def gain_limit(gain: str | tuple[float, ...]) -> float | None:
    """Return the largest label with a gain; None without a limit."""
    if gain == "exp":
        return LARGEST_EXPONENT
    return None if gain == "linear" else float(len(gain) - 1)


def apply_gain(gain: str | tuple[float, ...], labels: np.ndarray) -> np.ndarray:
    """Return the gain of each label: ``2^y - 1``, ``y`` or the table's entry."""
    if isinstance(gain, str):
        return np.exp2(labels) - 1.0 if gain == "exp" else labels
    index = labels.astype(np.int64)
    require(
        (index == labels).all(),
        "a gain table needs whole-numbered labels; use 'exp' or 'linear' for fractions",
    )
    return np.asarray(gain, np.float64)[index]


def apply_discount(discount: str | tuple[float, ...], ranks: np.ndarray) -> np.ndarray:
    """Return the discount of 1-based ranks: ``1/log2(1+d)``, ``1/max(1,log2(d))``, ``1/d`` or the table's, 0 beyond."""
    if discount == "log2-rank":
        return 1.0 / np.maximum(1.0, np.log2(ranks))
    if isinstance(discount, str):
        return 1.0 / np.log2(1.0 + ranks) if discount == "log2" else 1.0 / ranks
    table = np.asarray(discount, np.float64)
    return np.where(ranks <= len(table), table[np.minimum(ranks, len(table)) - 1], 0.0)


def relevant(labels: np.ndarray, threshold: float) -> np.ndarray:
    """Return 1 if the label is above ``threshold``, else 0."""
    return (labels > threshold).astype(np.float64)


def reciprocal(values: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Return ``1 / value``, or 0 for a value of at most ``least``."""
    return np.divide(1.0, values, out=np.zeros(len(values)), where=values > least)


def numbers_of(argument: str, value: Any, wanted: str = "a table of numbers") -> tuple[float, ...]:
    """Convert one number or a table of numbers to a tuple; masked values, dates and text raise."""
    try:
        table: list[float] = vector(argument, [value] if is_number(value) else value).tolist()
    except LTRError as error:
        raise LTRError(f"{argument}={shown(value)}: {argument} must be {wanted} ({error})") from None
    return tuple(table)


def best_sums(queries: Queries, values: np.ndarray, discount: np.ndarray) -> np.ndarray:
    """Return ``sum_d discount[d] values[order[d]]`` of each query in descending order of ``values``.

    In parts of whole queries, because new memory for all rows costs more than the sums.
    """
    ptr, found = queries.ptr, np.empty(len(queries))
    bounds = chunk_bounds(ptr, 1 + queries.rows // PART)
    terms = np.empty(np.diff(ptr[bounds]).max())
    for a, b in pairwise(bounds):
        best_terms(a, b, ptr, values, queries.by_label, discount, terms)
        with np.errstate(over="ignore"):
            found[a:b] = np.add.reduceat(terms[: ptr[b] - ptr[a]], ptr[a:b] - ptr[a])
    return found
