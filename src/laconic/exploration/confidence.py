"""Confidence: the coefficient α of the width ασ, by which the mean of an arm may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from laconic.checks import require_at_least, require_finite_number, require_positive
from laconic.errors import InputError
from laconic.tail import Tail


@runtime_checkable
class Confidence(Protocol):
    """How much a client trusts its variance; ``information`` may also be an array over clients."""

    def coefficient(self, *, lam: float, clients: int, information: Any) -> Any:
        """α, given ln det(I + K/λ) (or its upper bound) of what the client knows.

        Args:
            lam: Ridge λ of the belief, above 0.
            clients: Clients N for which the confidence holds at once, from 1.
            information: That ln det, at least 0: a number, or an array over clients, and then α is one too.
        """
        ...


@dataclass(frozen=True)
class Told:
    """What a client was told of the belief that it holds, where a digest says anything."""

    observations: int = 0  # how many it has, of all clients
    downloads: int = 0  # how many versions came down, this one included
    certificate: Any = None  # how far it may be from all of them; None where it is exact


@runtime_checkable
class Informed(Protocol):
    """A confidence that looks at belief and tail themselves, and at what was said of the belief."""

    def width(self, tail: Tail, *, told: Told, clients: int) -> float:
        """α of a client with this tail."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The same α throughout, as in the paper's experiments.

    Args:
        alpha: α, at least 0. Raising it explores more.
    """

    alpha: float

    def __post_init__(self) -> None:
        require_at_least("alpha", self.alpha, least=0)

    def coefficient(self, *, lam: float, clients: int, information: Any) -> Any:
        return self.alpha


@dataclass(frozen=True)
class Theory:
    """The paper's α, which follows from bounds of the reward function and of the noise.

    Args:
        S: Bound of ‖f‖, at least 0, in units of rewards. Raising it widens the confidence.
        R: Size of the sub-Gaussian noise, at least 0, in units of rewards. Raising it widens the confidence.
        delta: Risk ω that the confidence fails, between 0 and 1; the δ of LaconicUCB is another. Raising it narrows the
            confidence.
        epsilon: Error of the dictionary, between 0 and 1; used by ApproxDisKernelUCB alone. Raising it widens the
            confidence.
    """

    S: float = 1.0
    R: float = 0.1
    delta: float = 0.1
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        require_at_least("S", self.S, least=0)
        require_at_least("R", self.R, least=0)
        require_positive("delta", self.delta)
        require_positive("epsilon", self.epsilon)
        if self.delta >= 1 or self.epsilon >= 1:
            raise InputError(f"delta and epsilon must be below 1, got {self.delta!r} and {self.epsilon!r}")


@dataclass(frozen=True)
class ExactTheory:
    """α = √λ S + R √(2 ln(N/δ) + ln det(I + K_DD/λ)), for exact and linear beliefs."""

    theory: Theory

    def coefficient(self, *, lam: float, clients: int, information: Any) -> Any:
        noise = np.sqrt(2.0 * math.log(clients / self.theory.delta) + information)
        return math.sqrt(lam) * self.theory.S + self.theory.R * noise


@dataclass(frozen=True)
class NystromTheory:
    """α = (1 + 1/√(−ε + 1/(1 + (1+ε)/(1−ε) D))) √λ S + R √(4 ln(N/δ) + 2 ln det(I + K/λ)), for Nyström beliefs."""

    theory: Theory
    D: float

    def __post_init__(self) -> None:
        require_finite_number("D", self.D)
        epsilon = self.theory.epsilon
        limit = (1 - epsilon) ** 2 / (epsilon * (1 + epsilon))
        if self.D >= limit:
            raise InputError(
                f"the theoretical alpha is not defined for D={self.D:g} and epsilon={epsilon:g}: "
                f"it needs D < {limit:.4g}; lower D or epsilon, or give alpha as a number"
            )

    def coefficient(self, *, lam: float, clients: int, information: Any) -> Any:
        epsilon = self.theory.epsilon
        root = math.sqrt(-epsilon + 1.0 / (1.0 + (1.0 + epsilon) / (1.0 - epsilon) * self.D))
        noise = np.sqrt(4.0 * math.log(clients / self.theory.delta) + 2.0 * information)
        return (1.0 + 1.0 / root) * math.sqrt(lam) * self.theory.S + self.theory.R * noise
