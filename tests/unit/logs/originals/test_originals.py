"""Loaders of the original files: what they make of tiny ones, what they refuse, and the counts of the real ones."""

from pathlib import Path

import numpy as np
import pytest

from coterie import ArmPool
from coterie.errors import InputError, ParameterError, UnknownNameError
from coterie.logs import (
    Log,
    TagFeatures,
    Tagged,
    load_deezer,
    load_filmtrust,
    load_lastfm,
    load_open_bandit,
    read_log,
    write_log,
)
from originals import real, tiny_deezer, tiny_filmtrust, tiny_lastfm, tiny_open_bandit


def pool_of(log: Log) -> ArmPool:
    assert isinstance(log.arms, ArmPool)
    return log.arms


def pairs_of(log: Log) -> list[tuple[object, object]]:
    return [
        (log.graph.users[user], log.arm_ids[arm]) for user, arm in zip(log.events.user, log.events.arm, strict=True)
    ]


def test_lastfm_is_read_with_listens_as_positives(tmp_path: Path) -> None:
    data = load_lastfm(tiny_lastfm(tmp_path))
    assert data.graph.users == ("2", "3", "7")
    assert data.graph.n_edges == 2
    assert data.names[1] == "Name 20"
    assert data.tags[1] == '"café'
    assert data.plays.tolist() == [5, 1, 9, 2, 3]
    log = data.log(data.features(dimension=2))
    assert pairs_of(log) == [("2", "10"), ("3", "20"), ("7", "30"), ("7", "40")]
    assert log.events.reward.tolist() == [1.0] * 4
    assert log.left_out == {
        "tags of artists that artists.dat does not name": 1,
        "artists without tags": 1,
        "listens to artists without tags": 1,
    }


def dense_features(counts: np.ndarray, idf: np.ndarray, directions: np.ndarray) -> np.ndarray:
    weighted = counts * idf
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-300)
    rows = weighted @ directions
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300))


def test_tag_features_are_tfidf_on_the_leading_directions_and_without_a_user_too() -> None:
    rng = np.random.default_rng(5)
    user, item, tag = rng.integers(6, size=150), rng.integers(1, 30, size=150), rng.integers(12, size=150)
    features = TagFeatures(Tagged(user=user, item=item, tag=tag), n_items=31, n_tags=12, dimension=4, seed=3)
    np.testing.assert_array_equal(features.items, np.unique(item))
    counts = np.zeros((31, 12))
    np.add.at(counts, (item, tag), 1.0)
    counts = counts[features.items]
    idf = np.log((1 + len(counts)) / (1 + (counts > 0).sum(axis=0))) + 1
    weighted = counts * idf / np.linalg.norm(counts * idf, axis=1, keepdims=True)
    directions = np.linalg.svd(weighted)[2][:4].T
    directions *= np.sign(directions[np.argmax(np.abs(directions), axis=0), range(4)])
    np.testing.assert_allclose(features.rows, dense_features(counts, idf, directions), atol=1e-9)
    own = np.zeros((31, 12))
    np.add.at(own, (item[user == 2], tag[user == 2]), 1.0)
    without = dense_features(counts - own[features.items], idf, directions)
    np.testing.assert_allclose(features.features_without(2), without, atol=1e-9)
    assert not np.allclose(without, features.rows)


def test_an_artist_that_only_the_user_tagged_has_no_features_for_that_user(tmp_path: Path) -> None:
    features = load_lastfm(tiny_lastfm(tmp_path)).features(dimension=2)
    rows, changed = features.changed_without(1)
    assert features.items[rows].tolist() == [0, 1, 2]
    assert changed[1].tolist() == [0.0, 0.0]
    assert np.linalg.norm(changed[2]) == pytest.approx(1.0)


def test_the_seed_and_the_dimension_are_kept(tmp_path: Path) -> None:
    data = load_lastfm(tiny_lastfm(tmp_path))
    np.testing.assert_array_equal(data.features(dimension=2).rows, data.features(dimension=2).rows)
    with pytest.raises(ParameterError, match=r"dimension = 25 is out of range; it is a whole number from 1 to 3"):
        data.features()


