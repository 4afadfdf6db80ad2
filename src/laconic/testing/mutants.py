"""Payloads that no correct peer sends, and the codec lets pass."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from laconic.protocol.messages import Payload

Arrays = dict[str, np.ndarray]


def mutants(payload: Payload, *, with_records: bool = False) -> Iterator[tuple[str, Payload]]:
    """Payloads that differ from one in an array, with words that say how; of ``records`` too where that is wanted."""
    if payload.values:
        yield "without anything in it", Payload()
    extra = payload.values | {"an array of another name": np.zeros(3)}
    yield "with an array of another name", msgspec.structs.replace(payload, values=extra)
    for how, values in _changed(payload.values):
        yield how, msgspec.structs.replace(payload, values=values)
    for how, records in _changed(payload.records) if with_records else ():
        yield how, msgspec.structs.replace(payload, records=records)


def _changed(arrays: Arrays) -> Iterator[tuple[str, Arrays]]:
    for name, array in arrays.items():
        rest = {other: values for other, values in arrays.items() if other != name}
        yield f"without {name!r}", rest
        yield f"whose {name!r} has one more axis", rest | {name: array[None]}
        for axis in range(array.ndim):
            added = np.zeros(tuple(1 if i == axis else size for i, size in enumerate(array.shape)), dtype=array.dtype)
            longer = np.concatenate([array, added], axis=axis)
            yield f"whose {name!r} is longer along axis {axis}", rest | {name: longer}
        if array.size and array.dtype.kind == "f":
            yield f"whose {name!r} holds no numbers", rest | {name: np.full_like(array, np.nan)}
        if array.size and array.dtype.kind in "iu":
            most = np.full_like(array, np.iinfo(array.dtype).max)
            yield f"whose {name!r} holds the largest of numbers", rest | {name: most}
