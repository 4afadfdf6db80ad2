"""An experiment as data: what is played by whom, how often; written to TOML and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from laconic.algorithms import Algorithm
from laconic.errors import InputError
from laconic.experiments.parts import PATHS, RECORDS, name_of, to_table
from laconic.problems.base import Problem
from laconic.release import __version__

File = TypeVar("File", bound=msgspec.Struct)
Configured = TypeVar("Configured", bound="ConfigFile")
HEADER = f"# Rerun this comparison exactly with: laconic compare {{name}}\n# Written by laconic {__version__}.\n\n"


class ConfigFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The layout of a configuration file."""

    problem: dict[str, Any]
    algorithms: list[dict[str, Any]]
    clients: int | None = None
    rounds: int | None = None
    seeds: list[int] | int | None = None
    runtime: str | None = None


@dataclass(frozen=True)
class Experiment:
    """A comparison that has been checked and can start."""

    algorithms: tuple[Algorithm, ...]
    problem: Problem
    clients: int
    rounds: int
    seeds: tuple[int, ...]
    runtime: str

    def to_toml(self) -> str:
        """The experiment as text, every parameter spelled out, so that later defaults do not change it."""
        file = ConfigFile(
            clients=self.clients,
            rounds=self.rounds,
            seeds=list(self.seeds),
            runtime=self.runtime,
            problem=problem_table(self.problem),
            algorithms=[to_table(each, name=name_of(each, kind="algorithm")) for each in self.algorithms],
        )
        return to_text(file)


def problem_table(problem: Problem) -> dict[str, Any]:
    """A problem as a table that says also which content its files had."""
    table = to_table(problem, name=name_of(problem, kind="problem"))
    sha256 = getattr(problem, "sha256", None)
    return table if sha256 is None else table | {"sha256": sha256}


def to_text(file: msgspec.Struct) -> str:
    """A file's content as TOML."""
    import tomli_w  # only when a file is written

    return tomli_w.dumps(_ordered(msgspec.to_builtins(file)))


def _ordered(table: Mapping[str, Any]) -> dict[str, Any]:
    """Plain values before tables: TOML gives what follows a table to that table."""
    return dict(sorted(table.items(), key=lambda item: isinstance(item[1], dict) or _is_tables(item[1])))


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def beside(table: Mapping[str, Any], *, folder: Path) -> dict[str, Any]:
    """A problem's table for a file in this folder: files within the folder are named from there."""
    inside = folder.absolute()
    return {
        key: str(Path(value).relative_to(inside)) if key in PATHS and _is_within(value, inside) else value
        for key, value in table.items()
    }


def _is_within(value: object, folder: Path) -> bool:
    return isinstance(value, str) and Path(value).is_relative_to(folder)


def read_experiment(path: str | PathLike[str], kind: type[Configured]) -> Configured:
    """A configuration or experiment in a TOML file; paths in it that are not absolute begin at its folder."""
    file = read_toml(path, kind)
    folder = Path(path).absolute().parent
    found = {key: _found(value, folder=folder) for key, value in file.problem.items() if _names_a_file(key, value)}
    return msgspec.structs.replace(file, problem=file.problem | found)


def _names_a_file(key: str, value: object) -> bool:
    return isinstance(value, str) and (key in PATHS or (key == "name" and value.lower().endswith(RECORDS)))


def _found(value: str, *, folder: Path) -> str:
    return str(folder / Path(value).expanduser())  # an absolute path stays what it is


def read_toml(path: str | PathLike[str], kind: type[File]) -> File:
    """A TOML file that is laid out like that."""
    try:
        return msgspec.toml.decode(Path(path).read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a configuration of laconic: {error}{_meant(str(error), kind)}") from None


def _meant(error: str, kind: Any) -> str:
    """The key that is meant, where an error is about one that there is not and another is close."""
    found = re.search(r"unknown field `([^`]*)`(?: - at `\$\.([^`]*)`)?", error)
    if found is None:
        return ""
    unknown, table = found.groups()
    for name in table.split(".") if table else ():
        kind = next((each for each in _layouts(kind, name) if hasattr(each, "__struct_fields__")), None)
    near = get_close_matches(unknown, getattr(kind, "__struct_fields__", ()), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def _layouts(kind: Any, name: str) -> tuple[Any, ...]:
    """What a key of that name may hold."""
    known = {field.name: field.type for field in msgspec.structs.fields(kind)} if kind is not None else {}
    return (known.get(name), *get_args(known.get(name)))
