"""Benchmarks: ``python -m benchmarks``, from a clone that is installed in place."""

import importlib.util

if importlib.util.find_spec("ltr_objectives.adapters") is None:
    raise ImportError("the clone's own package stands in the way of the installed one: pip install -e '.[all]'")
