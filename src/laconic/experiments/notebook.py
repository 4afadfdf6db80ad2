"""What a comparison shows in a notebook while it runs, where nobody asked for anything else."""

from __future__ import annotations

from laconic.experiments.runner import Advanced, Begun, Event, Finished, Started, Watch, silent
from laconic.report.bar import Bar, is_notebook


def usual_watch() -> Watch:
    """Bars in a notebook, nothing elsewhere."""
    return Bars().watch if is_notebook() else silent


class Bars:
    """One bar over the steps of all runs, and beside it which run is under way."""

    def __init__(self) -> None:
        self.bar: Bar | None = None
        self.done, self.total, self.doing = 0, 0, ""

    def watch(self, event: Event) -> None:
        """Show what has happened."""
        match event:
            case Begun(_, total, known, about):
                steps = max((each.clients * each.rounds for each in about.values()), default=1)
                self.bar, self.done, self.total = Bar(total * steps), len(known), total
                self._show(self.done * steps)
            case Started(task):
                self.doing = f"{task.label}, seed {task.seed}"
                self._show(self.done * task.steps)
            case Advanced(task, steps):
                self._show(self.done * task.steps + steps)
            case Finished(task, _, done):
                self.done, self.doing = done, self.doing if done < self.total else ""
                self._show(done * task.steps)

    def _show(self, steps: int) -> None:
        assert self.bar is not None  # a part of a sweep begins before anything in it happens
        under_way = f": {self.doing}" if self.doing else ""
        self.bar.show(steps, f"{self.done} of {self.total} runs{under_way}")
