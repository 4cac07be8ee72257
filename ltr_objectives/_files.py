"""Open text, write files whole or not at all, refuse models that were cut short, and find folders for caches."""

import importlib
import os
import shutil
import stat
import tempfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from ltr_objectives.errors import LTRError

UNREADABLE: tuple[type[Exception], ...] = (ValueError, OverflowError, OSError, EOFError, zlib.error)
with suppress(ImportError):  # Python may be built without it
    import lzma

    UNREADABLE += (lzma.LZMAError,)
NOT_UTF8 = "it is not text in UTF-8, but perhaps in UTF-16, as PowerShell's > writes; save it in UTF-8"
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}


@contextmanager
def open_text(path: Path) -> Iterator[Any]:
    """Open a text file, perhaps a compressed one, as bytes without byte order marks; raise ValueError for UTF-16."""
    module = importlib.import_module(COMPRESSED.get(path.suffix.lower(), "io"))
    with module.open(path, "rb") as file:
        content = file.read()
    if b"\0" in content[:64] or content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(NOT_UTF8)
    yield BytesIO(content.replace(BOM_UTF8, b""))  # joined files have a mark each


def require_whole(path: str, library: str, is_whole: Callable[[bytes], object]) -> bytes:
    """Return the content of a model file; raise if it was cut short, which the libraries do not see everywhere."""
    content = Path(path).expanduser().read_bytes()
    with suppress(ValueError):
        if is_whole(content):
            return content
    raise LTRError(f"{path} is not a whole {library} model; save or copy it again")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to, then replace ``path`` by that file; after an error ``path`` is unchanged.

    The yielded path has the same name, in a temporary folder beside the target. Links are followed. The new file keeps
    the mode of the old one. A pipe or a device is yielded itself.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield Path(path)
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {os.fspath(target.parent)!r} to write {target.name} in")
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as folder:
        new = Path(folder, target.name)
        yield new
        with new.open("r+b") as written:
            os.fsync(written.fileno())  # a full disk may raise only now
        if target.exists():
            shutil.copymode(target, new)
        os.replace(new, target)


def user_cache() -> Path:
    """Return the folder of the user's caches; raise RuntimeError if the user has no home folder."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):  # the XDG specification says to ignore a relative path
        home = os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(home).expanduser() / "ltr_objectives"


def private_folder(folder: Path) -> Path:
    """Make ``folder`` if it is missing, and return it; raise OSError unless this user and no other can write there."""
    for path in (*reversed(folder.parents), folder):
        path.mkdir(mode=0o755, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass
    require_private(folder)
    return folder


def require_private(folder: Path) -> None:
    """Raise PermissionError if another user can write files into a folder, or exchange it or one above."""
    require_own(folder.stat(), folder)
    for path in {folder, *folder.absolute().parents, *folder.resolve().parents}:
        found = path.lstat()
        fixed = found.st_mode & stat.S_ISVTX or stat.S_ISLNK(found.st_mode)  # nobody else can rename what is in /tmp
        require_own(found, path, but=0o022 if fixed else 0o020 if _is_alone_in(found.st_gid) else 0)


def require_own(found: os.stat_result, path: Path, but: int = 0) -> None:
    """Raise PermissionError if another user may have written a file or folder, whose machine code would be run.

    The bits ``but`` of its mode are allowed.
    """
    if hasattr(os, "geteuid"):
        trusted = {os.geteuid(), 0, os.stat(__file__).st_uid}  # the owner of this module runs code here anyway
        if found.st_uid not in trusted or found.st_mode & 0o022 & ~but:
            raise PermissionError(f"other users can write files into {path}")


def _is_alone_in(gid: int) -> bool:
    """Return True for the group that some systems make for each user, which may write to the user's folders."""
    with suppress(ImportError, KeyError):  # Windows, and users of containers, who have no name
        import grp
        import pwd

        group, user = grp.getgrgid(gid), pwd.getpwuid(os.geteuid())
        return gid > 0 and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return False
