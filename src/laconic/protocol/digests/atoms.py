"""Atoms: a small, sticky, weighted set of points that stands for all of them, with the error that this makes.

The numbers are those of `laconic.atoms`; here is what travels. A client that lacks little is sent points as they are
where that takes fewer bytes, and so is everybody where points cannot be compressed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from laconic.arrays import Bools, Floats, Ints
from laconic.atoms import Certificate, Fallback, Recipe, Reference, Version, belief_of, build, weights_of
from laconic.beliefs import Belief
from laconic.errors import InputError, KernelError, RemoteProtocolError
from laconic.protocol import parcels
from laconic.protocol.digests.all_points import RAW, raw_parcel, read_raw
from laconic.protocol.digests.digest import Addressed, Built, Digest, Held, Incoming, Reader
from laconic.protocol.history import History
from laconic.protocol.messages import Payload
from laconic.protocol.shapes import Layout
from laconic.randomness import Role, generator

#: Points are built anew when there are this many times as many as in the newest version.
GROWTH = 1.1
#: What a version of atoms holds.
ATOMS = Layout(
    values={
        "points": ("n", "d"),
        "weights": ("m",),
        "mean": ("p",),
        "wide": ("w", "d"),
        "exact": ("e", "d"),
        "ids": ("i",),
    },
    records={"facts": (7,), "dropped": ("b",), "spanning": ("s",), "forms": ("f",), "large": ("l",)},
    types={
        **{name: types for name, types in parcels.TYPES.items() if name != "rewards"},
        "weights": ("uint8",),
        "mean": ("int8",),
        "facts": ("float16", "float32", "float64"),
        "dropped": ("uint8",),
        "spanning": ("uint8",),
        "forms": ("uint8",),
        "large": ("int16", "int32", "float64"),
    },
    always=("weights", "mean", "facts"),
    rest="mean",
    small=("points", "weights", "mean"),
)
#: A coefficient of the mean beyond this many steps goes among the large ones; this mark stands in its place.
LARGEST, ELSEWHERE = 127, -128
#: A client compares a version with its certificate at so many of its own points.
SEEN = 32
#: Where e_lo stands among the facts of a version.
E_LO = 3
#: Bytes of a download beside its points and rewards, at most: facts, and where own points stand.
OVERHEAD = 64


@dataclass(frozen=True, eq=False)
class Edition:
    """What the server has built: the newest version of atoms, or why there is none."""

    number: int
    reference: Reference
    lam: float
    unit: float = 1.0  # in which the error of the mean travels; see `_unit`
    outcome: Version | Fallback | None = None
    last: Version | None = None  # the newest version of atoms, from which the next one goes on

    @property
    def covered(self) -> int:
        """How many observations it has."""
        return self.reference.covered

    @cached_property
    def mark(self) -> int:
        """The hash of its version of atoms, if it is one."""
        version = self.outcome
        return _mark(version.atoms, version.weights, version.mean) if isinstance(version, Version) else 0

    @cached_property
    def facts(self) -> np.ndarray:
        """What is known of it, as it travels with atoms."""
        return _facts(self.outcome, unit=self.unit)

    @cached_property
    def common(self) -> Payload:
        """What everyone is sent of its atoms."""
        assert isinstance(self.outcome, Version)
        return _for_everyone(self.outcome, self.facts)

    @cached_property
    def raw_facts(self) -> np.ndarray:
        """The same as it travels with points as they are."""
        return _facts(self.outcome, unit=self.unit, certified=False)

    @cached_property
    def has_atoms(self) -> bool:
        """Whether it has atoms whose error a certificate can say."""
        return isinstance(self.outcome, Version) and _is_possible(self.facts)


@dataclass(frozen=True)
class Weight:
    """What observations of others take as they are: how many there are, and the bytes of their points and rewards."""

    count: int = 0
    points: int = 0
    rewards: int = 0

    def __add__(self, other: Weight) -> Weight:
        return Weight(self.count + other.count, self.points + other.points, self.rewards + other.rewards)


@dataclass(frozen=True, eq=False)
class Base:
    """What a client holds: a version of atoms, or all points up to a length of the log."""

    number: int = 0
    length: int = 0
    ids: Ints | None = None  # its atoms, by their numbers among the log's distinct points; None for all points
    distinct: int = 0  # how many different points that length of the log has
    sent: int = 0  # bytes that have come down for it
    raw: int = 0  # bytes that points as they are would have taken
    weight: Weight = Weight()  # of what others observed in that length of the log


@dataclass(frozen=True)
class Atoms(Digest):
    """A weighted set of atoms with the exact mean (`laconic.atoms`); raw points where these are cheaper.

    Args:
        recipe: Aims and effort of the set of atoms, a `laconic.atoms.Recipe`.
    """

    recipe: Recipe = field(default_factory=Recipe)

    name: ClassVar[str] = "atoms"

    def layout(self, message: Any) -> Layout | None:
        return RAW if message.raw else ATOMS

    def first(self, belief: Belief) -> Edition:
        kernel = belief.dictionary_kernel()
        recipe = self.recipe
        reference = Reference(kernel=kernel, dim=belief.dim, lam=belief.lam, tolerance=recipe.tolerance, cap=recipe.cap)
        return Edition(number=0, reference=reference, lam=belief.lam, unit=_unit(recipe))

    def blank(self) -> Base:
        return Base()

    def build(self, log: History, previous: Edition) -> Edition:
        done = previous.covered
        if done == len(log):
            return previous
        reference = previous.reference.extended(log.points[done:], log.rewards[done:])
        number = previous.number + 1
        outcome = build(
            reference,
            lam=previous.lam,
            settings=self.recipe,
            random=generator(0, Role.ATOMS, number),
            previous=previous.last,
        )
        last = outcome if isinstance(outcome, Version) else previous.last
        return replace(previous, number=number, reference=reference, outcome=outcome, last=last)

    def number(self, edition: Edition) -> int:
        return edition.number

    def length(self, base: Base) -> int:
        return base.length

    def reach(self, edition: Edition) -> int:
        return edition.covered

    def due(self, log: History, edition: Edition, *, base: Base) -> bool:
        grown = len(log) >= GROWTH * edition.covered
        return len(log) > edition.covered and (grown or base.number == edition.number)

    def known(self, log: History, editions: Any, *, number: int, mark: int) -> Base | None:
        if number == 0:
            return Base() if mark == 0 else None
        base: Base | None = editions.get((number, mark))
        return base

    def address(self, log: History, edition: Edition, reader: Reader) -> Addressed:
        version = edition.outcome
        new = _weight(log, edition, reader)
        since, back = _raw_costs(edition, reader, new=new)
        after = partial(_after, reader.base, edition, new=new)
        if isinstance(version, Version) and edition.has_atoms:
            payload, atoms = _atoms_parcel(edition, version, reader)
            cost = _bytes(payload)
            if _pays(reader.base, cost, since=since, back=back):
                base = after(sent=cost, raw=since, ids=version.ids)
                libraries = reader.libraries.sent_down(atoms) if reader.wire.by_reference else reader.libraries
                return Addressed(payload=payload, base=base, libraries=libraries, raw=False, mark=edition.mark)
        is_exact = reader.base.ids is None
        raw, libraries = raw_parcel(log, reader.base.length if is_exact else 0, edition.covered, reader)
        payload = Payload(values=raw.values, records={**raw.records, "facts": edition.raw_facts})
        sent, mark = _bytes(payload), log.chain.at(edition.covered)
        base = after(sent=sent, raw=sent if is_exact else since)
        return Addressed(payload=payload, base=base, libraries=libraries, raw=True, mark=mark)

    def why_raw(self, edition: Edition) -> str:
        if self.recipe.share == 0:
            return super().why_raw(edition)
        outcome = edition.outcome
        if isinstance(outcome, Fallback):
            return str(outcome.reason)
        possible = outcome is None or edition.has_atoms
        return "points as they are take fewer bytes" if possible else "the error of atoms is beyond any certificate"

    def absorb(self, incoming: Incoming) -> Held:
        return self._raw(incoming) if incoming.message.raw else self._version(incoming)

    def _raw(self, incoming: Incoming) -> Held:
        held = incoming.held
        exact = held if held.atoms is None else Held.blank(incoming.template)
        built, library = read_raw(incoming, base=exact.built)
        facts = _read_facts(incoming.message.payload, unit=_unit(self.recipe))
        return Held(incoming.message.version, built, library, d_eff=facts.d_eff)

    def _version(self, incoming: Incoming) -> Held:
        message, held, wire = incoming.message, incoming.held, incoming.wire
        if message.length < 1:
            raise RemoteProtocolError("atoms of no observations")
        values, records = message.payload.values, message.payload.records
        new = parcels.unpacked(values, records, wire, incoming.libraries, dim=incoming.template.dim)
        old = np.empty((0, incoming.template.dim)) if held.atoms is None else held.atoms
        atoms = np.concatenate([old[~_bits(records.get("dropped"), len(old), default=False)], new])
        weights = values.get("weights")
        if weights is None or weights.dtype != np.uint8 or weights.shape != (len(atoms),):
            raise RemoteProtocolError(f"{len(atoms)} atoms did not come with a weight each")
        certificate = _read_facts(message.payload, unit=_unit(self.recipe))
        spanning = _bits(records.get("spanning"), len(atoms), default=True)
        mean = _read_mean(values.get("mean"), records.get("large"), int(spanning.sum()))

        def made(_: Built | None) -> Built:
            belief = self._belief(incoming.template, atoms, weights, mean, spanning, message.length)
            return Built(belief, mark=_mark(atoms, weights, mean), length=message.length, atoms=atoms)

        library = incoming.libraries.sent_down(new).down if wire.by_reference else incoming.libraries.down
        built = incoming.share("atoms", made)
        self._require_kept(built.belief, certificate, incoming)
        return Held(
            message.version,
            built,
            library,
            d_eff=certificate.d_eff,
            atoms=_shared(atoms, built.atoms),
            certificate=certificate,
        )

    def _belief(
        self, template: Belief, atoms: Floats, weights: np.ndarray, mean: Floats, spanning: Bools, count: int
    ) -> Belief:
        try:
            return belief_of(
                atoms,
                weights_of(weights),
                mean * self.recipe.quantum,
                spanning=spanning,
                kernel=template.dictionary_kernel(),
                lam=template.lam,
                count=count,
            )
        except (InputError, KernelError) as error:
            raise RemoteProtocolError(f"a version of atoms that makes no sense: {error}") from None

    def _require_kept(self, belief: Belief, certificate: Certificate, incoming: Incoming) -> None:
        """Refuse a version that knows less of the client's own points than its certificate allows.

        A point that was observed has a variance of at most v/(1+v), v = k(x,x)/λ, under all points in Q's coordinates,
        and beyond these at most tolerance·v.
        """
        own = incoming.covered[-SEEN:]
        if len(own) == 0:
            return
        v = belief.dictionary_kernel().diag(own) / belief.lam
        allowed = (v / (1.0 + v) + self.recipe.tolerance * v) / (1.0 + min(certificate.e_lo, 0.0))
        most = 1.01 * allowed + 1e-9
        seen = incoming.learning.variance(belief, own, most=most)
        if not (seen <= most).all():
            worst = int(np.argmax(seen - allowed))
            raise RemoteProtocolError(
                f"a version whose certificate allows a variance of {allowed[worst]:.3g} at a point that this client "
                f"has observed, and which has {seen[worst]:.3g} there"
            )


def _shared(atoms: Floats, built: Floats | None) -> Floats:
    """One array for all who hold a version."""
    return built if built is not None and np.array_equal(built, atoms) else atoms


def _weight(log: History, edition: Edition, reader: Reader) -> Weight:
    """What others' observations since the base take as they are, each in the form that it needs."""
    first, last = reader.base.length, edition.covered
    before, mine = reader.own.searchsorted([first, last]).tolist()  # places in the log rise
    rows = np.delete(np.arange(first, last), reader.own[before:mine] - first)
    points = sum(array.nbytes for array in reader.wire.packed(log.points[rows]))
    return Weight(len(rows), points, reader.wire.packed_rewards(log.rewards[rows]).nbytes)


