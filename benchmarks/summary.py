"""From the records of trainings to values by query, pooled over folds, seeds and data sets, and to their means."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives.libraries import is_native
from ltr_objectives.statistics import contest_table

Key = tuple[str, str, str, str]  # data set, library, label, metric
Values = dict[Key, np.ndarray]  # by query
POOLED = "all data sets"


def chosen(records: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Return one line per fold, library, label and metric, of the budget with the best validation value."""
    lines = []
    for r in records:
        for metric, values in r["test"].items():
            data, source, seed, *_ = r["fold"]
            lines.append({
                "data": data, "fold": source, "seed": seed, "library": r["library"], "label": r["label"],
                "metric": metric, "learning_rate": r["budget"]["learning_rate"],
                "params": " ".join(f"{name}={value}" for name, value in settings_of(r["budget"])),
                "vali": r["vali"].get(metric, 0.0), "values": np.array(values, float),
            })  # fmt: skip
    frame = pd.DataFrame.from_records(lines)
    keys = ["data", "fold", "seed", "library", "label", "metric"]
    return frame.sort_values("vali", ascending=False, kind="stable").drop_duplicates(keys).sort_index()


def settings_of(budget: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the settings of a budget of which a study may try several, with names, without the learning rate."""
    params = list(budget.get("params", ()))
    if budget.get("defaults"):
        return [*params, ("settings", "defaults")]
    if not budget.get("documents"):
        return params
    return [*params, *((name, f"{budget[name]:.3g}") for name in ("leaves", "min_child_weight", "documents"))]


def by_query(frame: pd.DataFrame) -> Values:
    """Return the values of each test query, by data set and pooled: folds joined, seeds on the same rows averaged.

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


def block_of(values: Values, data: str, library: str, metric: str) -> dict[str, np.ndarray]:
    """Return the values of one library and metric, by label."""
    return {key[2]: v for key, v in values.items() if (key[0], key[1], key[3]) == (data, library, metric)}


def natives_in(block: dict[str, np.ndarray], library: str) -> dict[str, np.ndarray]:
    """Return the values of the library's own objectives, by label."""
    return {label: v for label, v in block.items() if is_native(library, label)}


def summary(values: Values) -> pd.DataFrame:
    """Return mean and standard error of each label, and the difference from the library's best native objective."""
    records = []
    for data, library, metric in dict.fromkeys((data, library, metric) for data, library, _, metric in values):
        block = block_of(values, data, library, metric)
        for row in contest_table(block, natives=natives_in(block, library)):
            records.append({"data": data, "library": library, "metric": metric, **row._asdict()})
    return pd.DataFrame.from_records(records)
