"""Generalisation gaps: train value less test value of each model."""

import numpy as np
import pandas as pd

from ltr_objectives.workbench.libraries import named
from ltr_objectives.workbench.texts import pipe_table

NOTE = (
    "Train value of the model at its early stop on vali, and in brackets train value less test value; means over folds "
    "and seeds."
)


def gap_values(frame: pd.DataFrame) -> pd.DataFrame:
    """One line per data set, library, label and metric: train value, gap, and the gap's error over folds and seeds."""
    part = frame[frame["library"] != ""]
    test = part["values"].map(np.nanmean)
    each = part.assign(train=part["train"].astype(float), value=part["train"].astype(float) - test)
    by = each.groupby(["data", "library", "label", "metric"], sort=False)
    return by.agg(train=("train", "mean"), value=("value", "mean"), se=("value", "sem")).reset_index()


def gap_table(table: pd.DataFrame) -> str:
    """The gaps as Markdown, a table for each data set."""
    metrics = list(dict.fromkeys(table["metric"]))
    texts = []
    for data, block in table.groupby("data", sort=False):
        lines = [["library", "objective", *metrics]]
        for (library, label), rows in block.groupby(["library", "label"], sort=False):
            by = rows.set_index("metric")
            cells = [f"{by.loc[m, 'train']:.4f} ({by.loc[m, 'value']:.4f})" if m in by.index else "" for m in metrics]
            lines.append([str(library), named(str(library), str(label)), *cells])
        texts.append(f"**Generalisation, {data}**\n\n{pipe_table(lines)}")
    return "\n\n".join([*texts, NOTE]) + "\n"
