"""The settings of a paper under one name, for those who compare with it."""

from __future__ import annotations

from typing import Any

from laconic.experiments.parts import algorithm_from
from laconic.papers.library import read_paper

#: Algorithms of the experiment files that stand there beside the paper's own.
BESIDE = ("LaconicUCB", "Random")


def preset(name: str = "li2022", *, grids: bool = False) -> list[Any]:
    """The algorithms of a paper with the settings of its first figure, which are what ``laconic reproduce`` runs.

    Args:
        name: Name of the paper.
        grids: True: every value that the paper tries for γ and α. False: the middle one.

    Examples:
        >>> from laconic import preset
        >>> [type(each).__name__ for each in preset("li2022")]
        ['OneKernelUCB', 'DisKernelUCB', 'ApproxDisKernelUCB', 'NKernelUCB', 'DisLinUCB']
        >>> two = preset("li2022")[1]
        >>> two.kernel, two.D, two.lam, two.alpha
        (Gaussian(gamma=1.0), 20.0, 1.0, 1.0)
    """
    tables = read_paper(name).figures[0].file.algorithms
    own = [table for table in tables if table["name"] not in BESIDE]
    return [algorithm_from(table if grids else _middle(table)) for table in own]


def _middle(value: Any) -> Any:
    """The same with the middle one of every list of values, also within tables."""
    if isinstance(value, dict):
        return {name: _middle(part) for name, part in value.items()}
    return sorted(value)[len(value) // 2] if isinstance(value, list) else value