def _raw_costs(edition: Edition, reader: Reader, *, new: Weight) -> tuple[int, int]:
    """Bytes of others' points as they are, by what they take on average: of those since the base, and of all anew.

    What a member held before it greeted is known by what somebody was sent, whose own points were others: of that only
    the average counts.
    """
    base, every = reader.base, reader.base.weight + new
    others = edition.covered - int(reader.own.searchsorted(edition.covered))
    rewards = math.ceil(others * every.rewards / max(every.count, 1))
    if not reader.wire.by_reference:
        return new.points + new.rewards, math.ceil(others * every.points / max(every.count, 1)) + rewards
    distinct = edition.reference.distinct
    fresh = (distinct - base.distinct) * new.count // max(edition.covered - base.length, 1)
    lacked = min(max(distinct - reader.libraries.down.size, 0), others)
    since = fresh * new.points // max(new.count, 1) + (new.count - fresh) + new.rewards
    back = math.ceil(lacked * every.points / max(every.count, 1)) + 2 * others + rewards + OVERHEAD
    return since, back


def _pays(base: Base, cost: int, *, since: int, back: int) -> bool:
    """Whether atoms are worth their bytes.

    To a client that has all points they must be cheaper than the points it lacks. In any case it must remain possible
    to go back to points as they are with no more than twice the bytes that these alone would have taken.
    """
    return (base.ids is not None or cost <= since) and base.sent + cost + back <= 2 * (base.raw + since)


