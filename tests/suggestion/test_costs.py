"""Estimated bytes beside those that a ledger counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laconic import Catalogue, Cosine, DisKernelUCB, Gaussian, NKernelUCB, OneKernelUCB, run, suggest_for
from laconic.suggestion.costs import ONE_PHASE, Traffic, spent
from laconic.suggestion.curve import Curve

NAMES = ("LaconicUCB", "DisKernelUCB", "ApproxDisKernelUCB", "OneKernelUCB")
FACTOR = 3.0


@pytest.mark.parametrize(
    ("problem", "clients", "rounds"),
    [(Cosine(dim=5, arms=10), 10, 30), (Catalogue(), 10, 50)],
    ids=["cosine", "catalogue"],
)
@pytest.mark.parametrize("name", NAMES)
def test_an_estimate_is_within_a_factor_of_what_is_sent(name: str, problem: Any, clients: int, rounds: int) -> None:
    found = suggest_for(problem, sample=200, clients=clients, traffic=rounds, seed=0)
    sent = [run(found.algorithm(name), problem, clients=clients, rounds=rounds, seed=seed).bytes for seed in (0, 1, 2)]
    assert 1 / FACTOR < found.costs()[name].first / (np.mean(sent) / clients) < FACTOR


def curve(lam: float = 0.1) -> Curve:
    return Curve.of(Gaussian(1.0), np.random.default_rng(0).uniform(-1, 1, size=(150, 3)), lam=lam)


def test_one_that_sends_nothing_costs_nothing() -> None:
    assert spent(NKernelUCB(), curve=curve(), traffic=Traffic(5, daily=9, dim=3), own=9) == 0


def test_more_traffic_costs_more_and_points_dominate_where_all_are_sent() -> None:
    traffic = Traffic(20, daily=50, dim=3)
    few, many = (spent(OneKernelUCB(), curve=curve(), traffic=traffic, own=own) for own in (50, 100))
    assert many == 2 * few
    assert spent(DisKernelUCB(D=20.0), curve=curve(), traffic=traffic, own=50) < few


def test_a_later_day_costs_no_more_where_only_news_travels() -> None:
    found = suggest_for(Catalogue(), sample=150, clients=20, traffic=50)
    costs = found.costs()
    assert costs["LaconicUCB"].later < costs["LaconicUCB"].first
    assert costs["LaconicUCB"].first < costs["DisKernelUCB"].first / 10


def test_syncs_counted_in_blocks_are_about_those_counted_one_by_one() -> None:
    traffic, own, here = Traffic(20, daily=50, dim=3), 2000, curve()
    syncs, since, growth = 0, 0, 0.0
    for mine in range(own):
        since += 1
        growth += np.log1p(here.variance(traffic.clients * (mine + 1 - since) + since - 1))
        if since * growth > 20.0:  # Eq. 2
            syncs, since, growth = syncs + 1, 0, 0.0
    points = own * traffic.clients * 8 * (traffic.dim + 1)
    found = (spent(DisKernelUCB(D=20.0), curve=here, traffic=traffic, own=own) - points) / ONE_PHASE
    assert syncs > 20
    assert found == pytest.approx(syncs, rel=0.1)


def test_a_month_of_any_traffic_is_soon_estimated() -> None:
    found = suggest_for(Catalogue(), sample=150, clients=20, traffic=10**8)  # 3e9 interactions of each client
    assert found.costs()["DisKernelUCB"].later == pytest.approx(10**8 * 20 * 8 * 11, rel=1e-3)
