"""The shop as a web application: each worker process has an agent of its own, and hears of clicks from all others.

A page may be made by one worker and its click come to another. The path of a click names the worker that decided, and
every worker serves its agent to the others on a Unix socket, as `laconic agent` does: whoever gets the click passes it
on to where the decision waits.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from examples.shop.goods import PRODUCTS, SHELF, Visitor, arms_for
from laconic import Agent, Sidecar
from laconic.errors import InputError, StateInUse, UnknownDecision

#: Seconds after which a product that nobody clicked counts as not wanted, and between two looks for such.
PATIENCE, LOOK = float(os.environ.get("SHOP_PATIENCE", "5")), 0.25
#: How many seconds a click may wait for a worker that is being started again.
COMES_BACK = 10.0
FOLDER = Path(os.environ.get("SHOP_FOLDER", "shop-state"))
PAGE = Path(__file__).with_name("page.html")


def joined(address: str, *, workers: int) -> Agent:
    """The agent of this worker: of the first name whose state file no other worker has.

    Workers of uvicorn, like those of gunicorn, do not know which of them they are. A state file belongs to one process
    until that ends, however it ends, so a worker that is started in place of one that was killed takes up its state.
    """
    for number in range(1, workers + 1):
        name = f"worker-{number}"
        with suppress(StateInUse):
            return Agent.join(address, name=name, state=FOLDER / f"{name}.db", insecure=True)
    raise InputError(f"{workers} workers have a state file in {FOLDER} already; stop the shop that runs there")


@asynccontextmanager
async def agent_of_worker(app: Starlette) -> AsyncIterator[None]:
    """An agent for as long as this worker runs, served to the other workers, with somebody who ends the waiting."""
    workers = int(os.environ.get("SHOP_WORKERS", "3"))
    async with await asyncio.to_thread(joined, os.environ["SHOP_COORDINATOR"], workers=workers) as agent:
        with Sidecar(agent, listen=f"unix:{FOLDER / agent.name}.sock"):
            app.state.agent = agent
            giving_up = asyncio.create_task(give_up(agent))
            yield
            giving_up.cancel()


async def give_up(agent: Agent) -> None:
    """Tell the agent of products that were not clicked; those shown before a restart are among them."""
    while True:
        await asyncio.sleep(LOOK)
        await asyncio.to_thread(not_clicked, agent)


def not_clicked(agent: Agent) -> None:
    """A product that was shown for long enough and not clicked paid nothing."""
    for decision, seconds in agent.pending.items():
        if seconds > PATIENCE:
            with suppress(UnknownDecision):  # its click came just now
                agent.observe(decision, 0.0)


# -- what is asked -----------------------------------------------------------------------------------------------------


async def page(request: Request) -> Response:
    """The page; its products come from `offers`."""
    return HTMLResponse(PAGE.read_text(encoding="utf-8"))


async def offers(request: Request) -> Response:
    """Products for a visitor, the best guess first; each is a decision of its own, among those not shown yet."""
    try:
        visitor = Visitor(*(fraction(request, name) for name in ("hour", "age")))
    except InputError as error:
        return mistake(422, str(error))
    agent: Agent = request.app.state.agent
    left, shown = list(PRODUCTS), []
    for _ in range(SHELF):
        pick = agent.choose(arms_for(visitor, tuple(left)))  # it waits for nobody, so the event loop may call it
        product = left.pop(pick.arm)
        shown.append(
            {
                "name": product.name,
                "picture": product.picture,
                "click": f"/click/{agent.name}/{pick.id}",
                "mean": round(pick.mean, 3),
                "width": round(pick.width, 3),
            }
        )
    return JSONResponse({"worker": agent.name, "offers": shown})


def fraction(request: Request, name: str) -> float:
    """A number between 0 and 1 in a query."""
    said = request.query_params.get(name, "")
    try:
        value = float(said)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{name} must be a number between 0 and 1, not {said[:20]!r}; try ?hour=0.4&age=0.3")
    return value


def click(request: Request) -> Response:
    """A click, wherever its decision was made; it is on disk when it is answered."""
    agent: Agent = request.app.state.agent
    worker, decision = request.path_params["worker"], request.path_params["decision"]
    if worker == agent.name:
        code, said = here(agent, decision)
    elif worker in {each.stem for each in FOLDER.glob("worker-*.db")}:
        code, said = elsewhere(FOLDER / f"{worker}.sock", decision)
    else:
        code, said = 404, f"there is no {worker[:40]}"
    if code == 200:
        return JSONResponse({"decided_by": worker, "told_to": agent.name})
    return mistake(code, said)


def here(agent: Agent, decision: str) -> tuple[int, str]:
    """Tell the agent of this worker."""
    try:
        agent.observe(decision, 1.0)
    except UnknownDecision as error:
        return 404, str(error)
    return 200, ""


def elsewhere(path: Path, decision: str) -> tuple[int, str]:
    """Tell the agent of another worker; one that was killed is back in a moment, and has its decisions."""
    until = time.monotonic() + COMES_BACK
    while True:
        try:
            return posted(path, {"id": decision, "reward": 1.0})
        except OSError as error:
            if time.monotonic() > until:
                return 503, f"the worker that decided is away ({error}); send the click again"
            time.sleep(0.1)


def posted(path: Path, body: object) -> tuple[int, str]:
    """What the sidecar at a Unix socket answers to an observation: a code, and what was wrong."""
    link = http.client.HTTPConnection("localhost", timeout=COMES_BACK)
    link.sock = socket.socket(socket.AF_UNIX)
    try:
        link.sock.connect(str(path))
        link.request("POST", "/observe", body=json.dumps(body))
        answer = link.getresponse()
        return answer.status, json.loads(answer.read()).get("error", "")
    except (http.client.HTTPException, ValueError) as error:  # it was killed in the middle of its answer
        raise ConnectionError(str(error)) from None
    finally:
        link.close()


def numbers(request: Request) -> Response:
    """How the agent of this worker stands."""
    status = request.app.state.agent.status()
    known = ("name", "linked", "observations", "shared", "pending")
    return JSONResponse({each: getattr(status, each) for each in known})


def mistake(code: int, said: str) -> Response:
    """What was wrong."""
    return JSONResponse({"error": said}, status_code=code)


app = Starlette(
    routes=[
        Route("/", page),
        Route("/offers", offers),
        Route("/click/{worker}/{decision}", click, methods=["POST"]),
        Route("/numbers", numbers),
    ],
    lifespan=agent_of_worker,
)
