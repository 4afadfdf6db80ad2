"""The confidence width of LaconicUCB: what it is made of, that both runtimes have it, and that it holds."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from laconic import AllPoints, Client, Cosine, Gaussian, InputError, LaconicUCB, Theory, grid, run
from laconic.arrays import Floats
from laconic.atoms import Certificate, LeanTheory, Recipe, Version, weights_of
from laconic.beliefs import ExactBelief
from laconic.exploration import Told
from laconic.protocol.digests import Atoms, Digest
from laconic.protocol.restoring import restore_client, snapshot_client
from laconic.runtimes.network import Network
from laconic.tail import News, Tail
from laconic.testing import check_algorithm
from tests.atoms.cases import function

KERNEL, LAM, NOISE = Gaussian(gamma=1.0), 0.1, 0.3
THEORY = Theory(S=1.0, R=NOISE, delta=0.1)
LEAN = LaconicUCB(KERNEL, lam=LAM, alpha=THEORY)


@dataclass
class Shown:
    """Arms that a client was shown: α, and μ, σ̂ and f at each of them."""

    raw: bool
    alpha: float
    mean: Floats
    deviation: Floats
    values: Floats


def played(algorithm: LaconicUCB, *, clients: int, rounds: int, seed: int) -> tuple[Network, list[Shown]]:
    """A function of the kernel's space, played with Gaussian noise, and all that was shown."""
    centres, coefficients = function(KERNEL, seed=seed)
    network = Network(algorithm.plan(2), clients=clients, seed=seed, strict=True)
    random, shown = np.random.default_rng(seed), []
    for _ in range(rounds):
        for number, client in network.clients.items():
            arms = random.uniform(-1, 1, size=(6, 2))
            values = KERNEL(arms, centres) @ coefficients
            tail, held = client.learner.tail, client.held
            mean, variance = tail.predict(tail.belief.view(arms))
            decision = client.choose(arms)
            alpha = decision.width / math.sqrt(variance[decision.arm])
            assert held is not None
            shown.append(Shown(held.atoms is None, alpha, mean, np.sqrt(variance), values))
            reward = values[decision.arm] + NOISE * random.standard_normal()
            network.settle(number, client.observe(decision, float(reward)))
    return network, shown


def alpha_of(client: Client) -> float:
    """The α with which a client would choose now."""
    arm = np.array([[0.3, -0.2]])
    _, variance = client.learner.tail.predict(client.learner.belief.view(arm))
    return client.choose(arm).width / math.sqrt(variance[0])


def test_it_keeps_to_the_contract() -> None:
    check_algorithm(LaconicUCB(Gaussian(0.5), lam=0.1, alpha=Theory()))


@pytest.mark.parametrize("seed", range(3))
def test_every_value_shown_in_every_run_lies_within_the_width(seed: int) -> None:
    _, shown = played(LEAN, clients=4, rounds=60, seed=seed)
    assert {each.raw for each in shown} == {True, False}
    for each in shown:
        assert (np.abs(each.values - each.mean) <= each.alpha * each.deviation).all()


@pytest.mark.parametrize("digest", [Atoms(), AllPoints()])
def test_both_runtimes_choose_the_same_arms(digest: Digest) -> None:
    algorithm = LaconicUCB(Gaussian(0.5), lam=0.1, alpha=Theory(), digest=digest)
    lockstep, loopback = (
        run(algorithm, Cosine(dim=3), clients=5, rounds=30, runtime=runtime) for runtime in ("lockstep", "loopback")
    )
    assert lockstep.choices.tolist() == loopback.choices.tolist()
    assert lockstep.bytes == loopback.bytes


# α by another route, from what the server has


def dense(version: Version, own: Floats) -> tuple[float, float]:
    """ln det(I + C) and Σ of what the atoms do not express, of own points on a version, by plain matrices."""
    atoms, weights = version.atoms, weights_of(version.weights)
    K = KERNEL(atoms, atoms)
    root = np.linalg.cholesky(K[np.ix_(version.spanning, version.spanning)])
    basis = atoms[version.spanning]
    Z, U = (np.linalg.solve(root, KERNEL(basis, points)) for points in (atoms, own))
    prior = Z @ np.diag(weights) @ Z.T + LAM * np.eye(len(basis))
    C = U.T @ np.linalg.solve(prior, U)
    return float(np.linalg.slogdet(np.eye(len(own)) + C)[1]), float((1.0 - (U**2).sum(axis=0)).sum() / LAM)


