"""Reproduction: a paper's experiments from its files to a report with its claims checked."""