def test_deezer_has_one_indicator_a_genre(tmp_path: Path) -> None:
    log = load_deezer(tiny_deezer(tmp_path), country="HU").log()
    assert log.arm_ids == ("Norteño", "Pop", "Rock")
    np.testing.assert_array_equal(pool_of(log).features, np.eye(3))
    assert set(pairs_of(log)) == {("0", "Pop"), ("1", "Rock"), ("1", "Pop"), ("10", "Rock"), ("10", "Norteño")}
    assert log.graph.has_edge("1", "10")


def test_filmtrust_spends_half_of_its_ratings_on_features(tmp_path: Path) -> None:
    data = load_filmtrust(tiny_filmtrust(tmp_path))
    assert data.graph.n_users == 21
    assert data.graph.weight("1", "2") == 1.0
    assert data.rating[0] == 4.0
    log = data.log(dimension=3, seed=1)
    assert log.had is not None
    assert len(log.had) == 120
    assert len(log.events) == 120
    had = {(log.graph.users[user], log.arm_ids[arm]) for user, arm in zip(log.had.user, log.had.arm, strict=True)}
    assert had.isdisjoint(pairs_of(log))
    ratings = data.log(dimension=3, seed=1, reward="rating").events.reward
    np.testing.assert_array_equal(log.events.reward, ratings >= 3)
    np.testing.assert_allclose(np.linalg.norm(pool_of(log).features, axis=1), 1.0)
    assert log.left_out["ratings given again later"] == 1


def test_filmtrust_features_come_from_the_spent_half_alone(tmp_path: Path) -> None:
    data = load_filmtrust(tiny_filmtrust(tmp_path))
    log = data.log(dimension=3, seed=1)
    assert log.had is not None
    half = set(zip(log.had.user.tolist(), log.had.arm.tolist(), strict=True))
    kept = np.array([pair not in half for pair in zip(data.user.tolist(), data.item.tolist(), strict=True)])
    data.rating[kept] = 1.5  # whatever the feedback is, the features stay
    np.testing.assert_array_equal(pool_of(data.log(dimension=3, seed=1)).features, pool_of(log).features)


def test_open_bandit_has_propensities_times_and_no_edges(tmp_path: Path) -> None:
    log = load_open_bandit(tiny_open_bandit(tmp_path))
    assert log.graph.users == ("a-b-c-d", "a-b-c-e")
    assert log.graph.n_edges == 0
    assert log.events.user.tolist() == [0, 1, 0, 0]
    assert log.events.propensity is not None
    assert log.events.propensity.tolist() == [0.25, 0.5, 0.25, 0.25]
    assert log.events.time is not None
    assert log.events.time[0] == 1574553617.5
    assert pool_of(log).features.tolist()[1] == [0.5, 0, 1, 1, 1, 0]
    first = load_open_bandit(tmp_path, position=1, users="one")
    assert pairs_of(first) == [("everybody", "2"), ("everybody", "1")]
    assert first.left_out == {"choices for other positions": 2, "columns of user-item affinities": 2}


def test_open_bandit_has_user_features_as_contexts_if_asked(tmp_path: Path) -> None:
    folder = tiny_open_bandit(tmp_path / "original")
    plain = load_open_bandit(folder).events
    assert (plain.context, plain.place, plain.slate) == (None, None, None)
    log = load_open_bandit(folder, users="one", contexts=True)
    assert log.events.context is not None
    assert log.events.place is not None
    assert log.events.context[1] == dict(zip((f"user_feature_{i}" for i in range(4)), "abce", strict=True))
    assert log.events.place.tolist() == [1, 3, 1, 2]
    write_log(log, tmp_path / "written")
    again = read_log(tmp_path / "written").events
    assert again.context is not None
    assert [again.context[row] for row in range(4)] == [log.events.context[row] for row in range(4)]


def test_open_bandit_is_found_in_its_own_folders(tmp_path: Path) -> None:
    folder = tiny_open_bandit(tmp_path)
    (folder / "random" / "all").mkdir(parents=True)
    for name in ("all", "item_context"):
        (folder / f"random_all_{name}.csv.gz").rename(folder / "random" / "all" / f"{name}.csv.gz")
    assert len(load_open_bandit(folder).events) == 4


@pytest.mark.parametrize("load", [load_lastfm, load_deezer, load_filmtrust, load_open_bandit])
def test_a_missing_folder_or_file_says_what_is_had_where(load: object, tmp_path: Path) -> None:
    assert callable(load)
    with pytest.raises(InputError, match=r"there is no folder .*it is usually had from .*its terms are: .*cite"):
        load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"there is no file .* in .*the data set is"):
        load(tmp_path)


