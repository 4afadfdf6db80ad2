"""How a simulation says what went wrong."""

from __future__ import annotations

#: How many events a failure shows.
SHOWN = 25


class SimulationFailure(AssertionError):
    """An invariant does not hold; the seed gives the same events again.

    ``broken`` says which invariant. ``seed`` and ``events`` are what `simulate` takes to play it again, and leaving out
    events makes it shorter. ``trace`` has a line for each event until then, of which the message shows the last 25.
    """

    def __init__(self, broken: str, *, algorithm: object, seed: int, trace: list[str], events: tuple[int, ...]) -> None:
        self.broken, self.seed, self.trace, self.events = broken, seed, trace, events
        shown = "\n".join(f"  {line}" for line in trace[-SHOWN:])
        super().__init__(f"{broken}\nsimulate({algorithm!r}, seed={seed}), after these events:\n{shown}")

    @property
    def is_of_an_invariant(self) -> bool:
        """Whether an invariant was found broken, and it is no error of the code that ran or of a patch in it."""
        return isinstance(self.__cause__, Broken)


class Broken(Exception):
    """An invariant does not hold."""


def require(holds: object, broken: str) -> None:
    """Raise `Broken` unless the claim holds."""
    if not holds:
        raise Broken(broken)
