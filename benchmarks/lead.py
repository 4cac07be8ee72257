"""The metrics of our default objectives, against each library's best native objective."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.folds import GENERATED
from benchmarks.publish import pipe_table
from benchmarks.summary import POOLED, Key, Values
from ltr_objectives.errors import LTRError
from ltr_objectives.libraries import is_native
from ltr_objectives.metrics.text import get_metric
from ltr_objectives.objectives.mixture import get_objective
from ltr_objectives.registry import objective_for
from ltr_objectives.statistics import BETTER, WORSE, holm, mark, paired_p, standard_error
from ltr_objectives.workbench.contest import ALPHA
from ltr_objectives.workbench.texts import marked, signed

KINDS = {True: "generated data", False: "real data"}
NAMED, ON_VALI, OURS_ON_VALI = "objective_for", "native chosen on validation", "ours chosen on validation"
CHOICES = NAMED, ON_VALI, OURS_ON_VALI
EXPLANATION = (
    "Test metrics in thousandths, with standard errors over test queries in brackets. Ours is the objective that "
    "`objective_for` named for the metric when this was measured, which an estimator trained if only `eval_metric` was "
    "given. The native "
    "objective is the one with the best validation value in each fold. "
    f"In the columns of data {BETTER} and {WORSE} mark p below {ALPHA:g} in the paired t-test, after Holm's correction "
    'over the column. "Ours chosen by validation" is chosen as the native objective is, among all our objectives.'
)

OBJECTIVES_TITLE = "**Each objective of this package, minus the native one chosen by validation**"
OBJECTIVES_EXPLANATION = (
    "Thousandths, means over the libraries, with standard errors over test queries in brackets. `{metric}` is "
    "the metric of the column. The best in the mean over the metrics comes first. In this mean each query on which the "
    "objective was compared counts once, so data with more queries count more."
)


AGAINST = (
    f"Thousandths, with standard errors over test queries in brackets. {BETTER} and {WORSE} mark p below {ALPHA:g} in "
    "the paired t-test, after Holm's correction over the lines of an objective."
)


class Side(NamedTuple):
    """An objective on a data set."""

    label: str
    values: np.ndarray  # by query
    at_defaults: np.ndarray  # by training: True if validation chose the library's defaults; NaN if not known


Block = dict[str, Side]  # of a data set, by label


def on_vali(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the objectives with the best validation value in each fold, the library's own and ours.

    They are labelled ``ON_VALI`` and ``OURS_ON_VALI``.
    """
    frame = frame[frame["library"] != ""]
    native = np.array([is_native(*key) for key in zip(frame["library"], frame["label"], strict=True)], bool)
    side = frame.assign(label=np.where(native, ON_VALI, OURS_ON_VALI))
    best = side.sort_values("vali", ascending=False, kind="stable")
    return best.drop_duplicates(["data", "fold", "seed", "library", "metric", "label"]).sort_index()


