"""Triggers: when has a client learnt enough to ask for a sync? Each is a function of `News` alone.

These are the running sums of the tail. Beside them stand d_eff/N of what the belief knows, where a digest said it, and,
for triggers that keep to a budget, how many observations the client has made and how many bytes it has spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from laconic.checks import require_at_least, require_positive, require_whole
from laconic.limits import MOST_STEPS
from laconic.tail import News


@runtime_checkable
class Trigger(Protocol):
    """A rule that asks for a sync; it also works elementwise on news whose fields are arrays."""

    def fires(self, news: News, /) -> bool:
        """True when the news is worth a sync.

        Args:
            news: What the client has learnt since its last exchange. Its fields may be arrays over clients, and then
                the answer is one too.
        """
        ...


class _Combinable:
    """Triggers combine with | and &."""

    def __or__(self, other: Trigger) -> Either:
        return Either(self, other)  # type: ignore[arg-type]  # only triggers inherit this

    def __and__(self, other: Trigger) -> Both:
        return Both(self, other)  # type: ignore[arg-type]  # only triggers inherit this


def _exceeds(value: float, D: float) -> bool:
    # a margin, so that rounding does not decide at equality
    return value > D + 1e-9 * max(1.0, D)


@dataclass(frozen=True)
class Determinant(_Combinable):
    """n · ln[det(I + K_new/λ) / det(I + K_last/λ)] > D (Eq. 2), n the own points since the last sync.

    Args:
        D: Threshold, at least 0, without a unit; 0 means a sync after every interaction. Raising it means fewer syncs.
    """

    D: float

    def __post_init__(self) -> None:
        require_at_least("D", self.D, least=0)

    def fires(self, news: News, /) -> bool:
        return _exceeds(news.count * news.log_det, self.D)  # Eq. 2


@dataclass(frozen=True)
class Variance(_Combinable):
    """Σ σ̃²_last(x_s) over the own points since the last sync > D (Eq. 4).

    Args:
        D: Threshold, at least 0, without a unit; 0 means a sync after every interaction. Raising it means fewer syncs.
    """

    D: float

    def __post_init__(self) -> None:
        require_at_least("D", self.D, least=0)

    def fires(self, news: News, /) -> bool:
        return _exceeds(news.variance, self.D)  # Eq. 4


@dataclass(frozen=True)
class ScaledVariance(_Combinable):
    """Σ σ²_last(x_s) over the own points since the last download > δ·d_eff/N, a client's share of what is known.

    Before a version has said what d_eff is, every point fires.

    Args:
        delta: Part δ of the client's share d_eff/N, at least 0; 0 means an ask after every interaction. Raising it
            means fewer asks.
    """

    delta: float

    def __post_init__(self) -> None:
        require_at_least("delta", self.delta, least=0)

    def fires(self, news: News, /) -> bool:
        return (news.count > 0) & _exceeds_share(news.variance, self.delta * news.share)


#: Bytes come early: up to so many interactions the allowance grows with their root, and linearly from there on.
BURN_IN = 250
#: The part of its allowance that a client may spend before δ rises, and by which power it does then.
AIM, GAIN = 0.85, 12
#: δ rises this many times at most, so that a client whose budget is too small still hears of others.
MOST = 64.0


@dataclass(frozen=True)
class BudgetedVariance(_Combinable):
    """`ScaledVariance` with a δ that rises as what the client has spent comes near its allowance.

    ``budget`` is in bytes, sent and received, for 1,000 interactions of a client. After t of them
    budget/1000 · max(t, √(250 t)) are allowed: with a constant δ bytes grow like the root of t, as early versions bring
    more that is new.

    Args:
        delta: Least part δ of the client's share d_eff/N, at least 0. Raising it means fewer asks. At 0 it stays 0,
            whatever the budget.
        budget: Bytes that a client may send and receive in 1,000 interactions, above 0. Lowering it raises δ, to 64
            times delta at most. LaconicUCB asks for at least 3,000, as points go up in any case; a trigger does not
            know what these take.
    """

    delta: float
    budget: float

    needs_bytes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_at_least("delta", self.delta, least=0)
        require_positive("budget", self.budget)

    def fires(self, news: News, /) -> bool:
        return (news.count > 0) & _exceeds_share(news.variance, self.delta_after(news) * news.share)

    def delta_after(self, news: News) -> float:
        """The δ of a client that has spent so much in so many interactions."""
        own = np.maximum(news.own, 1)
        allowed = self.budget / 1000.0 * np.maximum(own, np.sqrt(BURN_IN * own))
        left = np.maximum(allowed - news.sent, 1.0)  # points go up in any case
        rise = np.clip(news.received / left / AIM, 1.0, MOST ** (1 / GAIN)) ** GAIN
        return self.delta * rise  # type: ignore[no-any-return]


def _exceeds_share(value: float, share: float) -> bool:
    return value > share * (1.0 + 1e-9)


@dataclass(frozen=True)
class Every(_Combinable):
    """After every n own points.

    Args:
        n: Own points from one sync to the next, a whole number from 1. Raising it means fewer syncs.
    """

    n: int

    def __post_init__(self) -> None:
        require_whole("n", self.n, least=1, most=MOST_STEPS)

    def fires(self, news: News, /) -> bool:
        return news.count >= self.n


@dataclass(frozen=True)
class Always(_Combinable):
    """After every interaction."""

    def fires(self, news: News, /) -> bool:
        return news.count > 0


@dataclass(frozen=True)
class Never(_Combinable):
    """No sync, ever."""

    def fires(self, news: News, /) -> bool:
        return news.count < 0


@dataclass(frozen=True)
class Either(_Combinable):
    """When one of two triggers fires."""

    left: Trigger
    right: Trigger

    def fires(self, news: News, /) -> bool:
        return self.left.fires(news) | self.right.fires(news)


@dataclass(frozen=True)
class Both(_Combinable):
    """When both of two triggers fire."""

    left: Trigger
    right: Trigger

    def fires(self, news: News, /) -> bool:
        return self.left.fires(news) & self.right.fires(news)


def counts_bytes(trigger: Trigger) -> bool:
    """True when a trigger, or a part of one that was combined, looks at the bytes that a client has spent.

    A trigger that does says so by an attribute ``needs_bytes``: clients do not count them for others.
    """
    if isinstance(trigger, Either | Both):
        return counts_bytes(trigger.left) or counts_bytes(trigger.right)
    return bool(getattr(trigger, "needs_bytes", False))
