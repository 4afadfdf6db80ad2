"""A client as bytes and back: belief, tail, history and open decisions, restored to the last bit."""

from __future__ import annotations

import msgspec
import numpy as np

from laconic.beliefs import Belief, View
from laconic.errors import InputError, LocalProtocolError, RemoteProtocolError
from laconic.protocol.client import Client, ClientState, Pending
from laconic.protocol.codec import decode_state, encode_state
from laconic.protocol.outcome import Absorb, absorb_alone
from laconic.protocol.plan import Plan
from laconic.protocol.received import belief_of, expect_shapes
from laconic.tail import Tail


class SavedPending(msgspec.Struct, frozen=True, eq=False):
    """A decision that waits for its reward; ``view`` is empty when its belief is no longer the installed one."""

    point: np.ndarray
    view: dict[str, np.ndarray]


class SavedClient(msgspec.Struct, frozen=True, eq=False, tag="client"):
    """Everything that a client is, between syncs."""

    number: int
    seed: int
    clients: int
    epoch: int
    stay: int
    member: bool
    covered: int
    decisions: int
    belief: dict[str, np.ndarray]
    tail: dict[str, np.ndarray]
    points: np.ndarray
    rewards: np.ndarray
    pending: dict[int, SavedPending]


def save(client: Client) -> bytes:
    """The client as bytes; refused in the middle of a sync, whose other half is elsewhere."""
    if client.state not in (ClientState.IDLE, ClientState.OUTSIDE):
        raise LocalProtocolError(f"a client that is {client.state.value} cannot be saved; save it between syncs")
    return encode_state(
        SavedClient(
            number=client.number,
            seed=client.seed,
            clients=client.clients,
            epoch=client.epoch,
            stay=client.stay,
            member=client.state is ClientState.IDLE,
            covered=client.covered,
            decisions=client.decisions,
            belief=client.belief.arrays(),
            tail=client.tail.arrays(),
            points=client.history.points,
            rewards=client.history.rewards,
            pending={key: _saved(waiting) for key, waiting in client.pending.items()},
        )
    )


def _saved(waiting: Pending) -> SavedPending:
    # a view of one point may differ in its last bits from its part of a view of many, so the one in use is kept
    return SavedPending(point=waiting.point, view={} if waiting.view is None else dict(vars(waiting.view)))


def restore(data: bytes, *, plan: Plan, absorb: Absorb = absorb_alone) -> Client:
    """The client that was saved, to be run on the same plan; anything else raises `RemoteProtocolError`."""
    saved = decode_state(data, SavedClient)
    try:
        client = Client(
            plan, number=saved.number, seed=saved.seed, clients=saved.clients, member=saved.member, absorb=absorb
        )
    except InputError as error:
        raise RemoteProtocolError(f"a damaged client: {error}") from None
    belief = belief_of(plan.belief, saved.belief)
    width = len(belief.view(np.zeros((1, belief.dim))).features)
    _check_history(saved, dim=belief.dim)
    _check_tail(saved, belief, width=width)
    for waiting in saved.pending.values():
        _check_pending(waiting, dim=belief.dim, width=width)
    client.epoch, client.stay = saved.epoch, saved.stay
    client.covered, client.decisions = saved.covered, saved.decisions
    client.history.append(saved.points, saved.rewards)
    client.tail = Tail.restored(belief, saved.tail)
    client.pending = {key: _pending(waiting) for key, waiting in saved.pending.items()}
    return client


def _pending(waiting: SavedPending) -> Pending:
    return Pending(point=waiting.point, view=View(**waiting.view) if waiting.view else None)


def _check_history(saved: SavedClient, *, dim: int) -> None:
    count = len(saved.rewards) if saved.rewards.ndim == 1 else -1
    expect_shapes({"points": saved.points, "rewards": saved.rewards}, {"points": (count, dim), "rewards": (count,)})
    made = all(0 <= key < saved.decisions for key in saved.pending)
    if min(saved.epoch, saved.stay) < 0 or not 0 <= saved.covered <= count or not made:
        raise RemoteProtocolError("a damaged client: its numbers of observations and decisions do not fit together")


def _check_tail(saved: SavedClient, belief: Belief, *, width: int) -> None:
    tail, errors = saved.tail, saved.tail.get("errors")
    k = len(errors) if errors is not None and errors.ndim == 1 else 0
    shapes = {
        "points": (k, belief.dim if k else 0),
        "features": (k, width if k else 0),
        "errors": (k,),
        "counts": (k,),
        "factor": (k, k),
        "pulls": (k,),
        "news": (5,),
    }
    if "root" in tail and belief.rank is not None:  # only finite beliefs fold
        shapes |= {"root": (width, width), "shift": (width,)}
    expect_shapes(tail, shapes)
    pivots = [np.diagonal(tail[name]) for name in ("factor", "root") if name in tail]
    if (tail["news"] < 0).any() or (tail["counts"] < 1).any() or any((pivot <= 0).any() for pivot in pivots):
        raise RemoteProtocolError("a damaged client: its tail is not one of any points")
    if tail["news"][0] != len(saved.rewards) - saved.covered:
        raise RemoteProtocolError("a damaged client: belief and tail do not have each of its observations once")


def _check_pending(waiting: SavedPending, *, dim: int, width: int) -> None:
    one: dict[str, tuple[int, ...]] = {"mean": (1,), "signal": (1,), "residual": (1,)}
    expect_shapes({"point": waiting.point}, {"point": (1, dim)})
    if waiting.view:
        expect_shapes(waiting.view, {"points": (1, dim), "features": (width, 1)} | one)
