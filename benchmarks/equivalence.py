"""``python -m benchmarks equivalence``: are differences from native objectives within a margin that was set before?

The variance of a difference is that over queries and that over trainings. Where each model was trained once, the
standard error over trainings is taken as ``SPREAD`` of that over queries. Two one-sided tests (Schuirmann, "A
comparison of the two one-sided tests procedure", 1987) are passed if the 90% interval of the difference lies within the
margin. The random effect treats kinds of data as a sample of kinds (DerSimonian and Laird, "Meta-analysis in clinical
trials", 1986).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2, norm
from typer import Option, echo

from benchmarks.cells import write_whole
from benchmarks.provenance import provenance
from benchmarks.publish import pipe_table
from benchmarks.summary import POOLED
from ltr_objectives._files import replacing
from ltr_objectives.statistics import holm
from ltr_objectives.workbench.contest import ALPHA
from ltr_objectives.workbench.tables import write_csv
from ltr_objectives.workbench.texts import signed

MARGIN = 0.005
SPREAD = 0.63  # the larger mean of the ratios in results/real/seeds_*.csv
TITLE = "**Equivalence with the library's own objective chosen by validation**"
EXPLANATION = (
    "Thousandths, with standard errors in brackets that include the variation between trainings, which is "
    f"{SPREAD:g} of that over queries. *Equivalent within* is the smallest margin at which two one-sided tests with "
    f"p below {ALPHA:g} are passed. The last columns treat the kinds of data as a sample: their mean, the standard "
    "deviation of its values, and p of the test of equal differences. Each p of the first tests is after Holm's "
    "correction over all lines."
)


class Effect(NamedTuple):
    """The mean of differences that vary between kinds of data."""

    mean: float
    se: float
    deviation: float  # of the kinds' true differences
    p: float  # of equal differences


def random_effect(difference: np.ndarray, se: np.ndarray) -> Effect:
    """Return the random-effects mean of DerSimonian and Laird.

    >>> random_effect(np.array([0.25, 0.25]), np.array([1.0, 1.0])).mean
    0.25
    """
    w, k = se**-2.0, len(se)
    q = float(w @ (difference - w @ difference / w.sum()) ** 2)
    between = max(0.0, (q - (k - 1)) / (w.sum() - (w**2).sum() / w.sum())) if k > 1 else 0.0
    w = 1.0 / (se**2 + between)
    p = float(chi2.sf(q, k - 1)) if k > 1 else float("nan")
    return Effect(float(w @ difference / w.sum()), float(w.sum() ** -0.5), between**0.5, p)


def equivalences(table: pd.DataFrame, margin: float = MARGIN) -> pd.DataFrame:
    """Test each metric and library of the tables of ``report``, over all their data."""
    records = []
    for (metric, library), part in table.groupby(["metric", "library"], sort=False):
        kinds = part[part["data"] != POOLED]
        row = part.iloc[-1]
        se = float(row["se"]) * np.hypot(1.0, SPREAD)
        effect = random_effect(kinds["difference"].to_numpy(), kinds["se"].to_numpy() * np.hypot(1.0, SPREAD))
        records.append({
            "metric": metric, "library": library, "queries": row["queries"], "difference": row["difference"],
            "over_queries": row["se"], "se": se, "p": 2 * norm.sf(abs(row["difference"]) / se),
            "equivalent_p": norm.sf((margin - abs(row["difference"])) / se),
            "within": abs(row["difference"]) + norm.isf(ALPHA) * se,
            "random": effect.mean, "random_se": effect.se, "deviation": effect.deviation, "equal_p": effect.p,
            "random_equivalent_p": norm.sf((margin - abs(effect.mean)) / effect.se),
        })  # fmt: skip
    found = pd.DataFrame.from_records(records)
    return found.assign(**{name: holm(list(found[name])) for name in ("p", "equivalent_p")})


def markdown(table: pd.DataFrame, margin: float = MARGIN) -> str:
    """Return a line for each metric and library."""
    lines = [["metric", "library", "queries", "difference", "p", f"p, {margin:g} apart or more", "equivalent within",
              "random effect", "deviation of kinds", "p, equal kinds"]]  # fmt: skip
    for _, r in table.iterrows():
        kinds = ["" if np.isnan(r["equal_p"]) else text for text in
                 (signed(1000 * r["random"], 1000 * r["random_se"], 1), f"{1000 * r['deviation']:.1f}",
                  f"{r['equal_p']:.3f}")]  # fmt: skip
        difference = signed(1000 * r["difference"], 1000 * r["se"], 1)
        p = f"{r['equivalent_p']:.3f}" if r["equivalent_p"] >= 0.0005 else "<0.001"
        lines.append([r["metric"], r["library"], f"{r['queries']:,}", difference, f"{r['p']:.3f}", p,
                      f"{1000 * r['within']:.1f}", *kinds])  # fmt: skip
    return "\n\n".join([TITLE, pipe_table(lines, [False] * 2 + [True] * 8), EXPLANATION])


def equivalence(
    tables: Annotated[list[Path], Option(help="Folder that `report` wrote; may be repeated, for other libraries.")],
    margin: Annotated[float, Option(min=0, help="Set before the trainings.")] = MARGIN,
    out: Annotated[Path, Option(help="Folder for the table.")] = Path("results/equivalence"),
) -> None:
    """Test that our names are as good as the native objective chosen by validation, up to a margin."""
    found = equivalences(read(tables), margin)
    out.mkdir(parents=True, exist_ok=True)
    write_csv(found, out / "equivalence.csv")
    write_whole(out / "study.json", provenance(), indent=1)
    text = markdown(found, margin)
    with replacing(out / "summary.md") as new:
        new.write_text(text + "\n")
    echo(text)


def read(folders: Sequence[Path]) -> pd.DataFrame:
    """Return the lines of all folders, sorted by metric."""
    table = pd.concat([pd.read_csv(folder / "lead.csv") for folder in folders], ignore_index=True)
    order = {metric: i for i, metric in enumerate(dict.fromkeys(table["metric"]))}
    return table.sort_values("metric", key=lambda metric: metric.map(order), kind="stable", ignore_index=True)
