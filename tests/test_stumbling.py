"""Where people stumble: each mistake is answered with one line that says what to try."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laconic import (
    AllPoints,
    ApproxDisKernelUCB,
    AskServer,
    Atoms,
    Catalogue,
    Client,
    Cosine,
    DisKernelUCB,
    DisLinUCB,
    Gaussian,
    InputError,
    LaconicError,
    LaconicUCB,
    Matern,
    NKernelUCB,
    OneKernelUCB,
    ProblemError,
    Random,
    Server,
    compare,
    grid,
    run,
    save_recorded,
)
from laconic.errors import LocalProtocolError, UnknownName
from laconic.experiments.parts import algorithm_from
from laconic.protocol.session import Local

ARMS = np.array([[0.0, 1.0], [1.0, 0.0]])
LOOSE: Any = DisKernelUCB  # what no checker of types sees


def refused(mistake: Any, *said: str, error: type[LaconicError] = InputError) -> None:
    with pytest.raises(error) as caught:
        mistake()
    message = str(caught.value)
    assert "\n" not in message
    for each in said:
        assert each in message, message


@pytest.mark.parametrize("kind", [Client, Server])
def test_an_algorithm_where_a_plan_is_wanted(kind: Any) -> None:
    refused(lambda: kind(DisKernelUCB()), "a plan is wanted", "DisKernelUCB(…).plan(dim)")
    refused(lambda: kind(LaconicUCB), "a plan is wanted", "LaconicUCB(…).plan(dim)")
    refused(lambda: kind("DisKernelUCB"), "try DisKernelUCB().plan(2)")


def test_a_plan_where_an_algorithm_is_wanted() -> None:
    plan: Any = DisKernelUCB().plan(2)
    refused(lambda: run(plan, "cosine", clients=2, rounds=2), "an algorithm is wanted", "the algorithm itself")
    refused(lambda: compare(plan, problem="cosine", clients=2, rounds=2), "an algorithm is wanted")


@pytest.mark.parametrize("kind", [DisKernelUCB, OneKernelUCB, NKernelUCB, ApproxDisKernelUCB, LaconicUCB, AskServer])
def test_gamma_given_to_an_algorithm_with_a_kernel(kind: Any) -> None:
    name = kind.__name__
    refused(lambda: kind(gamma=0.5), f"{name} has no parameter gamma", f"try {name}(Gaussian(gamma=0.5))")
    assert kind(Gaussian(gamma=0.5)).kernel == Gaussian(0.5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'gama'"):
        kind(gama=0.5)


def test_parameters_of_other_kernels_given_to_an_algorithm() -> None:
    refused(lambda: LOOSE(nu=1.5), "try DisKernelUCB(Matern(nu=1.5))")
    refused(lambda: LOOSE(length=2.0), "try DisKernelUCB(Matern(length=2.0))")


@pytest.mark.parametrize("kind", [DisLinUCB, Random])
def test_gamma_given_to_an_algorithm_without_a_kernel(kind: Any) -> None:
    refused(lambda: kind(gamma=0.5), f"{kind.__name__} has no kernel", "DisKernelUCB")


def test_gamma_given_to_an_algorithm_in_a_file() -> None:
    table = {"name": "DisKernelUCB", "gamma": 0.5}
    refused(lambda: algorithm_from(table), "it is its kernel's", "kernel = { name = 'Gaussian', gamma = … }")


@pytest.mark.parametrize(
    ("kind", "name", "several", "tried"),
    [
        (DisKernelUCB, "D", [1.0, 5.0], "D=grid(1.0, 5.0)"),
        (DisKernelUCB, "lam", (0.1, 1), "lam=grid(0.1, 1)"),
        (DisKernelUCB, "alpha", np.array([0.5, 1.0]), "alpha=grid(0.5, 1.0)"),
        (DisKernelUCB, "alpha", range(1, 7), "alpha=grid(1, 2, 3, 4, …)"),
        (DisKernelUCB, "kernel", [Gaussian(1.0), Matern()], "kernel=grid(Gaussian(gamma=1.0), Matern("),
        (DisKernelUCB, "wire", ["int8", "float64"], "wire=grid('int8', 'float64')"),
        (DisKernelUCB, "together", [True, False], "together=grid(True, False)"),
        (ApproxDisKernelUCB, "qbar", [0.3, 1.0], "qbar=grid(0.3, 1.0)"),
        (LaconicUCB, "delta", [0.5, 1.0], "delta=grid(0.5, 1.0)"),
        (LaconicUCB, "digest", [AllPoints(), Atoms()], "digest=grid(AllPoints(), Atoms("),
        (Gaussian, "gamma", [0.1, 1.0], "gamma=grid(0.1, 1.0)"),
        (Matern, "nu", [0.5, 1.5], "nu=grid(0.5, 1.5)"),
    ],
)
def test_a_list_where_a_grid_is_meant(kind: Any, name: str, several: Any, tried: str) -> None:
    refused(lambda: kind(**{name: several}), f"try {tried}", "to compare them, or one of them")


def test_a_list_of_words_where_a_grid_is_meant() -> None:
    several: Any = ["paper", "local"]
    said = "try one of paper, local, or cold_start=grid('paper', 'local') to compare several"
    refused(lambda: ApproxDisKernelUCB(cold_start=several), said)


def test_a_list_of_problems() -> None:
    several: Any = ["cosine", "catalogue"]
    refused(lambda: compare("DisLinUCB", problem=several, clients=2, rounds=2), "try one comparison for each")


def test_a_client_that_waits_for_an_answer_says_what_it_waits_for() -> None:
    client = Client(DisKernelUCB(D=0.0).plan(2), clients=2)
    outcome = client.observe(client.choose(ARMS), reward=1.0)
    assert outcome.send  # its trigger has fired: this is what somebody has to deliver
    client.choose(ARMS)  # which it does not wait for
    advice = ("waiting cannot trigger", "deliver what it sent", "give the answer to receive()")
    refused(lambda: client.move(Local.TRIGGER), *advice, error=LocalProtocolError)
    outside = Client(DisKernelUCB().plan(2), member=False)
    refused(outside.leave, "outside cannot leave", "try greet()", error=LocalProtocolError)
    refused(outside.lose, "outside cannot lose the link", "try greet()", error=LocalProtocolError)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((ARMS,), {"clients": 1, "rounds": 1}),
        ((ARMS, ARMS[:, 0], ARMS[:, 0]), {}),
        (([[1.0]],), {"clients": 1, "rounds": 1}),
        ((), {"arms": ARMS, "means": ARMS, "noise": ARMS}),
        (({"arms": ARMS},), {"clients": 1, "rounds": 1}),
    ],
)
def test_save_recorded_given_arrays(tmp_path: Path, given: Any, named: Any) -> None:
    save: Any = save_recorded
    advice = ("numpy.savez(path, arms=arms, means=means, noise=noise)", "Log(arms, means=means, noise=noise)")
    refused(lambda: save(tmp_path / "log.npz", *given, **named), "not arrays", *advice, error=ProblemError)
    assert list(tmp_path.iterdir()) == []


def test_what_save_recorded_advises_works(tmp_path: Path) -> None:
    from laconic import Log

    arms, means, noise = np.zeros((4, 2, 3)), np.zeros((4, 2)), np.zeros(4)
    np.savez(tmp_path / "one.npz", arms=arms, means=means, noise=noise)
    log = Log(arms, means=means, noise=noise).instance(seed=0, clients=1, rounds=len(arms))
    save_recorded(tmp_path / "two.npz", log, clients=1, rounds=4)
    one, two = (run(DisLinUCB(), tmp_path / name, clients=2, rounds=2) for name in ("one.npz", "two.npz"))
    assert one.choices.tolist() == two.choices.tolist()


def test_save_recorded_given_a_problem(tmp_path: Path) -> None:
    problem: Any = Cosine()
    advice = "try it with .instance(seed=0, clients=2, rounds=3)"
    refused(lambda: save_recorded(tmp_path / "log.npz", problem, clients=2, rounds=3), advice, error=ProblemError)


def test_run_takes_a_problems_name() -> None:
    named, made = (run(DisLinUCB(), each, clients=2, rounds=3, seed=1) for each in ("Catalogue ", Catalogue()))
    assert named.choices.tolist() == made.choices.tolist()
    assert named.regret == made.regret


def test_run_of_a_name_that_nothing_has_or_that_needs_more() -> None:
    refused(lambda: run(DisLinUCB(), "cosin", clients=2, rounds=2), "did you mean cosine", error=UnknownName)
    refused(lambda: run(DisLinUCB(), "recorded", clients=2, rounds=2), "recorded needs path", "Recorded(path=…)")
    refused(lambda: run(DisLinUCB(), "nowhere.npz", clients=2, rounds=2), "nowhere.npz is not a file")
    kind: Any = Cosine
    refused(lambda: run(DisLinUCB(), kind, clients=2, rounds=2), "try Cosine()")


@pytest.mark.parametrize(
    ("algorithm", "place"),
    [
        (DisKernelUCB(D=grid(1, 2)), r"DisKernelUCB\.D is grid\(1, 2\)"),
        (DisKernelUCB(Gaussian(grid(0.1, 1))), r"DisKernelUCB\.kernel\.gamma is grid"),
        (NKernelUCB(alpha=grid(0.1, 1)), r"NKernelUCB\.alpha is grid"),
    ],
)
def test_a_run_of_a_grid_points_to_compare(algorithm: Any, place: str) -> None:
    with pytest.raises(InputError, match=rf"{place}.*run plays one setting; try one value, or compare"):
        run(algorithm, "cosine", clients=2, rounds=3)
