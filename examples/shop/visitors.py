"""Simulated visitors of the shop: they look at pages, and click later, so that one sees the shop learn.

``python -m examples.shop.visitors http://127.0.0.1:8000 --visits 1500``. What they like is known here and nowhere in
the shop. They come at a pace, as the shop learns only after a while that something was not clicked.
"""

from __future__ import annotations

import argparse
import heapq
import http.client
import json
import math
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from examples.shop.goods import PRODUCTS, SHELF, Product, Visitor

#: How many visits a line of the table stands for, and how many visits later a click comes at most.
LINE, LATE = 100, 20


def chance(visitor: Visitor, product: Product) -> float:
    """How likely a visitor clicks a product: the young like sweet things, and everybody is lively at ten."""
    sweet, lively = 1.0 - visitor.age, math.exp(-(((visitor.hour - 0.4) / 0.25) ** 2))
    miss = ((product.sweet - sweet) / 0.3) ** 2 + ((product.lively - lively) / 0.3) ** 2
    return 0.02 + 0.6 * math.exp(-miss / 2)


@dataclass
class Crowd:
    """Visitors of one shop, what they have clicked, and clicks that are still on their way."""

    host: str
    rng: np.random.Generator
    visits: int = 0
    clicks: int = 0
    passed_on: int = 0  # clicks that came to another worker than the one that decided
    late: int = 0  # clicks that came when the shop had given up
    workers: set[str] = field(default_factory=set)
    chances: list[list[float]] = field(default_factory=list)  # by visit, of all products
    _due: list[tuple[int, str]] = field(default_factory=list)

    def visit(self) -> None:
        """Look at a page and decide what to click; that arrives a few visits later."""
        visitor = Visitor(hour=float(self.rng.uniform()), age=float(self.rng.uniform(0.1, 0.9)))
        shown = self._ask("GET", f"/offers?hour={visitor.hour:.3f}&age={visitor.age:.3f}")
        self.workers.add(shown["worker"])
        likes = {each.name: chance(visitor, each) for each in PRODUCTS}
        self.chances.append([*likes.values()])
        for offer in shown["offers"]:
            if self.rng.uniform() < likes[offer["name"]]:
                heapq.heappush(self._due, (self.visits + int(self.rng.integers(1, LATE)), offer["click"]))
        self.visits += 1
        self.arrive(upto=self.visits)

    def arrive(self, *, upto: float) -> None:
        """Let clicks arrive that are due."""
        while self._due and self._due[0][0] <= upto:
            answer = self._ask("POST", heapq.heappop(self._due)[1])
            self.clicks += 1
            self.late += "error" in answer
            self.passed_on += answer.get("decided_by") != answer.get("told_to")

    def knock(self) -> None:
        """Find out whether there is a shop; what is wrong with the way there is raised."""
        link = http.client.HTTPConnection(self.host, timeout=60)
        link.connect()
        link.close()

    def _ask(self, method: str, path: str) -> Any:
        """What the shop answers; every request is a new connection, which any worker may take."""
        link = http.client.HTTPConnection(self.host, timeout=60)
        try:
            link.request(method, path)
            return json.loads(link.getresponse().read())
        finally:
            link.close()


def play(host: str, *, visits: int, seed: int, pace: float = math.inf) -> Crowd:
    """Let a crowd visit, at most so many a second, and print how many products it clicks a page."""
    crowd, begun = Crowd(host, np.random.default_rng(seed)), time.monotonic()
    crowd.knock()
    print("visits  clicks a page", flush=True)
    before = 0
    while crowd.visits < visits:
        time.sleep(max(0.0, begun + crowd.visits / pace - time.monotonic()))
        crowd.visit()
        if crowd.visits % LINE == 0 or crowd.visits == visits:
            rate = (crowd.clicks - before) / ((crowd.visits - 1) % LINE + 1)
            before = crowd.clicks
            print(f"{crowd.visits:6}  {rate:5.2f}  {'#' * round(30 * rate)}", flush=True)
    crowd.arrive(upto=math.inf)
    chances = np.sort(crowd.chances, axis=1)
    print(
        f"{SHELF} products at random would have got {SHELF * chances.mean():.2f}, "
        f"the {SHELF} that each visitor likes best {chances[:, -SHELF:].sum(axis=1).mean():.2f}.\n"
        f"{crowd.clicks} clicks, {crowd.passed_on} of them passed on from one worker to another, "
        f"{crowd.late} too late; pages came from {', '.join(sorted(crowd.workers))}."
    )
    return crowd


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.shop.visitors", description=__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8000", help="of the shop")
    parser.add_argument("--visits", type=int, default=1500)
    parser.add_argument("--pace", type=float, default=40.0, help="most visits a second")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        play(given.url.removeprefix("http://").rstrip("/"), visits=given.visits, seed=given.seed, pace=given.pace)
    except OSError as error:
        sys.exit(f"nobody answers at {given.url} ({error}); try: python -m examples.shop")


if __name__ == "__main__":
    main()
