"""Write files whole or not at all, and read from a cache only what its user wrote."""

import hashlib
import os
import shutil
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ltr_objectives.errors import require, warn

UNREADABLE: tuple[type[Exception], ...] = (ValueError, OverflowError, OSError, EOFError, zlib.error)
with suppress(ImportError):  # Python may be built without it
    import lzma

    UNREADABLE += (lzma.LZMAError,)
STALE_SECONDS = 24 * 3600  # a temporary folder this old in a cache belongs to a process that was killed
_said: set[str] = set()
_lock = threading.Lock()


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[Path]:
    """Yield a path to write to, then replace ``path`` by that file; after an error ``path`` is unchanged.

    The yielded path has the same name, in a temporary folder beside the target. Links are followed. Without ``mode``
    the new file keeps the mode of the old one, and a pipe or a device is yielded itself.
    """
    target = Path(os.path.realpath(path))
    if mode is None and target.exists() and not target.is_file():
        yield Path(path)
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {os.fspath(target.parent)!r} to write {target.name} in")
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as folder:
        new = Path(folder, target.name)
        yield new
        with new.open("r+b") as written:
            os.fsync(written.fileno())  # a full disk may raise only now
        if mode is not None:
            new.chmod(mode)
        elif target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)


def user_cache() -> Path:
    """The folder of the user's caches; raises RuntimeError if the user has no home folder."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # the XDG specification says to ignore a relative path
        home = os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(home).expanduser() / "ltr_objectives"


def private_folder(folder: Path) -> Path:
    """Make ``folder`` if it is missing, remove what killed processes left in it, and return it.

    Raises
    ------
    OSError
        If the folder cannot be made or written; :class:`Foreign` if another user may write there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    _require_own(folder.stat(), folder)
    for left in folder.glob(".*"):  # from :func:`replacing`
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(left)
    return folder


class Foreign(PermissionError):
    """A file or folder that another user may have written; reading it could run their code."""


def _require_own(found: os.stat_result, path: Path) -> None:
    if not hasattr(os, "geteuid"):
        return
    trusted = {os.geteuid(), 0, os.stat(__file__).st_uid}  # the owner of this module runs code here anyway
    if found.st_uid not in trusted:
        raise Foreign(f"{path} belongs to another user")
    if found.st_mode & 0o022:
        raise Foreign(f"{path} can be written by other users")


@contextmanager
def open_own(path: Path) -> Iterator[BinaryIO]:
    """Open a cache file; raise OSError for a pipe, :class:`Foreign` if another user may have written it."""
    at_once = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for a writer
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{path} is not a regular file")
        _require_own(found, path)
        yield file


def require_readable(path: Path, name: str) -> None:
    """Raise for devices, which may not end. ``name`` begins the message."""
    readable = path.is_file() or path.is_dir() or path.is_fifo()
    require(readable, f"{name} is a device or socket; give a file, or a pipe")


def read_sealed(path: Path) -> bytes:
    """Read what :func:`write_sealed` wrote; raise OSError if the file is damaged."""
    with open_own(path) as file:
        digest, content = file.read(32), file.read()
    if hashlib.sha256(content).digest() != digest:
        raise OSError(f"{path} is damaged")
    return content


def write_sealed(path: Path, content: bytes) -> None:
    """Write a cache file: the hash of ``content``, then ``content``."""
    with replacing(path, 0o600) as new:
        new.write_bytes(hashlib.sha256(content).digest() + content)


def say_once(folder: Path, message: str) -> None:
    """Warn once per process and folder."""
    with _lock:
        new = str(folder) not in _said
        _said.add(str(folder))
    if new:
        warn(message)
