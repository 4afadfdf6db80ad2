"""The command line: how it is entered, and what all commands do about errors, warnings and streams that fail.

Almost nothing is imported here, so that Ctrl-C finds somebody who answers it from the first moment on.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from laconic.cli.aside import aside, hush
from laconic.cli.signals import spare

if TYPE_CHECKING:
    from laconic.cli.application import app as app

OK, BAD_INPUT, INTERRUPTED = 0, 2, 130
NO_ROOM = "this takes more memory than there is; try fewer clients or rounds, or an algorithm with a dictionary"


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module 'laconic.cli' has no attribute {name!r}")
    from laconic.cli.application import app

    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; foreseeable mistakes end in one line on stderr, never in a traceback."""
    spare(sys.argv[1:] if arguments is None else arguments)
    try:
        if sys.stderr is None:  # closed: then nobody is told anything, and all else goes on
            hush()
        code = _delivered(_outcome(arguments))
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.exit(code)


def _outcome(arguments: Sequence[str] | None) -> int:
    why = _why_not_here()
    if why:
        return _complain(why)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # σ and ✓ become ? where the terminal has no such letters
            stream.reconfigure(errors="replace")
    with _warnings_held() as held:
        code = _answered(arguments)
    if code != BAD_INPUT:
        for text in dict.fromkeys(held):
            aside(text)
    return code


def _why_not_here() -> str:
    """What makes any command senseless, where something does."""
    if sys.stdout is None:
        return "there is no stdout to write to; try > /dev/null instead of closing it"
    try:
        os.getcwd()  # noqa: PTH109  # nothing is wanted of it but that it is there
    except OSError:
        return "the folder that this was started in is gone; try cd to another"
    return ""


def _answered(arguments: Sequence[str] | None) -> int:
    """Run the command that the arguments ask for; its exit code."""
    from laconic.cli.application import app
    from laconic.errors import LaconicError

    try:
        code = app(arguments, standalone_mode=False)
    except LaconicError as error:
        return _complain(str(error))
    except MemoryError:
        return _complain(NO_ROOM)
    except OSError as error:  # of the system, as a disk that is full or a name that is too long
        return _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    except SystemExit:  # this is how typer answers a reader who has read enough, as head does
        return OK
    except Exception as error:
        return _explained(error)
    return code if isinstance(code, int) else OK


def _explained(error: Exception) -> int:
    """What the option parser raises has a message for users; its base class is not public."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    message = getattr(error, "format_message", None)
    if message is None:
        raise error
    command = getattr(getattr(error, "ctx", None), "command_path", "laconic")
    return _complain(f"{message()} (see {command} --help)" if message() else "")


def _delivered(code: int) -> int:
    """The exit code, once all that was said has left this process."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # the reader has read enough
        _give_up_stdout()
    except OSError as error:
        _give_up_stdout()
        if code != BAD_INPUT:  # otherwise that was said when it was written, and what is buffered fails once more
            return _complain(f"cannot write to stdout: {error.strerror or error}")
    return code


def _give_up_stdout() -> None:
    """What is still to be written goes nowhere, rather than to fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> int:
    if message:
        aside(f"error: {' '.join(message.split())}")
    return BAD_INPUT


@contextmanager
def _warnings_held() -> Iterator[list[str]]:
    """Warnings as lines, for after the command: beside the one line of an error they would bury it."""
    held: list[str] = []

    def hold(message: Warning | str, *_: object, **__: object) -> None:
        held.append(f"warning: {' '.join(str(message).split())}")

    before = warnings.showwarning
    warnings.showwarning = hold
    try:
        yield held
    finally:
        warnings.showwarning = before
