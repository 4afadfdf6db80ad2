"""The page about deployment explains every key of the files of a coordinator and of an agent, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from laconic.cli.agent_file import AgentFile
from laconic.cli.federation import FederationFile, TLSFiles

PAGE = (Path(__file__).parents[2] / "docs" / "deployment.md").read_text(encoding="utf-8")
FILES = [("federation.toml", FederationFile), ("agent.toml", AgentFile)]


def listed(file: str) -> dict[str, str]:
    """What the page says of each key of a file where nothing is said."""
    (section,) = re.findall(rf"^### Keys of `{re.escape(file)}`\n(.*?)^##", PAGE, flags=re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| `([\w.]+)` \| .+? \| (.+?) \| .+ \|$", section, flags=re.MULTILINE)
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def read(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    """The fields that a file is read into, those of its tables with the names of these."""
    found: dict[str, msgspec.structs.FieldInfo] = {}
    for field in msgspec.structs.fields(kind):
        tables = [each for each in (field.type, *get_args(field.type)) if hasattr(each, "__struct_fields__")]
        inner = {f"{field.name}.{name}": each for table in tables for name, each in read(table).items()}
        found |= inner or {field.name: field}
    return found


def default(field: msgspec.structs.FieldInfo) -> Any:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


@pytest.mark.parametrize(("file", "kind"), FILES, ids=[file for file, _ in FILES])
def test_every_key_of_a_file_is_explained_with_its_default(file: str, kind: Any) -> None:
    said, fields = listed(file), read(kind)
    assert sorted(said) == sorted(fields)
    for key, field in fields.items():
        if field.required:
            expected = "must be given in `[tls]`" if key.startswith("tls.") else "must be given"
            assert said[key] == expected
        elif default(field) is None:
            assert "given" not in said[key]
        else:
            assert said[key] == f"`{msgspec.json.encode(default(field)).decode()}`"


@pytest.mark.parametrize(("file", "kind"), FILES, ids=[file for file, _ in FILES])
def test_the_examples_are_files_that_can_be_read(file: str, kind: Any) -> None:
    (example,) = re.findall(rf"^```toml\n(# {re.escape(file)}.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert isinstance(msgspec.toml.decode(example.encode(), type=kind).tls, TLSFiles)
