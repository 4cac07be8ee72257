"""The origin of results: the command, the processors, and the versions of the packages."""

import importlib.metadata
import platform
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ltr_objectives.kernels.threads import available_threads


def provenance() -> dict[str, Any]:
    """Return the running command, the processors and the versions."""
    return {"command": f"python -m benchmarks {shlex.join(sys.argv[1:])}", "versions": versions()}


def versions(libraries: Sequence[str] = ("xgboost", "lightgbm", "catboost")) -> dict[str, str]:
    """Return the processors, and the versions of Python and of the packages that matter to the results."""
    found = {"processors": f"{available_threads()} x {_processor()}", "python": platform.python_version()}
    for package in ("ltr-objectives", "numpy", "numba", *libraries):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def versions_of(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Count the versions that trainings of a study record; it may go on with other versions than it began with.

    >>> versions_of([{"versions": {"xgboost": "3.1.0"}}, {"versions": {"xgboost": "3.2.0"}}, {}])
    {'xgboost': '3.1.0 in 1 and 3.2.0 in 1 of the trainings', 'versions': 'not recorded in 1 of the trainings'}
    """
    counts: dict[str, Counter[str]] = {}
    for result in results:
        for package, version in result.get("versions", {}).items():
            counts.setdefault(package, Counter())[version] += 1
    found = {
        package: " and ".join(f"{version} in {n}" for version, n in of.items()) + " of the trainings"
        if len(of) > 1
        else next(iter(of))
        for package, of in counts.items()
    }
    unknown = sum("versions" not in result for result in results)
    return found | ({"versions": f"not recorded in {unknown} of the trainings"} if unknown else {})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(": ")[2] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
