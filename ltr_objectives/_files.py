"""Files that are written whole or not at all, and caches that read only what their user wrote."""

import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ltr_objectives.errors import warn

_said: set[str] = set()
_lock = threading.Lock()


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[Path]:
    """Lend a path to write a file to, which then replaces ``path``; after an error nothing has changed.

    The lent path has the same name, in a folder of its own beside the target. Links are followed. A pipe or a device
    is lent itself. Without ``mode`` the new file has the mode of the old one.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as folder:
        new = Path(folder, target.name)
        yield new
        with new.open("r+b") as written:
            os.fsync(written.fileno())  # a full disk may show only now
        if mode is not None:
            new.chmod(mode)
        elif target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)


def user_cache() -> Path:
    """The folder of the user's caches; RuntimeError where the user has no home folder."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # its specification says to ignore a relative one
        home = os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(home).expanduser() / "ltr_objectives"


def private_folder(folder: Path) -> Path:
    """``folder``, made where it is missing; OSError where it cannot be written.

    Raises
    ------
    PermissionError
        The system's own, and :class:`Foreign` where somebody else may write there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    _require_own(folder.stat(), folder)
    return folder


class Foreign(PermissionError):
    """A file or folder that somebody else may have written: reading it could run their code."""


def _require_own(found: os.stat_result, path: Path) -> None:
    if not hasattr(os, "geteuid"):
        return
    trusted = {os.geteuid(), 0, os.stat(__file__).st_uid}  # who wrote this module runs code in this process anyway
    if found.st_uid not in trusted:
        raise Foreign(f"{path} belongs to another user")
    if found.st_mode & 0o022:
        raise Foreign(f"{path} may be written by other users")


@contextmanager
def open_own(path: Path) -> Iterator[BinaryIO]:
    """Open a file of a cache; :class:`Foreign` where somebody else may have written it."""
    with path.open("rb") as file:
        _require_own(os.fstat(file.fileno()), path)
        yield file


def read_sealed(path: Path) -> bytes:
    """What :func:`write_sealed` wrote; OSError where the file is damaged."""
    with open_own(path) as file:
        digest, content = file.read(32), file.read()
    if hashlib.sha256(content).digest() != digest:
        raise OSError(f"{path} is damaged")
    return content


def write_sealed(path: Path, content: bytes) -> None:
    """Write a file of a cache, with the hash of its content at the front."""
    with replacing(path, 0o600) as new:
        new.write_bytes(hashlib.sha256(content).digest() + content)


def say_once(folder: Path, message: str) -> None:
    """Warn, once in a process for each folder."""
    with _lock:
        new = str(folder) not in _said
        _said.add(str(folder))
    if new:
        warn(message)
