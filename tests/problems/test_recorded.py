import math
import pickle
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laconic.errors import InputError, OutputError, ProblemError
from laconic.problems import Catalogue, Cosine, Log, PolynomialReward, Problem, Recorded, Round, save_recorded

STEPS, ARMS, DIM = 6, 3, 2


def good() -> Any:
    return {
        "arms": np.arange(STEPS * ARMS * DIM, dtype=float).reshape(STEPS, ARMS, DIM) / 7,
        "means": np.arange(STEPS * ARMS, dtype=float).reshape(STEPS, ARMS) / 3,
        "noise": np.arange(STEPS, dtype=float) / 10,
    }


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return tmp_path / "shop.npz"


def save(path: Path, **arrays: Any) -> Any:
    np.savez(path, **arrays)
    return path


def refuse(path: Path, why: str) -> None:
    """It is refused on one line that names the file."""
    with pytest.raises(ProblemError, match=why) as caught:
        Recorded(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("clients", "rounds"), [(1, 6), (2, 3), (3, 2), (6, 1), (4, 1)])
def test_client_i_of_round_l_plays_step_N_times_l_minus_1_plus_i(path: Path, clients: int, rounds: int) -> None:
    arrays = good()
    instance = Recorded(save(path, **arrays)).instance(seed=0, clients=clients, rounds=rounds)
    for l in range(1, rounds + 1):  # noqa: E741
        met = instance.round(l - 1)
        assert met.mask is None
        for i in range(1, clients + 1):
            t = clients * (l - 1) + i
            assert np.array_equal(met.arms[i - 1], arrays["arms"][t - 1])
            assert np.array_equal(met.means[i - 1], arrays["means"][t - 1])
            assert np.array_equal(met.rewards[i - 1], arrays["means"][t - 1] + arrays["noise"][t - 1])


def test_seeds_change_nothing(path: Path) -> None:
    recorded = Recorded(save(path, **good()))
    one, other = (recorded.instance(seed=seed, clients=2, rounds=3).round(1) for seed in (0, 1))
    assert np.array_equal(one.arms, other.arms)
    assert np.array_equal(one.rewards, other.rewards)


def test_a_recorded_problem_is_a_problem_that_compares_by_its_path(path: Path) -> None:
    recorded = Recorded(save(path, **good()))
    assert isinstance(recorded, Problem)
    assert recorded.dim == recorded.instance(seed=0, clients=1, rounds=1).dim == DIM
    assert recorded == Recorded(str(path))
    assert repr(recorded) == f"Recorded(path={str(path)!r})"


@pytest.mark.parametrize("problem", [Cosine(dim=3, arms=4), PolynomialReward(), Catalogue(items=5, arms=5)])
def test_a_recorded_instance_replays_as_it_was(path: Path, problem: Any) -> None:
    instance = problem.instance(seed=3, clients=4, rounds=5)
    save_recorded(path, instance, clients=4, rounds=5)
    replayed = Recorded(path).instance(seed=0, clients=4, rounds=5)
    for index in range(5):
        was, now = instance.round(index), replayed.round(index)
        assert np.array_equal(was.arms, now.arms)
        assert np.array_equal(was.means, now.means)
        assert now.mask is None
        np.testing.assert_allclose(now.rewards, was.rewards, rtol=0, atol=1e-15)


def test_numpy_reads_what_was_recorded(path: Path) -> None:
    save_recorded(path, Cosine(dim=3, arms=4).instance(seed=0, clients=2, rounds=5), clients=2, rounds=5)
    with np.load(path, allow_pickle=False) as arrays:
        assert {name: arrays[name].shape for name in arrays} == {"arms": (10, 4, 3), "means": (10, 4), "noise": (10,)}


class Varying:
    """Three clients, more arms each round, and client 1 lacks the first arm."""

    dim = 2

    def round(self, index: int) -> Any:
        arms = np.random.default_rng(index).normal(size=(3, index + 2, 2))
        means = arms.sum(axis=2)
        mask = np.ones(means.shape, dtype=bool)
        mask[1, 0] = False
        return Round(arms, means=means, rewards=means + 0.25, mask=mask)


def test_arm_sets_of_varying_size_are_padded_and_masked(path: Path) -> None:
    save_recorded(path, Varying(), clients=3, rounds=4)
    replayed = Recorded(path).instance(seed=0, clients=3, rounds=4)
    for index in range(4):
        was, now = Varying().round(index), replayed.round(index)
        assert now.mask is not None
        assert now.mask.sum() == was.mask.sum()
        assert np.array_equal(now.arms[now.mask], was.arms[was.mask])
        assert np.array_equal(now.means[now.mask], was.means[was.mask])
        np.testing.assert_allclose(now.rewards[now.mask], was.rewards[was.mask], rtol=1e-15)