def _after(base: Base, edition: Edition, *, new: Weight, sent: int, raw: int, ids: Ints | None = None) -> Base:
    """What a client holds once it has absorbed so many bytes."""
    return Base(
        number=edition.number,
        length=edition.covered,
        ids=ids,
        distinct=edition.reference.distinct,
        sent=base.sent + sent,
        raw=base.raw + raw,
        weight=base.weight + new,
    )


def _atoms_parcel(edition: Edition, version: Version, reader: Reader) -> tuple[Payload, Floats]:
    """What a client lacks of a version: which of its atoms are gone, the new ones, all weights, and the mean."""
    kept, dropped = _kept(reader.base.ids, version.ids)
    new = version.atoms[kept:]
    (values, records), common = parcels.packed(new, reader.wire, reader.libraries), edition.common
    if dropped.any():
        records["dropped"] = np.packbits(dropped)
    return Payload(values={**values, **common.values}, records={**records, **common.records}), new


def _for_everyone(version: Version, facts: np.ndarray) -> Payload:
    """What all are sent of a version: weights, the mean, which atoms span it, and what is known of it."""
    large = np.abs(version.mean) > LARGEST
    mean = np.where(large, ELSEWHERE, version.mean).astype(np.int8)
    records = {"facts": facts}
    if large.any():
        records["large"] = _narrow(version.mean[large])
    if not version.spanning.all():
        records["spanning"] = np.packbits(version.spanning)
    return Payload(values={"weights": version.weights, "mean": mean}, records=records)


