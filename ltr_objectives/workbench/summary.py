"""From the records of trials to means over queries, beside the library's best native objective."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives.libraries import is_native, named
from ltr_objectives.statistics import differences, mark, mean, standard_error
from ltr_objectives.workbench.texts import marked

CAPTION = (
    "Means over test queries, standard errors in brackets. {0} better, {1} worse than {3}: paired t-test, p < {2:g} "
    "after Holm's correction over the objectives of the library. Bold: best of the library."
)
OWN_BEST = "the library's own best objective for this metric"
Key = tuple[str, str, str, str]  # data set, library, label, metric
Values = dict[Key, np.ndarray]  # by query
POOLED = "all data sets"


def chosen(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """One line per fold, library, label and metric, of the budget with the best vali value."""
    lines = []
    for r in records:
        for metric, values in r["test"].items():
            data, source, seed, *_ = r["fold"]
            stop = r.get("stop") or metric  # whose vali value chooses
            lines.append({
                "data": data, "fold": source, "seed": seed, "library": r["library"], "label": r["label"],
                "metric": metric, "learning_rate": r.get("tuned", r["budget"])["learning_rate"],
                "params": " ".join(f"{name}={value}" for name, value in settings_of(r["budget"])),
                "trees": r["trees"].get(metric), "train": r["train"].get(metric), "vali": r["vali"].get(stop, 0.0),
                "defaults": bool(r["budget"].get("defaults")),
                "seconds": r["seconds"], "values": np.array(values, float), "curve": r.get("curves", {}).get(metric),
            })  # fmt: skip
    frame = pd.DataFrame.from_records(lines)
    keys = ["data", "fold", "seed", "library", "label", "metric"]
    return frame.sort_values("vali", ascending=False, kind="stable").drop_duplicates(keys).sort_index()


def settings_of(budget: dict[str, Any]) -> list[tuple[str, Any]]:
    """By name, the settings of a budget of which a study may try several, without the learning rate."""
    params = list(budget.get("params", ()))
    if budget.get("defaults"):
        return [*params, ("settings", "defaults")]
    if not budget.get("documents"):
        return params
    return [*params, *((name, f"{budget[name]:.3g}") for name in ("leaves", "min_child_weight", "documents"))]


def by_query(frame: pd.DataFrame) -> Values:
    """Values of every test query, by data set and pooled. Folds are joined; seeds on the same rows are averaged.

    An objective without a result in every fold cannot be compared and is left out.
    """
    found: Values = {}
    for (data, metric), part in frame.groupby(["data", "metric"], sort=False):
        folds = sorted({(fold, seed) for fold, seed in zip(part["fold"], part["seed"], strict=True)})
        for (library, label), rows in part.groupby(["library", "label"], sort=False):
            by_fold = {(f, s): v for f, s, v in zip(rows["fold"], rows["seed"], rows["values"], strict=True)}
            if len(by_fold) < len(folds):
                continue
            lists: dict[str, list[np.ndarray]] = {}
            for fold, seed in folds:
                again = f"{fold} {seed}" if data.startswith("generated") else fold
                lists.setdefault(again, []).append(by_fold[fold, seed])
            found[data, library, label, metric] = np.concatenate([np.mean(v, axis=0) for v in lists.values()])
    sets = list(dict.fromkeys(key[0] for key in found))
    if len(sets) > 1:
        for _, library, label, metric in [key for key in found if key[0] == sets[0]]:
            parts = [found.get((data, library, label, metric)) for data in sets]
            if all(part is not None for part in parts):
                found[POOLED, library, label, metric] = np.concatenate([p for p in parts if p is not None])
    return found


def whole_of(values: Values) -> str:
    """The name of the pooled data sets, or of the only one."""
    sets = dict.fromkeys(key[0] for key in values)
    return POOLED if POOLED in sets else next(iter(sets), "")


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


def block_of(values: Values, data: str, library: str, metric: str) -> dict[str, np.ndarray]:
    """The values of one library and metric, by label."""
    return {key[2]: v for key, v in values.items() if (key[0], key[1], key[3]) == (data, library, metric)}


def best_of(block: Mapping[str, np.ndarray], weight: np.ndarray | None = None) -> str:
    """The label with the largest mean."""
    return max(block, key=lambda label: mean(block[label], weight))


def summary(
    values: Values, *, randomise: bool = True, weights: Mapping[str, np.ndarray | None] | None = None,
    reference: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Mean and standard error; the difference from the reference of the library, its error and p values.

    That is the objective ``reference`` if the library has it, else the library's best native one.

    ``p`` is of Student's paired test, after Holm's correction over the objectives of a library. ``p_randomisation`` is
    not corrected, and ignores weights. ``weights`` are those of the queries, by metric.
    """
    records = []
    for data, library, metric in dict.fromkeys((data, library, metric) for data, library, _, metric in values):
        block = block_of(values, data, library, metric)
        natives = {label: v for label, v in block.items() if is_native(library, label)}
        weight = (weights or {}).get(metric)
        rival = reference if reference in block else best_of(natives, weight) if natives else None
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
                text = f"{line['mean']:.4f}"
                text = f"**{text}**" if line["mean"] == best[m] and library else text
                sign = mark(line.get("difference"), line.get("p", np.nan), alpha)
                cells.append(marked(f"{text} ({line['se']:.4f})", sign))
            rows.append([str(library), named(str(library), str(objective)), *cells])
    return rows
