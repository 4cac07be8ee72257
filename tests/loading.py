"""Modules of the repository that belong to no package, and TOML files."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

if sys.version_info >= (3, 11):
    import tomllib
else:  # there pytest installs it
    import tomli as tomllib


def load(path: Path) -> ModuleType:
    """The module in this file, under a name that no other module has."""
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_toml(path: Path) -> dict:
    return tomllib.loads(path.read_text())
