"""Options and output that commands share."""

import ast
import json
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from rich.console import Console
from typer import Option, echo

from ltr_objectives.errors import require
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.language import split_list
from ltr_objectives.metrics.base import Metric, get_metric


class Library(str, Enum):
    """A library that trains."""

    xgboost = "xgboost"
    lightgbm = "lightgbm"
    catboost = "catboost"


RESERVED = ("objective", "eval_metric", "n_estimators", "learning_rate")  # they have options of their own
ONE_A_LINE = "text with one a line (also .gz, .bz2 or .xz), a .npy file, or FILE.csv:COLUMN or FILE.parquet:COLUMN."
METRICS = "Such as ndcg@10 or 'map(threshold=2.5)'; separate several by commas"
Metrics = Annotated[str, Option("--metric", help=f"{METRICS}.")]
Convention = Annotated[
    str | None,
    Option(help="Compute as lightgbm, xgboost, catboost, sklearn, trec_eval or scipy does.", show_default=False),
]
AsJson = Annotated[bool, Option("--json", help="Print JSON, for other programs.")]
Labels = Annotated[str | None, Option(metavar="FILE", help=f"Relevance labels: {ONE_A_LINE}", show_default=False)]
Scores = Annotated[str | None, Option(metavar="FILE", help="Scores, in the same formats.", show_default=False)]
Qid = Annotated[
    str | None,
    Option(
        metavar="FILE",
        help="Query ids, in the same formats. With --data as Parquet or CSV, their column; default: qid.",
        show_default=False,
    ),
]
Letor = Annotated[
    Path | None,
    Option(metavar="FILE", help="Labels and query ids from a LETOR, Parquet or CSV file.", show_default=False),
]
OF_TABLES = "Of Parquet and CSV files: the column"
Label = Annotated[str, Option("--label", metavar="COLUMN", help=f"{OF_TABLES} with the labels.")]
QidColumn = Annotated[str, Option("--qid", metavar="COLUMN", help=f"{OF_TABLES} with the query ids.")]
Weight = Annotated[
    str | None, Option(metavar="COLUMN", help=f"{OF_TABLES} with weights of the rows, if any.", show_default=False)
]
Ignore = Annotated[str, Option(metavar="COLUMNS", help=f"{OF_TABLES}s that are neither these nor features.")]
Categorical = Annotated[
    str, Option(metavar="COLUMNS", help=f"{OF_TABLES}s with categories, beside those of dtype category in Parquet.")
]
Param = Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="Any parameter of the library; can be repeated.")]

LearningRate = Annotated[float, Option(min=1e-6)]
Trees = Annotated[int, Option(min=1, help="At most this many.")]
Patience = Annotated[int, Option(min=1, help="Stop when vali has not improved for this many trees.")]
Threads = Annotated[
    int, Option(min=0, callback=lambda asked: min(asked, available_threads()), help="0: all processors.")
]


def read_metrics(text: str, convention: str | None, find: "Callable[..., Metric]" = get_metric) -> "list[Metric]":
    """The metrics named in an option, each once."""
    names = names_in(text)
    require(names, "--metric is empty; give metrics such as ndcg@10,map")
    metrics = [find(name, convention) for name in names]
    refuse_goals("metric", [metric.goal for metric in metrics if metric.goal is not None])
    return metrics


def refuse_goals(option: str, goals: Sequence[str]) -> None:
    """Raise for goals: files are read with one column of labels."""
    require(
        not goals,
        f"--{option} reads the labels of {', '.join(map(repr, goals))}, but commands read one column of labels; name "
        "that column by --label and leave the brackets out, or train for several goals with the estimators of "
        "ltr_objectives.adapters",
    )


def names_in(text: str) -> list[str]:
    """The names between the commas of an option, each once."""
    return list(dict.fromkeys(part for part in split_list(text) if part))


def read_parameters(given: Sequence[str]) -> dict[str, Any]:
    """The parameters of ``NAME=VALUE`` texts, as :func:`python_value` reads them."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        require(name and equals and value, f"--param {text!r} is not of the form NAME=VALUE, such as max_depth=6")
        require(name not in RESERVED, f"--param {name} has an option of its own; see --help")
        require(name not in found, f"--param {name} is given twice")
        found[name] = python_value(value)
    return found


def python_value(text: str) -> Any:
    """Read ``text`` as a Python literal, also true and false. Any other text is returned as it is.

    >>> python_value("0.5"), python_value("true"), python_value("gbtree")
    (0.5, True, 'gbtree')
    """
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def console() -> Console:
    """A console for standard output; its width is fixed if that is not a terminal."""
    return Console(width=None if sys.stdout.isatty() else 120, highlight=False)


def print_json(document: dict[str, Any]) -> None:
    """Print JSON on standard output; NaN and infinity raise."""
    echo(json.dumps(document, indent=1, allow_nan=False))
