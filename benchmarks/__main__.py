"""``python -m benchmarks``: each benchmark in a process of its own, so that its peak of memory is its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.report import as_json, document, markdown, table
from benchmarks.result import Result
from benchmarks.suite import Benchmark, suite
from benchmarks.threads import environment

app = typer.Typer(add_completion=False)


@app.command()
def main(
    only: Annotated[list[str] | None, typer.Option(help="Benchmarks to run, by name or how it begins.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="How often; the least cost counts.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write them here: a table for .md, else JSON.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Toy sizes: does everything run?")] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Say what there is.")] = False,
    here: Annotated[bool, typer.Option("--here", hidden=True)] = False,
) -> None:
    """Measure what runs cost beside the arithmetic that they cannot avoid."""
    chosen = _chosen(only or [])
    if list_:
        for benchmark in chosen:
            typer.echo(f"{benchmark.name:20} {benchmark.summary}")
        return
    if here:
        (one,) = chosen
        typer.echo(json.dumps([result.as_dict() for result in one.measure(quick=quick, repeat=repeat)]))
        return
    results = [result for each in chosen for result in _in_child(each, quick=quick, repeat=repeat)]
    content = as_json(document(results, quick=quick))
    if out is not None:
        out.write_text((markdown(results) if out.suffix == ".md" else content) + "\n")
    if as_json_:
        typer.echo(content)
    else:
        Console(width=None if sys.stdout.isatty() else 200).print(table(results))


def _chosen(names: list[str]) -> list[Benchmark]:
    """Those whose name is, or else begins with, one of these; all when there are none."""
    everything = suite()
    found: dict[str, Benchmark] = {}
    for name in names or [""]:
        exact = {name: everything[name]} if name in everything else {}
        begun = exact or {key: each for key, each in everything.items() if key.startswith(name)}
        if not begun:
            raise typer.BadParameter(f"no benchmark begins with {name!r}; --list says what there is")
        found |= begun
    return list(found.values())


def _in_child(benchmark: Benchmark, *, quick: bool, repeat: int | None) -> list[Result]:
    typer.echo(f"{benchmark.name} …", err=True)
    command = [sys.executable, "-m", "benchmarks", "--here", "--only", benchmark.name]
    command += ["--quick"] * quick + (["--repeat", str(repeat)] if repeat else [])
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment(threads=1))
    return [Result.from_dict(values) for values in json.loads(answer.stdout)]


if __name__ == "__main__":
    app()
