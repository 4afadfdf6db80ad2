"""The figure of a digest's certificates: how large its versions are and how far from all points, version by version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from laconic.arrays import Floats
from laconic.report.figures import INK, blank, frame
from laconic.report.looks import looks, markers

#: A panel for each quantity, and what its title says.
PANELS = {
    "kappa": "κ, mean inflation of the variance",
    "e_hi": "e_hi, largest excess of the atoms",
    "beta": "β, distance of the mean from the atoms",
    "atoms": "Atoms",
    "d_eff": "Effective dimension d_eff",
}
#: Where nothing is certified of a version that was not sent as atoms.
OF_ATOMS = ("kappa", "e_hi", "beta", "atoms")


@dataclass(frozen=True)
class Course:
    """One algorithm with one setting: of each run the quantities of its versions, and ``length``, their points."""

    label: str
    runs: tuple[Mapping[str, Floats], ...]
    algorithm: str = ""  # whose look it has; that of its label where nothing is said

    @property
    def drawn_as(self) -> str:
        """Whose look it has."""
        return self.algorithm or self.label


def certificates(courses: Sequence[Course], *, title: str) -> Figure:
    """Small multiples, a quantity each, against the number of points; a line for each run.

    Args:
        courses: What is drawn, one or more: for each algorithm with one setting a `Course`, with the versions of its
            runs.
        title: Title of the figure, one line.
    """
    figure = blank(12.5, 6.4)
    panels = figure.subplots(2, 3).flatten()
    last = max(int(max(run["length"])) for course in courses for run in course.runs)
    for (quantity, name), axes in zip(PANELS.items(), panels[: len(PANELS)], strict=True):
        _draw(axes, courses, quantity)
        axes.set_title(name, loc="left", fontsize=10.5, color=INK)
        axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=quantity == "atoms"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
        frame(axes, last=last, along="points of all clients")
    _explain(panels[-1], panels[0])
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, color=INK)
    return figure


def _draw(axes: Axes, courses: Sequence[Course], quantity: str) -> None:
    names = [course.drawn_as for course in courses]
    own = looks(names)
    for course, name, marker in zip(courses, names, markers(names), strict=True):
        for number, run in enumerate(course.runs):
            shown = run["atoms"] > 0 if quantity in OF_ATOMS else run["length"] > 0
            axes.plot(
                run["length"][shown],
                run[quantity][shown],
                label=None if number else course.label,
                color=own[name].colour,
                linestyle=own[name].dashes,
                linewidth=1.4,
                marker=marker or ".",
                markersize=3.5,
                alpha=1.0 if len(course.runs) == 1 else 0.6,
            )
    low, high = axes.get_ylim()
    if quantity in ("kappa", "e_hi"):  # of these small differences count
        axes.set_ylim(low, high)
    else:
        axes.set_ylim(0, max(high, 1e-9))


def _explain(empty: Axes, drawn: Axes) -> None:
    """The names of the lines, where a sixth panel would be."""
    empty.axis("off")
    handles, labels = drawn.get_legend_handles_labels()
    empty.legend(handles, labels, loc="upper left", frameon=False, fontsize=9)
