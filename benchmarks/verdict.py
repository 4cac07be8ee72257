"""Our objectives against the best native one of the same library, for each metric, over all test queries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from benchmarks.pooled import POOLED, Values, is_native
from benchmarks.statistics import BETTER, WORSE, holm, paired_p

EXPLANATION = (
    "Differences from the library's best native objective by this metric, in brackets their standard errors over test "
    "queries. p of the paired t-test after Holm's correction over all of ours in the library; {0} and {1} where it is "
    "below {2:g}. The best native objective is the one that is best on these test queries. So is the best of ours: its "
    "difference is too large by what the choice among {3} can gain by chance, for which p accounts."
)


def verdict(values: Values) -> pd.DataFrame:
    """One line per library, metric and objective of ours: difference from the best native one, its error, and p.

    Over all data sets together where there are several. ``best`` marks the largest mean among ours.
    """
    whole = POOLED if any(key[0] == POOLED for key in values) else next(iter(values), ("",))[0]
    records: list[dict[str, Any]] = []
    for library, metric in dict.fromkeys((k[1], k[3]) for k in values if k[1] and k[0] == whole):
        block = {k[2]: v for k, v in values.items() if (k[0], k[1], k[3]) == (whole, library, metric)}
        natives = [label for label in block if is_native(library, label)]
        ours = [label for label in block if label not in natives]
        if not natives or not ours:
            continue
        rival = max(natives, key=lambda label: np.nanmean(block[label]))
        best = max(ours, key=lambda label: np.nanmean(block[label]))
        adjusted = holm([paired_p(block[label], block[rival]) for label in ours])
        for label, p in zip(ours, adjusted, strict=True):
            d = block[label] - block[rival]
            records.append({
                "data": whole, "library": library, "metric": metric, "objective": label, "best": label == best,
                "mean": np.nanmean(block[label]), "native": rival, "native_mean": np.nanmean(block[rival]),
                "difference": np.nanmean(d), "se": stats.sem(d, nan_policy="omit"), "p": p,
            })  # fmt: skip
    return pd.DataFrame.from_records(records)


def markdown(table: pd.DataFrame, alpha: float) -> str:
    """The best of ours in each library by each metric, then all of ours; empty without natives or without ours."""
    if table.empty:
        return ""
    head = ["library", "metric", "best native", "", "best of ours", "", "difference", "p"]
    rows = [
        [r["library"], r["metric"], r["native"], _short(r["native_mean"]), r["objective"], _short(r["mean"]),
         _difference(r, alpha), _p(r["p"])]
        for _, r in table[table["best"]].iterrows()
    ]  # fmt: skip
    metrics = list(dict.fromkeys(table["metric"]))
    every = []
    for (library, objective), part in table.groupby(["library", "objective"], sort=False):
        by = part.set_index("metric")
        cells = [f"{_difference(by.loc[m], alpha)}, p {_p(by.loc[m, 'p'])}" if m in by.index else "" for m in metrics]
        every.append([str(library), str(objective), *cells])
    count = table.groupby(["library", "metric"]).size().max()
    explanation = EXPLANATION.format(BETTER, WORSE, alpha, count)
    data = table["data"].iloc[0]
    return "\n\n".join([
        f"**Verdict: ours against each library's best native objective, {data}**",
        _table(head, ["---"] * 3 + ["---:", "---", "---:", "---:", "---:"], rows),
        f"**All of ours, {data}**",
        _table(["library", "objective", *metrics], ["---"] * 2 + ["---:"] * len(metrics), every),
        explanation,
    ])  # fmt: skip


def sentences(table: pd.DataFrame, alpha: float) -> list[str]:
    """The best of ours in each library by each metric, one line each."""
    if table.empty:
        return []
    return [
        f"{r['library']}, {r['metric']}: {r['objective']} {_short(r['mean'])}, "
        f"{r['native']} {_short(r['native_mean'])}, difference {_difference(r, alpha)}, p {_p(r['p'])}"
        for _, r in table[table["best"]].iterrows()
    ]


def _table(head: Sequence[str], rule: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, rule, *rows))


def _difference(row: Any, alpha: float) -> str:
    mark = (BETTER if row["difference"] > 0 else WORSE) if row["p"] < alpha else ""
    return f"{row['difference']:+.4f} ({_short(row['se'])}){' ' + mark if mark else ''}".replace("0.", ".", 1)


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def _p(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else "< 1e-4"
