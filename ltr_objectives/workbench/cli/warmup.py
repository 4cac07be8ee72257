"""``ltr-objectives warmup``: compile in advance."""

from functools import partial

from rich.console import Console
from rich.progress import track

from ltr_objectives.workbench.cli.options import AsJson, console, print_json


def warmup(as_json: AsJson = False) -> None:
    """Compile every kernel once, for container images and batch jobs.

    The machine code stays in the cache.
    """
    from ltr_objectives.kernels._jit import CACHE
    from ltr_objectives.warmup import warm_up

    screen = Console(stderr=True)
    bar = partial(track, description="compile", console=screen, transient=True, disable=not screen.is_terminal)
    seconds = warm_up(bar)
    if as_json:
        print_json({"seconds": seconds, "cache": None if CACHE is None else str(CACHE)})
        return
    where = CACHE or "none, no folder is writable"
    console().print(f"compiled in {seconds:.1f} s; cache: {where}", markup=False, soft_wrap=True)
