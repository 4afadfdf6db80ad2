import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic.datasets import MissingData
from laconic.errors import InputError, ProblemError
from laconic.experiments.grid import grid
from laconic.problems import check_round
from laconic.problems.ratings import MovieLens, Ratings, RatingsInstance, Yelp
from tests.datasets.samples import REAL, gzipped, needs_real_data, sha256, some_ratings, written, zipped


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LACONIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(written(tmp_path / "u.data", some_ratings(separator="\t")))


def opened(problem: Any, *, seed: int = 0, clients: int = 6) -> RatingsInstance:
    instance: RatingsInstance = problem.instance(seed=seed, clients=clients, rounds=4)
    return instance


def pairs_of(instance: RatingsInstance, arms: np.ndarray) -> list[tuple[int, int]]:
    """Which user and item an arm's features are those of."""
    split = instance.users.shape[1]
    users = {tuple(row): code for code, row in enumerate(instance.users.tolist())}
    items = {tuple(row): code for code, row in enumerate(instance.items.tolist())}
    return [(users[tuple(arm[:split].tolist())], items[tuple(arm[split:].tolist())]) for arm in arms]


def test_a_step_has_one_liked_pair_among_nineteen_that_are_not(file: str) -> None:
    instance = opened(Ratings(file))
    liked, disliked = ({tuple(pair) for pair in pool.tolist()} for pool in (instance.liked, instance.disliked))
    for index in range(4):
        met = check_round(instance.round(index), index=index, clients=6, dim=instance.dim)
        assert met.arms.shape == (6, 20, 20)
        np.testing.assert_array_equal(met.rewards, met.means)
        np.testing.assert_array_equal(met.means.sum(axis=1), 1.0)
        for arms, means in zip(met.arms, met.means, strict=True):
            pairs = pairs_of(instance, arms)
            assert len(set(pairs)) == 20
            for pair, mean in zip(pairs, means, strict=True):
                assert pair in (liked if mean == 1 else disliked)


def test_users_and_items_that_do_not_meet_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    crowd = [f"u{user}\tpopular{item}\t{4 if (user + item) % 2 else 1}" for user in range(9) for item in range(3)]
    alone = [f"w{user}\town{user}-{item}\t5" for user in range(9) for item in range(4)]
    file = str(written(tmp_path / "apart.tsv", "\n".join(crowd + alone) + "\n"))
    wanted = (
        r"apart\.tsv: of the 12 users with the most ratings 3 have one among the items chosen.* users=12 were asked"
    )
    with pytest.raises(ProblemError, match=wanted):
        opened(Ratings(file, users=12, items=3))


@pytest.mark.parametrize("columns", ["user,item,item", "user,user,rating", 1, [1, 2, 3], True])
def test_columns_that_do_not_name_three_are_refused(file: str, columns: Any) -> None:
    with pytest.raises(ProblemError, match="columns must name user, item and rating"):
        opened(Ratings(file, columns=columns))


def test_a_line_that_is_no_text_is_named(tmp_path: Path) -> None:
    good = b'{"user": "a", "item": "b", "rating": 1}\n'
    path = written(tmp_path / "u.json", good + b'{"user": "\xff", "item": "b", "rating": 1}\n')
    with pytest.raises(ProblemError, match=r"u\.json:2: "):
        opened(Ratings(str(path)))


def test_a_file_that_is_no_path_is_refused() -> None:
    with pytest.raises(InputError, match="file must be the path of a file, not 5"):
        Ratings(5)  # type: ignore[arg-type]


def test_the_liked_arm_may_stand_anywhere(file: str) -> None:
    instance = opened(Ratings(file), clients=200)
    places = np.concatenate([instance.round(index).means.argmax(axis=1) for index in range(4)])
    assert set(places.tolist()) == set(range(20))


def test_a_round_is_the_same_whenever_it_is_asked_for(file: str) -> None:
    instance = opened(Ratings(file), seed=5)
    later = instance.round(3), instance.round(1), opened(Ratings(file), seed=5).round(3)
    np.testing.assert_array_equal(later[0].arms, later[2].arms)
    np.testing.assert_array_equal(later[0].means, later[2].means)
    assert (later[0].arms != later[1].arms).any()
    assert (later[0].arms != opened(Ratings(file), seed=6).round(3).arms).any()


