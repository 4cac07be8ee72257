"""Means over queries by data set, library, objective and metric, beside the library's best native objective."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives.adapters._libraries import LIBRARIES
from ltr_objectives.comparison.statistics import differences, mark, mean, standard_error
from ltr_objectives.comparison.texts import marked, short

CAPTION = (
    "Means over test queries, standard errors in brackets. {0} better, {1} worse than the library's own best objective "
    "for this metric: paired t-test, p < {2:g} after Holm's correction over the objectives of the library. Bold: best "
    "of the library."
)
Key = tuple[str, str, str, str]  # data set, library, label, metric
Values = dict[Key, np.ndarray]  # by query


def randomisation_p(a: np.ndarray, b: np.ndarray, draws: int = 9999) -> float:
    """Two-sided p of the paired randomisation test: the share of random signs with as large a mean difference.

    >>> randomisation_p(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    1.0
    """
    difference = (a - b)[~np.isnan(a - b)]
    if not difference.any():
        return 1.0
    signs, every = _signs(len(difference), draws)
    sums = np.concatenate([part @ difference for part in np.array_split(signs, max(1, signs.size // 10**7))])
    reached = np.count_nonzero(np.abs(sums) >= np.abs(difference.sum()) * (1 - 1e-9))
    return float(reached / len(signs)) if every else float((reached + 1) / (len(signs) + 1))


@lru_cache(1)
def _signs(n: int, draws: int) -> tuple[np.ndarray, bool]:
    """Rows of n signs, all or ``draws`` random ones, and whether they are all; cached for the next test."""
    every = n < 63 and 2**n <= draws
    if every:
        bits = np.arange(2**n)[:, None] >> np.arange(n) & 1
    else:
        bits = np.random.default_rng(0).integers(0, 2, (draws, n), np.int8)
    return (2 * bits - 1).astype(np.int8), every


def is_native(library: str, label: str) -> bool:
    """Whether the label is one of the library's own objectives."""
    return library in LIBRARIES and LIBRARIES[library].knows(label)


def named(library: str, label: str) -> str:
    """A label, marked as native if it is the library's own."""
    return f"{label} (native)" if is_native(library, label) else label


def block_of(values: Values, data: str, library: str, metric: str) -> dict[str, np.ndarray]:
    """The values of one library and metric, by label."""
    return {key[2]: v for key, v in values.items() if (key[0], key[1], key[3]) == (data, library, metric)}


def best_of(block: Mapping[str, np.ndarray], weight: np.ndarray | None = None) -> str:
    """The label with the largest mean."""
    return max(block, key=lambda label: mean(block[label], weight))


def summary(
    values: Values,
    reference: Callable[[dict[str, np.ndarray], np.ndarray | None], str] = best_of,
    *,
    randomise: bool = True,
    weights: Mapping[str, np.ndarray | None] | None = None,
) -> pd.DataFrame:
    """Mean and standard error; the difference from the library's best native objective, its error and p values.

    ``p`` is of Student's paired test, after Holm's correction over the objectives of a library. ``p_randomisation`` is
    not corrected, and ignores weights. ``reference`` chooses among the native objectives. ``weights`` are those of
    the queries, by metric.
    """
    records = []
    for data, library, metric in dict.fromkeys((data, library, metric) for data, library, _, metric in values):
        block = block_of(values, data, library, metric)
        natives = {label: v for label, v in block.items() if is_native(library, label)}
        weight = (weights or {}).get(metric)
        rival = reference(natives, weight) if natives else None
        others = {label: v for label, v in block.items() if rival and label != rival}
        found = differences(others, block[rival], weight) if rival else {}
        for label, v in block.items():
            record: dict[str, Any] = {
                "data": data, "library": library, "objective": label, "metric": metric, "native": label in natives,
                "queries": int((~np.isnan(v)).sum()), "mean": mean(v, weight), "se": standard_error(v, weight),
                "reference": rival if label != rival else None,
            }  # fmt: skip
            if rival and label in found:
                of = found[label]
                record |= {"difference": of["difference"], "difference_se": of["se"], "p": of["p"]}
                record |= {"p_randomisation": randomisation_p(v, block[rival])} if randomise else {}
            records.append(record)
    return pd.DataFrame.from_records(records)


def rows_of(block: pd.DataFrame, metrics: Sequence[str], alpha: float) -> list[list[str]]:
    """The lines of a table: library, objective, and each metric with its error and mark."""
    rows = []
    for library, part in block.groupby("library", sort=False):
        best = part.groupby("metric")["mean"].max()
        for objective, lines in part.groupby("objective", sort=False):
            by = lines.set_index("metric")
            cells = []
            for m in metrics:
                if m not in by.index:
                    cells.append("")
                    continue
                line = by.loc[m]
                text = short(line["mean"])
                text = f"**{text}**" if line["mean"] == best[m] and library else text
                sign = mark(line.get("difference"), line.get("p", np.nan), alpha)
                cells.append(marked(f"{text} ({short(line['se'])})", sign))
            rows.append([str(library), named(str(library), str(objective)), *cells])
    return rows
