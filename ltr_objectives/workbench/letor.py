"""LETOR files: find the parts of a fold, parse them, and keep the parsed arrays on disk."""

import bz2
import gzip
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ltr_objectives import _files
from ltr_objectives._files import UNREADABLE, open_own, private_folder, replacing, say_once, user_cache
from ltr_objectives._memory import available_memory
from ltr_objectives.errors import LTRError, require

Parsed = tuple[np.ndarray, np.ndarray, np.ndarray]  # X, labels, query ids
ROOM, CELLS_A_VALUE = 2**24, 250  # cells allowed in dense rows: in any case (64 MiB), or for each row and each value
DENSE = "rows are kept dense; number the features from 1 without gaps"
FORMAT = 1  # of the cache; change it when the arrays, or how they are stored, change
HELP = "the text is parsed each time; repair the folder, or name another by cache= or LTR_OBJECTIVES_CACHE"

_PARTS = {"train": "train", "vali": "vali", "valid": "vali", "test": "test"}
_NAME = re.compile(rf"(?:(?P<stem>.+)\.)?(?P<part>{'|'.join(_PARTS)})(?:\.(?:txt|dat|letor|svm))?(?:\.(?:gz|bz2))?")


def find_parts(path: Path) -> dict[str, Path]:
    """The files of a fold by part. ``path`` is a folder, or a folder and the start of the file names in it."""
    folder, stem = (path, None) if path.is_dir() else (path.parent, path.name)
    found: dict[str, dict[str, Path]] = {}
    for file in sorted(folder.iterdir() if folder.is_dir() else ()):
        match = _NAME.fullmatch(file.name)
        if match and file.is_file():  # a plain file sorts before its compressed copy
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
        raise LTRError(f"{path} holds neither train.txt nor test.txt (plain, .gz or .bz2){hint}")
    for part in ("train", "test"):
        require(part in parts, f"{path} has no {part} file, only {', '.join(f.name for f in parts.values())}")
    return parts


def parse(path: Path) -> Parsed:
    """Parse a file or a pipe into dense float32 features, labels and query ids."""
    if path.is_file():
        return _parse(path, path)
    _files.require_readable(path, str(path))
    with tempfile.TemporaryDirectory() as folder:  # a pipe can be read only once
        copy = Path(folder, path.name)
        with path.open("rb") as pipe, copy.open("wb") as file:
            _copy(pipe, file, path)
        return _parse(copy, path)


def _copy(pipe: BinaryIO, file: BinaryIO, path: Path) -> None:
    most = available_memory()
    while block := pipe.read(1 << 20):
        file.write(block)
        require(most is None or file.tell() <= most, f"{path} does not end within the available memory")


def _parse(file: Path, path: Path) -> Parsed:
    """Parse ``file``; messages name ``path``."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y, qid = load_svmlight_file(str(file), dtype=np.float32, query_id=True, zero_based=False)
        require(len(y) == len(qid), "rows have no qid")
        rows, width = X.shape
        dense = None if too_wide(rows, width, X.nnz) else X.toarray()
    except UNREADABLE as error:
        said = _first_mistake(file) or f" cannot be read: {error}"
        raise LTRError(f"{path}{said}; LETOR text is 'label qid:1 1:0.5 ...'") from None
    except MemoryError:
        raise LTRError(f"{path} needs more than the available memory; give fewer rows or columns") from None
    require(len(y) > 0, f"{path} has no rows")
    if dense is None:
        line = widest(file, width)
        raise LTRError(f"{path}{line} {width:,} columns in {rows:,} rows, which have {X.nnz:,} values; {DENSE}")
    return dense, y.astype(np.float32), qid


def too_wide(rows: int, width: int, values: int) -> bool:
    """Return True if dense rows would take far more space than their text."""
    cells = rows * width
    return cells > ROOM and cells > CELLS_A_VALUE * (rows + values)


def widest(path: Path, feature: int) -> str:
    """For a message: which line is the first with ``feature``. A pipe cannot be read again, so its line is left out."""
    for number, words in _lines(path) if path.is_file() else ():
        if any(word.partition(":")[0].lstrip("+0") == str(feature) for word in words[2:]):
            return f", line {number}: feature {feature} makes"
    return f": feature {feature} makes"


def _first_mistake(path: Path) -> str:
    """For a message: the first line that is not LETOR text, and why; empty if every line is."""
    for number, words in _lines(path):
        if mistake := _mistake(*words):
            return f", line {number}: {mistake}"
    return ""


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and words of each line that is not blank, as far as the file can be read."""
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with suppress(*UNREADABLE), opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        for number, line in enumerate(lines, 1):
            if words := line.partition("#")[0].split():
                yield number, words


def _mistake(label: str, qid: str = "", *features: str) -> str:
    """Describe the first mistake in the words of a line.

    >>> _mistake("2", "qid:1", "1:0.5", "1:2")
    "'1:2' must be above feature 1: indices start at 1 and rise"
    """
    if not _reads(float, label):
        return f"the label {label!r} is not a number"
    if not qid.startswith("qid"):
        return "the qid after the label is missing"
    if not _reads(int, qid.partition(":")[2], 2**63):
        return f"{qid!r} must be qid: and a whole number"
    last = 0
    for word in features:
        index, _, value = word.partition(":")
        if not _reads(int, index, 2**31) or not _reads(float, value):
            return f"{word!r} is not a whole number, a colon and a value"
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
    """Parse a file, or read from the cache what was parsed from the same content."""
    try:
        import sklearn.datasets  # noqa: F401 - says early what to install
    except ImportError as error:
        raise ImportError(f"LETOR files need scikit-learn: pip install scikit-learn ({error})") from None
    if cache is None or not file.is_file():
        return parse(file)
    base = Path(cache)
    try:
        if cache == "default":
            base = Path(os.environ.get("LTR_OBJECTIVES_CACHE") or user_cache())
        folder = private_folder(base / "letor")
    except (OSError, RuntimeError) as error:
        say_once(base, f"parsed files are not kept: {error}; {HELP}")
        return parse(file)
    key = _digest(file)
    kept = folder / f"{FORMAT}-{key}{file.suffix}.npz"
    try:
        with open_own(kept) as opened, np.load(opened, allow_pickle=False) as arrays:
            return arrays["X"], arrays["y"], arrays["qid"]
    except FileNotFoundError:
        pass
    except Exception as error:  # a damaged archive may raise anything
        say_once(base, f"the parsed file {kept} is not read: {error}; {HELP}")
    X, y, qid = parse(file)
    if _digest(file) != key:  # the file changed while it was parsed
        return X, y, qid
    try:
        with replacing(kept, 0o600) as new:
            np.savez(new, X=X, y=y, qid=qid)
    except OSError as error:
        say_once(base, f"parsed files cannot be kept in {folder}: {error}; {HELP}")
    return X, y, qid


def _digest(path: Path) -> str:
    """Hash of the content. Another file in its place may have the same size and time."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:32]