def _kept(old: Ints | None, new: Ints) -> tuple[int, Bools]:
    """How many atoms of the new version, from the first on, the old one has in the same order, and which it loses."""
    if old is None:
        return 0, np.zeros(0, dtype=np.bool_)
    dropped = np.ones(len(old), dtype=np.bool_)
    if len(old) == 0:
        return 0, dropped
    order = np.argsort(old)
    where = order[np.minimum(np.searchsorted(old, new, sorter=order), len(old) - 1)]
    where = np.where(old[where] == new, where, -1)
    falls = np.flatnonzero(np.diff(where, prepend=-1) <= 0)  # one that is not there, or stands before the last
    kept = int(falls[0]) if len(falls) else len(new)
    dropped[where[:kept]] = False
    return kept, dropped


def _mark(atoms: Floats, weights: np.ndarray, mean: np.ndarray) -> int:
    """A hash of a version, on which the server and all who hold it agree."""
    state = blake2b(digest_size=8)
    for array in (atoms + 0.0, weights, mean.astype(np.float64) + 0.0):
        state.update(np.ascontiguousarray(array).tobytes())
    return int.from_bytes(state.digest(), "little")


def _bits(packed: np.ndarray | None, count: int, *, default: bool) -> Bools:
    """So many marks; none sent means all ``default``."""
    if packed is None:
        return np.full(count, default)
    if packed.dtype != np.uint8 or packed.shape != (-(-count // 8),):
        raise RemoteProtocolError(f"{count} marks do not come in {packed.size} bytes")
    return np.unpackbits(packed, count=count).astype(np.bool_)


def _read_mean(mean: np.ndarray | None, large: np.ndarray | None, count: int) -> Floats:
    if mean is None or mean.dtype != np.int8 or mean.shape != (count,):
        raise RemoteProtocolError(f"a version of atoms came without a mean of {count} coefficients")
    steps, elsewhere = mean.astype(np.float64), mean == ELSEWHERE
    found = np.empty(0) if large is None else large.astype(np.float64)
    if found.shape != (int(elsewhere.sum()),):
        raise RemoteProtocolError(f"{int(elsewhere.sum())} coefficients of the mean are large, and {found.size} came")
    steps[elsewhere] = found
    if not np.isfinite(steps).all():
        raise RemoteProtocolError("a coefficient of the mean is not finite")
    return steps


def _narrow(numbers: Ints) -> np.ndarray:
    """Numbers in as few bytes each as the largest takes."""
    largest = int(np.abs(numbers).max())
    return numbers.astype(np.float64 if largest >= 2**31 else np.int16 if largest < 2**15 else np.int32)


def _unit(recipe: Recipe) -> float:
    """The power of two that is next above the usual size of a reward: β over it needs few bits whatever rewards are."""
    return float(2.0 ** np.ceil(np.log2(recipe.range)))


def _facts(outcome: Version | Fallback | None, *, unit: float, certified: bool = True) -> np.ndarray:
    """d_eff, ln det(I + G/λ), ρ and the certificate, with β over ``unit``, rounded so that what it says stays true.

    Points as they are have no error to certify, whatever that of atoms would have been.
    """
    known = outcome.certificate if isinstance(outcome, Version) else outcome
    if known is None:
        exact = [0.0] * 7
    elif isinstance(known, Certificate) and certified:
        exact = [known.d_eff, known.log_det, known.missed, known.e_lo, known.e_hi, known.kappa, known.beta / unit]
    else:
        exact = [known.d_eff, known.log_det, known.missed, 0.0, 0.0, 1.0, 0.0]
    for dtype in (np.float16, np.float32):
        said = _outwards(np.array(exact), dtype)
        if _is_possible(said):
            return said
    return _outwards(np.array(exact), np.float64)


def _outwards(numbers: Floats, dtype: type[np.floating[Any]]) -> np.ndarray:
    """Numbers in fewer bits, none of them smaller than it was, and e_lo no larger."""
    largest = np.asarray(np.finfo(dtype).max)
    with np.errstate(over="ignore"):
        rounded = numbers.astype(dtype)
        low = np.arange(len(numbers)) == E_LO
        rounded = np.where((rounded < numbers) & ~low, np.nextafter(rounded, largest * np.inf), rounded)
        rounded = np.where((rounded > numbers) & low, np.nextafter(rounded, -largest * np.inf), rounded)
    return rounded.astype(dtype)


def _is_possible(facts: np.ndarray) -> bool:
    """Whether these can be the facts of a version."""
    d_eff, log_det, missed, e_lo, e_hi, kappa, beta = (float(each) for each in facts)
    return bool(np.isfinite(facts).all()) and -1.0 < e_lo <= e_hi and min(d_eff, log_det, missed, kappa, beta) >= 0


def _read_facts(payload: Payload, *, unit: float) -> Certificate:
    facts = payload.records.get("facts")
    if facts is None or facts.shape != (7,) or facts.dtype.kind != "f":
        raise RemoteProtocolError("a version came without what is known of it")
    if not _is_possible(facts):
        raise RemoteProtocolError(f"a certificate that no version has: {facts.tolist()}")
    d_eff, log_det, missed, e_lo, e_hi, kappa, beta = (float(each) for each in facts)
    return Certificate(e_lo=e_lo, e_hi=e_hi, kappa=kappa, beta=beta * unit, d_eff=d_eff, log_det=log_det, missed=missed)


def _bytes(payload: Payload) -> int:
    return sum(array.nbytes for arrays in (payload.values, payload.records) for array in arrays.values())
