"""Start the shop: a coordinator and three web workers, each with an agent of its own, until Ctrl-C.

``python -m examples.shop`` in a clone; needs ``pip install -e '.[examples]'``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

try:
    import uvicorn
except ImportError:
    sys.exit("uvicorn is not installed; try: pip install -e '.[examples]'")

LACONIC = [sys.executable, "-c", "from laconic.cli import main; main()"]
WORKERS = 3


@contextmanager
def coordinator(folder: Path) -> Iterator[dict[str, str]]:
    """`laconic serve` as a process of its own, in a session of its own: it ends after the workers, on Ctrl-C too."""
    shutil.copy(Path(__file__).with_name("federation.toml"), folder / "federation.toml")
    command = [*LACONIC, "serve", str(folder / "federation.toml")]
    with (
        (folder / "coordinator.log").open("a") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            if not line:
                sys.exit(f"the coordinator did not start: {(folder / 'coordinator.log').read_text()[-500:]}")
            yield json.loads(line)
        finally:
            process.terminate()


def main() -> None:
    """Start everything, and wait for the end."""
    parser = argparse.ArgumentParser(prog="python -m examples.shop", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the shop; 0 for one that is free")
    parser.add_argument("--folder", type=Path, default=Path("shop-state"), help="where state is kept between starts")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    port = free(given.port)
    with coordinator(given.folder) as where:
        os.environ |= {
            "SHOP_COORDINATOR": where["address"],
            "SHOP_FOLDER": str(given.folder.absolute()),
            "SHOP_WORKERS": str(WORKERS),
            # Small matrices: threads of BLAS would only take the cores from one another.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        }
        Thread(target=announce, args=(port, where["http"]), daemon=True).start()
        # A worker may take its time to start on a busy machine; one that is killed is noticed in any case.
        uvicorn.run(
            "examples.shop.app:app", port=port, workers=WORKERS, log_level="warning", timeout_worker_healthcheck=20
        )


def announce(port: int, live: str) -> None:
    """Say where the shop is as soon as a worker answers there: who is told earlier would find nobody."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    print(f"shop at http://127.0.0.1:{port}/\nfederation live at http://{live}/", flush=True)


def free(port: int) -> int:
    """A port that nobody has, this one if there is a choice."""
    try:
        with socket.create_server(("127.0.0.1", port)) as listener:
            return int(listener.getsockname()[1])
    except OSError as error:
        sys.exit(f"cannot serve on port {port}: {error.strerror}; try --port 0")


if __name__ == "__main__":
    main()
