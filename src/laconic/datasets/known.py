"""The data sets by name: whose they are, their terms, where they come from, how to know them again."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import PurePosixPath

from laconic.errors import UnknownName


@dataclass(frozen=True)
class Licence:
    """The terms of a publisher."""

    name: str
    url: str
    asks: bool = False  # True: whoever downloads or imports says that they accept


@dataclass(frozen=True)
class Part:
    """A file of a data set: its names in the cache, the preferred one first, and the hash of its plain content."""

    names: tuple[str, ...]
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The preferred name in the cache."""
        return self.names[0]

    @property
    def file(self) -> str:
        """Its name at the publisher's, without a folder."""
        return PurePosixPath(self.name).name


@dataclass(frozen=True)
class Dataset:
    """What there is to know of a data set before it is here."""

    name: str
    title: str
    problem: str
    licence: Licence
    parts: tuple[Part, ...]
    page: str
    url: str | None = None  # None: the publisher hands it out by hand only
    md5: str | None = None  # of the archive, which is then kept whole
    ratings: int | None = None  # how many the publisher's file has

    @property
    def archive(self) -> str | None:
        """The archive's name, at the publisher's and in the cache."""
        return None if self.url is None else self.url.rpartition("/")[2]

    @property
    def keeps_archive(self) -> bool:
        """Whether the archive itself is kept and read from, rather than unpacked."""
        return self.md5 is not None


CC_BY = Licence("CC BY 4.0", "https://creativecommons.org/licenses/by/4.0/")
MOVIELENS_TERMS = "research use, no redistribution"
YELP = Licence("academic use, no redistribution", "https://business.yelp.com/data/resources/open-dataset/", asks=True)
UCI = "https://archive.ics.uci.edu"
GROUPLENS = "https://files.grouplens.org/datasets/movielens"

DATASETS: dict[str, Dataset] = {
    each.name: each
    for each in (
        Dataset(
            "magic",
            title="MAGIC gamma telescope, 19,020 × 10",
            problem="magic",
            licence=CC_BY,
            page=f"{UCI}/dataset/159/magic+gamma+telescope",
            url=f"{UCI}/static/public/159/magic+gamma+telescope.zip",
            parts=(Part(("magic04.data",), "e9314b7ebd4b4b59a3b3d65f7316663963777b16a46786877651dbbaa640b36a"),),
        ),
        Dataset(
            "mushroom",
            title="Mushroom, 8,124 × 22",
            problem="mushroom",
            licence=CC_BY,
            page=f"{UCI}/dataset/73/mushroom",
            url=f"{UCI}/static/public/73/mushroom.zip",
            parts=(
                Part(("agaricus-lepiota.data",), "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"),
            ),
        ),
        Dataset(
            "shuttle",
            title="Statlog Shuttle, 58,000 × 9",
            problem="shuttle",
            licence=CC_BY,
            page=f"{UCI}/dataset/148/statlog+shuttle",
            url=f"{UCI}/static/public/148/statlog+shuttle.zip",
            parts=(
                Part(("shuttle.trn",), "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a"),
                Part(("shuttle.tst",), "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661"),
            ),
        ),
        Dataset(
            "ml-25m",
            title="MovieLens 25M, 25,000,095 ratings",
            problem="movielens",
            licence=Licence(MOVIELENS_TERMS, f"{GROUPLENS}/ml-25m-README.html", asks=True),
            page="https://grouplens.org/datasets/movielens/25m/",
            url=f"{GROUPLENS}/ml-25m.zip",
            md5="6b51fb2759a8657d3bfcbfc42b592ada",
            parts=(Part(("ml-25m/ratings.csv",)),),
            ratings=25_000_095,
        ),
        Dataset(
            "ml-1m",
            title="MovieLens 1M, 1,000,209 ratings",
            problem="movielens",
            licence=Licence(MOVIELENS_TERMS, f"{GROUPLENS}/ml-1m-README.txt", asks=True),
            page="https://grouplens.org/datasets/movielens/1m/",
            url=f"{GROUPLENS}/ml-1m.zip",
            md5="c4d9eecfca2ab87c1945afe126590906",
            parts=(Part(("ml-1m/ratings.dat",)),),
            ratings=1_000_209,
        ),
        Dataset(
            "yelp",
            title="Yelp open data set, reviews",
            problem="yelp",
            licence=YELP,
            page=YELP.url,
            parts=(
                Part(
                    (
                        "yelp/yelp_academic_dataset_review.json",
                        "yelp_academic_dataset_review.json",
                        "yelp/user_business.dat",
                        "user_business.dat",
                    )
                ),
            ),
        ),
    )
}

# One problem, two editions: the paper's first.
EDITIONS = {"movielens": ("ml-25m", "ml-1m")}


def known_names() -> list[str]:
    """Every name that a data set, or a group of editions, goes by."""
    return sorted([*DATASETS, *EDITIONS])


def editions(name: str) -> tuple[Dataset, ...]:
    """The data sets that a name stands for, the preferred one first."""
    folded = name.casefold()
    if folded in EDITIONS:
        return tuple(DATASETS[each] for each in EDITIONS[folded])
    if folded in DATASETS:
        return (DATASETS[folded],)
    close = get_close_matches(folded, known_names(), n=1)
    hint = f"did you mean {close[0]}?" if close else f"try one of {', '.join(known_names())}"
    raise UnknownName(f"there is no data set {name!r}; {hint}")
