"""Full-information logs: what every arm of every step would have paid, in memory or in an ``.npz`` file."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from laconic.arrays import Bools, Floats
from laconic.checks import finite_array, real_array, require_path, require_whole, seen
from laconic.errors import InputError, OutputError, ProblemError
from laconic.paths import is_file, own_path
from laconic.problems.base import Instance, Round
from laconic.problems.rounds import check_opening, check_round, check_rows

if TYPE_CHECKING:
    from laconic.problems.replay import Replay

FORMAT = "arms (steps × arms × d), means (steps × arms), noise (steps), perhaps mask (steps × arms)"
NEEDED = ("arms", "means", "noise")
_KEYWORDS = ", ".join(f"{name}={name}" for name in NEEDED)
P = ParamSpec("P")

AnyArray = NDArray[Any]


@dataclass(frozen=True, eq=False)
class LogInstance:
    """A log dealt to N clients in turn."""

    log: Log
    clients: int
    rounds: int

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return self.log.dim

    def round(self, index: int) -> Round:
        """Steps t = N(l−1)+i for i = 1 … N, where l = ``index`` + 1."""
        if not 0 <= index < self.rounds:
            raise ProblemError(f"{self.log.source} has no round {index}; try 0 to {self.rounds - 1}")
        steps = slice(self.clients * index, self.clients * (index + 1))
        log = self.log
        means = log.means[steps]
        mask = None if log.mask is None else log.mask[steps]
        return Round(log.arms[steps], means=means, rewards=means + log.noise[steps, None], mask=mask)


@dataclass(frozen=True, eq=False)
class Log:
    """A full-information log in memory; a step pays the chosen arm's mean plus the step's noise.

    Args:
        arms: Features of the arms of each step, (steps, A, d).
        means: Mean reward of each arm, (steps, A).
        noise: Noise of each step, (steps,), added to whichever arm is chosen.
        mask: Which arms exist, (steps, A); None where all do.
        source: Name by which errors call this log.

    Examples:
        >>> log = Log(arms=[[[0.0], [1.0]]] * 6, means=[[0.2, 0.8]] * 6, noise=[0.0] * 6)
        >>> log.sizes(clients=3)
        (3, 2)
        >>> log.instance(seed=0, clients=3, rounds=2).round(1).rewards[0].tolist()
        [0.2, 0.8]
    """

    arms: Floats
    means: Floats
    noise: Floats
    mask: Bools | None = None
    source: str = "log"

    def __init__(
        self,
        arms: ArrayLike,
        *,
        means: ArrayLike,
        noise: ArrayLike,
        mask: ArrayLike | None = None,
        source: str = "log",
    ) -> None:
        try:
            table, noises = _checked(arms, means=means, noise=noise, mask=mask)
        except InputError as error:
            raise ProblemError(f"{source}: {error}") from None
        values = {"arms": table.arms, "means": table.means, "noise": noises, "mask": table.mask}
        for name, value in values.items():
            object.__setattr__(self, name, None if value is None else _frozen(value))
        object.__setattr__(self, "source", source)

    @staticmethod
    def bandit(path: str | os.PathLike[str], *, floor: float | None = None) -> Replay:
        """A log in which only the chosen arm's reward is known, as ``Run.log`` writes it; see `Replay`.

        Args:
            path: The Parquet file of events.
            floor: Chance c, above 0 and at most 1, with which an arm is logged and kept; None: the smallest propensity
                in the log. Raising it keeps more events, and counts arms of a smaller propensity too rarely.
        """
        from laconic.problems.replay import Replay  # which needs this module

        return Replay(path, floor=floor)

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return int(self.arms.shape[2])

    @property
    def steps(self) -> int:
        """How many interactions it holds."""
        return len(self.arms)

    @cached_property
    def sha256(self) -> str:
        """A hash of all that is played, the same for a log in memory and in any file that holds it."""
        digest = hashlib.sha256()
        for array in (self.arms, self.means, self.noise, self.mask):
            if array is not None:
                digest.update(f"{array.dtype.kind}{array.shape}".encode())
                digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return digest.hexdigest()

    def sizes(self, clients: int | None = None, rounds: int | None = None) -> tuple[int, int]:
        """The sizes to play it with: all its whole rounds, and ⌊√steps⌋ clients when neither is given.

        Args:
            clients: Clients N, from 1; None: as many as ``rounds`` leave steps for, or ⌊√steps⌋ where neither is given.
            rounds: Rounds T, from 1; None: all whole rounds that there are for so many clients. Clients times rounds
                must not be more than the steps.
        """
        return sizes_of(self.steps, clients, rounds, source=self.source)

    def instance(self, *, seed: int, clients: int, rounds: int) -> LogInstance:
        """The log dealt to so many clients, the same for every seed.

        Args:
            seed: Seed of the run, from 0, which changes nothing.
            clients: Clients N that the steps are dealt to, from 1.
            rounds: Rounds T, from 1. Clients times rounds must not be more than the steps.
        """
        check_opening(seed=seed, clients=clients, rounds=rounds)
        self.sizes(clients, rounds)
        return LogInstance(self, clients=clients, rounds=rounds)


@dataclass(frozen=True)
class Recorded:
    """Replays an .npz file of arms, means and noise; step t = N(l−1)+i is client i in round l, whatever the seed.

    Args:
        path: The .npz file, with arms (steps, A, d), means (steps, A), noise (steps,) and perhaps mask (steps, A).
    """

    path: str
    log: Log = field(init=False, repr=False, compare=False)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", require_path("path", path))
        object.__setattr__(self, "log", Log(**_read(self.path), source=self.path))

    @property
    def dim(self) -> int:
        """The number of features of an arm."""
        return self.log.dim

    @property
    def sha256(self) -> str:
        """A hash of what the file holds, to know it again."""
        return self.log.sha256

    def sizes(self, clients: int | None = None, rounds: int | None = None) -> tuple[int, int]:
        """The sizes to play it with, as ``Log.sizes`` says.

        Args:
            clients: Clients N, from 1; None: as many as ``rounds`` leave steps for, or ⌊√steps⌋ where neither is given.
            rounds: Rounds T, from 1; None: all whole rounds that there are for so many clients. Clients times rounds
                must not be more than the steps.
        """
        return self.log.sizes(clients, rounds)

    def instance(self, *, seed: int, clients: int, rounds: int) -> LogInstance:
        """The log dealt to so many clients, as ``Log.instance`` does it.

        Args:
            seed: Seed of the run, from 0, which changes nothing.
            clients: Clients N that the steps are dealt to, from 1.
            rounds: Rounds T, from 1. Clients times rounds must not be more than the steps.
        """
        return self.log.instance(seed=seed, clients=clients, rounds=rounds)


def sizes_of(steps: int, clients: int | None, rounds: int | None, *, source: str) -> tuple[int, int]:
    """The sizes to play so many steps with: all whole rounds, and ⌊√steps⌋ clients when neither is given."""
    given = {"clients": clients, "rounds": rounds}
    for name, size in given.items():
        if size is not None:
            require_whole(name, size, least=1)
    n = clients or (steps // rounds if rounds else math.isqrt(steps))
    t = rounds or (steps // n)
    if n * t == 0 or n * t > steps:
        asked = " and ".join(f"{name}={size}" for name, size in given.items() if size is not None)
        raise ProblemError(
            f"{source} holds {steps} steps, too few for {asked}; try clients × rounds of at most {steps}"
        )
    return n, t


def _of_no_arrays(save: Callable[P, None]) -> Callable[P, None]:
    """Let a function of an instance say what to do with arrays; its own parameters would be all that Python names."""

    @wraps(save)
    def saving(*given: P.args, **named: P.kwargs) -> None:
        arrays = [each for each in given[1:] if isinstance(each, np.ndarray | list | tuple | Mapping)]
        if arrays or named.keys() & {*NEEDED, "mask"}:
            raise ProblemError(
                f"save_recorded takes an instance of a problem, not arrays; try numpy.savez(path, {_KEYWORDS}), "
                f"or Log(arms, means=means, noise=noise).instance(seed=0, clients=1, rounds=len(arms))"
            )
        save(*given, **named)

    return saving


@_of_no_arrays
def save_recorded(path: str | os.PathLike[str], instance: Instance, *, clients: int, rounds: int) -> None:
    """Write the rounds of any instance as an ``.npz`` that ``Recorded`` replays, rewards exact to rounding.

    Args:
        path: The file to write; an earlier one is replaced.
        instance: One seed of a problem, as problem.instance(…) gives it.
        clients: Clients N of every round, from 1: as many as the instance was made for.
        rounds: Rounds to write, from 1, and of a log no more than it has. Raising it makes the file longer.
    """
    check_opening(seed=0, clients=clients, rounds=rounds)
    if not isinstance(instance, Instance):
        opened = f"instance(seed=0, clients={clients}, rounds={rounds})"
        advice = f"try it with .{opened}" if hasattr(instance, "instance") else f"try Cosine().{opened}"
        raise ProblemError(f"an instance of a problem has dim and round(index), got {seen(instance)}; {advice}")
    met = [
        check_round(instance.round(index), index=index, clients=clients, dim=instance.dim) for index in range(rounds)
    ]
    noise = np.concatenate([_step_noise(each, index=index) for index, each in enumerate(met)])
    widest = max(each.arms.shape[1] for each in met)
    mask = np.concatenate([_padded(_existing(each), arms=widest) for each in met])
    arrays: dict[str, AnyArray] = {
        "arms": np.concatenate([_padded(each.arms, arms=widest) for each in met]),
        "means": np.concatenate([_padded(each.means, arms=widest) for each in met]),
        "noise": noise,
    }
    if not mask.all():
        arrays["mask"] = mask
    try:
        _write(path, arrays)
    except OSError as error:
        raise OutputError(f"{os.fspath(path)} cannot be written ({error.strerror}); try another folder") from None


def _checked(arms: object, *, means: object, noise: object, mask: object) -> tuple[Round, Floats]:
    sets = real_array("arms", arms, ndim=3)
    paid = real_array("means", means, ndim=2)
    noises = finite_array("noise", noise, ndim=1)
    if not len(sets) == len(paid) == len(noises):
        sizes = f"arms {len(sets)}, means {len(paid)}, noise {len(noises)}"
        raise InputError(f"steps differ between arrays ({sizes}); try one row for each step in each")
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused below, with its place
        rewards = paid + noises[:, None]
    return check_rows(sets, means=paid, rewards=rewards, mask=mask, row="step"), noises


def _frozen(array: AnyArray) -> AnyArray:
    copy = array.copy()  # neither the caller nor a player can change a log
    copy.flags.writeable = False
    return copy


def _read(path: str) -> dict[str, AnyArray]:
    """The arrays of a file by name; nothing in it is ever unpickled."""
    file = own_path("path", path)
    if not is_file(file):
        raise ProblemError(f"{path} is not a file; try the path of an .npz archive")
    with _blaming(f"{path} is not a readable .npz archive"), zipfile.ZipFile(file) as archive:
        held = [name for name in (*NEEDED, "mask") if f"{name}.npy" in archive.namelist()]
        for name in NEEDED:
            if name not in held:
                raise ProblemError(f"{path} has no array {name!r}; try {FORMAT}")
        return {name: _read_array(archive, name, path=path) for name in held}


def _read_array(archive: zipfile.ZipFile, name: str, *, path: str) -> AnyArray:
    with _blaming(f"{path}: array {name!r} cannot be read"), archive.open(f"{name}.npy") as stream:
        return npy.read_array(stream, allow_pickle=False)


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Damaged bytes surface as a dozen types, from zlib's to those of numpy's header parser: all are one error here."""
    try:
        yield
    except ProblemError:
        raise
    except Exception as error:
        why = " ".join(str(getattr(error, "strerror", None) or error).split())[:100]
        raise ProblemError(f"{what} ({why or type(error).__name__}); try numpy.savez with {FORMAT}") from None


