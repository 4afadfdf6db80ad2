"""The documentation says what the code does: tables that are generated from it are up to date, and names resolve."""

import dataclasses
import importlib
import inspect
import re
import tomllib
import types
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import laconic
from laconic import Client, DisKernelUCB, LaconicUCB, defaults, registry
from laconic.canonical import table_bytes
from laconic.errors import InputError
from laconic.experiments.config import ConfigFile
from laconic.experiments.spec import SpecFile, read_spec
from laconic.protocol import messages
from laconic.protocol.codec import Codec
from laconic.protocol.digests import Digest
from laconic.protocol.phases import Phase
from laconic.protocol.server import SERVER_TRANSITIONS, ServerState
from laconic.protocol.session import TRANSITIONS, ClientState, Local
from laconic.randomness import Role
from tools import commands, constants, notebook, offline

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
CONTRACT = "Each layer uses only those below it"


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def marked(name: str, part: str) -> str:
    """What stands between the markers of a generated part."""
    found = re.search(rf"<!-- {part}: begin -->\n(.*?)\n<!-- {part}: end -->", text(name), flags=re.DOTALL)
    assert found, f"docs/{name} has no part marked {part!r}"
    return found[1]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), flags=re.DOTALL | re.MULTILINE)


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])


def first_cells(part: str) -> list[str]:
    return [line.split("|")[1].strip() for line in part.splitlines()[2:]]


def unique(events: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(events))


def called(event: Any) -> str:
    return str(event.value) if isinstance(event, Local) else str(event.__name__)


def table_of(transitions: Any, states: Any) -> str:
    """Where each event leads from each state; what raises, and what is not taken at all, leads nowhere."""
    events = unique(event for _, event in transitions)

    def after(state: Any, event: Any) -> str:
        way = transitions.get((state, event))
        return "" if way is None else " or ".join(each.value for each in states if each in way.to)

    rows = [[called(event), *(after(state, event) for state in states)] for event in events]
    return table(["event", *(state.value for state in states)], rows)


def test_the_clients_states_are_those_of_its_transition_table() -> None:
    expected = table_of(TRANSITIONS, ClientState)
    assert marked("architecture.md", "client") == expected, f"docs/architecture.md should say\n{expected}"


def test_the_servers_states_are_those_of_its_transition_table() -> None:
    expected = table_of(SERVER_TRANSITIONS, ServerState)
    assert marked("architecture.md", "server") == expected, f"docs/architecture.md should say\n{expected}"


def test_the_messages_are_those_of_the_protocol_with_their_fields() -> None:
    rows = [
        [kind.__name__, way, ", ".join(kind.__struct_fields__)]
        for way, kinds in (("up", messages.Up), ("down", messages.Down))
        for kind in kinds.__args__
    ]
    expected = table(["message", "goes", "fields"], rows)
    assert marked("architecture.md", "messages") == expected, f"docs/architecture.md should say\n{expected}"


def said_of(kind: type) -> str:
    """What a message says, from its docstring."""
    first = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return first.partition(": ")[2].replace("``", "`")


def test_the_messages_have_their_numbers_and_say_what_they_say() -> None:
    rows = [
        [str(kind.__struct_config__.tag), kind.__name__, way, said_of(kind)]
        for way, kinds in (("up", messages.Up), ("down", messages.Down))
        for kind in kinds.__args__
    ]
    expected = table(["number", "message", "goes", "what it says"], rows)
    assert marked("protocol.md", "numbers") == expected, f"docs/protocol.md should say\n{expected}"


def exchange_of(name: str) -> list[str]:
    """How an algorithm exchanges, and under which names that is counted."""
    try:
        plan = registry.find("algorithm", name)().plan(2)
    except InputError:
        return [name, "simulated only", ""]
    if plan.digest is not None:
        return [name, "alone", f"upload, {plan.digest.name}"]
    return [name, "together" if plan.phases else "never", ", ".join(phase.name for phase in plan.phases)]


def test_what_every_algorithm_exchanges_is_listed() -> None:
    expected = table(["algorithm", "exchanges", "counted under"], [exchange_of(name) for name in registry.algorithms()])
    assert marked("protocol.md", "exchanges") == expected, f"docs/protocol.md should say\n{expected}"


