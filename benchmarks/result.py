"""What a benchmark found."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Target:
    """A limit on something measured."""

    what: str  # a field of a result
    most: float

    def __str__(self) -> str:
        return f"{WORDS.get(self.what, self.what)} ≤ {self.most:g}{UNITS.get(self.what, '')}"


WORDS = {"cpu": "CPU", "peak": "peak", "ratio": "ratio"}
UNITS = {"cpu": " s", "peak": " GB", "ratio": " ×"}


@dataclass(frozen=True)
class Result:
    """One line of the report; ``ratio`` is the cost over the floor's, or over that of what it is compared with."""

    name: str
    against: str  # what the floor, or the other side of the comparison, is
    cpu: float  # seconds
    seconds: float
    floor: float | None = None
    ratio: float | None = None
    peak: float | None = None  # GB
    interactions: int | None = None
    targets: tuple[Target, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def per_interaction(self) -> float | None:
        """CPU microseconds an interaction."""
        return None if self.interactions is None else 1e6 * self.cpu / self.interactions

    def meets(self, target: Target) -> bool:
        """True when the target is met."""
        value = getattr(self, target.what)
        return value is not None and value <= target.most

    @property
    def met(self) -> bool | None:
        """Whether all targets are met; None where there are none."""
        return all(self.meets(target) for target in self.targets) if self.targets else None

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return asdict(self) | {"per_interaction": self.per_interaction, "met": self.met}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Result:
        """The inverse of `as_dict`."""
        own = {name: values[name] for name in cls.__dataclass_fields__}
        return cls(**own | {"targets": tuple(Target(**target) for target in values["targets"])})
