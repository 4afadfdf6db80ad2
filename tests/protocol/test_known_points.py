"""Libraries: lists of points that many may keep in one table, each with places of its own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import Cosine, Gaussian, LaconicUCB
from laconic.growing import keys
from laconic.protocol.digests import AllPoints, Atoms, Digest
from laconic.protocol.known_points import Library, PointTable
from laconic.runtimes.network import Network

POINTS = np.array([[0.0, 1.0], [2.0, 3.0], [-0.0, 1.0], [4.0, 5.0], [6.0, 7.0]])
SAME = [0, 1, 0, 2, 3]  # rows 0 and 2 differ in the sign of a zero alone
steps = st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, len(POINTS) - 1), max_size=6)), max_size=8)


@given(steps=steps)
def test_lists_in_one_table_have_their_own_points_in_the_order_in_which_these_came(
    steps: list[tuple[int, list[int]]],
) -> None:
    table = PointTable(2)
    lists = [Library(table) for _ in range(3)]
    known: list[list[int]] = [[] for _ in lists]
    for which, rows in steps:
        lists[which] = lists[which].with_points(POINTS[rows])
        known[which] += [row for row in dict.fromkeys(SAME[each] for each in rows) if row not in known[which]]
    numbers = table.found(keys(POINTS))
    for library, rows in zip(lists, known, strict=True):
        found = [SAME.index(row) for row in rows]
        np.testing.assert_array_equal(library.points, POINTS[found])
        places = [rows.index(row) if row in rows else -1 for row in SAME]
        assert library.places_of(numbers).tolist() == places
        assert library.mark == Library.empty(2).with_points(POINTS[found]).mark


def test_a_list_whose_numbers_rise_needs_no_order_beside_it_though_known_points_come_again() -> None:
    library = Library.empty(2).with_points(POINTS[:2]).with_points(POINTS[[0, 3]])
    assert library.order is None
    np.testing.assert_array_equal(library.points, POINTS[[0, 1, 3]])


@given(rows=st.lists(st.integers(0, len(POINTS) - 1), max_size=6), count=st.integers(0, 7))
def test_the_beginning_of_a_list_is_the_list_of_those_that_came_first(rows: list[int], count: int) -> None:
    library = Library.empty(2).with_points(POINTS[rows])
    first = library.first(count)
    np.testing.assert_array_equal(first.points, library.points[:count])
    again = first.with_points(POINTS)
    np.testing.assert_array_equal(again.points[: first.size], first.points)
    assert again.size == 4


@pytest.mark.parametrize("digest", [Atoms(), AllPoints()])
def test_all_links_of_a_server_keep_their_points_in_one_table(digest: Digest) -> None:
    plan = LaconicUCB(Gaussian(gamma=0.5), lam=0.1, alpha=0.1, digest=digest).plan(2)
    network = Network(plan, clients=3, seed=0)
    round_ = Cosine(dim=2, arms=4).instance(seed=0, clients=3, rounds=4).round
    for index in range(4):
        met = round_(index)
        for number, client in network.clients.items():
            decision = client.choose(met.arms[number])
            network.settle(number, client.observe(decision, float(met.rewards[number, decision.arm])))
    hub = network.server.hub
    shared = [member.libraries for member in hub.members.values()]
    assert len(shared) == 3
    for each, client in zip(shared, network.clients.values(), strict=True):
        assert each is not None
        assert each.up.table is each.down.table is hub.points
        np.testing.assert_array_equal(client.libraries.up.points, each.up.points)
        np.testing.assert_array_equal(client.libraries.down.points, each.down.points)
    assert len({id(client.libraries.down.table) for client in network.clients.values()}) == 1
