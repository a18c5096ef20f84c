"""Measurements: short, printed, never part of the test run. `uv run python -m tests.bench.NAME --help`."""
