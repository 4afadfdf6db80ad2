"""A table that grows at its end and to its right while older, smaller versions of it stay valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from laconic.arrays import Floats, Ints, apart

#: Rows of a panel: enough for level-3 BLAS, few enough that one panel can be moved without much memory.
PANEL_ROWS = 2048
#: A panel that must be widened gets room for this many columns more than it needs.
SPARE_COLUMNS = 64


class _Panel:
    """The memory of some rows; versions that share it see their own part of what is filled, ``rows`` by ``width``."""

    __slots__ = ("buffer", "rows", "width")

    def __init__(self, buffer: Floats, *, rows: int, width: int) -> None:
        self.buffer, self.rows, self.width = buffer, rows, width

    def grown(self, *, rows: int, width: int, old: tuple[int, int]) -> _Panel:
        """This panel where nobody else grew it, otherwise a copy of its old part; then it is larger.

        Where there is no room its memory moves, for all versions that share it: nobody holds both the old and the new.
        """
        panel = self if (self.rows, self.width) == old else _Panel(self.buffer, rows=rows, width=width)
        if panel is not self or width > self.buffer.shape[1]:
            buffer = apart(PANEL_ROWS, width + SPARE_COLUMNS)
            buffer[: old[0], : old[1]] = self.buffer[: old[0], : old[1]]
            panel.buffer = buffer
        panel.rows, panel.width = rows, width
        return panel


@dataclass(frozen=True, eq=False)
class Panels:
    """A table of ``size`` rows and ``width`` columns, held in panels of `PANEL_ROWS` rows."""

    size: int = 0
    width: int = 0
    panels: tuple[_Panel, ...] = ()

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """The rows of each panel: where they stand, and a view of them."""
        for number, panel in enumerate(self.panels):
            first, last = number * PANEL_ROWS, min((number + 1) * PANEL_ROWS, self.size)
            yield slice(first, last), panel.buffer[: last - first, : self.width]

    def take(self, rows: Ints) -> Floats:
        """Some rows, copied."""
        taken = np.empty((len(rows), self.width))
        for number, panel in enumerate(self.panels):
            here = np.flatnonzero(rows // PANEL_ROWS == number)
            taken[here] = panel.buffer[rows[here] - number * PANEL_ROWS, : self.width]
        return taken

    def resized(self, *, size: int, width: int) -> Panels:
        """A larger version; what it has beyond this one is for the caller to fill, and only the caller's."""
        panels = []
        for number in range(-(-size // PANEL_ROWS)):
            rows = min(size - number * PANEL_ROWS, PANEL_ROWS)
            old = max(min(self.size - number * PANEL_ROWS, PANEL_ROWS), 0)
            if number < len(self.panels):
                panels.append(self.panels[number].grown(rows=rows, width=width, old=(old, self.width)))
            else:
                panels.append(_Panel(apart(PANEL_ROWS, width + SPARE_COLUMNS), rows=rows, width=width))
        return Panels(size=size, width=width, panels=tuple(panels))
