"""The three libraries, as commands name them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from enum import Enum
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


FACTS = {
    "xgboost": _Facts("XGBRanker", (".json", ".ubj")),
    "lightgbm": _Facts("LGBMRanker", (".txt",)),
    "catboost": _Facts("CatBoostRanker", (".cbm",)),
}


@contextmanager
def ranker_of(library: str) -> Iterator[Any]:
    """Yield the class of our ranker. What the library prints goes to stderr; its errors become LTRError."""
    from ltr_objectives import adapters
    from ltr_objectives.adapters._libraries import LIBRARIES, essence

    own_error = LIBRARIES[library].exception()
    with redirect_stdout(sys.stderr):
        try:
            yield getattr(adapters, FACTS[library].ranker)
        except LTRError:
            raise
        except (own_error, ValueError, TypeError) as error:
            raise LTRError(f"{library}: {essence(str(error))}") from None
