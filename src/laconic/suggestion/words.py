"""A suggestion in plain words, and in plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from laconic.canonical import canonical
from laconic.report.table import Table
from laconic.suggestion.fitting import RIDGES
from laconic.suggestion.likelihood import parameters
from laconic.terminal import shown

if TYPE_CHECKING:
    from laconic.suggestion.value import Suggestion

#: So many names of columns are told, where there are more.
TOLD = 8
HOW_SURE = "These are estimates from a sample, and may be off by a factor of 3."
UNITS = ("bytes", "kB", "MB", "GB", "TB")


def explained(suggestion: Suggestion) -> str:
    """All of a suggestion in plain sentences, a paragraph a subject."""
    parts = (_sample, _kernel, _ridge, _weight, _exchange, _cost)
    said = [" ".join(part(suggestion)) for part in parts]
    return "\n\n".join([*said, _costs(suggestion).text(), HOW_SURE])


def as_dict(suggestion: Suggestion) -> dict[str, Any]:
    """All of a suggestion as plain values."""
    grounds = suggestion.grounds
    settings = ("lam", "alpha", "delta", "D", "D_approx", "qbar", "ranges", "reward", "d_eff")
    return {
        **canonical({"kernel": suggestion.kernel}, dim=grounds.sample.dim),
        **{name: getattr(suggestion, name) for name in settings},
        "points": len(grounds.sample.points),
        "dim": grounds.sample.dim,
        "columns": list(grounds.sample.columns),
        "signal": grounds.signal,
        "noise": grounds.noise,
        "evidence": grounds.log,
        "at_limit": list(grounds.at_limit),
        "clients": suggestion.traffic.clients,
        "traffic": suggestion.traffic.daily,
        "bytes_per_client": {
            name: {"first day": round(cost.first), "later day": round(cost.later)}
            for name, cost in suggestion.costs().items()
        },
        "remarks": list(grounds.sample.remarks()),
    }


def size(number: float) -> str:
    """Bytes with two digits and a unit.

    >>> size(12_345), size(0)
    ('12 kB', 'nothing')
    """
    if number < 1:
        return "nothing"
    unit = 0
    while number >= 999.5 and unit < len(UNITS) - 1:
        number, unit = number / 1000.0, unit + 1
    return f"{number:.0f} {UNITS[unit]}" if number >= 9.95 else f"{number:.1f} {UNITS[unit]}"


def _sample(suggestion: Suggestion) -> Iterator[str]:
    sample, curve = suggestion.grounds.sample, suggestion.grounds.curve
    n, d = sample.points.shape
    drawn = "" if sample.drawn_from is None else f", drawn from {sample.drawn_from:,}"
    yield f"This rests on {n:,} points of {d} feature{'s' if d > 1 else ''}{drawn}{_columns(sample.columns)}."
    if curve.population < n:
        yield f"Points return: there seem to be about {curve.population:.0f} different ones."
    yield from sample.remarks()
    if sample.rewards is None:
        yield "There are no rewards, so only the points were looked at."
        if sample.columns:
            yield "If one of these columns is the reward, --reward COLUMN names it."


def _columns(names: tuple[str, ...]) -> str:
    """Which columns the features are, the first few where there are many."""
    if not names:
        return ""
    told = [*map(shown, names)] if len(names) <= TOLD else [*map(shown, names[: TOLD - 1])]
    if len(told) < len(names):
        told.append(f"{len(names) - len(told):,} more")
    *others, last = told
    return f": the columns {', '.join(others)} and {last}" if others else f": the column {last}"


def _kernel(suggestion: Suggestion) -> Iterator[str]:
    grounds, kernel = suggestion.grounds, suggestion.kernel
    yield f"Kernel: {kernel!r}."
    if not parameters(kernel):
        yield "It has no scale of its own that could be chosen here, and was taken as it is."
    elif grounds.lost is None:
        yield (
            "That is the median heuristic: the kernel is as wide as two points are typically apart. Without rewards "
            "nothing says whether rewards vary faster or more slowly than that; expect to be off by a factor of 3 "
            "or more."
        )
    else:
        half, twice = (max(each, 0.0) for each in grounds.lost)
        yield (
            f"It makes the rewards most likely; the median heuristic alone would say {grounds.median!r}. With half of "
            f"that {parameters(kernel)[0]} the logarithm of the evidence is {half:.1f} lower, with twice {twice:.1f}: "
            + ("the sample decides clearly." if min(half, twice) > 3 else "the sample does not decide clearly.")
        )
    limited = [name for name in grounds.at_limit if name != "lam"]
    if limited:
        yield (
            f"The search ended at its limit in {' and '.join(limited)}: rewards hardly depend on where points are, or "
            "points say nothing about each other. Look at the features before trusting this."
        )


def _ridge(suggestion: Suggestion) -> Iterator[str]:
    grounds, lam = suggestion.grounds, suggestion.lam
    yield f"Ridge: λ = {lam:g}."
    if grounds.signal is None or grounds.noise is None:
        yield "That is a default, for noise of about a third of the size of the signal."
        return
    yield f"Signal has a standard deviation of about {grounds.signal:.2g} and noise one of {grounds.noise:.2g}."
    if "lam" in grounds.at_limit:
        least = lam < RIDGES[1] / 2
        yield (
            "A smaller λ would be likelier still, but costs more in communication than it gains."
            if least
            else "The sample shows next to no signal: more points, or other features, are worth more than any setting."
        )


def _weight(suggestion: Suggestion) -> Iterator[str]:
    yield f"Exploration: α = {suggestion.alpha:g}."
    if suggestion.grounds.noise is None:
        yield (
            "That is a default for rewards that vary by about 0.3 with noise of about 0.1: scale it with yours. "
            "Without rewards it is a guess."
        )
        return
    yield (
        "The index μ + ασ then adds two standard deviations of what the model does not know, with the noise that the "
        "best quarter of the points has."
    )
    if suggestion.alpha < suggestion.grounds.noise:
        yield "That noise is small, so little exploration is needed among good points."


def _exchange(suggestion: Suggestion) -> Iterator[str]:
    yield (
        f"Exchanges: LaconicUCB with δ = {suggestion.delta:g}, ranges = {suggestion.ranges:g} and reward = "
        f"{suggestion.reward:g}; DisKernelUCB with D = {suggestion.D:g}; ApproxDisKernelUCB with D = "
        f"{suggestion.D_approx:g}, the variance of one point about which nothing is known, and q̄ = {suggestion.qbar:g}."
    )
    yield f"The effective dimension of the sample is {suggestion.d_eff:.3g}."


def _cost(suggestion: Suggestion) -> Iterator[str]:
    traffic = suggestion.traffic
    yield (
        f"Communication, estimated for {traffic.clients} clients with {traffic.daily:,} interactions each a day, in "
        "bytes up and down for one client on its first day, and on an average day of the month after:"
    )


def _costs(suggestion: Suggestion) -> Table:
    rows = tuple((name, size(cost.first), size(cost.later)) for name, cost in suggestion.costs().items())
    return Table(("algorithm", "first day", "later day"), rows=rows)