def _write(path: str | os.PathLike[str], arrays: Mapping[str, AnyArray]) -> None:
    with zipfile.ZipFile(path, "w") as archive:  # what savez writes, under exactly this name
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                npy.write_array(stream, array, allow_pickle=False)


def _existing(met: Round) -> Bools:
    return np.ones(met.means.shape, dtype=np.bool_) if met.mask is None else met.mask


def _padded(array: AnyArray, *, arms: int) -> AnyArray:
    return np.pad(array, [(0, 0), (0, arms - array.shape[1]), *[(0, 0)] * (array.ndim - 2)])


def _step_noise(met: Round, *, index: int) -> Floats:
    """The noise of each step, read off the arm where rounding hides least of it."""
    exists = _existing(met)
    size = np.abs(met.means) + np.abs(met.rewards)
    noises = met.rewards - met.means
    rows = np.arange(len(noises))
    noise: Floats = noises[rows, np.where(exists, size, np.inf).argmin(axis=1)]
    same = ~exists | (np.abs(noises - noise[:, None]) <= 1e-12 * size.max(axis=1, keepdims=True))
    if not same.all():
        client = int(np.argmin(same.all(axis=1)))
        raise ProblemError(
            f"round {index}, client {client}: noise differs from arm to arm, but a log holds one noise a step;"
            " try an instance whose rewards are means + noise"
        )
    return noise
