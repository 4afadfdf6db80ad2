"""How algorithms are drawn: one colour, line and outline each in every figure, the last two told apart in grey."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Okabe and Ito's palette without its yellow, and a shade darker where labels would be too light on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#C2619A", "#000000", "#B07A00", "#3B9BD6")
GREY = "#9CA3AF"
#: Outlines as Vega draws them, in a square from −1 to 1, and their names in matplotlib.
SHAPES = {
    "circle": "M1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0Z",
    "square": "M-.9,-.9H.9V.9H-.9Z",
    "up": "M0,-1L1,.8H-1Z",
    "diamond": "M0,-1.2L1,0L0,1.2L-1,0Z",
    "down": "M0,1L1,-.8H-1Z",
    "cross": "M-.35,-1H.35V-.35H1V.35H.35V1H-.35V.35H-1V-.35H-.35Z",
    "right": "M1,0L-.8,-1V1Z",
    "left": "M-1,0L.8,-1V1Z",
}
MARKERS = {
    "circle": "o",
    "square": "s",
    "up": "^",
    "diamond": "D",
    "down": "v",
    "cross": "P",
    "right": ">",
    "left": "<",
}
FINER = 0.8  # matplotlib counts dashes in widths of the line, Vega in pixels


@dataclass(frozen=True)
class Look:
    """How an algorithm is drawn."""

    colour: str
    dash: tuple[int, ...]  # lengths of strokes and gaps; (1, 0) has no gaps
    shape: str  # one of `SHAPES`

    @property
    def dashes(self) -> Any:
        """The line as matplotlib takes it."""
        return "solid" if self.dash == (1, 0) else (0, tuple(FINER * length for length in self.dash))

    @property
    def marker(self) -> str:
        """The outline as matplotlib takes it."""
        return MARKERS[self.shape]


LOOKS = {
    "LaconicUCB": Look(COLOURS[5], (1, 0), "cross"),
    "OneKernelUCB": Look(COLOURS[0], (14, 3), "circle"),
    "DisKernelUCB": Look(COLOURS[1], (7, 3), "square"),
    "ApproxDisKernelUCB": Look(COLOURS[2], (8, 3, 2, 3), "up"),
    "NKernelUCB": Look(COLOURS[3], (2, 2), "down"),
    "DisLinUCB": Look(COLOURS[4], (4, 2, 1, 2, 1, 2), "diamond"),
    "AskServer": Look(COLOURS[6], (12, 2, 2, 2, 2, 2), "right"),
    "Random": Look(GREY, (1, 3), "left"),
}
#: For algorithms of others, in turn: lines that none of ours has, and colours that few figures have already.
SPARE = tuple(
    Look(COLOURS[colour], dash, shape)
    for colour, dash, shape in (
        *((6, (5, 5), "right"), (3, (10, 5), "circle"), (4, (3, 5), "square"), (5, (6, 2, 1, 2), "left")),
        *((0, (3, 2), "up"), (1, (16, 6), "diamond"), (2, (4, 3, 4, 3, 1, 3), "down")),
    )
)


def looks(names: Sequence[str]) -> dict[str, Look]:
    """The look of each name; names that are not ours take what is left, in their order.

    >>> looks(["Mine", "DisKernelUCB"])["DisKernelUCB"].colour
    '#D55E00'
    """
    others = [name for name in dict.fromkeys(names) if name not in LOOKS]
    spare = {name: SPARE[place % len(SPARE)] for place, name in enumerate(others)}
    return {name: LOOKS.get(name) or spare[name] for name in dict.fromkeys(names)}


def markers(names: Sequence[str]) -> list[str]:
    """Of lines with these names a marker each where several have one name, which share their look; else none.

    >>> markers(["A", "B", "A"])
    ['o', '', 's']
    """
    drawn = tuple(MARKERS.values())
    places = [names[:place].count(name) for place, name in enumerate(names)]
    return [
        drawn[place % len(drawn)] if names.count(name) > 1 else "" for name, place in zip(names, places, strict=True)
    ]
