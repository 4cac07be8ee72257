"""The package as users get it: built from a copy of the tree, and installed into new environments."""

import importlib.metadata
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command, cwd):
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def clone(folder):
    """The files of a checkout that the package needs."""
    skip = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    for name in ("ltr_objectives", "adapters"):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skip)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def require_tools():
    """Skip if a tool for building is missing, since tests must not download it."""
    for name in ("pip", "build", "setuptools"):
        try:  # the finder of modules that setuptools installs may warn of pip
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
    if int(importlib.metadata.version("setuptools").partition(".")[0]) < 77:
        pytest.skip("pyproject.toml needs setuptools>=77")


def environment(folder, *install):
    """The interpreter of a new environment with the dependencies and with what ``pip install *install`` installs."""
    venv.create(folder, symlinks=True)
    packages = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"]
    if install:
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed")
        run(sys.executable, "-m", "pip", "install", *options, "--prefix", folder, *install, cwd=folder)
    Path(packages, "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n" + "\n".join(beside()))
    return folder / "bin" / "python"


def beside():
    """The folders of packages that the tests themselves import from."""
    return [p for p in sys.path if p.endswith("site-packages")]
