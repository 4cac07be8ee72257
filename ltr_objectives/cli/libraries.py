"""The three libraries, as commands name them."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from enum import Enum
from operator import attrgetter
from typing import Any, NamedTuple

from ltr_objectives.errors import LTRError


class Library(str, Enum):
    """A library that trains."""

    xgboost = "xgboost"
    lightgbm = "lightgbm"
    catboost = "catboost"


class _Facts(NamedTuple):
    ranker: str
    endings: tuple[str, ...]  # of its models
    error: str


FACTS = {
    "xgboost": _Facts("XGBRanker", (".json", ".ubj"), "core.XGBoostError"),
    "lightgbm": _Facts("LGBMRanker", (".txt",), "basic.LightGBMError"),
    "catboost": _Facts("CatBoostRanker", (".cbm",), "CatBoostError"),
}


@contextmanager
def ranker_of(library: str) -> Iterator[Any]:
    """Yield the class of our ranker. What the library prints goes to stderr; its errors become LTRError."""
    from ltr_objectives import adapters
    from ltr_objectives.adapters._libraries import LIBRARIES

    own_error = attrgetter(FACTS[library].error)(LIBRARIES[library].load())
    with redirect_stdout(sys.stderr):
        try:
            yield getattr(adapters, FACTS[library].ranker)
        except LTRError:
            raise
        except (own_error, ValueError, TypeError) as error:
            raise LTRError(f"{library}: {_essence(str(error))}") from None


def _essence(message: str) -> str:
    """The message of a library without its source line and stack trace.

    >>> _essence("[16:40:25] /src/o.cc:27: Unknown objective function: `rank:foo`\\n\\nStack trace:\\n  0x7f")
    'Unknown objective function: `rank:foo`'
    """
    said = message.partition("Stack trace:")[0].strip()
    return re.sub(r"^(\[[\d:]+\] )?\S+\.(cc|cpp|h|cu):\d+: ", "", said)
