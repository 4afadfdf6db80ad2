"""A client as bytes and back: belief, tail, history and open decisions, restored to the last bit."""

from __future__ import annotations

import msgspec
import numpy as np

from laconic.beliefs import restored
from laconic.errors import LocalProtocolError, RemoteProtocolError
from laconic.protocol.client import Client, ClientState, Pending
from laconic.protocol.codec import decode_state, encode_state
from laconic.protocol.outcome import Absorb, absorb_alone
from laconic.protocol.plan import Plan
from laconic.tail import Tail


class SavedClient(msgspec.Struct, frozen=True, eq=False, tag="client"):
    """Everything that a client is, between syncs."""

    number: int
    seed: int
    clients: int
    epoch: int
    member: bool
    covered: int
    decisions: int
    belief: dict[str, np.ndarray]
    tail: dict[str, np.ndarray]
    points: np.ndarray
    rewards: np.ndarray
    pending: dict[int, np.ndarray]


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
            member=client.state is ClientState.IDLE,
            covered=client.covered,
            decisions=client.decisions,
            belief=client.belief.arrays(),
            tail=client.tail.arrays(),
            points=client.history.points,
            rewards=client.history.rewards,
            pending={key: waiting.point for key, waiting in client.pending.items()},
        )
    )


def restore(data: bytes, *, plan: Plan, absorb: Absorb = absorb_alone) -> Client:
    """The client that was saved, to be run on the same plan."""
    saved = decode_state(data, SavedClient)
    dim = plan.belief.dim
    if saved.points.shape != (len(saved.rewards), dim):
        raise RemoteProtocolError(f"saved for another plan: points of shape {saved.points.shape} for {dim} features")
    client = Client(
        plan, number=saved.number, seed=saved.seed, clients=saved.clients, member=saved.member, absorb=absorb
    )
    client.epoch, client.covered, client.decisions = saved.epoch, saved.covered, saved.decisions
    client.history.append(saved.points, saved.rewards)
    try:
        client.tail = Tail.restored(restored(plan.belief, saved.belief), saved.tail)
    except (KeyError, ValueError, TypeError) as error:
        raise RemoteProtocolError(f"saved for another plan, or damaged: {error!r}") from None
    client.pending = {key: Pending(point=point) for key, point in saved.pending.items()}
    return client
