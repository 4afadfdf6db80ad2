"""The report's last section: all that someone needs to repeat it, and nothing that is of this machine only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from laconic.experiments.conduct import Panel
from laconic.experiments.grid import params
from laconic.experiments.naming import portable, symbol
from laconic.experiments.parts import name_of
from laconic.experiments.results import short
from laconic.pages import machine
from laconic.report.markup import Markup, folded, table, tag
from laconic.report.table import NOTHING

HOW = (
    "Every run has one thread of linear algebra, and draws what is random by seed, client and step, so that neither "
    "the number of processes nor their order changes a result. A run is named by a hash of its settings, its data's "
    "content and laconic's version."
)
EXACTLY = (
    "Every parameter spelled out, one file for each problem; the same files lie in config/, and laconic run takes "
    "them. Data files are named without their folders, and known by the hash of their content (sha256)."
)


def setup(panels: Sequence[Panel], *, command: str, configurations: Mapping[str, str]) -> Markup:
    """What made the page: command, sizes and seeds, settings, what is sent, machine, versions and exact files."""
    return tag(
        "section",
        tag("h2", "Set-up"),
        tag("p", "The same page again, from the runs that are kept or anew: ", tag("code", portable(command))),
        tag("p", HOW),
        tag("h3", "Problems, sizes and seeds"),
        _problems(panels),
        *_algorithms(panels),
        tag("h3", "Machine and versions"),
        tag("p", machine.hardware(), class_="sub"),
        table(["package", "version"], list(machine.versions().items()), class_="short"),
        tag("h3", "Exact configuration"),
        tag("p", EXACTLY),
        *(folded(panel.name, tag("pre", portable(configurations[panel.spec.name]))) for panel in panels),
        id="setup",
    )


def _problems(panels: Sequence[Panel]) -> Markup:
    headers = ("problem", "N", "T", "seeds", "parameters", "runtime", "runs", "id")
    return table(headers, [_problem(panel) for panel in panels], class_="prose")


def _problem(panel: Panel) -> tuple[str, ...]:
    own = {key: value for key, value in panel.results.problem_params.items() if value is not None}
    return (
        panel.name,
        f"{panel.experiment.clients:,}",
        f"{panel.experiment.rounds:,}",
        ", ".join(map(str, panel.experiment.seeds)),
        portable(", ".join(f"{key}={short(value)}" for key, value in own.items())) or NOTHING,
        panel.experiment.runtime,
        f"{len(panel.results.rows) + len(panel.varied.rows):,}",
        panel.id,
    )


def _algorithms(panels: Sequence[Panel]) -> Iterator[Markup]:
    """One table where all problems have the same settings, else one for each problem."""
    tables: dict[Markup, list[str]] = {}
    for panel in panels:
        tables.setdefault(_settings(panel), []).append(panel.name)
    for settings, names in tables.items():
        yield tag("h3", "Algorithms and settings" + ("" if len(tables) == 1 else f" on {', '.join(names)}"))
        yield settings


def _settings(panel: Panel) -> Markup:
    tried: dict[str, dict[str, list[str]]] = {}
    for algorithm in panel.experiment.algorithms:
        own = tried.setdefault(name_of(algorithm, kind="algorithm"), {})
        for key, value in params(algorithm).items():
            own.setdefault(key, []).append(NOTHING if value is None else short(value))
    sends = {name_of(each, kind="algorithm"): _sends(each) for each in panel.experiment.algorithms}
    varied = {each.algorithm: each.values for each in panel.spec.sensitivity()}
    rows = [(name, *_split(own), _varied(varied.get(name, {})), sends[name]) for name, own in tried.items()]
    headers = ("algorithm", "grid", "fixed", "varied around the tuned", "what it sends")
    return table(headers, rows, class_="prose")


def _split(own: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    """What is tried at several values, and what has one."""
    distinct = {key: list(dict.fromkeys(values)) for key, values in own.items()}
    several = [_together(key, values) for key, values in distinct.items() if len(values) > 1]
    single = [f"{symbol(key)} = {values[0]}" for key, values in distinct.items() if len(values) == 1]
    return "; ".join(several) or NOTHING, "; ".join(single) or NOTHING


def _varied(values: Mapping[str, Sequence[float]]) -> str:
    return "; ".join(_together(key, list(map(short, each))) for key, each in values.items()) or NOTHING


def _together(key: str, values: Sequence[str]) -> str:
    """A parameter and its values, which stay in one line."""
    return f"{symbol(key)} = {', '.join(values)}".replace(" ", "\N{NO-BREAK SPACE}")


def _sends(algorithm: object) -> str:
    return str(getattr(algorithm, "sends", NOTHING))
