"""Runs and judgements in the formats of TREC."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ltr_objectives._files import UNREADABLE, open_text
from ltr_objectives.errors import LTRError, require
from ltr_objectives.queries import Queries
from ltr_objectives.workbench.cli.files import Lists

RUN = ("query", "Q0", "document", "rank", "score", "tag")
QRELS = ("query", "0", "document", "label")


def read_trec(run: Path, qrels: Path, *, complete: bool, convention: str | None, drop_unjudged: bool = False) -> Lists:
    """Read the documents retrieved or judged, query by query.

    A document without a judgement, or with a negative one, has label 0, as in trec_eval. Rows are in trec_eval's order
    of equal scores: descending document id. With convention "trec_eval" scores are first rounded to float32, as
    trec_eval does. The ranks in the run are not read. ``complete`` counts queries with judgements but no ranking as
    having found nothing. ``drop_unjudged`` leaves out what has no judgement, or a negative one, as option -J does.
    """
    ranked, judged = _read("run", run, RUN, "score"), _read("qrels", qrels, QRELS, "label")
    asked, answered = list(dict.fromkeys(judged["query"])), set(ranked["query"])
    kept = asked if complete else [query for query in asked if query in answered]
    require(kept, f"no query of --run is in --qrels; their ids are such as {ranked['query'][0]!r} and {asked[0]!r}")
    table = ranked.merge(judged, how="outer", on=["query", "document"])
    table["number"] = table["query"].map({query: i for i, query in enumerate(kept)})
    table = table[table["number"].notna() & ((table["label"] >= 0) | (not drop_unjudged))]
    table = table.sort_values(["number", "document"], ascending=[True, False])
    labels = table["label"].fillna(0.0).clip(lower=0.0).to_numpy()
    retrieved = table["score"].notna().to_numpy()
    found = table["score"].to_numpy()[retrieved]
    if convention == "trec_eval":
        with np.errstate(over="ignore"):
            found = found.astype(np.float32)
    scores = np.full(len(table), -1.0)
    scores[retrieved] = np.unique(found, return_inverse=True)[1]  # at least 0, so that -1 is below all
    left_out = (
        (len(answered - set(asked)), "of the run without judgements: left out"),
        (0 if complete else len(asked) - len(kept), "with judgements but not in the run: left out without --complete"),
    )
    notes = tuple(f"{n} {'queries' if n > 1 else 'query'} {what}" for n, what in left_out if n)
    number = table["number"].to_numpy(np.int64)
    return Lists(Queries(labels, qid=number), scores, [kept[i] for i in np.unique(number)], retrieved, notes)


def _read(option: str, path: Path, names: tuple[str, ...], number: str) -> Any:
    """Read and check the columns query, document and ``number``."""
    form = f"--{option} {path} is not of the form '{' '.join(names)}'"
    try:
        with open_text(path) as file:
            lines = pd.read_csv(file, sep="\0", header=None, dtype=str, keep_default_na=False, quoting=csv.QUOTE_NONE)
        n = len(names)
        rows = [line.split(None, n) for line in lines[0] if not line.startswith("#")]  # comments, as in trec_eval
        require(rows, "it has comments only")
        wrong = [row for row in rows if len(row) < n or (len(row) > n and option == "qrels")]  # a tag may go on
        require(not wrong, f"{len(wrong)} rows have other lengths, as {' '.join(wrong[0]) if wrong else ''!r}")
        columns = {name: names.index(name) for name in ("query", "document", number)}
        table = pd.DataFrame({name: [row[i] for row in rows] for name, i in columns.items()})
        grouped = next((text for text in table[number] if "_" in text), None)  # which float() would read
        require(grouped is None, f"{grouped!r} is not a number")
        table[number] = table[number].astype(float)
    except UNREADABLE as error:
        raise LTRError(f"{form}: {error}") from None
    for wrong, what in (
        (~np.isfinite(table[number].to_numpy()), f"a {number} that is not finite"),
        (table.duplicated(["query", "document"]).to_numpy(), "a document twice"),
    ):
        if wrong.any():
            query, document, _ = table.iloc[int(np.argmax(wrong))]
            raise LTRError(f"--{option} {path} has {what}: {document} in query {query}")
    return table