def test_the_layers_are_those_that_the_linter_holds() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = next(each["layers"] for each in settings["contracts"] if each["name"] == CONTRACT)
    plain = [re.sub(r"[()]", "", layer).replace(" : ", ", ") for layer in layers]
    expected = "\n".join(["```", *plain, "```"])
    assert marked("architecture.md", "layers") == expected, f"docs/architecture.md should say\n{expected}"


def test_the_roles_of_random_numbers_are_all_listed() -> None:
    assert first_cells(marked("architecture.md", "roles")) == [role.name for role in Role]


def arguments(kind: type, name: str) -> str:
    return ", ".join(list(inspect.signature(getattr(kind, name)).parameters)[1:])


def test_the_functions_of_phases_and_digests_are_methods_with_these_arguments() -> None:
    rows = re.findall(r"^\| (`\w+\(.*?)\| (?:client|server|both) \|", text("architecture.md"), flags=re.MULTILINE)
    listed = [call for row in rows for call in re.findall(r"`(\w+)\((.*?)\)`", row)]
    assert len(listed) > 10
    for name, said in listed:
        known = [arguments(kind, name) for kind in (Phase, Digest) if hasattr(kind, name)]
        assert any(each == said or each.startswith(said.removesuffix("…") or "-") for each in known), (name, said)


def test_the_algorithms_in_the_table_of_plans_are_those_that_there_are() -> None:
    rows = re.findall(
        r"^\| (\w+) \| (?:exact|linear|Nyström|blank|weighted atoms, or exact) \|",
        text("architecture.md"),
        flags=re.MULTILINE,
    )
    assert sorted(rows) == sorted(registry.algorithms())


# Notation


def resolve(name: str) -> None:
    """Follow a name from the package to a module, a class and an attribute; raise where it ends."""
    here: Any = importlib.import_module("laconic")
    for part in name.split("."):
        if isinstance(here, types.ModuleType):
            here = entered(here, part)
        elif hasattr(here, part):
            here = getattr(here, part)
        else:
            assert part in instance_attributes(here), f"{here.__name__} has no {part}"
            here = None


def entered(module: types.ModuleType, part: str) -> Any:
    try:
        return importlib.import_module(f"{module.__name__}.{part}")
    except ImportError:
        assert hasattr(module, part), f"{module.__name__} has no {part}"
        return getattr(module, part)


def instance_attributes(kind: type) -> set[str]:
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return set(re.findall(r"\bself\.(\w+)", inspect.getsource(kind)))


def names_in_notation() -> list[str]:
    rows = [line for line in text("notation.md").splitlines() if line.startswith("| ") and "`" in line]
    return unique(name for row in rows for name in re.findall(r"`([\w.]+)`", row.rsplit(" | ", 1)[1]))


@pytest.mark.parametrize("name", names_in_notation())
def test_a_name_of_the_notation_table_is_in_the_code(name: str) -> None:
    resolve(name)


def test_a_name_that_is_not_in_the_code_is_noticed() -> None:
    assert len(names_in_notation()) > 40
    for wrong in ("beliefs.ExactBelief.inverse", "protocol.client.Client.wisdom", "tail.Tails"):
        with pytest.raises(AssertionError, match="has no"):
            resolve(wrong)


def test_every_row_of_the_notation_tables_names_something_in_the_code() -> None:
    rows = [line for line in text("notation.md").splitlines() if re.match(r"\| (?!symbol|-)", line)]
    assert [row for row in rows if "`" not in row.rsplit(" | ", 1)[1]] == []


def test_everything_that_the_reference_describes_is_in_the_code() -> None:
    page = text("reference.md")
    homes = re.findall(r"^::: laconic\.(\S+)$", page, flags=re.MULTILINE)
    listed = re.findall(r"^::: laconic\.(\S+)\n    options:\n      members: \[(.*?)\]", page, flags=re.MULTILINE)
    for name in [*homes, *(f"{home}.{member}" for home, members in listed for member in members.split(", "))]:
        resolve(name)


def in_reference() -> set[str]:
    page = text("reference.md")
    homes = re.findall(r"^::: laconic\.(\S+)$", page, flags=re.MULTILINE)
    members = re.findall(r"^      members: \[(.*?)\]", page, flags=re.MULTILINE)
    return {home.rpartition(".")[2] for home in homes} | {name for each in members for name in each.split(", ")}


