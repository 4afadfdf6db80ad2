"""Experiments: comparisons, grids, results and what they show."""
