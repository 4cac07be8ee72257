"""LETOR text on disk: which file is which part of a fold, and parsing it once."""

import bz2
import gzip
import os
import re
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from ltr_objectives.errors import LTRError, require

Parsed = tuple[np.ndarray, np.ndarray, np.ndarray]  # X, labels, query ids
UNREADABLE = (OSError, EOFError, zlib.error)

_PARTS = {"train": "train", "vali": "vali", "valid": "vali", "test": "test"}
_NAME = re.compile(rf"(?:(?P<stem>.+)\.)?(?P<part>{'|'.join(_PARTS)})(?:\.(?:txt|dat|letor|svm))?(?:\.(?:gz|bz2))?")


def find_parts(path: Path) -> dict[str, Path]:
    """The files of a fold by part: of a folder, or of the files in a folder whose names start with ``path.name``."""
    folder, stem = (path, None) if path.is_dir() else (path.parent, path.name)
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir() if folder.is_dir() else ()):
        match = _NAME.fullmatch(file.name)
        if match and file.is_file():  # of the same text plain and compressed, sorting puts the plain one first
            found.setdefault(match["stem"] or "", {}).setdefault(_PARTS[match["part"]], file)
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
        raise LTRError(f"{path} holds no train.txt and test.txt (plain, .gz or .bz2){hint}")
    for part in ("train", "test"):
        require(part in parts, f"{path} has no {part} file, only {', '.join(f.name for f in parts.values())}")
    return parts


def parse(path: str, modified: int, size: int) -> Parsed:
    """Dense float32 features, labels and query ids; ``modified`` and ``size`` are only here for the cache's key."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, qid = load_svmlight_file(path, dtype=np.float32, query_id=True, zero_based=False)
        require(len(y) == len(qid), "rows have no qid")
    except (*UNREADABLE, ValueError, OverflowError) as error:
        said = _first_mistake(path) or f" cannot be read: {error}"
        raise LTRError(f"{path}{said}; LETOR text is 'label qid:1 1:0.5 ...'") from None
    require(len(y) > 0, f"{path} has no rows")
    return X.toarray(), y.astype(np.float32), qid


def _first_mistake(path: str) -> str:
    """The first line that is no LETOR text, and why; empty where there is none."""
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(Path(path).suffix, open)
    with suppress(*UNREADABLE), opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if words and (mistake := _mistake(*words)):
                return f", line {number}: {mistake}"
    return ""


def _mistake(label: str, qid: str = "", *features: str) -> str:
    """What is wrong with the words of a line.

    >>> _mistake("2", "qid:1", "1:0.5", "1:2")
    "'1:2' must be above feature 1: indices start at 1 and rise"
    """
    if not _reads(float, label):
        return f"the label {label!r} is no number"
    if not qid.startswith("qid"):
        return "there is no qid after the label"
    if not _reads(int, qid.partition(":")[2], 2**63):
        return f"{qid!r} has no whole number"
    last = 0
    for word in features:
        index, _, value = word.partition(":")
        if not _reads(int, index, 2**31) or not _reads(float, value):
            return f"{word!r} is not a feature's whole number, a colon and its value"
        if int(index) <= last:
            return f"{word!r} must be above feature {last}: indices start at 1 and rise"
        last = int(index)
    return ""


def _reads(kind: Callable[[str], float], text: str, limit: float = float("inf")) -> bool:
    try:
        return not abs(kind(text)) > limit
    except ValueError:
        return False


def parse_cached(file: Path, cache: str | os.PathLike[str] | None) -> Parsed:
    """:func:`parse`, remembered on disk where that is possible."""
    try:
        import sklearn.datasets  # noqa: F401 - only to say early what to install
        from joblib import Memory
    except ImportError as error:
        raise ImportError(f"pip install ltr-objectives[letor], for scikit-learn and joblib: {error}") from None
    if cache == "default":
        cache = os.environ.get("LTR_OBJECTIVES_CACHE") or Path.home() / ".cache" / "ltr_objectives"
    state = file.stat()
    key = str(file.resolve()), state.st_mtime_ns, state.st_size
    if cache is None:
        return parse(*key)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of joblib, where it cannot write
        try:
            parsed: Parsed = Memory(Path(cache), verbose=0).cache(parse)(*key)
        except OSError:
            return parse(*key)
    return parsed