def test_everything_public_is_in_the_reference() -> None:
    service = ["Agent", "Coordinator", "Limits", "Serving", "Sidecar", "TLS"]
    protocol = ["Codec", "Outcome", "Work", "Growth", "WithAsk", "FloatWire", "Int8Wire"]
    assert sorted({*laconic.__all__, *service, *protocol} - in_reference()) == []


def test_the_reference_shows_the_values_of_defaults() -> None:
    known = constants.constants(constants.SOURCE / "defaults.py")
    assert known["D_EXACT"] == defaults.D_EXACT
    assert {name: getattr(defaults, name) for name in known} == known
    shown = constants.with_values(
        '<span class="n">GAMMA</span> <span title="a.WEEK">WEEK</span> <span class="n">UCB</span>'
    )
    assert re.sub("<.*?>", "", shown) == f"{defaults.GAMMA} {7 * 24 * 3600.0} UCB"


def test_the_page_of_commands_is_made_of_the_help_texts() -> None:
    assert text("commands.md") == commands.page(), "python -m tools.commands writes it anew"


# The format of experiment files


def keys_in(page: str) -> list[str]:
    return re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE)


def test_every_key_of_an_experiment_file_is_explained_and_stands_in_the_example(tmp_path: Path) -> None:
    (example,) = blocks("experiments.md", "toml")
    fields = {*SpecFile.__struct_fields__}
    assert set(tomllib.loads(example)) == fields
    assert {*keys_in(text("experiments.md"))} == fields - {"problem", "algorithms", "sensitivity"}
    for table_name in ("`[problem]`", "`[[algorithms]]`", "`[[sensitivity]]`"):
        assert f"## {table_name}\n" in text("experiments.md")
    file = tmp_path / "shops.toml"
    file.write_text(example, encoding="utf-8")
    spec = read_spec(file)
    assert spec.experiment().clients == 5
    assert [type(each).__name__ for each in spec.algorithms] == ["LaconicUCB", "DisKernelUCB"]
    only_run = [line.partition(" ")[0].strip("[]") for line in example.splitlines() if "run only" in line]
    assert {*only_run} == fields - {*ConfigFile.__struct_fields__}


# The tutorial


def steady(outputs: list[Any], *, timed: bool) -> str:
    """What outputs say, without the seconds at the end of the lines of a table of runs."""
    said = notebook.text_of(outputs)
    return re.sub(r" +[\d.]+$", "", said, flags=re.MULTILINE) if timed else said


def test_the_tutorial_runs_in_a_kernel_and_shows_what_is_kept_in_it_and_a_bar_for_each_comparison() -> None:
    tutorial = notebook.read(DOCS / "tutorial.ipynb")
    for cell, outputs in zip(notebook.code_cells(tutorial), notebook.run(tutorial), strict=True):
        shown = [each for each in outputs if not notebook.is_bar(each)]
        timed = "timed" in cell["metadata"].get("tags", ())
        assert steady(shown, timed=timed) == steady(cell["outputs"], timed=timed), "try make tutorial"
        assert len(notebook.figures_of(shown)) == len(notebook.figures_of(cell["outputs"]))
        assert len(outputs) - len(shown) == "".join(cell["source"]).count("compare(")


def test_the_tutorials_page_has_its_words_its_output_and_its_figures() -> None:
    tutorial = notebook.read(DOCS / "tutorial.ipynb")
    page, figures = notebook.as_page(tutorial, name="tutorial")
    assert len(figures) == page.count("![") >= 2
    assert all(data.startswith(b"\x89PNG") for data in figures.values())
    for cell in tutorial["cells"]:
        assert "".join(cell["source"]) in page
    assert "## What goes over the wire" in page


# Figures


def test_what_a_greeting_weighs_is_said_as_it_is() -> None:
    weights = []
    for algorithm in (LaconicUCB(), DisKernelUCB()):
        plan = algorithm.plan(20)
        (hello,) = Client(plan, name="edge-17", start=7).greet().send
        weights.append((len(table_bytes(plan.table)), len(Codec(plan).encode(hello))))
    (lean, lean_hello), (exact, exact_hello) = weights
    said = f"{lean} bytes for LaconicUCB and {exact} for DisKernelUCB (of greetings of {lean_hello} and {exact_hello})"
    assert said in " ".join(text("architecture.md").split()), f"docs/architecture.md should say {said}"