def test_all_arms_of_one_user_where_that_is_asked_for(file: str) -> None:
    instance = opened(Ratings(file, same_user=True))
    liked = {tuple(pair) for pair in instance.liked.tolist()}
    for index in range(4):
        met = instance.round(index)
        for arms, means in zip(met.arms, met.means, strict=True):
            pairs = pairs_of(instance, arms)
            assert len({user for user, _ in pairs}) == 1
            assert len({item for _, item in pairs}) == 20
            assert [pair in liked for pair in pairs] == (means == 1).tolist()


def test_features_are_singular_vectors_of_the_ratings(tmp_path: Path) -> None:
    matrix = np.arange(1.0, 31.0).reshape(5, 6) % 7 + 1
    rows = [f"{user},{item},{matrix[user, item]}" for user in range(5) for item in range(6)]
    path = str(written(tmp_path / "r.csv", "\n".join(rows)))
    instance = opened(Ratings(path, dims=5, scale="none", spectrum=0.5, threshold=4))
    np.testing.assert_allclose(instance.users @ instance.items.T, matrix, atol=1e-9)
    plain = opened(Ratings(path, dims=2, scale="none", threshold=4))
    np.testing.assert_allclose(plain.users.T @ plain.users, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(plain.items.T @ plain.items, np.eye(2), atol=1e-9)


def test_the_iterative_and_the_dense_decomposition_agree(file: str) -> None:
    few = opened(Ratings(file, dims=3, scale="none"))  # iterative
    many = opened(Ratings(file, dims=10, scale="none"))  # dense
    np.testing.assert_allclose(np.abs(few.users), np.abs(many.users[:, :3]), atol=1e-6)
    np.testing.assert_allclose(few.items[np.abs(few.items).argmax(axis=0), range(3)] > 0, True)


def test_arms_have_norms_of_about_one_however_that_is_meant(file: str) -> None:
    pairs = np.concatenate([opened(Ratings(file)).liked, opened(Ratings(file)).disliked])

    def norms(scale: str) -> np.ndarray:
        instance = opened(Ratings(file, scale=scale))
        users, items = instance.users[pairs[:, 0]], instance.items[pairs[:, 1]]
        return np.sqrt((users**2).sum(axis=1) + (items**2).sum(axis=1))

    assert np.mean(norms("rms") ** 2) == pytest.approx(1.0)
    np.testing.assert_allclose(norms("unit"), 1.0)
    assert norms("max").max() <= 1.0
    assert norms("none").max() < 1.5


def test_the_most_active_users_and_the_most_rated_items_are_kept(tmp_path: Path) -> None:
    rows = [f"u{user},i{item},{(user * item) % 5 + 1}" for user in range(12) for item in range(12) if item <= user]
    path = str(written(tmp_path / "r.csv", "\n".join(rows)))
    instance = opened(Ratings(path, users=3, items=4, dims=2, arms=3))
    assert (len(instance.users), len(instance.items)) == (3, 4)
    assert len(instance.liked) + len(instance.disliked) == 12  # users 9 to 11 rated items 0 to 3
    assert len(instance.liked) == sum((user * item) % 5 + 1 > 2 for user in (9, 10, 11) for item in range(4))


def test_a_pair_rated_twice_counts_once_with_its_mean(tmp_path: Path) -> None:
    rows = ["a,x,5", "a,x,1", "a,y,1", "b,x,1", "b,x,2", "b,y,4"]
    instance = opened(Ratings(str(written(tmp_path / "r.csv", "\n".join(rows))), threshold=2.5, dims=1, arms=3))
    assert instance.liked.tolist() == [[0, 0], [1, 1]]
    assert instance.disliked.tolist() == [[0, 1], [1, 0]]


def test_the_threshold_decides_what_is_liked(file: str) -> None:
    sizes = [len(opened(Ratings(file, threshold=threshold)).liked) for threshold in (1, 2, 3, 4)]
    assert sizes == sorted(sizes, reverse=True)
    for threshold, says in ((5.0, "no rating is above threshold=5"), (0.5, "every rating is above threshold=0.5")):
        with pytest.raises(ProblemError, match=rf"u\.data: {says}"):
            opened(Ratings(file, threshold=threshold))


def test_a_small_file_uses_what_it_has_and_says_so(file: str) -> None:
    problem = Ratings(file)
    instance = opened(problem)
    assert len(instance.liked) + len(instance.disliked) == 400
    assert problem.notes == (
        f"400 ratings in {file}",
        f"30 users × 40 items: {len(instance.liked)} pairs pay 1, {len(instance.disliked)} pay 0",
        "30 users instead of 2,000: the file has no more",
        "40 items instead of 10,000: these users rated no more",
    )


def test_a_tiny_file_has_fewer_dimensions_and_arms(tmp_path: Path) -> None:
    path = str(written(tmp_path / "r.csv", "a,x,5\na,y,1\nb,x,1\nb,z,4\nc,z,1\nc,x,2\n"))
    problem = Ratings(path)
    instance = opened(problem)
    assert instance.round(0).arms.shape == (6, 5, 6)
    assert "3 dimensions instead of 10: the ratings have no higher rank" in problem.notes
    assert "5 arms instead of 20: no more go without reward" in problem.notes
    assert opened(Ratings(path, same_user=True)).round(0).arms.shape == (6, 3, 6)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"users": 31}, "has 30 users, but users=31 were asked for; try users=30"),
        ({"items": 41}, "has 40 items, but items=41 were asked for; try items=40"),
        ({"dims": 31}, "dims=31, but 30 is the most that its 30 users give"),
        ({"arms": 402}, r"arms=402, but only \d+ arms without reward; try arms="),
        ({"arms": 41, "same_user": True}, r"arms=41, but only \d+ arms without reward"),
        ({"columns": "1,2,9"}, "too few for columns='1,2,9'"),
    ],
)
def test_sizes_that_the_file_cannot_give_are_refused(file: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ProblemError, match=says) as refused:
        opened(Ratings(file, **options))
    assert file in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,x,5\na,y,1\n", "has ratings of one of the users only"),
        ("a,x,5\nb,x,1\n", "has ratings of one of the items only"),
        ("a,x,0\nb,y,0\n", "every rating is 0"),
        ("a,x,4\nb,y,good\n", r"r\.csv:2: rating 'good' is not a number"),
        ("", r"r\.csv is empty"),
    ],
)
def test_a_file_that_is_no_problem_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ProblemError, match=says):
        opened(Ratings(str(written(tmp_path / "r.csv", text))))
    prepared = tmp_path / "cache" / "prepared"
    assert not prepared.exists() or list(prepared.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [
        *({"users": 1}, {"dims": 0}, {"arms": 1}, {"arms": 2.0}, {"scale": "big"}, {"same_user": 1}),
        *({"threshold": float("nan")}, {"users": grid(5, 6)}),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Yelp(**options)
    with pytest.raises(InputError, match="edition cannot be 'ml-2m'"):
        MovieLens(edition="ml-2m")


@pytest.mark.parametrize("separator", [",", "\t", "::", ";", " "])
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_in_any_common_form_is_the_same_problem(tmp_path: Path, separator: str, packed: bool) -> None:
    reference = opened(Ratings(str(written(tmp_path / "reference.csv", some_ratings()))))
    text = some_ratings(separator=separator).encode()
    other = opened(Ratings(str(written(tmp_path / "other", gzipped(text) if packed else text))))
    np.testing.assert_array_equal(reference.round(1).arms, other.round(1).arms)


def test_the_hash_is_that_of_the_content_however_it_is_packed(file: str, tmp_path: Path) -> None:
    content = Path(file).read_bytes()
    packed = Ratings(str(written(tmp_path / "r.zip", zipped({"u.data": content}))))
    assert Ratings(file).sha256 == packed.sha256 == sha256(content)


def test_more_dimensions_than_the_rank_are_refused(tmp_path: Path) -> None:
    path = str(written(tmp_path / "r.csv", "a,x,5\na,y,1\nb,x,5\nb,y,1\n"))
    with pytest.raises(ProblemError, match=r"r\.csv: dims=2, but its ratings have rank 1; try dims=1"):
        opened(Ratings(path, dims=2))
    assert opened(Ratings(path)).dim == 2


def test_a_path_object_is_welcome_and_equal_problems_are_equal(file: str) -> None:
    path: Any = Path(file)
    assert Ratings(path) == Ratings(file)
    assert hash(Ratings(file)) == hash(replace(Ratings(file), users=None))


def test_movielens_takes_the_larger_edition_and_says_which(data: Path) -> None:
    with pytest.raises(MissingData, match=r"movielens: no ratings\.csv \(or ratings\.dat\).*--accept-licence"):
        opened(MovieLens())
    written(data / "ml-1m" / "ratings.dat", some_ratings(separator="::"))
    assert MovieLens().notes[:2] == (
        "MovieLens 1M (ml-1m), as ml-25m is not here",
        "400 ratings where the publisher's ml-1m has 1,000,209",
    )
    text = some_ratings(users=33, header="userId,movieId,rating,timestamp").encode()
    written(data / "ml-25m.zip", zipped({"ml-25m/ratings.csv": text, "ml-25m/tags.csv": b"x"}))
    assert MovieLens().notes[0] == "MovieLens 25M (ml-25m)"
    assert len(opened(MovieLens()).users) == 33
    assert len(opened(MovieLens(edition="ml-1m")).users) == 30


def test_yelp_reads_json_lines_and_the_subset_alike(data: Path) -> None:
    rows = [line.split("\t") for line in some_ratings(separator="\t").splitlines()]
    lines = [f'{{"user_id":"{u}","business_id":"{i}","stars":{r}.0,"text":"x"}}' for u, i, r, _ in rows]
    written(data / "yelp" / "user_business.dat.gz", gzipped(some_ratings(separator="\t").encode()))
    subset = opened(Yelp()).round(0)
    written(data / "yelp" / "yelp_academic_dataset_review.json", "\n".join(lines))
    assert "yelp_academic_dataset_review.json" in Yelp().notes[0]
    np.testing.assert_array_equal(opened(Yelp()).round(0).arms, subset.arms)


def test_a_truncated_file_in_the_cache_is_named(data: Path) -> None:
    written(data / "ml-1m" / "ratings.dat.gz", gzipped(some_ratings(separator="::").encode())[:-30])
    with pytest.raises(ProblemError, match=r"ratings\.dat\.gz is damaged or cut short"):
        opened(MovieLens())


TRIPLES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 7), st.integers(0, 5)),
    min_size=1,
    max_size=40,
    unique_by=lambda t: t[:2],
)


