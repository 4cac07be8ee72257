"""``python -m benchmarks lead``: what our names give for each metric, against each library's best native objective."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from typer import Option, echo

from benchmarks.folds import GENERATED
from ltr_objectives._files import replacing
from ltr_objectives.errors import LTRError, require
from ltr_objectives.registry import get_objective, objective_for
from ltr_objectives.workbench.libraries import is_native
from ltr_objectives.workbench.statistics import paired_p, standard_error
from ltr_objectives.workbench.summary import POOLED, Values, best_of
from ltr_objectives.workbench.texts import pipe_table

STUDY = "Folder of a study, with its queries.parquet; may be repeated. Queries of all are pooled."
REAL = "real data"
KINDS = (REAL, "generated data", POOLED)
EXPLANATION = (
    "Test metrics in thousandths, with standard errors over test queries in brackets. Ours is the objective that "
    "`objective_for` names for the metric, which an estimator trains if only `eval_metric` is given. Both the best "
    "native objective and the best of ours were chosen on these test queries, pooled over all data, which favours them."
)


def lead(values: Values) -> pd.DataFrame:
    """One line for each kind of data, metric and library; empty if the study lacks what our names give.

    ``difference`` is from the best native objective, ``behind`` what the best of ours has more.
    """
    records: list[dict[str, Any]] = []
    metrics, libraries = (list(dict.fromkeys(key[i] for key in values)) for i in (3, 1))
    for metric in metrics:
        for library in filter(None, libraries):
            by_kind = {kind: _pooled(values, kind, library, metric) for kind in KINDS}
            whole = by_kind[POOLED]
            natives = {label: v for label, v in whole.items() if is_native(library, label)}
            ours = {label: v for label, v in whole.items() if label not in natives}
            named = next((label for label in ours if _is_named(label, metric)), None)
            if named is None or not natives:
                continue
            native, best = best_of(natives), best_of(ours)
            for kind, block in by_kind.items():
                if named not in block:
                    continue
                gap, behind = block[named] - block[native], block[best] - block[named]
                records.append({
                    "data": kind, "metric": metric, "library": library, "ours": named.replace("{metric}", metric),
                    "native": native, "queries": int((~np.isnan(gap)).sum()), "difference": np.nanmean(gap),
                    "se": standard_error(gap), "p": paired_p(block[named], block[native]),
                    "best": best.replace("{metric}", metric), "behind": np.nanmean(behind),
                    "behind_se": standard_error(behind),
                })  # fmt: skip
    return pd.DataFrame.from_records(records)


def _pooled(values: Values, kind: str, library: str, metric: str) -> dict[str, np.ndarray]:
    """The values of all queries of one kind of data, by label."""
    sets = dict.fromkeys(key[0] for key in values if key[0] != POOLED)
    if kind != POOLED:
        sets = dict.fromkeys(data for data in sets if data.startswith(GENERATED) == (kind != REAL))
    labels = dict.fromkeys(key[2] for key in values if (key[1], key[3]) == (library, metric))
    parts = {label: [values.get((data, library, label, metric)) for data in sets] for label in labels}
    return {
        label: np.concatenate([v for v in found if v is not None])
        for label, found in parts.items() if found and all(v is not None for v in found)
    }  # fmt: skip


def _is_named(label: str, metric: str) -> bool:
    """Return True if the label is the objective that our names give for the metric."""
    try:
        return get_objective(label.replace("{metric}", metric)) == objective_for(metric)
    except LTRError:
        return False


def markdown(table: pd.DataFrame) -> str:
    """The table, a line for each metric and library."""
    kinds = [kind for kind in KINDS if (table["data"] == kind).any()]
    head = ["metric", "library", "ours", "best native", *kinds, "best of ours", "ahead of ours by"]
    lines = [head]
    for (metric, library), part in table.groupby(["metric", "library"], sort=False):
        by = part.set_index("data")
        last = by.loc[kinds[-1]]
        cells = [
            _thousandths(by.loc[kind, "difference"], by.loc[kind, "se"]) if kind in by.index else "" for kind in kinds
        ]
        behind = "" if last["best"] == last["ours"] else _thousandths(last["behind"], last["behind_se"])
        lines.append([str(metric), str(library), last["ours"], last["native"], *cells, last["best"], behind])
    right = [False] * 4 + [True] * len(kinds) + [False, True]
    title = "**What our names give, less the library's best native objective**"
    return "\n\n".join([title, pipe_table(lines, right), EXPLANATION])


def _thousandths(difference: float, error: float) -> str:
    return f"{1000 * difference:+.1f} ({1000 * error:.1f})"


def lead_command(
    study: Annotated[list[Path], Option(help=STUDY)],
    out: Annotated[Path, Option(help="Folder for lead.csv, lead.md and lead.png.")] = Path("results/lead"),
) -> None:
    """Compare what our names give with the best native objectives.

    Over one or several studies, real and generated data apart.
    """
    from benchmarks.figures.lead import lead_dots

    values: Values = {}
    for folder in study:
        long = pd.read_parquet(folder / "queries.parquet")
        long = long[long["data"] != POOLED]
        for key, part in long.groupby(["data", "library", "objective", "metric"], sort=False):
            values[key] = part.sort_values("query")["value"].to_numpy()
    table = lead(values)
    require(not table.empty, "the studies lack native objectives, or what our names give for their metrics")
    out.mkdir(parents=True, exist_ok=True)
    with replacing(out / "lead.csv") as new:
        table.to_csv(new, index=False)
    with replacing(out / "lead.md") as new:
        new.write_text(markdown(table) + "\n")
    echo(markdown(table))
    echo(f"written: {lead_dots(table, out)}")
