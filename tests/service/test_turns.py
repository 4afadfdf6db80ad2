"""Turns: so many links move something large at a time, and none holds up the others for good."""

import asyncio

from laconic.runtimes.service.turns import Turns

FOREVER = 1e6


def test_one_more_than_have_a_turn_waits_until_one_of_them_is_done() -> None:
    async def played() -> list[bool]:
        turns = Turns(at_a_time=2, longest=FOREVER)
        await turns.begin("one")
        await turns.begin("two")
        third = asyncio.create_task(turns.begin("three"))
        await asyncio.sleep(0)
        waited = not third.done()
        turns.end("one")
        await third
        turns.end("two")
        turns.end("three")
        return [waited]

    assert asyncio.run(played()) == [True]


def test_a_turn_that_nobody_ends_is_over_by_itself() -> None:
    async def played() -> None:
        turns = Turns(at_a_time=1, longest=0.0)
        for link in range(3):
            await turns.begin(link)

    asyncio.run(played())


def test_who_begins_anew_has_given_up_the_turn_before_and_ending_twice_frees_once() -> None:
    async def played() -> bool:
        turns = Turns(at_a_time=1, longest=FOREVER)
        await turns.begin("one")
        await turns.begin("one")
        turns.end("one")
        turns.end("one")
        await turns.begin("two")
        third = asyncio.create_task(turns.begin("three"))
        await asyncio.sleep(0)
        waited = not third.done()
        third.cancel()
        return waited

    assert asyncio.run(played())
