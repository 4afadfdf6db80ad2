"""Random schedules: whatever happens in whatever order, no point is lost or learnt twice, and nothing gets stuck."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from laconic.algorithms import Algorithm
from laconic.protocol.session import ClientState
from tests.protocol.federation import APPROX, DIS, LIN, LOCAL, LONE, ONE, Federation, name

MOST_CLIENTS = 5
numbers = st.integers(0, MOST_CLIENTS - 1)


class Schedule(RuleBasedStateMachine):
    """Each link keeps its order and may break, either side may die, and time passes; among links any order."""

    algorithm: Algorithm

    @initialize(members=st.integers(0, 3), seed=st.integers(0, 3))
    def begin(self, members: int, seed: int) -> None:
        self.federation = Federation(self.algorithm, members=members, seed=seed)
        for number in range(members, MOST_CLIENTS):
            self.federation.add(number, member=False)

    @rule(number=numbers)
    def choose(self, number: int) -> None:
        self.federation.choose(number)

    @rule(number=numbers, which=st.integers(0, 9))
    def observe(self, number: int, which: int) -> None:
        pending = list(self.federation.clients[number].learner.pending)
        if pending:
            self.federation.observe(number, pending[which % len(pending)])

    @rule(number=numbers, times=st.integers(1, 4))
    def act(self, number: int, times: int) -> None:
        self.federation.act(number, times)

    @rule(number=numbers)
    def forget(self, number: int) -> None:
        for decision in list(self.federation.clients[number].learner.pending)[:1]:
            self.federation.clients[number].forget(decision)

    @rule(number=numbers)
    def greet(self, number: int) -> None:
        if self.federation.clients[number].state in (ClientState.OUTSIDE, ClientState.AWAY):
            self.federation.greet(number)

    @rule(number=numbers, noticed=st.booleans())
    def cut(self, number: int, noticed: bool) -> None:
        self.federation.cut(number, noticed=noticed)

    @rule(number=numbers)
    def flush(self, number: int) -> None:
        if self.federation.clients[number].state is not ClientState.OUTSIDE:
            self.federation.flush(number)

    @rule(number=numbers)
    def leave(self, number: int) -> None:
        if self.federation.clients[number].state is not ClientState.OUTSIDE:
            self.federation.leave(number)

    @precondition(lambda self: self.federation.waiting())
    @rule(data=st.data(), times=st.integers(1, 6))
    def deliver(self, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            waiting = self.federation.waiting()
            if waiting:
                self.federation.step(*data.draw(st.sampled_from(waiting)))

    @rule(number=numbers, start=st.integers(1, 2**32))
    def restart(self, number: int, start: int) -> None:
        self.federation.restart(number, start=start)

    @rule(term=st.integers(1, 2**32))
    def restart_server(self, term: int) -> None:
        self.federation.restart_server(term=term)

    @rule(seconds=st.sampled_from([1.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.federation.tick(self.federation.server.hub.now + seconds)

    @rule()
    def drain(self) -> None:
        self.federation.drain()

    @rule()
    def rest(self) -> None:
        self.federation.rest()

    @invariant()
    def every_client_knows_its_points_once(self) -> None:
        self.federation.check_all()

    def teardown(self) -> None:
        if hasattr(self, "federation"):
            self.federation.rest()


@pytest.mark.parametrize("algorithm", [DIS, LIN, APPROX, LOCAL, ONE, LONE], ids=name)
def test_no_schedule_loses_a_point_or_gets_stuck(algorithm: Algorithm) -> None:
    machine = type("Machine", (Schedule,), {"algorithm": algorithm})
    few = settings(
        max_examples=max(settings().max_examples // 3, 10),
        stateful_step_count=40,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(machine, settings=few)
