"""What a comparison shows and what it does not, in sentences with numbers computed from its results.

A sentence rests on a paired t interval over seeds (`laconic.experiments.paired`) and says so where that leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from laconic.experiments.paired import FEWEST, LEVEL, Answer, all_of, at_most, below, nearer
from laconic.experiments.results import Group, Results
from laconic.report.table import amount, count, spread

LEAN = "LaconicUCB"
APPROX, EXACT, ALWAYS, NEVER, LINEAR = "ApproxDisKernelUCB", "DisKernelUCB", "OneKernelUCB", "NKernelUCB", "DisLinUCB"
NEAR = 1.5  # regret within this factor of raw sharing counts as near, unless that of learning alone is nearer
FAR = 2.0  # an algorithm with this many times Approx's regret counts as clearly worse
FRACTION = 0.5  # less than this share of the scalars counts as saving communication


@dataclass(frozen=True)
class Verdict:
    """One sentence about a comparison.

    ``holds`` is False where it departs from what the algorithm is for, and None where the seeds do not tell.
    """

    text: str
    holds: bool | None

    def __str__(self) -> str:
        return self.text


def _judged(text: str, *, holds: bool, answer: Answer, seeds: int) -> Verdict:
    """A sentence as the means have it, with what chance leaves of it."""
    if answer != "too close to tell":
        return Verdict(text, holds=holds)
    told = "one seed tells nothing of chance" if seeds < FEWEST else f"on {seeds} seeds that is too close to tell"
    return Verdict(f"{text} But {told} (paired t interval, {LEVEL:.0%}).", holds=None)


def verdicts(results: Results) -> list[Verdict]:
    """What can be said of these results, each algorithm at its best setting; nothing of algorithms that did not run."""
    every = {group.algorithm: group for group in results.tuned("regret").groups}
    best = {name: group for name, group in every.items() if len(group.values("regret")) == len(group.rows)}
    said = [*_unplayed(every), *_silent(best), *_lean(best)]
    approx = best.get(APPROX)
    if approx is None:
        return said
    if not _is_silent(approx):
        said += _communication(approx, best=best, results=results)
    return [*said, *_closeness(approx, best=best), *_distance(approx, best=best)]


def _unplayed(every: dict[str, Group]) -> list[Verdict]:
    """Algorithms that a log has no event for on some seed, so that no mean says anything of them."""
    without = {name: len(group.rows) - len(group.values("regret")) for name, group in every.items()}
    return [
        Verdict(
            f"{name} used no event of the log on {count(lacking)} of {count(len(every[name].rows))} seeds, so nothing "
            "is said of it. A longer log, fewer clients, or a log whose choices are closer to chance give it more.",
            holds=False,
        )
        for name, lacking in without.items()
        if lacking
    ]


def _silent(best: dict[str, Group]) -> list[Verdict]:
    """Algorithms that could have synced and never did."""
    quiet = [name for name in (EXACT, APPROX, LINEAR) if name in best and _is_silent(best[name])]
    return [
        Verdict(
            f"{name} never synced: with D={_D(best[name])} its clients learnt too little in this run to ask for it. "
            "A smaller D or more rounds would make it sync.",
            holds=False,
        )
        for name in quiet
    ]


def _lean(best: dict[str, Group]) -> Iterator[Verdict]:
    """LaconicUCB against raw sharing: bytes, as what it sends is small numbers, and regret."""
    lean, raw = best.get(LEAN), best.get(EXACT) or best.get(ALWAYS)
    if lean is None or raw is None or min(_mean(raw, "regret"), _mean(raw, "bytes")) <= 0:
        return
    share, ratio = _mean(lean, "bytes") / _mean(raw, "bytes"), _ratio(lean, raw)
    mine, others = (amount(_mean(group, "bytes"), unit="B") for group in (lean, raw))
    sent = f"{mine} against {others} of {raw.label} ({_share(share)})"
    is_near, surely = _near(lean, raw, best=best)
    alone = _beside_alone(best) if ratio <= NEAR and not is_near else ""
    regret = f"regret {_regret(lean)} against {_regret(raw)} ({ratio:.2f} ×){alone}"
    holds = share < FRACTION and is_near
    answer = all_of([at_most(lean, raw, metric="bytes", factor=FRACTION), surely])
    text = f"{LEAN} {'said little and learnt well' if holds else 'falls short'}: {sent}, {regret}."
    yield _judged(text, holds=holds, answer=answer, seeds=len(lean.rows))


def _is_silent(group: Group) -> bool:
    return _mean(group, "syncs") == 0


def _D(group: Group) -> str:
    D = group.params.get("D")
    return f"{D:g}" if isinstance(D, int | float) else str(D)


def _communication(approx: Group, *, best: dict[str, Group], results: Results) -> Iterator[Verdict]:
    """Against the cheapest that shares raw points; sending every point to everyone where none of them ran."""
    raw = [best[name] for name in (EXACT, ALWAYS) if name in best and _mean(best[name], "scalars") > 0]
    steps = results.clients * results.rounds
    everything = float(results.clients * steps * (results.dim + 1))
    rival = min(raw, key=lambda group: _mean(group, "scalars"), default=None)
    cost = everything if rival is None else _mean(rival, "scalars")
    whom = "sending every point to everyone" if rival is None else rival.label
    sent = _mean(approx, "scalars")
    numbers = f"{amount(sent)} scalars against {amount(cost)} of {whom} ({_share(sent / cost)})"
    answer = below(approx, FRACTION * cost, metric="scalars")
    if rival is not None:
        answer = at_most(approx, rival, metric="scalars", factor=FRACTION)
    saved = sent < FRACTION * cost
    worth = "sent more than" if sent >= cost else "saved little against"
    text = f"{APPROX} {worth} raw sharing: {numbers}. {_rule(approx, results=results)}"
    if saved:
        text = f"{APPROX} saved communication: {numbers}."
    yield _judged(text, holds=saved, answer=answer, seeds=len(approx.rows))


def _share(ratio: float) -> str:
    return f"{ratio:.0%}" if ratio >= 0.1 else f"{ratio:.1%}"


def _rule(approx: Group, *, results: Results) -> str:
    """When statistics pay, B·r² ≪ NT(d+1)/2, with this run's numbers."""
    syncs, size = _mean(approx, "syncs"), _mean(approx, "dictionary")
    left, right = syncs * size**2, results.clients * results.rounds * (results.dim + 1) / 2
    if left < FRACTION * right:
        return (
            f"B={count(syncs)} syncs of a dictionary of r={count(size)} are few and small enough; what costs in a run "
            "this short is to send the dictionary's points to everyone at each of them. More rounds or a larger D help."
        )
    return (
        f"Statistics pay where B·r² ≪ NT(d+1)/2; here B={count(syncs)} syncs of a dictionary of r={count(size)} make "
        f"{amount(left)} against {amount(right)}. Longer horizons, repeated or low-dimensional arms, a smaller qbar "
        "or a larger D help."
    )


