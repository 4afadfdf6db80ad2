"""``laconic data``: the data sets of the paper, where they are, and how they get here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laconic.cli.helping import command
from laconic.cli.options import named

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from laconic.datasets.arrivals import Arrival, Bar
    from laconic.datasets.known import Dataset

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List, download and import the data sets that problems are made from.",
)


def _names(incomplete: str) -> list[str]:
    from laconic.datasets.known import known_names

    return [name for name in known_names() if name.startswith(incomplete.lower())]


Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As [bold]laconic data list[/] shows it.", autocompletion=_names)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Accept = Annotated[
    bool,
    typer.Option("--accept-licence", "--accept-license", help="You have read the publisher's terms, and accept them."),
]


@command(app, "list")
def list_data(as_json: Json = False) -> None:
    """List the data sets: what they are, their terms, and where they are on this machine."""
    from laconic.datasets import DATASETS, data_dir

    pages = {name: _page(dataset) for name, dataset in DATASETS.items()}
    if as_json:
        _print_json({"folder": str(data_dir()), "datasets": pages})
        return
    from laconic.report.table import hanging, wrapped

    typer.echo(wrapped(f"Data sets in {data_dir()} (LACONIC_DATA sets another folder)\n"))
    width = max(map(len, pages))
    for name, page in pages.items():
        lines = [page["title"], f"{page['licence']} · problem {page['problem']} · {_where(page)}", page["get"]]
        said = "\n".join(filter(None, lines))
        typer.echo(f"{'✓' if page['present'] else '·'} {name:{width}}  {hanging(said, indent=width + 4)}")


@command(app, "fetch", needs=True)
def fetch_data(
    name: Name,
    accept_licence: Accept = False,
    mirror: Annotated[
        str | None, typer.Option(metavar="URL", help="Another address with the publisher's archives.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Download a data set, check it against its pinned checksum, and keep it."""
    from laconic.datasets import editions, fetch

    _say_licence(editions(name)[0])
    with _bar(editions(name)[0].title) as bar:
        arrival = fetch(name, accept_licence=accept_licence, mirror=mirror, bar=bar)
    _report(arrival, as_json=as_json, verb="downloaded")


@command(app, "path")
def show_path(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A data set; without it the folder.", autocompletion=_names),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print where the data sets are, or the files of one of them."""
    from laconic.datasets import data_dir, require

    files = [] if name is None else [str(source) for source in require(name).sources]
    if as_json:
        _print_json({"folder": str(data_dir())} | ({} if name is None else {"files": files}))
        return
    typer.echo("\n".join(files) or str(data_dir()))


@command(app, "import", needs=True)
def import_data(
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The publisher's archive, or a file out of it, packed or not.", **named()),
    ],
    accept_licence: Accept = False,
    as_json: Json = False,
) -> None:
    """Check a file that you got by other means, and copy it to where problems find it."""
    from laconic.datasets import edition_of, import_file

    _say_licence(edition_of(name, file))
    _report(import_file(name, file, accept_licence=accept_licence), as_json=as_json, verb="imported")


def _page(dataset: Dataset) -> dict[str, Any]:
    from laconic.datasets import find, unavailable

    why = unavailable(dataset.name)
    found = find(dataset.name) if why is None else None
    return {
        "title": dataset.title,
        "problem": dataset.problem,
        "licence": dataset.licence.name,
        "terms": dataset.licence.url,
        "page": dataset.page,
        "asks": dataset.licence.asks,
        "present": found is not None,
        "files": [] if found is None else [str(source) for source in found.sources],
        "get": why,
    }


def _where(page: dict[str, Any]) -> str:
    return ", ".join(page["files"]) if page["present"] else "not here"


def _say_licence(dataset: Dataset) -> None:
    typer.echo(f"{dataset.title.partition(',')[0]}: {dataset.licence.name}, {dataset.licence.url}", err=True)


def _report(arrival: Arrival, *, as_json: bool, verb: str) -> None:
    files = [str(path) for path in arrival.files]
    if as_json:
        page = {"name": arrival.dataset.name, "files": files, "fresh": arrival.fresh, "missing": list(arrival.missing)}
        _print_json(page | {"licence": arrival.dataset.licence.name, "terms": arrival.dataset.licence.url})
        return
    typer.echo(f"{arrival.dataset.name} {verb if arrival.fresh else 'was here already'}: {', '.join(files)}")
    if arrival.missing:
        typer.echo(f"still missing: {', '.join(arrival.missing)}")


def _print_json(value: object) -> None:
    from laconic.cli.display import as_json

    typer.echo(as_json(value))


class _RichBar:
    """A rich progress bar as pooch drives it."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    @property
    def total(self) -> int:
        return int(self._progress.tasks[0].total or 0)

    @total.setter
    def total(self, size: int) -> None:
        self._progress.update(self._task, total=size or None)

    def update(self, amount: int, /) -> None:
        self._progress.advance(self._task, amount)

    def reset(self) -> None:
        self._progress.reset(self._task)

    def close(self) -> None:
        self._progress.stop_task(self._task)


@contextmanager
def _bar(title: str) -> Iterator[Bar | None]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as progress:
        yield _RichBar(progress, progress.add_task(title, total=None))
