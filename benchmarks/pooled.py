"""Results of a study: per-query values by data set, library, objective and metric, and their tests."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives.comparison.summary import Values

POOLED = "all data sets"


def chosen(results: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """One line per fold, library, label and metric, of the learning rate and parameters with the best vali value."""
    records = []
    for r in results:
        for metric, values in r["test"].items():
            data, source, seed, *_ = r["fold"]
            records.append({
                "data": data, "fold": source, "seed": seed, "library": r["library"], "label": r["label"],
                "metric": metric, "learning_rate": r.get("tuned", r["budget"])["learning_rate"],
                "params": " ".join(f"{name}={value}" for name, value in settings_of(r["budget"])),
                "trees": r["trees"].get(metric), "train": r["train"].get(metric), "vali": r["vali"].get(metric, 0.0),
                "seconds": r["seconds"], "values": np.array(values, float), "curve": r.get("curves", {}).get(metric),
            })  # fmt: skip
    frame = pd.DataFrame.from_records(records)
    keys = ["data", "fold", "seed", "library", "label", "metric"]
    return frame.sort_values("vali", ascending=False, kind="stable").drop_duplicates(keys).sort_index()


def settings_of(budget: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a study may have several values of beside the learning rate, by name."""
    params = list(budget.get("params", ()))
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
