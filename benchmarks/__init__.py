"""Benchmarks: what a run costs beside the arithmetic that it cannot avoid. Run them with ``make bench``."""