def over_seeds(frame: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the standard errors of each lead, over test queries and over the seeds of its trainings.

    Empty if there is one seed, or no native objective. The seeds of a fold give its variance.
    """
    named = [_is_named(*key) for key in zip(frame["label"], frame["metric"], strict=True)]
    sides = pd.concat([frame[named].assign(label=NAMED), on_vali(frame)])
    sides = sides[~sides["data"].str.startswith(GENERATED)].drop_duplicates(
        ["data", "fold", "seed", "library", "metric", "label"]
    )
    records = []
    for (data, library, metric), part in sides.groupby(["data", "library", "metric"], sort=False):
        by = part.set_index(["fold", "seed", "label"])["values"].unstack().dropna()
        if {NAMED, ON_VALI} <= set(by) and (count := part["seed"].nunique()) > 1:
            gap = (by[NAMED] - by[ON_VALI]).unstack()
            if gap.isna().to_numpy().any():  # a training failed
                continue
            queries = np.concatenate([np.mean(list(of_fold), axis=0) for of_fold in gap.to_numpy()])
            sums = np.array([[np.nansum(each) for each in of_fold] for of_fold in gap.to_numpy()])
            deviation = np.sqrt(sums.var(axis=1, ddof=1).sum() / count) / np.count_nonzero(~np.isnan(queries))
            records.append({"data": data, "library": library, "metric": metric, "seeds": count,
                            "over_queries": standard_error(queries), "over_seeds": deviation})  # fmt: skip
    return pd.DataFrame.from_records(records)


def lead(
    values: Values, kinds: Mapping[str, str] | None = None, defaults: Mapping[Key, np.ndarray] | None = None
) -> pd.DataFrame:
    """Tabulate each metric, library and kind of data, and all data; empty if the study lacks what our names give.

    Metrics that differ only in the threshold of relevance are one, unless a data set has several. ``kinds`` has the
    kind of each data set. ``difference`` is from the native objective chosen on validation, and ``by_set`` the same if
    each data set counts once; ``p`` is that of the paired t-test after Holm's correction over the lines of a kind.
    ``on_vali`` is our best on validation minus the native objective chosen likewise; NaN if the study does not have it.
    ``ours_at_defaults`` and ``native_at_defaults`` are the shares of the trainings in which validation chose the
    library's ``defaults``.
    """
    records: list[dict[str, Any]] = []
    for (metric, library), by_set in _blocks(values, defaults or {}).items():
        by_set = {data: block for data, block in by_set.items() if {ON_VALI, NAMED} <= block.keys()}
        parts: dict[str, list[Block]] = {}
        for data, block in by_set.items():
            parts.setdefault(_kind_of(data, kinds), []).append(block)
        if len(parts) > 1:
            parts[POOLED] = list(by_set.values())
        chosen = all(OURS_ON_VALI in block for block in by_set.values())
        records += [{"data": kind, "metric": metric, "library": library, **_line(blocks, chosen)}
                    for kind, blocks in parts.items()]  # fmt: skip
    table = pd.DataFrame.from_records(records)
    return table if table.empty else table.assign(p=_holm_within(table, "data"))


def _blocks(values: Values, defaults: Mapping[Key, np.ndarray]) -> dict[tuple[str, str], dict[str, Block]]:
    """Sort the values by metric and library, data set and label; the objective that our names give is ``NAMED`` too."""
    found: dict[tuple[str, str], dict[str, Block]] = {}
    metrics = {(data, metric) for data, _, _, metric in values}
    counts = Counter((data, _plain(metric)) for data, metric in metrics)
    several = {plain for (_, plain), count in counts.items() if count > 1}  # thresholds on one data set
    for key, v in values.items():
        data, library, label, metric = key
        if library and data != POOLED:
            plain = _plain(metric)
            block = found.setdefault((metric if plain in several else plain, library), {}).setdefault(data, {})
            side = Side(label.replace("{metric}", plain), v, defaults.get(key, np.array([np.nan])))
            block |= {label: side, NAMED: side} if _is_named(label, metric) else {label: side}
    return found


def _line(blocks: Sequence[Block], chosen: bool) -> dict[str, Any]:
    """Return the numbers of data sets, which all have our best on validation if ``chosen``."""
    named, native = (np.concatenate([block[side].values for block in blocks]) for side in (NAMED, ON_VALI))
    difference, se = _gap(blocks, NAMED)
    means, errors = zip(*(_gap([block], NAMED) for block in blocks), strict=True)
    on_vali, on_vali_se = _gap(blocks, OURS_ON_VALI) if chosen else (np.nan, np.nan)
    at = {side: np.mean(np.concatenate([block[side].at_defaults for block in blocks])) for side in (NAMED, ON_VALI)}
    return {
        "ours": ", ".join(dict.fromkeys(block[NAMED].label for block in blocks)),
        "queries": int((~np.isnan(named - native)).sum()), "difference": difference, "se": se,
        "p": paired_p(named, native), "by_set": np.mean(means), "by_set_se": np.linalg.norm(errors) / len(errors),
        "on_vali": on_vali, "on_vali_se": on_vali_se,
        "ours_at_defaults": at[NAMED], "native_at_defaults": at[ON_VALI],
    }  # fmt: skip


def by_objective(values: Values, kinds: Mapping[str, str] | None = None) -> pd.DataFrame:
    """Tabulate our objectives minus natives chosen on validation, over the libraries, by metric and kind of data.

    The standard error is that of means over the libraries, which share their queries.
    """
    gaps: dict[tuple[str, str, str], dict[str, list[np.ndarray]]] = {}
    for (data, library, label, metric), v in values.items():
        base = values.get((data, library, ON_VALI, metric))
        if base is not None and data != POOLED and label not in CHOICES and not is_native(library, label):
            for kind in (_kind_of(data, kinds), POOLED):
                gaps.setdefault((_plain(metric), label, kind), {}).setdefault(data, []).append(v - base)
    records = []
    for (metric, label, kind), found in gaps.items():
        mean = np.concatenate([np.mean(each, axis=0) for each in found.values()])
        records.append({
            "metric": metric, "objective": label, "data": kind, "queries": int((~np.isnan(mean)).sum()),
            "difference": float(np.nanmean(mean)), "se": standard_error(mean),
        })  # fmt: skip
    return pd.DataFrame.from_records(records)


def against(label: str, parts: Mapping[str, Values]) -> pd.DataFrame:
    """Tabulate each objective minus the one called ``label``, over all data sets, by part, metric and library.

    ``p`` is that of the paired t-test after Holm's correction over the lines of an objective.
    """
    records = []
    for part, values in parts.items():
        blocks: dict[tuple[str, str], dict[str, dict[str, np.ndarray]]] = {}
        for (data, library, objective, metric), v in values.items():
            if library and data != POOLED:
                blocks.setdefault((_plain(metric), library), {}).setdefault(objective, {})[data] = v
        for (metric, library), block in blocks.items():
            base = np.concatenate(list(block[label].values()))
            for objective, by_set in block.items():
                if objective not in (label, *CHOICES):
                    gap = np.concatenate([by_set[data] for data in block[label]]) - base
                    records.append({
                        "part": part, "metric": metric, "library": library, "objective": objective,
                        "queries": int((~np.isnan(gap)).sum()), "difference": float(np.nanmean(gap)),
                        "se": standard_error(gap), "p": paired_p(gap, np.zeros(len(gap))),
                    })  # fmt: skip
    table = pd.DataFrame.from_records(records)
    return table.assign(p=_holm_within(table, "objective"))


def against_markdown(table: pd.DataFrame, label: str) -> str:
    """Return a line for each part, metric and library, with a column for each objective."""
    objectives = list(dict.fromkeys(table["objective"]))
    lines = [["", "metric", "library", *objectives]]
    for key, of in table.groupby(["part", "metric", "library"], sort=False):
        by = of.set_index("objective")
        lines.append([*map(str, key), *(_marked(by.loc[o]) if o in by.index else "" for o in objectives)])
    title = f"**Each objective minus {label}, over all data sets**"
    return "\n\n".join([title, pipe_table(lines, [False] * 3 + [True] * len(objectives)), AGAINST])


def _kind_of(data: str, kinds: Mapping[str, str] | None) -> str:
    return (kinds or {}).get(data, KINDS[data.startswith(GENERATED)])


def _gap(blocks: Sequence[Block], ours: str) -> tuple[float, float]:
    """Return the mean difference from native objectives over all queries, and its standard error."""
    found = np.concatenate([block[ours].values - block[ON_VALI].values for block in blocks])
    return float(np.nanmean(found)), standard_error(found)


def _plain(name: str) -> str:
    """Return the metric without its threshold of relevance."""
    metric: Any = get_metric(name)
    return metric._text(name for name in metric._written if name != "threshold")


def _is_named(label: str, metric: str) -> bool:
    """Return True if the label is the objective that our names give for the metric."""
    try:
        return get_objective(label.replace("{metric}", metric)) == objective_for(metric)
    except LTRError:
        return False


def lead_markdown(table: pd.DataFrame) -> str:
    """Return the table, a line for each metric and library."""
    kinds = list(dict.fromkeys(table["data"]))
    last = kinds[-1]
    head = ["metric", "library", "ours", *kinds]
    head += ["each data set once"] if last == POOLED else []
    optional = [name for name in ("on_vali", "native_at_defaults") if table[name].notna().all()]
    head += [{"on_vali": "ours chosen by validation", "native_at_defaults": "defaults chosen, native / ours"}[name]
             for name in optional]  # fmt: skip
    lines = [head]
    for (metric, library), part in table.groupby(["metric", "library"], sort=False):
        by = part.set_index("data")
        row = by.loc[last] if last in by.index else by.iloc[-1]
        line = [str(metric), str(library), row["ours"]]
        line += [_marked(by.loc[kind]) if kind in by.index else "" for kind in kinds]
        line += [_thousandths(row, "by_set", "by_set_se")] if last == POOLED else []
        line += [_thousandths(row, "on_vali", "on_vali_se")] if "on_vali" in optional else []
        line += (
            [f"{row['native_at_defaults']:.0%} / {row['ours_at_defaults']:.0%}"]
            if "native_at_defaults" in optional
            else []
        )
        lines.append(line)
    title = "**What our names give, minus the library's own objective chosen by validation**"
    return "\n\n".join([title, pipe_table(lines, [False] * 3 + [True] * (len(head) - 3)), EXPLANATION])


def objectives_markdown(table: pd.DataFrame) -> str:
    """Return a line for each of our objectives, best first in the mean over the metrics."""
    kinds = [kind for kind in dict.fromkeys(table["data"]) if kind != POOLED]
    columns = [(metric, kind) for metric in dict.fromkeys(table["metric"]) for kind in kinds]
    means = table[table["data"] == POOLED].groupby("objective")["difference"].mean()
    lines = [["objective", *(f"{metric}, {kind}" for metric, kind in columns)]]
    cells = table.set_index(["objective", "metric", "data"])
    for label in means.sort_values(ascending=False, kind="stable").index:
        found = [cells.loc[k] if (k := (label, *column)) in cells.index else None for column in columns]
        lines.append([label, *("" if row is None else _thousandths(row, "difference", "se") for row in found)])
    return "\n\n".join([OBJECTIVES_TITLE, pipe_table(lines, [False] + [True] * len(columns)), OBJECTIVES_EXPLANATION])


def _holm_within(table: pd.DataFrame, column: str) -> pd.Series:
    return table.groupby(column)["p"].transform(lambda p: holm(list(p)))


def _marked(row: Any) -> str:
    return marked(_thousandths(row, "difference", "se"), mark(row["difference"], row["p"], ALPHA))


def _thousandths(row: Any, difference: str, error: str) -> str:
    return signed(1000 * row[difference], 1000 * row[error], 1)