def expected(version: Version, own: Floats, *, clients: int, downloads: int) -> float:
    """The formula of the docs, term by term."""
    c, n, k = version.certificate, version.covered, len(own)
    log_det, residual = dense(version, own)
    information = c.log_det + n * math.log(1 + c.missed / (LAM * n))
    covered = math.sqrt(LAM) + math.sqrt(c.missed) + math.sqrt(1e-3 * LAM * n) + math.sqrt(1e-4 * LAM * n)
    covered += NOISE * math.sqrt(2 * math.log(2 / 0.1) + information) + c.beta
    tail = math.sqrt(LAM * residual) + math.sqrt(1e-3 * LAM * k) + math.sqrt(1e-4 * LAM * k)
    tail += NOISE * math.sqrt(2 * math.log(2 * clients * (downloads + 1) * (downloads + 2) / 0.1) + log_det)
    return math.sqrt(1 + max(c.e_hi, 0)) * covered + 0.03 * math.sqrt(len(version.mean)) / 2 + tail


def test_alpha_is_what_the_server_would_compute_from_its_log() -> None:
    network, _ = played(LEAN, clients=4, rounds=60, seed=5)
    edition, checked = network.server.hub.edition, 0
    for client in network.clients.values():
        held = client.held
        assert held is not None
        if held.atoms is None or held.number != edition.number:
            continue
        own = client.learner.history.points[client.learner.covered :]
        wanted = expected(edition.outcome, own, clients=4, downloads=held.downloads)
        # The certificate travels in few bits, none of them to the client's advantage.
        assert wanted * (1 - 1e-9) <= alpha_of(client) <= wanted * 1.002
        checked += 1
    assert checked


def test_downloads_are_counted() -> None:
    network, _ = played(LEAN, clients=3, rounds=20, seed=5)
    counted = dict.fromkeys(network.clients, 0)
    for number, _, _ in network.downloads:
        counted[number] += 1
    assert {number: client.learner.told.downloads for number, client in network.clients.items()} == counted


def test_before_the_first_version_it_is_that_of_own_points() -> None:
    network, _ = played(LEAN, clients=1, rounds=9, seed=0)
    client = network.clients[0]
    own = client.learner.history.points
    information = np.linalg.slogdet(np.eye(9) + KERNEL(own, own) / LAM)[1]
    wanted = math.sqrt(LAM) + math.sqrt(1e-3 * LAM * 9) + math.sqrt(1e-4 * LAM * 9)
    wanted += NOISE * math.sqrt(2 * math.log(2 * 1 * 1 * 2 / 0.1) + information)
    assert alpha_of(client) == pytest.approx(wanted)


def test_of_points_as_they_are_it_has_the_information_of_all_points_and_no_certificate() -> None:
    algorithm = LaconicUCB(KERNEL, lam=LAM, alpha=THEORY, digest=AllPoints())
    network, _ = played(algorithm, clients=3, rounds=10, seed=0)
    log = network.server.hub.log
    for client in network.clients.values():
        held = client.held
        assert held is not None
        seen, k = log.points[: held.built.length], client.count - client.learner.covered
        n = len(seen)
        information = np.linalg.slogdet(np.eye(n) + KERNEL(seen, seen) / LAM)[1]
        own = np.concatenate([seen, client.learner.history.points[client.learner.covered :]])
        together = np.linalg.slogdet(np.eye(len(own)) + KERNEL(own, own) / LAM)[1]
        roundings = sum(math.sqrt(part * LAM * count) for part in (1e-3, 1e-4) for count in (n, k))
        attempts = 2 * 3 * (held.downloads + 1) * (held.downloads + 2)
        noise = math.sqrt(2 * math.log(2 / 0.1) + information)
        noise += math.sqrt(2 * math.log(attempts / 0.1) + together - information)
        assert alpha_of(client) == pytest.approx(math.sqrt(LAM) + roundings + NOISE * noise)


