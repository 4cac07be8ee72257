"""The benchmarks, ``python -m benchmarks``; they run in a clone of the repository."""
