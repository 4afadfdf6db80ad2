"""The canonical form: what is the same is told to be, and what is not is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from laconic import (
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    Linear,
    Matern,
    NKernelUCB,
    OneKernelUCB,
    Polynomial,
    Random,
    Theory,
    grid,
)
from laconic.canonical import MOST_BYTES, canonical, fingerprint, probes, table_bytes, table_from
from laconic.errors import InputError, ProtocolError
from laconic.experiments.parts import to_table
from laconic.kernels import as_kernel

DIM = 3


def using(kernel: Any) -> DisKernelUCB:
    return DisKernelUCB(kernel=kernel, lam=1.0, alpha=1.0)


#: They last changed when a plan began to tell its wire and its rule for uploads, which decide results too.
PINNED: dict[str, tuple[Any, str]] = {
    "DisKernelUCB": (using(Gaussian(1.0)), "d0d50d362535dda1e98bfbb38a76b0de"),
    "ApproxDisKernelUCB": (
        ApproxDisKernelUCB(kernel=Gaussian(0.1) + 2.0 * Linear(), alpha=Theory(), D=1.5, lam=1.0, qbar=0.3),
        "52c38baed45ce8c14ea5aa50310039c8",
    ),
    "a function": (using(lambda X, Y: (X @ Y.T + 1.0) ** 2), "e3843c5e83e11a817e7d002f4427f863"),
}
PROBES = [0.29374769143760204, -0.17575889569707215, -0.11160575004760176, -0.015525566734140739, 0.0, 1.0]
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


def laplace(X: Any, Y: Any, gamma: float = 1.0) -> Any:
    return np.exp(-gamma * np.abs(X[:, None, :] - Y[None, :, :]).sum(axis=2))


def printed(algorithm: Any) -> str:
    return str(algorithm.plan(DIM).fingerprint)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DisKernelUCB(D=20), DisKernelUCB(D=20.0)),
        (DisKernelUCB(Gaussian(1)), DisKernelUCB(kernel=Gaussian(gamma=1.0))),
        (DisKernelUCB(), DisKernelUCB(kernel=Gaussian(), D=20, lam=0.1, alpha=0.2, dtype="float64")),
        (DisLinUCB(lam=np.float64(0.5)), DisLinUCB(lam=0.5)),
        (DisLinUCB(D=np.float64(0.5)), DisLinUCB(D=0.5)),
        (DisLinUCB(alpha=Theory()), DisLinUCB(alpha=Theory(S=1, R=0.1))),
        (DisLinUCB(alpha=-0.0), DisLinUCB(alpha=0)),
        (DisLinUCB(D=10**15), DisLinUCB(D=1e15)),
        (NKernelUCB(2 * Gaussian()), NKernelUCB(Gaussian() * 2.0)),
        (ApproxDisKernelUCB(qbar=float("inf")), ApproxDisKernelUCB(qbar=np.float64("inf"))),
    ],
)
def test_an_algorithm_spelled_in_two_ways_has_one_fingerprint(one: Any, other: Any) -> None:
    assert printed(one) == printed(other)
    assert table_bytes(one.plan(DIM).table) == table_bytes(other.plan(DIM).table)


def test_algorithms_dimensions_and_precisions_have_fingerprints_of_their_own() -> None:
    algorithms: list[Any] = [DisKernelUCB(), OneKernelUCB(), NKernelUCB(), DisLinUCB(), ApproxDisKernelUCB(), Random()]
    found = {algorithm.plan(dim).fingerprint for algorithm in algorithms for dim in (1, 2, 20)}
    assert len(found) == 3 * len(algorithms)


@pytest.mark.parametrize("name", PINNED)
def test_the_format_has_not_changed_unnoticed(name: str) -> None:
    algorithm, expected = PINNED[name]
    assert printed(algorithm) == expected


@pytest.mark.parametrize("seed", ["0", "1", "77"])
def test_another_process_finds_the_same_fingerprints(seed: str) -> None:
    code = "from tests.test_canonical import PINNED, printed; print([printed(each) for each, _ in PINNED.values()])"
    environment = os.environ | {"PYTHONHASHSEED": seed}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str([printed(each) for each, _ in PINNED.values()])


def test_a_table_reads_like_the_parameters_it_was_made_from() -> None:
    assert DisKernelUCB(Gaussian(0.5) + Linear(), D=7.0, lam=1.0, alpha=1.0).plan(2).table == {
        "format": 2,
        "belief": "ExactBelief",
        "dim": 2,
        "kernel": "Sum",
        "kernel.left": "Gaussian",
        "kernel.left.gamma": 0.5,
        "kernel.right": "Linear",
        "dtype": "float64",
        "lam": 1,
        "trigger": "Determinant",
        "trigger.D": 7,
        "phases.0": "ShareData",
        "phases.0.wire": "FloatWire",
        "phases.0.wire.dtype": "float64",
        "confidence": "Fixed",
        "confidence.alpha": 1,
        "exploration": "UCB",
        "wire": "FloatWire",
        "wire.dtype": "float64",
        "upload": "WithAsk",
    }


def test_a_value_and_its_table_in_a_file_have_one_canonical_form() -> None:
    algorithm = ApproxDisKernelUCB(kernel=2.0 * (Gaussian() + Matern(nu=1.5)), alpha=Theory(S=2))
    written = to_table(algorithm, name="ApproxDisKernelUCB")
    assert canonical({"algorithm": written}) == canonical({"algorithm": algorithm})


# Kernels of others


def test_functions_of_equal_values_agree_and_others_do_not() -> None:
    def same(X: Any, Y: Any) -> Any:
        return laplace(X, Y)

    agreeing = [laplace, same, lambda X, Y: laplace(X, Y), partial(laplace, gamma=1.0)]
    assert len({printed(using(kernel)) for kernel in agreeing}) == 1
    gammas = [1e-4, 0.01, 0.9999, 1.0, 3.0, 100.0, 10_000.0]
    assert len({printed(using(partial(laplace, gamma=gamma))) for gamma in gammas}) == len(gammas)


def test_last_bits_of_a_kernel_do_not_matter() -> None:
    def nearly(X: Any, Y: Any) -> Any:
        return laplace(X, Y) * (1 + 1e-15)

    assert printed(using(laplace)) == printed(using(nearly))


def test_a_scikit_learn_kernel_is_known_by_its_values() -> None:
    three = [RBF(1.0), RBF(2.0), sklearn_kernels.Matern(nu=1.5)]
    assert len({printed(using(kernel)) for kernel in three}) == 3
    assert printed(using(RBF(1.0))) == printed(using(ConstantKernel(1.0) * RBF(1.0)))
    assert using(RBF(2.0)).plan(DIM).table["kernel.#name"] == "RBF(length_scale=2)"


def test_a_function_inside_a_sum_is_known_by_its_values() -> None:
    one, other = (Gaussian() + as_kernel(partial(laplace, gamma=gamma)) for gamma in (1.0, 2.0))
    assert printed(ApproxDisKernelUCB(one)) == printed(ApproxDisKernelUCB(Gaussian() + as_kernel(laplace)))
    assert printed(ApproxDisKernelUCB(one)) != printed(ApproxDisKernelUCB(other))


@dataclass(frozen=True)
class Bent:
    scales: Any = field(default_factory=lambda: np.array([1.0, 2.0, 3.0]))
    degree: int = 1
    bend: Any = abs

    def __call__(self, X: Any, Y: Any) -> Any:
        return (self.bend(X * self.scales) @ self.bend(Y * self.scales).T) ** self.degree


def test_a_kernel_of_others_that_is_a_dataclass_is_known_by_parameters_and_values() -> None:
    table = using(Bent()).plan(DIM).table
    assert [table[f"kernel{end}"] for end in ("", ".degree", ".scales.2")] == ["Bent", 1, 3]
    bent = [Bent(), Bent(degree=2), Bent(scales=np.array([1.0, 2.0, 4.0])), Bent(bend=np.sin)]
    assert len({printed(using(kernel)) for kernel in bent}) == len(bent)


def test_a_kernel_that_fails_at_the_probes_is_known_by_its_name() -> None:
    def one(X: Any, Y: Any) -> Any:
        return np.eye(3)[X[:, 0].astype(int) + 7]

    def two(X: Any, Y: Any) -> Any:
        return np.eye(3)[X[:, 0].astype(int) + 7]

    assert using(one).plan(1).table["kernel.raises"] == "IndexError"
    assert printed(using(one)) != printed(using(two))


def test_a_function_needs_a_dimension_to_be_known() -> None:
    with pytest.raises(InputError, match="kernel is known by its values only"):
        canonical({"kernel": as_kernel(laplace)})


@pytest.mark.parametrize("dim", [1, 2, 3, 20, 784])
def test_probe_points_are_distinct_and_within_reach(dim: int) -> None:
    X = probes(dim)
    assert X.shape == (6, dim)
    assert len(np.unique(X, axis=0)) == 6
    assert (np.linalg.norm(X[:4], axis=1) <= 1).all()
    assert (X[4:] == np.round(X[4:])).all()


def test_probe_points_are_those_of_every_version() -> None:
    assert probes(1).ravel().tolist() == PROBES


# What has no canonical form


@pytest.mark.parametrize(
    "algorithm",
    [DisLinUCB(D=grid(1, 2)), DisKernelUCB(kernel=grid(Gaussian(), Linear())), NKernelUCB(Gaussian(grid(1, 2)))],
)
def test_a_grid_is_refused(algorithm: Any) -> None:
    with pytest.raises(InputError, match="stands for several values, grid"):
        canonical({"algorithm": algorithm})


class Opaque:
    def __init__(self, n: int) -> None:
        self.n = n


@pytest.mark.parametrize("value", [Opaque(3), laplace, len, Gaussian, {"a": {1, 2}}])
def test_what_does_not_say_its_parameters_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="try a frozen dataclass"):
        canonical({"trigger": value})


# Numbers and arrays


def test_numbers_without_a_json_spelling_are_words() -> None:
    table = canonical({"a": float("inf"), "b": float("-inf"), "c": float("nan"), "d": 2**64 + 1, "e": 10**400})
    assert list(table.values()) == ["inf", "-inf", "nan", str(2**64 + 1), str(10**400)]
    assert table_from(table_bytes(table)) == table


def test_true_is_not_one_and_none_is_nothing() -> None:
    assert fingerprint(canonical({"a": True})) != fingerprint(canonical({"a": 1}))
    assert canonical({"a": None, "b": np.empty((0, 3)), "c": ()}) == {}
    assert canonical({"a": (1, None)}) != canonical({"a": (1,)})


def test_arrays_are_known_by_their_numbers() -> None:
    long = np.arange(1000.0)
    other = long.copy()
    other[-1] += 1e-9
    assert canonical({"a": np.array([1, 2])}) == canonical({"a": [1.0, 2.0]})
    assert canonical({"a": long}) == canonical({"a": long.astype(int)})
    assert canonical({"a": long}) != canonical({"a": other})
    assert canonical({"a": long}) != canonical({"a": long.reshape(10, 100)})


# Bytes


@given(st.dictionaries(st.text(), plain | st.lists(plain, max_size=3), max_size=5))
def test_a_table_comes_back_from_its_bytes(values: dict[str, Any]) -> None:
    table = canonical(values)
    again = table_from(table_bytes(table))
    assert again == table
    assert fingerprint(again) == fingerprint(table)


@given(st.binary(max_size=60))
def test_rubbish_is_refused(data: bytes) -> None:
    try:
        table = table_from(data)
    except ProtocolError:
        return
    assert table_bytes(table) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a":null}',
        b'{"a":{"b":1}}',
        b'{"a":[1]}',
        b'{"a":1.0}',
        b'{"a": 1}',
        b'{"b":1,"a":1}',
        b'{"a":1,"a":1}',
        b'{"a":NaN}',
        b'{"a":1e999}',
        b'{"a":"\xff"}',
        b'{"a":"\\ud800"}',
        b'{"a":' + b"9" * 400 + b"}",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        json.dumps({"a": "x" * MOST_BYTES}).encode(),
    ],
)
def test_bytes_that_are_no_table_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="table of parameters"):
        table_from(data)


def test_a_table_that_would_be_refused_is_not_written() -> None:
    with pytest.raises(InputError, match="more than"):
        table_bytes({"a": "x" * MOST_BYTES})


def test_polynomial_kernels_of_two_spellings_are_not_taken_for_each_other() -> None:
    function = using(lambda X, Y: (X @ Y.T + 1.0) ** 2)
    assert printed(function) != printed(NKernelUCB(kernel=Polynomial()))