def test_a_client_restored_from_a_snapshot_explores_as_before() -> None:
    network, _ = played(LEAN, clients=3, rounds=30, seed=2)
    client = network.clients[1]
    twin, _ = restore_client([snapshot_client(client)], plan=network.plan, start=7)
    assert twin.learner.told == client.learner.told
    assert alpha_of(twin) == alpha_of(client)


# The terms one by one

CERTIFICATE = Certificate(e_lo=-0.2, e_hi=0.44, kappa=1.1, beta=0.3, d_eff=5.0, log_det=7.0, missed=0.5)
TOLD = Told(observations=100, downloads=2, certificate=CERTIFICATE)


def with_news(**news: Any) -> Tail:
    """A tail on a blank belief, which says that it has this news."""
    tail = Tail(ExactBelief.empty(kernel=KERNEL, lam=LAM, dim=2))
    tail.news = News(**{"count": 0, "log_det": 0.0, "variance": 0.0, "residual": 0.0} | news)
    return tail


def alpha(told: Told = TOLD, *, S: float = 0.0, R: float = 0.0, clients: int = 4, **news: Any) -> float:
    rule = LeanTheory(Theory(S=S, R=R, delta=0.1), step=0.03)
    return rule.width(with_news(**news), told=told, clients=clients)


def test_without_function_and_noise_what_is_left_is_beta_and_the_rounding_of_rewards() -> None:
    assert alpha() == pytest.approx(1.2 * (0.3 + math.sqrt(1e-4 * LAM * 100)))


def test_a_function_adds_the_ridge_what_the_reference_missed_and_the_rounding_of_points() -> None:
    assert alpha(S=2.0) - alpha() == pytest.approx(
        1.2 * 2 * (math.sqrt(LAM) + math.sqrt(0.5) + math.sqrt(1e-3 * LAM * 100))
    )


def test_noise_adds_the_information_of_the_log_and_that_of_the_tail() -> None:
    log = math.sqrt(2 * math.log(2 / 0.1) + 7.0 + 100 * math.log(1 + 0.5 / (LAM * 100)))
    tail = math.sqrt(2 * math.log(2 * 4 * 3 * 4 / 0.1) + 1.5)
    assert alpha(R=0.2, log_det=1.5) - alpha() == pytest.approx(1.2 * 0.2 * log + 0.2 * tail)


def test_a_tail_adds_its_rounding_and_what_no_atom_expresses() -> None:
    added = math.sqrt(1e-4 * LAM * 9) + math.sqrt(1e-3 * LAM * 9) + math.sqrt(LAM * 3.0)
    assert alpha(S=1.0, count=9, residual=3.0) - alpha(S=1.0) == pytest.approx(added)


def test_every_download_and_every_client_widens_it() -> None:
    later = Told(observations=100, downloads=3, certificate=CERTIFICATE)
    assert alpha(R=0.2) < alpha(later, R=0.2)
    assert alpha(R=0.2) < alpha(R=0.2, clients=5)


def test_the_coefficient_without_a_tail_is_that_of_own_points_alone() -> None:
    rule = LeanTheory(THEORY, step=0.03)
    wanted = math.sqrt(LAM) + NOISE * math.sqrt(2 * math.log(4 * 5 / 0.1) + 3.0)
    assert rule.coefficient(lam=LAM, clients=5, information=3.0) == pytest.approx(wanted)


# What may be asked for


def test_the_step_is_that_of_the_rewards_range() -> None:
    algorithm = LaconicUCB(alpha=Theory(), digest=Atoms(Recipe(step=0.1)), reward=4.0)
    assert algorithm.plan(2).confidence == LeanTheory(Theory(), step=0.4)


def test_a_digest_without_certificates_has_no_theory() -> None:
    class Plain(Digest):
        """A digest of somebody else's."""

    with pytest.raises(InputError, match="Plain has none; try digest=Atoms"):
        LaconicUCB(alpha=Theory(), digest=Plain())
    LaconicUCB(alpha=grid(0.1, 1.0), digest=Plain())