def test_lines_that_are_not_as_published_are_named(tmp_path: Path) -> None:
    folder = tiny_lastfm(tmp_path)
    (folder / "user_artists.dat").write_text("userID\tartistID\tweight\n2\t10\t5\n2\tx\t1\n")
    with pytest.raises(InputError, match=r"user_artists.dat, line 3: it is '2 x 1'; the original has numbers there"):
        load_lastfm(folder)
    (folder / "user_artists.dat").write_text("userID\tartistID\tweight\n2\t10\n")
    with pytest.raises(InputError, match=r"user_artists.dat, line 2: it has 2 cells; the original has 3"):
        load_lastfm(folder)
    (folder / "user_artists.dat").write_text("userID\tartistID\tweight\n2\t77\t1\n")
    with pytest.raises(InputError, match=r"user_artists.dat names artist 77"):
        load_lastfm(folder)
    (folder / "user_artists.dat").write_text("2\t77\t1\n")
    with pytest.raises(InputError, match=r"user_artists.dat, line 1: it is '2\\t77\\t1'; the original begins with"):
        load_lastfm(folder)


def test_other_oddities_are_refused(tmp_path: Path) -> None:
    folder = tiny_deezer(tmp_path)
    (folder / "HU_genres.json").write_text('{"0": "Pop"}')
    with pytest.raises(InputError, match=r"HU_genres.json cannot be read: the genres of a user are 'Pop'"):
        load_deezer(folder, country="HU")
    with pytest.raises(InputError, match=r"none for position 4"):
        load_open_bandit(tiny_open_bandit(tmp_path), position=4)
    with pytest.raises(UnknownNameError, match=r"users = 'all' is unknown"):
        load_open_bandit(tmp_path, users="all")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match=r"reward = 'stars' is unknown"):
        load_filmtrust(tiny_filmtrust(tmp_path)).log(reward="stars")  # type: ignore[arg-type]


def test_what_was_loaded_can_be_written_and_read(tmp_path: Path) -> None:
    log = load_filmtrust(tiny_filmtrust(tmp_path / "src")).log(dimension=2)
    write_log(log, tmp_path / "out")
    back = read_log(tmp_path / "out")
    assert pairs_of(back) == pairs_of(log)
    np.testing.assert_array_equal(pool_of(back).features, pool_of(log).features)
    assert back.graph == log.graph
    assert back.had is not None


def test_the_real_lastfm_has_its_documented_counts() -> None:
    data = load_lastfm(real("hetrec2011-lastfm-2k"))
    assert (data.graph.n_users, data.graph.n_edges) == (1892, 12717)
    assert (len(data.artists), len(data.user), len(data.tags)) == (17632, 92834, 11946)
    assert len(data.tagged.user) + data.left_out["tags of artists that artists.dat does not name"] == 186479
    own = set(zip(data.tagged.user.tolist(), data.tagged.item.tolist(), strict=True))
    log = data.log()
    items = data.features().items
    tagged = [
        (user, int(items[arm])) in own for user, arm in zip(log.events.user.tolist(), log.events.arm, strict=True)
    ]
    assert np.mean(tagged) == pytest.approx(0.24, abs=0.005)


def test_the_real_deezer_has_its_documented_counts() -> None:
    data = load_deezer(real("deezer-ro"))
    assert (data.graph.n_users, data.graph.n_edges, len(data.genres)) == (41773, 125826, 84)


def test_the_real_filmtrust_has_its_documented_counts() -> None:
    data = load_filmtrust(real("filmtrust"))
    raters = np.unique(data.user)
    assert (len(raters), data.graph.n_users - len(raters), len(data.items)) == (1508, 134, 2071)
    assert (len(data.rating), data.repeats) == (35494, 3)
    among = data.graph.weights[raters][:, raters]
    assert np.count_nonzero(np.diff(among.indptr) == 0) == 803


@pytest.mark.parametrize("logger", ["random", "bts"])
def test_the_real_open_bandit_has_its_documented_counts(logger: str) -> None:
    log = load_open_bandit(real("open-bandit-small"), logger=logger)  # type: ignore[arg-type]
    assert (len(log.events), len(log.arm_ids)) == (10000, 80)
    assert log.events.propensity is not None
    assert (logger == "random") == bool((log.events.propensity == 1 / 80).all())
