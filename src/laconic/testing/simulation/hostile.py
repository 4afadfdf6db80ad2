"""A hostile member: its own messages changed on their way, and others made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from laconic.protocol.messages import Chain, Hello, Label, Leave, Part, Payload, Request, Up, Upload
from laconic.protocol.parcels import packed
from laconic.protocol.wire import Wire

Draw = np.random.Generator
_replace = msgspec.structs.replace


def twisted(message: Up, draw: Draw) -> Up:
    """The message with a lie in it, well-formed or not."""
    lies = LIES.get(type(message), [])
    return lies[int(draw.integers(len(lies)))](message, draw) if lies else message


def invented(client: Any, draw: Draw, *, dim: int) -> list[Up]:
    """Messages that nobody asked for."""
    session = client.session
    epoch = Label(session.held.term, session.held.number + int(draw.integers(0, 3)))
    wire = client.plan.wire

    def points(count: int) -> Payload:
        return _travelling(_points(count, dim, draw), wire)

    kinds: list[Callable[[], list[Up]]] = [
        lambda: [Request(epoch=session.held)] * 40,
        lambda: [Request(epoch=epoch)],
        lambda: [Part(epoch=epoch, phase=int(draw.integers(0, 3)), upto=3, payload=_points(3, dim, draw))],
        lambda: [Upload(first=int(draw.integers(0, 4)), payload=points(3), ask=True)],
        lambda: [Upload(first=session.sent, payload=points(300), ask=True, flush=True)],
        lambda: [Chain(payload=Payload(records={"hashes": _hashes(int(draw.integers(0, 5)), draw)}))],
        lambda: [Leave(), Leave()],
    ]
    if wire.by_reference:
        kinds += [lambda: [Upload(first=session.sent, payload=_references(dim, draw), ask=True)]] * 3
    return kinds[int(draw.integers(len(kinds)))]()


def _travelling(payload: Payload, wire: Wire) -> Payload:
    """Made-up observations in the numbers of a wire, not all of them within its range."""
    values, records = packed(payload.values["points"] * (3.0 if wire.by_reference else 1.0), wire)
    return Payload(values={**values, "rewards": wire.packed_rewards(payload.values["rewards"])}, records=records)


def _references(dim: int, draw: Draw) -> Payload:
    """Observations of points by numbers that nobody gave, beside some as they are."""
    count, fresh = int(draw.integers(1, 5)), int(draw.integers(0, 3))
    dtype = str(draw.choice(["uint8", "uint16", "uint32", "int8"]))
    values = {
        "ids": draw.integers(0, int(draw.choice([3, 100])), count).astype(dtype),
        "rewards": draw.normal(size=count + fresh).astype(np.float16),
    }
    if fresh:
        values["points"] = draw.integers(-127, 128, (fresh, dim)).astype(np.int8)
    forms = draw.integers(0, 256, int(draw.integers(1, 3))).astype(np.uint8)
    return Payload(values=values, records={"forms": forms} if draw.random() < 0.5 else {})


def _points(count: int, dim: int, draw: Draw) -> Payload:
    return Payload(values={"points": draw.uniform(-1, 1, (count, dim)), "rewards": draw.normal(size=count)})


def _hashes(count: int, draw: Draw) -> np.ndarray:
    return draw.integers(0, 2**63, count).astype(np.uint64)


def _other_hello(m: Hello, draw: Draw) -> Hello:
    lies: list[dict[str, Any]] = [
        {"count": int(draw.integers(0, 50))},
        {"incarnation": int(draw.integers(0, 5))},
        {"mark": int(draw.integers(0, 2**60))},
        {"held": Label(int(draw.integers(0, 5)), int(draw.integers(0, 9)))},
        {"syncing": (Label(m.held.term, m.held.number + 1), int(draw.integers(0, 3)))},
        {"library": int(draw.integers(0, 40)), "shelf": m.shelf + int(draw.integers(0, 2))},
    ]
    return _replace(m, **lies[int(draw.integers(len(lies)))])


def _other_plan(m: Hello, draw: Draw) -> Hello:
    from laconic import NKernelUCB
    from laconic.canonical import table_bytes

    return _replace(m, plan=table_bytes(NKernelUCB(lam=3.25).plan(5).table))


def _garbled_plan(m: Hello, draw: Draw) -> Hello:
    return _replace(m, plan=m.plan[: len(m.plan) // 2])


def _held_by(dtype: np.dtype[Any], value: float) -> np.ndarray:
    """The number of a type that is nearest to another, or infinite."""
    if dtype.kind in "iu":
        value = float(np.clip(value, np.iinfo(dtype).min, np.iinfo(dtype).max))
    with np.errstate(over="ignore"):
        return np.asarray(value).astype(dtype)


def _other_numbers(m: Part, draw: Draw) -> Part:
    """The arrays of a part, some of their entries changed."""
    values = {name: array.copy() for name, array in m.payload.values.items()}
    for array in values.values():
        if array.size:
            place = tuple(int(draw.integers(size)) for size in array.shape)
            array[place] = _held_by(array.dtype, float(draw.choice([-3.0, 0.5, 1e6, -1e12, 1e200])))
    return _replace(m, payload=_replace(m.payload, values=values))


def _scaled(m: Part, draw: Draw) -> Part:
    factor = float(draw.choice([0.5, -1.0, 3.0]))
    values = {name: array * factor for name, array in m.payload.values.items()}
    return _replace(m, payload=_replace(m.payload, values=values))


def _other_control(m: Part, draw: Draw) -> Part:
    control = {name: value + float(draw.choice([-1.0, 1.0, 100.0])) for name, value in m.payload.control.items()}
    return _replace(m, payload=_replace(m.payload, control=control))


def _other_hashes(m: Part, draw: Draw) -> Part:
    hashes = m.payload.records.get("hashes")
    if hashes is None:
        return m
    return _replace(m, payload=_replace(m.payload, records={"hashes": _hashes(len(hashes), draw)}))


def _other_place(m: Part, draw: Draw) -> Part:
    lies: list[dict[str, Any]] = [
        {"upto": m.upto + int(draw.integers(1, 9))},
        {"upto": max(0, m.upto - 1)},
        {"phase": m.phase + 1},
        {"epoch": Label(m.epoch.term, m.epoch.number + 1)},
        {"epoch": Label(m.epoch.term + 1, m.epoch.number)},
    ]
    return _replace(m, **lies[int(draw.integers(len(lies)))])


def _many_points(m: Part, draw: Draw) -> Part:
    points = m.payload.values.get("points")
    if points is None:
        return m
    many = _points(2000, points.shape[1], draw)
    return _replace(m, payload=_replace(m.payload, values=many.values))


def _not_a_number(m: Part, draw: Draw) -> Part:
    values = {  # whole numbers have no such value, and stay
        name: np.full_like(array, np.nan) if array.dtype.kind == "f" else array
        for name, array in m.payload.values.items()
    }
    return _replace(m, payload=_replace(m.payload, values=values))


def _other_upload(m: Upload, draw: Draw) -> Upload:
    values = {name: array + float(draw.normal()) for name, array in m.payload.values.items()}
    lies: list[dict[str, Any]] = [
        {"first": m.first + int(draw.integers(1, 5))},
        {"first": 0},
        {"payload": _replace(m.payload, values=values)},
    ]
    return _replace(m, **lies[int(draw.integers(len(lies)))])


def _rubbish(m: Upload, draw: Draw) -> Upload:
    """An upload whose arrays are cut, widened, of another type, renumbered, or no numbers."""
    values, records = {**m.payload.values}, {**m.payload.records}
    arrays = values if not records or draw.random() < 0.8 else records
    name = list(arrays)[int(draw.integers(len(arrays)))]
    array = arrays[name]
    lies = [
        array[:-1],
        np.concatenate([array, array]),
        array.astype(np.float64),
        array.astype(np.int16),
        array * 0 + np.array(draw.integers(0, 127)).astype(array.dtype),
        np.full(array.shape, np.nan, dtype=np.float16),
        np.full(array.shape, 3e38, dtype=np.float32),
    ]
    arrays[name] = lies[int(draw.integers(len(lies)))]
    return _replace(m, payload=Payload(values=values, records=records))


def _other_chain(m: Chain, draw: Draw) -> Chain:
    hashes = m.payload.records["hashes"]
    length = len(hashes) + int(draw.integers(0, 2))
    return _replace(m, payload=Payload(records={"hashes": _hashes(length, draw)}))


LIES: dict[type, list[Callable[[Any, Draw], Any]]] = {
    Hello: [_other_hello, _other_hello, _other_plan, _garbled_plan],
    Part: [
        _other_numbers, _other_numbers, _scaled, _other_control, _other_hashes, _other_place, _many_points,
        _not_a_number,
    ],
    Upload: [_other_upload, _rubbish],
    Chain: [_other_chain],
}  # fmt: skip
