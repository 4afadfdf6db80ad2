"""The folder of one comparison: its finished runs, results.parquet, config.toml and figures."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from laconic.errors import InputError
from laconic.experiments.config import HEADER, Experiment
from laconic.experiments.files import remove_file, replace_file, require_places, require_writable
from laconic.experiments.results import Results
from laconic.experiments.tasks import Store, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS = "runs"  # the folder of finished runs, a file each
RESULTS, CONFIG, FIGURES = "results.parquet", "config.toml", ("figure.png", "figure.svg")
#: Where an algorithm has versions that say what they are worth.
CERTIFICATES = ("certificates.png", "certificates.svg")


@dataclass
class Folder:
    """Where a comparison leaves its files; one that holds other results is refused, and other files stay."""

    path: Path
    experiment: Experiment

    def __post_init__(self) -> None:
        require_places(self.path, files=(RESULTS, CONFIG, *FIGURES, *CERTIFICATES), folders=(RUNS,))
        require_writable(self.path)

    @cached_property
    def store(self) -> Store:
        """Where the finished runs are."""
        return Store(self.path / RUNS)

    def begin(self, tasks: Sequence[Task]) -> None:
        """Say what will be here; refused where something else is, which these runs would replace."""
        self._require_no_others(tasks)
        if why_without_config(self.experiment):
            remove_file(self.path / CONFIG)
            return
        config = HEADER.format(name=CONFIG) + self.experiment.to_toml()
        replace_file(self.path / CONFIG, lambda path: path.write_text(config, encoding="utf-8"))

    def _require_no_others(self, tasks: Sequence[Task]) -> None:
        """More seeds, settings or algorithms may be added to a comparison: then nothing that was there is lost."""
        others = self.store.strangers(tasks)
        if others:
            raise InputError(
                f"{self.path} holds {len(others)} finished runs of another comparison{_described(others[0])}: other "
                "settings, sizes or seeds, code of your own that has changed, or another laconic; "
                "try another out, or the comparison that it holds"
            )
        if (self.path / RESULTS).exists() and not any(map(self.store.has, tasks)):
            raise InputError(
                f"{self.path} holds {RESULTS} of another comparison, which this one would replace; try another out"
            )

    def save(self, results: Results) -> None:
        """Keep all runs so far together; figures of fewer runs would contradict them."""
        if not results.rows:
            return
        results.to_parquet(self.path / RESULTS)
        for name in (*FIGURES, *CERTIFICATES):
            remove_file(self.path / name)

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


def _described(run: Path) -> str:
    """One of them in words, where it can be read."""
    with suppress(InputError):
        found = Results.from_parquet(run)
        for row in found.rows:
            sizes = f"{found.clients} clients, {found.rounds} rounds"
            return f" (one is {row.algorithm} on {found.problem}, {sizes}, seed {row.seed})"
    return ""


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
