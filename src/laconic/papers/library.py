"""The papers that come with laconic: a file each, and a folder with one experiment file a figure.

They lie inside the package, so that an installed laconic has them too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

import msgspec

from laconic.errors import UnknownName
from laconic.experiments.config import read_toml
from laconic.experiments.spec import Earlier, Profile, Spec, read_spec

FOLDER = Path(__file__).parent


class PaperFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layout of a paper's file."""

    title: str
    authors: str
    venue: str
    profiles: dict[str, Profile]


@dataclass(frozen=True)
class Paper:
    """A paper, and its figures as experiments."""

    name: str
    file: PaperFile
    figures: tuple[Spec, ...]

    def under(self, profile: str) -> Paper:
        """The figures at the sizes of a profile."""
        profiles = self.file.profiles
        chosen = profiles.get(profile.strip().lower())
        if chosen is None:
            raise UnknownName(f"{self.name} has no profile {profile!r}; try one of {', '.join(profiles)}")
        return replace(self, figures=tuple(each.under(chosen) for each in self.figures))

    def only(self, names: Sequence[str]) -> Paper:
        """The figures that were asked for, by problem or by file; all where none is named."""
        wanted = [_figure(self, name) for name in names]
        return replace(self, figures=tuple(each for each in self.figures if each in wanted)) if wanted else self

    def tuned_by(self, earlier: Mapping[str, Earlier]) -> Paper:
        """The figures of which there are results, each algorithm at the setting that did best in them."""
        figures = tuple(each.tuned_by(earlier[each.name]) for each in self.figures if each.name in earlier)
        return replace(self, figures=figures)


def names() -> list[str]:
    """The papers that there are."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_paper(name: str) -> Paper:
    """The paper of that name."""
    known = names()
    if name.strip().lower() not in known:
        raise UnknownName(f"no paper is called {name!r}; there is {', '.join(known)}")
    path = FOLDER / f"{name.strip().lower()}.toml"
    figures = tuple(read_spec(each) for each in sorted(path.with_suffix("").glob("*.toml")))
    return Paper(path.stem, file=read_toml(path, PaperFile), figures=figures)


def _figure(paper: Paper, name: str) -> Spec:
    by_name = {key: each for each in paper.figures for key in (each.name, str(each.file.problem["name"]))}
    found = by_name.get(name.strip().lower())
    if found is None:
        near = get_close_matches(name.lower(), by_name, n=1, cutoff=0.6)
        problems = ", ".join(str(each.file.problem["name"]) for each in paper.figures)
        advice = f"did you mean {near[0]}?" if near else f"there are {problems}"
        raise UnknownName(f"{paper.name} has no problem {name!r}; {advice}")
    return found
