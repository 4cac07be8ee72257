"""``python -m benchmarks startup``: seconds of a new process to import the package, and to its first gradient."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

from rich.progress import track
from typer import Option

from benchmarks.publish import save
from ltr_objectives.registry import objective_names
from ltr_objectives.workbench.texts import terminal

IMPORT = "import time; t = time.perf_counter(); import ltr_objectives; print(time.perf_counter() - t)"
COMPILING = "from ltr_objectives.kernels import _compiler; _compiler.BUILT_IN = None; "  # else nothing is compiled
FIRST = (
    "import time; t = time.perf_counter(); import ltr_objectives; {before}"
    "ltr_objectives.get_objective({name!r}).gradient_hessian([0.1, 0.2, 0.3], [1, 0, 2], [3]); "
    "print(time.perf_counter() - t)"
)


def run(code: str, cache: str | None = None) -> Any:
    """Return the JSON that a new process prints; ``cache`` is its folder for machine code."""
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def startup(
    only: Annotated[str, Option(help="Only objectives that contain this text.")] = "",
    rounds: Annotated[int, Option(min=1, help="The least time counts.")] = 3,
    out: Annotated[Path, Option(help="Folder for the JSON file.")] = Path("results"),
) -> None:
    """Time the import, and the first gradient in a new process.

    The gradient is that of each objective, with the machine code of the installation, and compiling.
    """
    console = terminal()
    imported = min(run(IMPORT) for _ in range(rounds))
    results = []
    for name in track([o for o in objective_names() if only in o], console=console, transient=True):
        with tempfile.TemporaryDirectory() as cache:
            cold = run(FIRST.format(name=name, before=COMPILING), cache)
        warm = min(run(FIRST.format(name=name, before="")) for _ in range(rounds))
        results.append({"objective": name, "warm": warm, "cold": cold})
    save("startup", {"import": imported, "results": results}, out, console)