def test_an_instance_whose_noise_differs_from_arm_to_arm_cannot_be_recorded(path: Path) -> None:
    class Bernoulli(Varying):
        def round(self, index: int) -> Any:
            met = super().round(index)
            return replace(met, rewards=(met.means > 0).astype(float))

    with pytest.raises(ProblemError, match="round 0, client 0: noise differs from arm to arm"):
        save_recorded(path, Bernoulli(), clients=3, rounds=1)
    assert not path.exists()


def test_a_recording_goes_under_exactly_the_name_given_or_is_refused(tmp_path: Path) -> None:
    instance = Cosine().instance(seed=0, clients=1, rounds=1)
    save_recorded(tmp_path / "plain", instance, clients=1, rounds=1)
    assert Recorded(tmp_path / "plain").dim == 20
    with pytest.raises(OutputError, match=r"nowhere.+cannot be written"):
        save_recorded(tmp_path / "nowhere" / "x.npz", instance, clients=1, rounds=1)
    with pytest.raises(ProblemError, match=r"round 0: arms has shape \(1, 20, 20\), but \(2, 20, 20\)"):
        save_recorded(tmp_path / "x.npz", instance, clients=2, rounds=1)


# Sizes.


@pytest.mark.parametrize(
    ("steps", "asked", "given"),
    [
        (6, {"clients": 4}, (4, 1)),
        (6, {"clients": 2}, (2, 3)),
        (6, {"rounds": 2}, (3, 2)),
        (7, {"rounds": 2}, (3, 2)),
        (7, {"clients": 2, "rounds": 2}, (2, 2)),
        (10_000, {}, (100, 100)),
        (1, {}, (1, 1)),
        (11, {}, (3, 3)),
    ],
)
def test_sizes_left_open_are_filled_with_what_the_log_holds(steps: int, asked: Any, given: Any) -> None:
    log = Log(np.zeros((steps, 1, 1)), means=np.zeros((steps, 1)), noise=np.zeros(steps))
    assert log.sizes(**asked) == given


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"clients": 7}, "clients=7"),
        ({"rounds": 7}, "rounds=7"),
        ({"clients": 2, "rounds": 4}, "clients=2 and rounds=4"),
    ],
)
def test_sizes_the_file_cannot_give_are_refused_with_file_and_numbers(path: Path, asked: Any, words: str) -> None:
    recorded = Recorded(save(path, **good()))
    with pytest.raises(ProblemError, match=rf"shop\.npz holds 6 steps, too few for {words}; try .* at most 6"):
        recorded.sizes(**asked)


@given(st.integers(1, 500), st.none() | st.integers(1, 500), st.none() | st.integers(1, 500))
def test_limits_keep_what_was_asked_and_never_exceed_the_log(
    steps: int, clients: int | None, rounds: int | None
) -> None:
    log = Log(np.zeros((steps, 1, 1)), means=np.zeros((steps, 1)), noise=np.zeros(steps))
    try:
        n, t = log.sizes(clients, rounds)
    except ProblemError:
        assert (clients or 1) * (rounds or 1) > steps
        return
    assert 1 <= n * t <= steps
    assert clients in (None, n)
    assert rounds in (None, t)
    log.instance(seed=0, clients=n, rounds=t).round(t - 1)


def test_an_instance_larger_than_the_log_is_refused_and_so_is_a_round_it_lacks(path: Path) -> None:
    recorded = Recorded(save(path, **good()))
    with pytest.raises(ProblemError, match="too few for clients=3 and rounds=3"):
        recorded.instance(seed=0, clients=3, rounds=3)
    with pytest.raises(InputError, match=r"^clients "):
        recorded.sizes(clients=0)
    for index in (-1, 2):
        with pytest.raises(ProblemError, match=f"has no round {index}; try 0 to 1"):
            recorded.instance(seed=0, clients=3, rounds=2).round(index)


# What is accepted.


