"""Benchmarks: ``python -m benchmarks``, in the clone."""
