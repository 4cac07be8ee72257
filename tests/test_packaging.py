"""The package as it is installed: complete, light to import, and nothing registered that is not there."""

import subprocess
import sys
from pathlib import Path

import pytest

import ltr_objectives
from ltr_objectives import adapters, registry

if sys.version_info >= (3, 11):
    import tomllib
else:  # pytest brings it along there
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent


def test_every_folder_with_modules_is_a_listed_package():
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    folders = {p.parent.relative_to(ROOT) for p in (ROOT / "ltr_objectives").rglob("*.py")}
    assert listed == {".".join(f.parts) for f in folders} | {"ltr_objectives.adapters"}  # rglob follows no links
    assert (ROOT / "ltr_objectives" / "adapters").resolve() == ROOT / "adapters"


def test_import_loads_neither_numba_nor_a_library():
    code = (
        "import sys, ltr_objectives, ltr_objectives.adapters\n"
        "heavy = {'numba', 'xgboost', 'lightgbm', 'catboost', 'sklearn', 'scipy', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT.parent)


def test_every_public_name_is_there():
    for module in (ltr_objectives, adapters):
        for name in module.__all__:
            assert getattr(module, name) is not None
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018 - the look is the test
    assert ltr_objectives.objectives() == tuple(registry.OBJECTIVES)
    assert ltr_objectives.metrics() == tuple(registry.METRICS)


def test_registered_names_are_the_classes_names():
    for name in registry.objectives():
        assert registry.objective_class(name).name == name
    for name in registry.metrics():
        assert registry.metric_class(name).name == name


def test_modules_stay_small():
    for folder in ("ltr_objectives", "adapters", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text().splitlines()) <= 400, path


def test_warmup_says_where_the_machine_code_lies():
    done = subprocess.run([sys.executable, "-m", "ltr_objectives.warmup"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("compiled in")
    assert "cache:" in done.stdout