def test_float32_whole_numbers_and_fortran_order_are_played_in_float64(path: Path) -> None:
    arrays = good()
    whole = {name: np.asfortranarray((array * 21).astype(np.int16)) for name, array in arrays.items()}
    single = {name: array.astype(np.float32) for name, array in arrays.items()}
    for stored in (whole, single):
        met = Recorded(save(path, **stored)).instance(seed=0, clients=6, rounds=1).round(0)
        assert met.arms.dtype == met.means.dtype == met.rewards.dtype == np.float64
        assert np.array_equal(met.arms, stored["arms"].astype(float))
        assert np.array_equal(met.means, stored["means"].astype(float))


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8])
def test_what_the_mask_leaves_out_may_be_anything(path: Path, dtype: Any) -> None:
    arrays = good()
    mask = np.ones((STEPS, ARMS), dtype=dtype)
    mask[4, 1] = 0
    arrays["arms"][4, 1] = math.nan
    arrays["means"][4, 1] = -math.inf
    met = Recorded(save(path, **arrays, mask=mask)).instance(seed=0, clients=6, rounds=1).round(0)
    assert met.mask is not None
    assert np.array_equal(met.mask, mask.astype(bool))
    assert np.array_equal(met.arms[4, 1], arrays["arms"][4, 0])
    assert met.means[4, 1] == 0
    assert np.isfinite(met.rewards).all()


def test_compressed_files_and_arrays_nobody_asked_for_are_no_trouble(path: Path) -> None:
    np.savez_compressed(path, **good(), comment=np.array("of 2021"))
    assert Recorded(path).log.steps == STEPS


def test_a_log_in_memory_is_played_like_its_file(path: Path) -> None:
    arrays = good()
    log, recorded = Log(**arrays), Recorded(save(path, **arrays))
    one, other = (each.instance(seed=0, clients=2, rounds=3).round(2) for each in (log, recorded))
    assert np.array_equal(one.arms, other.arms)
    assert np.array_equal(one.rewards, other.rewards)
    assert log.sha256 == recorded.sha256


def test_a_log_does_not_change_with_the_arrays_it_came_from_and_its_rounds_are_read_only() -> None:
    arrays = good()
    log = Log(**arrays)
    before = log.arms.copy()
    arrays["arms"][:] = 0
    assert np.array_equal(log.arms, before)
    with pytest.raises(ValueError, match="read-only"):
        log.instance(seed=0, clients=2, rounds=3).round(0).arms[0] = 0


def test_the_hash_knows_what_is_played_and_nothing_else(path: Path) -> None:
    arrays = good()
    hashes = {Log(**arrays).sha256}
    np.savez_compressed(path, **arrays, mask=np.ones((STEPS, ARMS), dtype=bool))
    assert {Recorded(path).sha256} == hashes
    for name in arrays:
        changed = {**arrays, name: arrays[name] + 1e-9}
        hashes.add(Log(**changed).sha256)
    mask = np.ones((STEPS, ARMS), dtype=bool)
    mask[0, 0] = False
    hashes.add(Log(**arrays, mask=mask).sha256)
    assert len(hashes) == 5
    assert all(len(each) == 64 for each in hashes)


# What is refused.


def without(name: str) -> Any:
    return {key: array for key, array in good().items() if key != name}


def changed(name: str, where: Any, value: Any) -> Any:
    array = good()[name]
    array[where] = value
    return {**good(), name: array}