# Extending


def python_of_extending() -> list[str]:
    return [block for block in blocks("extending.md", "python") if not block.startswith(">>>")]


def test_a_new_algorithm_fits_in_25_lines() -> None:
    first = python_of_extending()[0]
    assert "class UniformDictionary" in first
    assert len([line for line in first.splitlines() if line.strip()]) <= 25


def test_a_new_transport_fits_in_100_lines() -> None:
    (transport,) = [block for block in python_of_extending() if "class Star" in block]
    assert len([line for line in transport.splitlines() if line.strip()]) <= 100


def test_what_another_package_declares_is_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared = tomllib.loads("".join(blocks("extending.md", "toml")))["project"]["entry-points"]
    lines = [line for block in python_of_extending() for line in block.splitlines() if not line.startswith("check_")]
    (tmp_path / "frontpage.py").write_text("\n".join(lines), encoding="utf-8")
    info = tmp_path / "frontpage-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: frontpage\nVersion: 1.0\n", encoding="utf-8")
    entries = "".join(
        f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in points.items())
        for group, points in declared.items()
    )
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.find("algorithm", "uniformdictionary").__name__ == "UniformDictionary"
    assert registry.find("problem", "frontpage").__name__ == "FrontPage"
    assert registry.find("kernel", "periodic").__name__ == "Periodic"
    assert registry.find("exploration", "inversegap").__name__ == "InverseGap"


# The site


def links(page: str) -> list[tuple[str, str]]:
    return re.findall(r"\]\(([\w-]+\.(?:md|ipynb))(?:#([\w-]+))?\)", text(page))


def anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text(page), flags=re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def navigation() -> list[str]:
    """The pages in the order of the site."""
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    return re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", listed, flags=re.MULTILINE)


def test_every_page_is_in_the_navigation() -> None:
    pages = [*(path.name for path in DOCS.glob("*.md")), *(f"{path.stem}.md" for path in DOCS.glob("*.ipynb"))]
    assert sorted(navigation()) == sorted(pages), "add pages to nav in mkdocs.yml"


@pytest.mark.parametrize("page", sorted(path.name for path in (*DOCS.glob("*.md"), *DOCS.glob("*.ipynb"))))
def test_every_link_between_pages_leads_somewhere(page: str) -> None:
    for target, anchor in links(page):
        assert (DOCS / target).is_file(), f"docs/{page} links to {target}, which is not there"
        assert not anchor or anchor in anchors(target), f"docs/{page} links to {target}#{anchor}, which is not there"


def test_the_index_leads_to_every_page_in_the_order_of_the_site() -> None:
    first, *others = navigation()
    assert first == "index.md"
    assert list(dict.fromkeys(target.replace(".ipynb", ".md") for target, _ in links("index.md"))) == others


def test_a_site_that_loads_from_elsewhere_or_leads_nowhere_is_noticed(tmp_path: Path) -> None:
    good = '<link rel="stylesheet" href="a.css"><img src="a.png"><a href="https://example.org/">elsewhere</a>'
    (tmp_path / "index.html").write_text(good, encoding="utf-8")
    (tmp_path / "a.css").write_text("body { color: black }", encoding="utf-8")
    (tmp_path / "a.png").write_bytes(b"")
    assert offline.complaints(tmp_path) == []
    for wrong in (
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<img src="https://example.org/a.png">',
        '<a href="folder/">a folder, of which a browser shows no page</a>',
        '<img src="missing.png">',
        '<div data-md-component="search">a search without what it reads</div>',
    ):
        (tmp_path / "index.html").write_text(good + wrong, encoding="utf-8")
        assert len(offline.complaints(tmp_path)) == 1, wrong
    (tmp_path / "index.html").write_text(good, encoding="utf-8")
    (tmp_path / "a.css").write_text("@import 'https://example.org/b.css'; p { src: url(//example.org/c) }")
    assert len(offline.complaints(tmp_path)) == 2


def test_make_help_lists_every_target_that_is_for_people() -> None:
    makefile = (DOCS.parent / "Makefile").read_text(encoding="utf-8")
    public = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert public is not None
    assert re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE) == public[1].split()
