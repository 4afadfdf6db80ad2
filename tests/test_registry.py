"""Names: whatever their case, ours and those of other packages, and what is said to a name that nobody has."""

from dataclasses import dataclass
from typing import Any

import pytest

from laconic import registry
from laconic.algorithms import DisKernelUCB, Random
from laconic.errors import InputError, UnknownName
from laconic.kernels import Gaussian, Matern
from laconic.problems import Catalogue, Cosine, PolynomialReward, Recorded


@dataclass(frozen=True)
class FakePoint:
    """An entry point of another package."""

    name: str
    value: Any

    def load(self) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[FakePoint]]:
    """Entry points by group, to be filled by the test."""
    points: dict[str, list[FakePoint]] = {}
    monkeypatch.setattr(registry, "entry_points", lambda *, group: points.get(group, []))
    return points


def test_the_papers_algorithms_problems_and_kernels_have_names() -> None:
    assert list(registry.algorithms())[:8] == [
        "LaconicUCB",
        "DisKernelUCB",
        "ApproxDisKernelUCB",
        "DisLinUCB",
        "OneKernelUCB",
        "NKernelUCB",
        "AskServer",
        "Random",
    ]
    named = {"cosine": Cosine, "polynomial": PolynomialReward, "catalogue": Catalogue, "recorded": Recorded}
    assert named.items() <= registry.problems().items()
    assert {"Gaussian", "Matern", "RationalQuadratic", "Linear", "Polynomial"} <= set(registry.kernels())
    assert list(registry.explorations())[:5] == ["UCB", "Thompson", "Softmax", "EpsilonFloor", "Greedy"]


def test_each_class_is_named_as_it_is_called() -> None:
    for name, kind in {**registry.algorithms(), **registry.kernels(), **registry.explorations()}.items():
        assert kind.__name__ == name


@pytest.mark.parametrize("name", ["DisKernelUCB", "diskernelucb", "DISKERNELUCB", " DisKernelUCB "])
def test_a_name_is_found_whatever_its_case(name: str) -> None:
    assert registry.find("algorithm", name) is DisKernelUCB


@pytest.mark.parametrize(
    ("kind", "name", "nearest"),
    [
        ("algorithm", "DisKernalUCB", "DisKernelUCB"),
        ("algorithm", "linucb", "DisLinUCB"),
        ("algorithm", "rnadom", "Random"),
        ("problem", "cosin", "cosine"),
        ("problem", "catalog", "catalogue"),
        ("kernel", "gausian", "Gaussian"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(kind: registry.Kind, name: str, nearest: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean {nearest}"):
        registry.find(kind, name)


def test_a_name_like_no_other_is_answered_with_all() -> None:
    with pytest.raises(UnknownName, match=r"there are .*Random"):
        registry.find("algorithm", "zzzz")
    with pytest.raises(UnknownName, match="no kernel is called ''"):
        registry.find("kernel", "")


def test_names_of_one_kind_are_not_those_of_another() -> None:
    with pytest.raises(UnknownName):
        registry.find("algorithm", "Gaussian")


def test_another_package_adds_a_name(others: dict[str, list[FakePoint]]) -> None:
    class Mine:
        pass

    others["laconic.algorithms"] = [FakePoint("MineUCB", Mine)]
    assert registry.names("algorithm")[-1] == "MineUCB"
    assert registry.find("algorithm", "mineucb") is Mine
    assert registry.algorithms()["MineUCB"] is Mine
    assert "MineUCB" not in registry.names("kernel")
    with pytest.raises(UnknownName, match="did you mean MineUCB"):
        registry.find("algorithm", "MyneUCB")


def test_another_package_cannot_take_a_name_of_ours(others: dict[str, list[FakePoint]]) -> None:
    others["laconic.algorithms"] = [FakePoint("Random", object)]
    assert registry.find("algorithm", "random") is Random
    assert registry.names("algorithm").count("Random") == 1


def test_another_package_that_does_not_load_is_named_and_harms_nothing_else(
    others: dict[str, list[FakePoint]],
) -> None:
    others["laconic.kernels"] = [FakePoint("Broken", ImportError("no module"))]
    with pytest.raises(InputError, match=r"Broken.*no module"):
        registry.find("kernel", "broken")
    assert registry.find("kernel", "matern") is Matern
    assert registry.find("kernel", "GAUSSIAN") is Gaussian