def masked(mask: Any) -> Any:
    return {**good(), "mask": np.asarray(mask)}


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        *((without(name), f"has no array '{name}'") for name in good()),
        ({}, "has no array 'arms'"),
        ({**good(), "arms": good()["arms"][0]}, "arms has shape .*3 axes are needed"),
        ({**good(), "arms": np.float64(1)}, "arms has shape .*3 axes are needed"),
        ({**good(), "means": good()["noise"]}, "means has shape .*2 axes are needed"),
        ({**good(), "noise": good()["means"]}, "noise has shape .*1 axes are needed"),
        ({**good(), "means": np.zeros((STEPS, ARMS + 1))}, "means has shape .*is needed"),
        ({**good(), "means": np.zeros((STEPS - 1, ARMS))}, r"steps differ .*arms 6, means 5, noise 6"),
        ({**good(), "noise": np.zeros(STEPS + 1)}, r"steps differ .*noise 7"),
        ({**good(), "arms": np.zeros((STEPS, ARMS, 0))}, "arms has shape .*nothing to choose"),
        ({"arms": np.zeros((STEPS, 0, DIM)), "means": np.zeros((STEPS, 0)), "noise": np.zeros(STEPS)}, "nothing"),
        ({"arms": np.zeros((0, ARMS, DIM)), "means": np.zeros((0, ARMS)), "noise": np.zeros(0)}, "nothing"),
        (changed("arms", (4, 2, 1), math.nan), r"arms\[4, 2, 1\] is nan \(step 4 "),
        (changed("arms", (0, 0, 0), math.inf), r"arms\[0, 0, 0\] is inf"),
        (changed("means", (5, 1), math.nan), r"means\[5, 1\] is nan"),
        (changed("noise", 3, -math.inf), r"noise\[3\] is -inf"),
        (
            {**good(), "means": np.full((STEPS, ARMS), 1e308), "noise": np.full(STEPS, 1e308)},
            r"is 1e\+308; try finite numbers below 1e\+150",
        ),
        ({**good(), "arms": good()["arms"] + 1j}, "arms holds complex128"),
        ({**good(), "means": good()["means"].astype(str)}, "means holds <U"),
        ({**good(), "noise": good()["noise"].astype("S5")}, r"noise holds \|S5"),
        ({**good(), "noise": np.zeros(STEPS, dtype="M8[s]")}, r"noise holds datetime64"),
        ({**good(), "noise": np.zeros(STEPS, dtype=[("a", "f8")])}, r"noise holds \[\('a'"),
        ({**good(), "arms": good()["arms"].astype(object)}, "array 'arms' cannot be read .*Object arrays"),
        ({**good(), "mask": np.array([[None]])}, "array 'mask' cannot be read .*Object arrays"),
        (masked(np.ones((STEPS, ARMS))), "mask holds float64"),
        (masked(np.full((STEPS, ARMS), 2)), "mask holds 2"),
        (masked(np.full((STEPS, ARMS), -1)), "mask holds -1"),
        (masked(np.ones((STEPS, ARMS), dtype="S1")), r"mask holds \|S1"),
        (masked(np.ones((STEPS, ARMS + 1), dtype=bool)), r"mask has shape \(6, 4\), but \(6, 3\)"),
        (masked(np.ones(STEPS, dtype=bool)), "mask has shape"),
        (masked(np.arange(STEPS)[:, None] != np.full(ARMS, 2)), "mask leaves step 2 .*without an arm"),
    ],
)
def test_a_malformed_file_is_refused_with_the_array_and_what_is_wrong(path: Path, arrays: Any, why: str) -> None:
    refuse(save(path, **arrays), why)


def test_what_is_no_archive_is_refused(path: Path) -> None:
    refuse(path, "is not a file")
    refuse(path.parent, "is not a file")
    for content in (b"", b"arms,means\n1,2\n", b"PK\x03\x04", pickle.dumps(good())):
        path.write_bytes(content)
        refuse(path, "not a readable .npz archive")
    with path.open("wb") as file:
        np.save(file, good()["arms"])
    refuse(path, "not a readable .npz archive")


def test_members_that_are_no_arrays_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in good():
            archive.writestr(f"{name}.npy", "not an array\nat all")
    refuse(path, "array 'arms' cannot be read")


def test_a_header_that_promises_more_than_there_is_is_refused(path: Path) -> None:
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 1000, 20), }"
    header = header.ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(path, "w") as archive:
        for name in good():
            archive.writestr(f"{name}.npy", content)
    refuse(path, "array 'arms' cannot be read")


def test_a_pickle_in_a_file_is_never_opened(path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return pytest.fail, ("unpickled",)

    np.savez(path, **without("noise"), noise=np.array([Trap()], dtype=object))
    refuse(path, "array 'noise' cannot be read")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), compressed=st.booleans())
def test_a_truncated_file_is_always_refused(path: Path, data: st.DataObject, compressed: bool) -> None:
    (np.savez_compressed if compressed else np.savez)(path, **good())
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    refuse(path, "not a readable .npz archive")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(data=st.data(), compressed=st.booleans())
def test_a_file_with_changed_bytes_is_played_or_refused_and_nothing_else(
    path: Path, data: st.DataObject, compressed: bool
) -> None:
    (np.savez_compressed if compressed else np.savez)(path, **good())
    content = bytearray(path.read_bytes())
    places = st.integers(0, len(content) - 1)
    for place, value in data.draw(st.dictionaries(places, st.integers(0, 255), min_size=1, max_size=4)).items():
        content[place] = value
    path.write_bytes(content)
    try:
        with warnings.catch_warnings(action="ignore"):
            recorded = Recorded(path)
    except ProblemError:
        refuse(path, "shop.npz")
    else:
        assert np.isfinite(recorded.log.arms).all()
