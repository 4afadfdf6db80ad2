"""A client's own observations, in the order in which their rewards came."""

from __future__ import annotations

from laconic.arrays import Floats
from laconic.growing import GrowingRows


class History:
    """Append-only points and rewards; an observation's place in it is its sequence number."""

    def __init__(self, dim: int) -> None:
        self._points = GrowingRows.empty(dim)
        self._rewards = GrowingRows.empty(1)

    def __len__(self) -> int:
        return self._points.size

    @property
    def points(self) -> Floats:
        """One row an observation."""
        return self._points.values

    @property
    def rewards(self) -> Floats:
        """One reward an observation."""
        return self._rewards.values[:, 0]

    def append(self, points: Floats, rewards: Floats) -> None:
        """Add observations."""
        self._points = self._points.appended(points)
        self._rewards = self._rewards.appended(rewards[:, None])
