"""Modules of the repository that belong to no package, TOML files, and code in a process of its own."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    """Return the module in this file, under a name that no other module has."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_toml(path: Path) -> dict:
    return tomllib.loads(path.read_text())


def run_code(code: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run code that may import the tests' modules in a new process, in which no library has used OpenMP yet."""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent)]), **environment}
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, timeout=500, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done
