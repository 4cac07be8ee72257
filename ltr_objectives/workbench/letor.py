"""LETOR files: find the parts of a fold, and parse them."""

import re
from pathlib import Path
from typing import Any

import numpy as np

from ltr_objectives._files import UNREADABLE, open_text
from ltr_objectives.errors import LTRError, require, shown
from ltr_objectives.queries import sizes_of

TABLES = "the names of tables end in .csv or .parquet"
# allowed in dense rows: that many cells (64 MiB) and columns in any case, or cells for each row and each value
ROOM, COLUMNS, CELLS_A_VALUE = 2**24, 2**16, 250

_PARTS = {"train": "train", "vali": "vali", "valid": "vali", "test": "test"}
_NAME = re.compile(rf"(?i)((?P<stem>.+)\.)?(?P<part>{'|'.join(_PARTS)})(\.(txt|dat|letor|svm))?(\.(gz|bz2|xz))?")


def find_parts(path: Path) -> dict[str, Path]:
    """Find the files of a fold by part. ``path`` is a folder, or a folder and the start of the file names in it."""
    folder, stem = (path, None) if path.is_dir() else (path.parent, path.name)
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir() if folder.is_dir() else ()):
        match = _NAME.fullmatch(file.name)
        if match and file.is_file():  # a plain file sorts before its compressed copy
            found.setdefault(match["stem"] or "", {}).setdefault(_PARTS[match["part"].lower()], file)
    if stem is None:
        several = ", ".join(str(path / name) for name in found)
        require(len(found) <= 1, f"{path} has several data sets; pass one of {several}")
        parts = next(iter(found.values()), {})
    else:
        require(stem in found, f"{path} does not exist; pass a LETOR file or the folder of one fold")
        parts = found[stem]
    if not parts:
        folds = sorted(str(p.parent) for p in path.glob("*/train*"))
        hint = f"; pass one fold, such as {folds[0]}" if folds else ""
        raise LTRError(f"{path} holds neither train.txt nor test.txt (plain, .gz, .bz2 or .xz){hint}")
    for part in ("train", "test"):
        require(part in parts, f"{path} has no {part} file, only {', '.join(f.name for f in parts.values())}")
    return parts


def parse(path: Path) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Parse a file or a pipe: sparse float32 features, labels, sizes of queries and query ids."""
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError as error:
        raise ImportError(f"LETOR files need scikit-learn: pip install scikit-learn ({error})") from None
    try:
        with open_text(path) as file:
            _refuse_underscores(file.getvalue())
            X, y, qid = load_svmlight_file(file, dtype=np.float32, query_id=True, zero_based=False)
        require(len(y) == len(qid), "rows have no qid")
    except UNREADABLE as error:
        raise LTRError(f"{path} cannot be read: {error}; LETOR text is 'label qid:1 1:0.5 ...'; {TABLES}") from None
    try:
        return X, y.astype(np.float32), sizes_of(qid).astype(np.int64), qid
    except LTRError as error:
        raise LTRError(f"{path}: {error}") from None


def _refuse_underscores(content: bytes) -> None:
    """Raise for an underscore outside comments: Python reads 1_11 as 111, and would join the queries 1_11 and 11_1."""
    lines = content.splitlines() if b"_" in content else []
    wrong = next((line for line in lines if b"_" in line.partition(b"#")[0]), b"")
    text = shown(wrong.decode(errors="replace"))
    require(not wrong, f"{text} has an underscore; write ids and numbers with digits alone")


def dense(X: Any, width: int, path: Path) -> np.ndarray:
    """Return dense rows with ``width`` columns; raise if they would take far more space than their text."""
    rows, cells = X.shape[0], X.shape[0] * width
    require(
        (cells <= ROOM and width <= COLUMNS) or cells <= CELLS_A_VALUE * (rows + X.nnz),
        f"{path} would have {width:,} columns in {rows:,} rows, which have {X.nnz:,} values; rows are kept dense; "
        "number the features from 1 without gaps",
    )
    X.resize(rows, width)
    return np.asarray(X.toarray())
