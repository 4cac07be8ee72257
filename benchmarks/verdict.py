"""Our objectives against the best native one of the same library, for each metric, over all test queries."""

from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives.workbench.libraries import is_native
from ltr_objectives.workbench.statistics import BETTER, WORSE, differences, mark
from ltr_objectives.workbench.summary import Values, best_of, block_of, whole_of
from ltr_objectives.workbench.texts import marked, p_of, pipe_table, short, signed

EXPLANATION = (
    "Differences from the library's best native objective by this metric, in brackets their standard errors over test "
    "queries. p is of the paired t-test after Holm's correction over all of ours in the library; {0} and {1} where it "
    "is below {2:g}. Both the best native objective and the best of ours were chosen on these test queries. The choice "
    "among {3} of ours makes the difference too large; p accounts for that."
)


def verdict(values: Values) -> pd.DataFrame:
    """One line per library, metric and objective of ours: difference from the best native one, its error, and p.

    Several data sets are pooled. ``best`` marks the largest mean among ours.
    """
    whole = whole_of(values)
    records: list[dict[str, Any]] = []
    for library, metric in dict.fromkeys((k[1], k[3]) for k in values if k[1] and k[0] == whole):
        block = block_of(values, whole, library, metric)
        natives = {label: v for label, v in block.items() if is_native(library, label)}
        ours = {label: v for label, v in block.items() if label not in natives}
        if not natives or not ours:
            continue
        rival, best = best_of(natives), best_of(ours)
        for label, of in differences(ours, block[rival]).items():
            records.append({
                "data": whole, "library": library, "metric": metric, "objective": label, "best": label == best,
                "mean": np.nanmean(block[label]), "native": rival, "native_mean": np.nanmean(block[rival]), **of,
            })  # fmt: skip
    return pd.DataFrame.from_records(records)


def markdown(table: pd.DataFrame, alpha: float) -> str:
    """The best of ours in each library by each metric, then all of ours; empty without natives or without ours."""
    if table.empty:
        return ""
    head = ["library", "metric", "best native", "", "best of ours", "", "difference", "p"]
    right = [False, False, False, True, False, True, True, True]
    rows = [
        [r["library"], r["metric"], r["native"], short(r["native_mean"]), r["objective"], short(r["mean"]),
         _difference(r, alpha), p_of(r["p"])]
        for _, r in table[table["best"]].iterrows()
    ]  # fmt: skip
    metrics = list(dict.fromkeys(table["metric"]))
    every = []
    for (library, objective), part in table.groupby(["library", "objective"], sort=False):
        by = part.set_index("metric")
        cells = [f"{_difference(by.loc[m], alpha)}, p {p_of(by.loc[m, 'p'])}" if m in by.index else "" for m in metrics]
        every.append([str(library), str(objective), *cells])
    count = table.groupby(["library", "metric"]).size().max()
    explanation = EXPLANATION.format(BETTER, WORSE, alpha, count)
    data = table["data"].iloc[0]
    return "\n\n".join([
        f"**Verdict: ours against each library's best native objective, {data}**",
        pipe_table([head, *rows], right),
        f"**All of ours, {data}**",
        pipe_table([["library", "objective", *metrics], *every]),
        explanation,
    ])  # fmt: skip


def sentences(table: pd.DataFrame, alpha: float) -> list[str]:
    """The best of ours in each library by each metric, one line each."""
    if table.empty:
        return []
    return [
        f"{r['library']}, {r['metric']}: {r['objective']} {short(r['mean'])}, "
        f"{r['native']} {short(r['native_mean'])}, difference {_difference(r, alpha)}, p {p_of(r['p'])}"
        for _, r in table[table["best"]].iterrows()
    ]


def _difference(row: Any, alpha: float) -> str:
    return marked(signed(row["difference"], row["se"]), mark(row["difference"], row["p"], alpha))
