"""The folder of one comparison: results.parquet, config.toml, figure.png and figure.svg, certificates likewise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.errors import InputError
from laconic.experiments.config import HEADER, Experiment
from laconic.experiments.files import remove_file, replace_file, require_writable
from laconic.experiments.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS, CONFIG, FIGURES = "results.parquet", "config.toml", ("figure.png", "figure.svg")
#: Where an algorithm has versions that say what they are worth.
CERTIFICATES = ("certificates.png", "certificates.svg")


@dataclass
class Folder:
    """Where a comparison leaves its files; those of an earlier one are replaced, other files stay.

    Nothing is touched before the first run has finished, so stopping early costs nobody their earlier results.
    """

    path: Path
    experiment: Experiment
    begun: bool = False

    def __post_init__(self) -> None:
        require_writable(self.path)

    def save(self, results: Results) -> None:
        """Keep all runs so far; the first time, also say what they are runs of."""
        if not results.rows:
            return
        results.to_parquet(self.path / RESULTS)  # first, so that a full disk leaves an earlier comparison as it was
        if not self.begun:
            self._begin()

    def _begin(self) -> None:
        for name in (CONFIG, *FIGURES, *CERTIFICATES):  # an earlier comparison's files would contradict this one's
            remove_file(self.path / name)
        if not why_without_config(self.experiment):
            config = HEADER.format(name=CONFIG) + self.experiment.to_toml()
            replace_file(self.path / CONFIG, lambda path: path.write_text(config, encoding="utf-8"))
        self.begun = True

    def draw(self, figure: Figure, *, certificates: Figure | None = None) -> None:
        """Keep the figure, and that of certificates where there is one."""
        self._keep(figure, FIGURES)
        if certificates is not None:
            self._keep(certificates, CERTIFICATES)

    def _keep(self, figure: Figure, names: tuple[str, str]) -> None:
        from laconic.report.figures import save  # matplotlib is slow to import

        png, svg = names
        replace_file(self.path / png, lambda path: save(figure, path, kind="png"))
        replace_file(self.path / svg, lambda path: save(figure, path, kind="svg"))


def why_without_config(experiment: Experiment) -> str:
    """Why no file can say how to run this again, which is no reason not to keep its results; nothing where one can."""
    try:
        experiment.to_toml()
    except InputError as error:  # a part of the user's own without a name
        return str(error)
    return ""


def files_in(folder: Path) -> list[Path]:
    """The files of a comparison that are in the folder."""
    return [folder / name for name in (RESULTS, CONFIG, *FIGURES, *CERTIFICATES) if (folder / name).exists()]
