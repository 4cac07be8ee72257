"""Measurements of this library beside the native objectives: ``python -m benchmarks --help``."""