def _near(one: Group, raw: Group, *, best: dict[str, Group]) -> tuple[bool, Answer]:
    """Whether the one's regret is near that of raw sharing, by the means, and what chance leaves of it.

    Near is within a factor, and where sharing brings anything also nearer to raw sharing than to learning alone.
    """
    is_near, answer = _ratio(one, raw) <= NEAR, at_most(one, raw, metric="regret", factor=NEAR)
    alone = best.get(NEVER)
    if alone is None or _mean(alone, "regret") <= _mean(raw, "regret"):
        return is_near, answer
    middle = (_mean(raw, "regret") + _mean(alone, "regret")) / 2
    return is_near and _mean(one, "regret") <= middle, all_of([answer, nearer(one, raw, alone, metric="regret")])


def _beside_alone(best: dict[str, Group]) -> str:
    """The regret of learning alone, where that tells why another is not near raw sharing."""
    return f" and {_regret(best[NEVER])} of {NEVER}, which shares nothing"


def _ratio(one: Group, other: Group) -> float:
    return _mean(one, "regret") / _mean(other, "regret")


def _closeness(approx: Group, *, best: dict[str, Group]) -> Iterator[Verdict]:
    reference = best.get(EXACT) or best.get(ALWAYS)
    if reference is None or _mean(reference, "regret") <= 0:
        return
    ratio = _ratio(approx, reference)
    holds, answer = _near(approx, reference, best=best)
    numbers = f"{_regret(approx)} against {_regret(reference)} of {reference.label} ({ratio:.2f} ×)"
    text = f"{APPROX} learnt nearly as well as raw sharing: regret {numbers}."
    if not holds:
        beside = _beside_alone(best) if ratio <= NEAR else ""
        text = (
            f"{APPROX} learnt less than raw sharing: regret {numbers}{beside}. "
            "A larger qbar (more points in the dictionary) or a smaller D (more syncs) brings it closer, at a price."
        )
    yield _judged(text, holds=holds, answer=answer, seeds=len(approx.rows))


def _distance(approx: Group, *, best: dict[str, Group]) -> Iterator[Verdict]:
    """Against those that share nothing or learn a line."""
    mine = _mean(approx, "regret")
    for name in (NEVER, LINEAR):
        if name not in best or mine <= 0:
            continue
        ratio = _mean(best[name], "regret") / mine
        numbers = f"regret {_regret(best[name])}, {ratio:.2f} × that of {APPROX}"
        text = f"{name} is far behind: {numbers}."
        if ratio < FAR:
            text = f"{name} is {'ahead' if ratio < 1 else 'not far behind'}: {numbers}.{_why(name, best=best)}"
        answer = at_most(approx, best[name], metric="regret", factor=1 / FAR)
        if ratio < 1:
            answer = at_most(best[name], approx, metric="regret")
        yield _judged(text, holds=ratio >= FAR, answer=answer, seeds=len(approx.rows))


def _why(name: str, *, best: dict[str, Group]) -> str:
    """Whether sharing (or the kernel) brings little here, or Approx lost what it brings: raw sharing tells."""
    reference = best.get(EXACT) or best.get(ALWAYS)
    if reference is None or _mean(reference, "regret") <= 0:
        return ""
    ratio = _mean(best[name], "regret") / _mean(reference, "regret")
    against = f"it is {ratio:.2f} × that of {reference.label}"
    asset = "sharing" if name == NEVER else "a kernel"
    if ratio >= FAR:
        return f" Yet {against}: what {asset} brings, {APPROX} lost."
    return f" And {against}: {asset} brings {'little' if ratio >= 1 else 'nothing'} in this run."


def _regret(group: Group) -> str:
    return spread(group.mean("regret"), group.sd("regret"))


def _mean(group: Group, metric: str) -> float:
    return group.mean(metric) or 0.0


__all__ = ["Verdict", "verdicts"]
