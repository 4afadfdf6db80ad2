"""Plans are compared: the parameter that differs is named, with both values."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from laconic import (
    ApproxDisKernelUCB,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    Greedy,
    Linear,
    Matern,
    NKernelUCB,
    OneKernelUCB,
    Polynomial,
    Theory,
)
from laconic.canonical import Table, table_bytes, table_from
from laconic.kernels import RationalQuadratic
from laconic.protocol.difference import NAMED, difference

DIM = 4
ALGORITHMS = (DisKernelUCB, OneKernelUCB, NKernelUCB, DisLinUCB, ApproxDisKernelUCB)
#: Each parameter's name in the table, and another value of it.
OTHER: dict[str, tuple[str, Any, str]] = {
    "kernel": ("kernel", Matern(), "kernel is Gaussian here and Matern there"),
    "D": ("trigger.D", 1.25, "1.25 there"),
    "lam": ("lam", 0.5, "lam is 0.1 here and 0.5 there"),
    "alpha": ("confidence.alpha", 0.3, "confidence.alpha is 0.2 here and 0.3 there"),
    "exploration": ("exploration", Greedy(), "exploration is UCB here and Greedy there"),
    "qbar": ("phases.0.qbar", 2.5, "phases.0.qbar is 1 here and 2.5 there"),
    "dtype": ("dtype", "float32", "dtype is float64 here and float32 there"),
    "cold_start": ("belief", "local", "belief is NystromEmbedding here and ExactBelief there"),
    "together": ("phases.0", False, "digest is not set here and AllPoints there"),
}
KERNELS: dict[Any, dict[str, Any]] = {
    Gaussian: {"gamma": 0.5},
    Matern: {"nu": 1.5, "length": 2.0},
    RationalQuadratic: {"length": 0.5, "mix": 3.0},
    Polynomial: {"degree": 3, "offset": 0.0},
}


def using(kernel: Any) -> DisKernelUCB:
    return DisKernelUCB(kernel=kernel)


def bumped(X: Any, Y: Any, height: float) -> Any:
    equal = (X[:, None] == Y[None]).all(axis=2)
    return np.where(equal, 4.0, height * np.exp(-np.abs(X[:, None] - Y[None]).sum(axis=2)))


def table(algorithm: Any, dim: int = DIM) -> Table:
    """As the other side gets it."""
    return table_from(table_bytes(algorithm.plan(dim).table))


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, field.name) for kind in ALGORITHMS for field in fields(kind)], ids=str
)
def test_a_parameter_changed_alone_is_the_one_that_is_named(kind: Any, name: str) -> None:
    if name == "wire":
        value = "compact" if hasattr(kind(), "qbar") or kind is DisLinUCB else "float32"
        found = difference(kind().plan(DIM).table, kind(wire=value).plan(DIM).table)
        assert found is not None
        assert "wire" in found or "phases" in found
        return
    where, value, said = OTHER[name]
    here, there = kind().plan(DIM), replace(kind(), **{name: value}).plan(DIM)
    assert here.fingerprint != there.fingerprint
    found = difference(here.table, table_from(table_bytes(there.table)))
    assert found is not None
    assert found.startswith(f"{where} is ")
    assert said in found
    assert (";" in found) is (name == "together")  # a digest takes the place of the phases


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, own in KERNELS.items() for name in own], ids=str)
def test_a_parameter_of_a_kernel_changed_alone_is_the_one_that_is_named(kind: Any, name: str) -> None:
    assert KERNELS[kind].keys() == {field.name for field in fields(kind)}
    here, there = DisKernelUCB(kernel=kind()), DisKernelUCB(kernel=kind(**{name: KERNELS[kind][name]}))
    found = difference(table(here), table(there))
    assert found is not None
    assert found.startswith(f"kernel.{name} is ")
    assert ";" not in found


@pytest.mark.parametrize("name", [field.name for field in fields(Theory)])
@pytest.mark.parametrize("kind", [DisKernelUCB, partial(ApproxDisKernelUCB, D=1.0)])
def test_a_parameter_of_the_theoretical_alpha_changed_alone_is_the_one_that_is_named(kind: Any, name: str) -> None:
    here, there = kind(alpha=Theory()), kind(alpha=Theory(**{name: 0.25}))
    first = getattr(Theory(), name)
    expected = f"confidence.theory.{name} is {first:g} here and 0.25 there"
    assert difference(table(here), table(there)) == expected


def test_the_same_plan_has_no_difference() -> None:
    assert difference(table(DisKernelUCB(D=20)), DisKernelUCB(D=20.0).plan(DIM).table) is None
    assert difference({"a": 1}, {"a": 1.0}) is None
    assert difference({"a": 1}, {"a": True}) == "a is 1 here and True there"


def test_several_differences_are_all_named() -> None:
    found = difference(table(DisKernelUCB(Gaussian(1.0), D=5)), table(DisKernelUCB(Gaussian(0.5), D=6), dim=3))
    assert found == "dim is 4 here and 3 there; kernel.gamma is 1 here and 0.5 there; trigger.D is 5 here and 6 there"


def test_a_parameter_of_one_side_only_is_said_to_be() -> None:
    found = difference(table(OneKernelUCB()), table(NKernelUCB()))
    assert found == "phases.0 is ShareData here and not set there; trigger is Always here and Never there"
    assert difference({}, {"wire": "compact"}) == "wire is not set here and compact there"


def test_inside_a_composite_kernel_the_place_is_named() -> None:
    here, there = (DisKernelUCB(Gaussian() + scale * Linear() * Gaussian(2.0)) for scale in (1.0, 3.0))
    assert difference(table(here), table(there)) == "kernel.right.left.scale is 1 here and 3 there"


def test_functions_that_differ_are_said_to_give_other_values() -> None:
    def steep(X: Any, Y: Any) -> Any:
        return 2.0 * X @ Y.T

    here, there = table(using(lambda X, Y: X @ Y.T)), table(using(steep))
    found = difference(here, there)
    assert found is not None
    assert found.startswith("kernel gives other values (")
    assert "steep" in found
    assert found.endswith(f"{here['kernel.@0']} here and {there['kernel.@0']} there at probe 0")
    assert ";" not in found


def test_a_function_that_differs_on_the_diagonal_only_is_told_apart() -> None:
    class Noisy:
        def __call__(self, X: Any, Y: Any) -> Any:
            return X @ Y.T

        def diag(self, X: Any) -> Any:
            return (X * X).sum(axis=1) + 1.0

    found = difference(table(using(lambda X, Y: X @ Y.T)), table(using(Noisy())))
    assert found is not None
    assert found.endswith("at probe 0")


def test_a_function_that_differs_off_the_diagonal_is_told_apart() -> None:
    here, there = (table(using(partial(bumped, height=height))) for height in (1.0, 2.0))
    found = difference(here, there)
    assert found is not None
    assert found.endswith("at probes 0 and 1")


def test_scikit_learn_kernels_are_named_by_their_parameters() -> None:
    found = difference(table(using(RBF(1.0))), table(using(RBF(3.0))))
    assert found is not None
    assert "(RBF(length_scale=1) and RBF(length_scale=3))" in found
    assert difference(table(using(RBF(1.0))), table(DisKernelUCB())) == (
        "kernel is function RBF(length_scale=1) here and Gaussian there"
    )


def test_values_on_two_sides_of_a_rounding_are_the_same_plan() -> None:
    here = table(using(lambda X, Y: X @ Y.T))
    there = {name: value * (1 + 1e-10) if "@" in name else value for name, value in here.items()}  # type: ignore[operator]
    assert there != here
    assert difference(here, there) is None


@dataclass(frozen=True)
class Mine(Gaussian):
    """Ours by descent, with a formula of its own."""

    def __call__(self, X: Any, Y: Any, /) -> Any:
        return np.exp(-self.gamma * np.abs(X[:, None] - Y[None]).sum(axis=2))


def test_classes_of_one_name_and_other_formulas_are_told_apart() -> None:
    def other() -> Any:
        @dataclass(frozen=True)
        class Mine(Gaussian):
            pass

        return Mine()

    found = difference(table(DisKernelUCB(Mine())), table(DisKernelUCB(other())))
    assert found is not None
    assert found.startswith("kernel gives other values")


def test_what_another_side_says_cannot_flood_or_forge_a_message() -> None:
    theirs: Table = {f"x{place}\n\x1b[31m": "y\n" * 1000 for place in range(1000)}
    found = difference({}, theirs)
    assert found is not None
    assert found.isprintable()
    assert len(found) < 100 * (NAMED + 1)
    assert found.endswith(f"{1000 - NAMED} more differ")