@given(rows=TRIPLES, same_user=st.booleans())
def test_any_ratings_make_valid_rounds_or_a_clear_refusal(
    rows: list[tuple[int, int, int]], same_user: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("any") / "r.csv", "".join(f"{u},{i},{r}\n" for u, i, r in rows))
    try:
        instance = opened(Ratings(str(path), same_user=same_user))
    except ProblemError as error:
        refused = str(error)
    else:
        met = check_round(instance.round(2), index=2, clients=6, dim=instance.dim)
        np.testing.assert_array_equal(met.means.sum(axis=1), 1.0)
        return
    assert str(path) in refused


@needs_real_data
def test_the_reference_counts_of_movielens_are_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(REAL))
    instance = opened(MovieLens(edition="ml-1m"), clients=100)
    assert (len(instance.users), len(instance.items)) == (2_000, 3_665)
    assert (len(instance.liked), len(instance.disliked)) == (601_102, 128_241)
    met = check_round(instance.round(0), index=0, clients=100, dim=20)
    assert met.arms.shape == (100, 20, 20)
    assert 0.8 < np.sqrt((met.arms**2).sum(axis=2).mean()) < 1.2


@needs_real_data
def test_the_yelp_subset_is_played(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(REAL))
    for same_user in (False, True):
        instance = opened(Yelp(same_user=same_user), clients=20)
        assert len(instance.users) == 2_000
        check_round(instance.round(1), index=1, clients=20, dim=20)


@needs_real_data
def test_the_shared_folder_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACONIC_DATA", str(REAL))
    before = sorted(os.listdir(str(REAL)))  # noqa: PTH208
    opened(Yelp())
    assert sorted(os.listdir(str(REAL))) == before  # noqa: PTH208
