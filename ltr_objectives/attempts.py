"""Several trainings, of which some may be impossible: all results, and why the others are left out."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from ltr_objectives.errors import LTRError, require, warn
from ltr_objectives.libraries import LIBRARIES, is_native

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def try_each(
    keys: Iterable[K], attempt: Callable[[K], V], *, required: bool = False
) -> tuple[dict[K, V], dict[K, str]]:
    """Call ``attempt`` for each key; return the results, and a reason for each key that cannot be trained.

    Raise if nothing can be trained, and with ``required`` at the first error.
    """
    found: dict[K, V] = {}
    left_out: dict[K, str] = {}
    for key in keys:
        try:
            found[key] = attempt(key)
        except LTRError as error:
            if required:
                raise
            left_out[key] = " ".join(str(error).split())
    require(found, f"no objective could be trained: {next(iter(left_out.values()), '')}")
    return found, left_out


def warn_without_ours(found: Collection[str], left_out: Mapping[str, str]) -> None:
    """Warn if all our objectives were left out, and the libraries' own were found. Both are by name."""
    native = {name for name in (*left_out, *found) for library in LIBRARIES if is_native(library, name)}
    ours = {name: why for name, why in left_out.items() if name not in native}
    if ours and native.issuperset(found):
        name, why = next(iter(ours.items()))
        warn(f"none of our objectives could be trained, so only native ones are compared; {name}: {why}")
