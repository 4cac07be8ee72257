"""Options and output that commands share."""

import ast
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import Option, echo

from ltr_objectives.errors import require
from ltr_objectives.kernels.threads import available_threads
from ltr_objectives.language import split_list
from ltr_objectives.libraries import LIBRARIES
from ltr_objectives.metrics.base import Metric
from ltr_objectives.metrics.text import get_metric

RESERVED = ("objective", "eval_metric", "n_estimators", "learning_rate")  # they have options of their own
QUIET: dict[str, Any] = {"show_default": False}  # an option with "None" as its default
FILE: dict[str, Any] = {"metavar": "FILE", "exists": True, **QUIET}
Names = list[str] | None  # of an option that may be repeated, each time with several names
METRICS = "Such as ndcg@10,'map(threshold=2.5)'"
DEFAULT = ["ndcg@10"]
Convention = Annotated[str | None, Option(metavar="NAME", help="lightgbm, xgboost, catboost, sklearn, ...", **QUIET)]
AsJson = Annotated[bool, Option("--json", help="Print JSON, for other programs.")]
Label = Annotated[str, Option("--label", metavar="COLUMN", help="Labels, in Parquet and CSV.")]
QidColumn = Annotated[str, Option("--qid", metavar="COLUMN", help="Query ids, in Parquet and CSV.")]
Weight = Annotated[str | None, Option(metavar="COLUMN", help="Weights of rows, in Parquet and CSV.", **QUIET)]
Ignore = Annotated[Names, Option(metavar="COLUMNS", help="Columns that are neither these nor features.", **QUIET)]
Categorical = Annotated[Names, Option(metavar="COLUMNS", help="Features that are categories.", **QUIET)]
Param = Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="A parameter of the library; repeatable.")]
LearningRate = Annotated[float, Option(metavar="RATE", min=1e-6)]
Trees = Annotated[int, Option(metavar="N", min=1, help="At most this many.")]
Picture = Annotated[Path | None, Option(metavar="FILE", help="As .png, .svg or .pdf.", **QUIET)]
Patience = Annotated[int, Option(metavar="N", min=1, help="Trees without a better validation value.")]
Threads = Annotated[
    int,
    Option(metavar="N", min=0, callback=lambda n: min(n, available_threads()), help="0: all that the library takes."),
]


def names_in(given: Sequence[str] | None) -> list[str]:
    """Read the names between the commas of an option, which may be repeated, each once."""
    text = given if isinstance(given, str) else ",".join(given or ())
    return list(dict.fromkeys(part for part in split_list(text) if part))


def load_own(modules: Names) -> Names:
    """Import modules, also from the working folder, so that their metrics and objectives have names in text."""
    for module in names_in(modules):
        sys.path.append("")
        import_module(module)
    return modules


Own = Annotated[Names, Option("--import", metavar="MODULES", callback=load_own, help="With your classes.", **QUIET)]


def read_metrics(given: Names, convention: str | None = None, find: Callable[..., Metric] = get_metric) -> list[Metric]:
    """Read the metrics named in an option, each once."""
    names = names_in(given)
    require(names, "--metric is empty; give metrics such as ndcg@10,map")
    return [find(name, convention) for name in names]


def read_parameters(given: Sequence[str] | None) -> dict[str, Any]:
    """Read the parameters of ``NAME=VALUE`` texts, as :func:`python_value` reads values."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        require(name and equals and value, f"--param {text!r} is not of the form NAME=VALUE, such as max_depth=6")
        require(name not in RESERVED, f"--param {name} has an option of its own; see --help")
        require(name not in found, f"--param {name} is given twice")
        found[name] = python_value(value)
    return found


def params_of(library: str, trees: int, rate: float, threads: int, given: Sequence[str] | None) -> dict[str, Any]:
    """Return the parameters of a training by the options; without threads the library takes its default."""
    params = {"n_estimators": trees, "learning_rate": rate, **read_parameters(given)}
    return params | ({LIBRARIES[library].threads: threads} if threads else {})


def python_value(text: str) -> Any:
    """Read ``text`` as a Python literal, also true and false. Any other text is returned as it is.

    >>> python_value("0.5"), python_value("true"), python_value("gbtree")
    (0.5, True, 'gbtree')
    """
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text


def print_json(document: dict[str, Any]) -> None:
    """Print JSON on standard output; NaN, which it does not have, is null."""
    echo(json.dumps(json.loads(json.dumps(document), parse_constant=lambda _: None), indent=1))
