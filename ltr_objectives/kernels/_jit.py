"""How kernels are compiled and cached; no other module knows about either.

Numba's disk cache looks only at the file that defines a kernel, so after an upgrade of a helper it would keep old
machine code. Here the cache lies in a folder named after a hash of every source file of the package's kernels.

``kernel`` compiles strictly; ``vector_kernel`` also lets LLVM reorder sums, which a reduction needs to vectorise.
Both release the GIL: threads are made by :mod:`ltr_objectives.kernels.threads`, not by numba.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba

from ltr_objectives.kernels._notice import tell_before_compiling

PACKAGE = Path(__file__).resolve().parent.parent
config: Any = numba.config
REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


def source_hash(package: Path = PACKAGE) -> str:
    """A hash of every source file that compiled code can come from."""
    digest = hashlib.sha256()
    for folder in ("kernels", "metrics", "objectives"):
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR) / "ltr_objectives"
        return
    yield PACKAGE / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    yield Path(home).expanduser() / "ltr_objectives"


def cache_folder() -> Path | None:
    """The first writable folder for machine code, or None: then every process compiles anew."""
    for base in _candidates():
        folder = base / f"numba-{source_hash()}"
        with contextlib.suppress(OSError, RuntimeError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    return None


CACHE = cache_folder()
tell_before_compiling(lambda: CACHE)


def _compile(fastmath: set[str] | bool) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "no_cfunc_wrapper": True,
        }
        if CACHE is None:
            return numba.njit(**options)(function)
        before = config.CACHE_DIR
        config.CACHE_DIR = str(CACHE)
        try:
            return numba.njit(cache=True, **options)(function)
        finally:
            config.CACHE_DIR = before

    return decorate


kernel = _compile(False)
vector_kernel = _compile(REASSOCIATE)
