"""What is known again and what is not, of classes and functions that have no name."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import DisKernelUCB, DisLinUCB, Gaussian, InputError, Log
from laconic.experiments.identity import code_of, identity

CELL = """
import functools
from dataclasses import dataclass, field
import numpy as np
from laconic import Cosine, DisKernelUCB

SCALE = 2.0
TABLE = np.arange(3.0)

def helper(x):
    # a comment
    return SCALE * x

def kernel(X, Y):
    return helper(X @ Y.T)

@dataclass(frozen=True)
class Mine:
    theta: float = 1.0
    names: tuple = ("a", "b")
    table = TABLE

    def instance(self, *, seed, clients, rounds):
        return Cosine(dim=2, noise=0.1 * self.theta).instance(seed=seed, clients=clients, rounds=rounds)

    @property
    def double(self):
        return {x for x in ("a", "b")} | {lambda: self.theta in {"c", "d", "e"}}

class Plain:
    def __init__(self, theta=1.0):
        self.theta = theta

    def instance(self, *, seed, clients, rounds):
        return self.theta
"""


def cell(old: str = "", new: str = "") -> dict[str, Any]:
    """The names that a notebook has once the cell has run, some of its text replaced."""
    assert old in CELL
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CELL.replace(old, new) if old else CELL, "<ipython-input-1>", "exec"), names)
    return names


def test_the_same_cell_run_again_makes_the_same() -> None:
    one, two = cell(), cell()
    for name in ("Mine", "Plain"):
        assert identity(one[name]()) == identity(two[name]())
        assert identity(one[name](theta=2.0)) != identity(two[name]())
    kernels = [DisKernelUCB(each["kernel"]) for each in (one, two)]
    assert identity(kernels[0], dim=3) == identity(kernels[1], dim=3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("return SCALE * x", "return x * SCALE"),
        ("X @ Y.T", "Y @ X.T"),
    ],
)
def test_a_kernel_whose_code_has_changed_is_another(old: str, new: str) -> None:
    one, two = (DisKernelUCB(each["kernel"]) for each in (cell(), cell(old, new)))
    assert code_of(one) != code_of(two)
    assert identity(one, dim=2) != identity(two, dim=2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("theta: float = 1.0", "theta: float = 1.5"),
        ("0.1 * self.theta", "0.2 * self.theta"),
        ('("a", "b")', '("a", "c")'),
        ("np.arange(3.0)", "np.arange(4.0)"),
        ('"c", "d", "e"', '"c", "d", "f"'),
    ],
)
def test_a_class_whose_code_has_changed_is_another(old: str, new: str) -> None:
    one, two = cell(), cell(old, new)
    assert identity(one["Mine"]()) != identity(two["Mine"]())


@pytest.mark.parametrize(("old", "new"), [("# a comment", "# another"), ("def helper", "\n\n\ndef helper")])
def test_how_code_is_written_does_not_matter(old: str, new: str) -> None:
    one, two = (DisKernelUCB(each["kernel"]) for each in (cell(), cell(old, new)))
    assert identity(one, dim=2) == identity(two, dim=2)


def test_another_process_knows_it_again(tmp_path: Path) -> None:
    (tmp_path / "cell.py").write_text(
        CELL + "from laconic.experiments.identity import identity\nprint(identity(Mine()), identity(Plain()))"
    )
    said = {
        subprocess.run(
            [sys.executable, str(tmp_path / "cell.py")],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashes in ("1", "2")
    }
    assert len(said) == 1


def test_what_closures_and_partial_functions_hold_decides() -> None:
    def scaled(by: float) -> Any:
        return lambda X, Y: by * (X @ Y.T)

    def of(by: float, X: np.ndarray) -> np.ndarray:
        return by * X

    assert identity(DisKernelUCB(scaled(2.0)), dim=2) == identity(DisKernelUCB(scaled(2.0)), dim=2)
    assert identity(DisKernelUCB(scaled(2.0)), dim=2) != identity(DisKernelUCB(scaled(3.0)), dim=2)
    assert identity(functools.partial(of, 2.0)) == identity(functools.partial(of, 2.0))
    assert identity(functools.partial(of, 2.0)) != identity(functools.partial(of, 3.0))


def test_arrays_decide_by_their_content() -> None:
    def log(mean: float) -> Log:
        arms = np.eye(4)[None, :, :2].repeat(6, axis=0)
        return Log(arms=arms, means=np.full((6, 4), mean), noise=np.zeros(6))

    assert identity(log(0.5)) == identity(log(0.5))
    assert identity(log(0.5)) != identity(log(0.25))


def test_what_comes_with_laconic_is_known_by_its_parameters_alone() -> None:
    assert code_of(DisLinUCB()) == code_of(DisKernelUCB(Gaussian(2.0))) == ""
    assert identity(DisLinUCB(D=2.0)) != identity(DisLinUCB(D=3.0))


def test_what_cannot_be_known_again_is_refused_with_advice() -> None:
    class Drawing:
        def __init__(self) -> None:
            self.random = np.random.default_rng(0)

    with pytest.raises(InputError, match=r"cannot be kept.* frozen dataclass .* without out"):
        identity(Drawing())


def test_a_value_that_holds_itself_is_known() -> None:
    one, two = cell()["Plain"](), cell()["Plain"]()
    one.itself, two.itself = one, two
    assert identity(one) == identity(two)
