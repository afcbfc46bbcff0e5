"""Contexts against peers: the protocol, the sets, the passes that are kept, and the tables made from them."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.context import many_users, ours, peers
from benchmarks.context.beside import REPEATS, RIVALS, to_time, untimed
from benchmarks.context.data import SETS, Labelled, clusters, linear, mixed
from benchmarks.context.page import NEW_PAGE, summary, whole, write_page
from benchmarks.context.protocol import LOOKED, Learner, Method, one_pass, play
from benchmarks.context.schedule import FINALISTS, LIMIT, LONG, TRIED, due
from benchmarks.context.store import Kept, Line

from coterie.contracts import Index
from coterie.errors.extras import is_installed

DOCS = Path(__file__).parents[2] / "docs"
SMALL = Labelled("small", np.arange(24.0).reshape(12, 2), np.arange(12) % 3)


class Always:
    """A peer that always chooses one class, and remembers what it was taught."""

    def __init__(self, arm: int) -> None:
        self.arm = arm
        self.shown: list[Any] = []
        self.taught: list[tuple[Any, ...]] = []

    def decide(self, row: Any) -> tuple[int, float]:
        self.shown.append(row)
        return self.arm, 0.25

    def learn(self, row: Any, arm: int, propensity: float, reward: float) -> None:
        self.taught.append((row, arm, propensity, reward))


def method_of(learner: Learner, name: str = "always", library: str = "fake", *, patient: bool = False) -> Method:
    return Method(library, name, lambda _data, _seed: learner, Labelled.values, patient=patient)


def test_a_pass_shows_every_row_once_and_pays_for_the_right_class() -> None:
    learner = Always(1)
    found = play(method_of(learner), SMALL, 0)
    assert found.rounds == 12
    assert found.reward == pytest.approx(4 / 12)
    assert min(found.ms, found.wall) > 0
    assert sorted(learner.shown) == SMALL.values()
    label = {tuple(row): place % 3 for place, row in enumerate(SMALL.values())}
    assert learner.taught == [(row, 1, 0.25, float(label[tuple(row)] == 1)) for row in learner.shown]


def test_the_seed_shuffles_the_rows() -> None:
    orders = []
    for seed in (0, 0, 1):
        learner = Always(0)
        play(method_of(learner), SMALL, seed)
        orders.append(learner.shown)
    assert orders[0] == orders[1] != orders[2]


def test_a_pass_stops_at_its_limit() -> None:
    learner = Always(0)
    assert one_pass(learner, ((row, 0) for row in SMALL.values()), limit=0.0).rounds == LOOKED
    assert len(learner.taught) == LOOKED < SMALL.n_rows


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("digits", (1797, 64), 10),
        ("wine", (178, 13), 3),
        ("breast cancer", (569, 30), 2),
        ("clusters", (10_000, 6), 10),
        ("linear", (20_000, 30), 5),
        ("mixed", (5_000, 3), 4),
    ],
)
def test_the_sets_are_as_stated(name: str, shape: tuple[int, int], n_classes: int) -> None:
    if name in ("digits", "wine", "breast cancer"):
        pytest.importorskip("sklearn", reason="scikit-learn has these sets")
    data = SETS[name]()
    assert data.name == name
    assert data.numbers.shape == shape
    assert np.isfinite(data.numbers).all()
    assert np.unique(data.labels).tolist() == list(range(n_classes))
    assert data.n_classes == n_classes
    assert len(data.values()) == len(data.contexts()) == len(data.matrix()) == data.n_rows == shape[0]


@pytest.mark.parametrize("make", [clusters, linear, mixed])
def test_a_generated_set_is_the_same_each_time(make: Callable[[], Labelled]) -> None:
    assert (make().matrix() == make().matrix()).all()
    assert (make().labels == make().labels).all()


def test_in_the_mixed_set_the_device_and_the_hour_tell_the_class_together() -> None:
    data = mixed()
    devices, bands = np.array(data.categories["device"]), (data.numbers[:, 0] // 6).astype(int)

    def share(groups: Index) -> float:
        """Of the rows that have the most frequent class of their group."""
        counts = np.zeros((groups.max() + 1, 4))
        np.add.at(counts, (groups, data.labels), 1)
        return float(counts.max(axis=1).sum() / data.n_rows)

    device = np.unique(devices, return_inverse=True)[1]
    assert share(4 * device + bands) > 0.94
    assert share(device) < 0.3
    assert share(bands) < 0.5


def test_a_row_with_categories_has_a_form_for_everybody() -> None:
    data = Labelled("two", np.array([[1.0], [2.0]]), np.array([0, 1]), {"device": ("tv", "phone")})
    assert data.values() == [[1.0, "tv"], [2.0, "phone"]]
    assert data.contexts() == [{"x0": 1.0, "device": "tv"}, {"x0": 2.0, "device": "phone"}]
    assert data.matrix().tolist() == [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


def test_standardised_rows_have_the_mean_and_deviation_so_far() -> None:
    inner = Always(0)
    scaled = peers.Standardised(inner, 2)
    rows = np.random.default_rng(0).normal(3.0, 5.0, size=(40, 2))
    rows[:, 1] = 7.0  # a column that never changes
    for seen, row in enumerate(rows, 1):
        scaled.decide(row)
        past = rows[:seen, 0]
        expected = (row[0] - past.mean()) / past.std() if seen > 1 else 0.0
        assert inner.shown[-1] == pytest.approx([expected, 0.0])
        scaled.learn(row, 0, 1.0, 0.0)
        assert inner.taught[-1][0] is inner.shown[-1]


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize("library", peers.LIBRARIES)
@pytest.mark.parametrize("data", [SMALL, mixed(40)], ids=lambda data: data.name)
def test_every_configuration_of_a_peer_plays(library: str, data: Labelled) -> None:
    if not is_installed(library):
        pytest.skip(f"{library} comes with the extra 'bench'")
    for method in (each for each in peers.peers() if each.library == library):
        found = play(method, data, 0)
        assert found.rounds == data.n_rows, method.key
        assert 0 <= found.reward <= 1, method.key


def test_vowpal_wabbit_says_how_probable_its_choice_was() -> None:
    pytest.importorskip("vowpalwabbit", reason="Vowpal Wabbit comes with the extra 'bench'")
    learner = peers.Vowpal("--first 5", constant=1.0, names=["x0"], n_classes=4, seed=0)
    for _ in range(5):
        arm, propensity = learner.decide([1.0])
        assert propensity == pytest.approx(0.25)
        learner.learn([1.0], arm, propensity, 1.0 if arm == 2 else 0.0)
    assert learner.decide([1.0])[1] == pytest.approx(1.0)


def test_names_of_methods_are_their_own() -> None:
    keys = [method.key for method in peers.peers()]
    assert len(set(keys)) == len(keys)


def line_of(data: str, method: str, seed: int, reward: float, ms: float = 0.1, **more: Any) -> Line:
    line = {"set": data, "library": method.split(":")[0], "method": method, "seed": seed, "rounds": 100}
    return line | {"reward": reward, "ms": ms, "wall": 2 * ms, "stopped": False, "machine": "one core"} | more


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "passes.json"
    kept = Kept(path)
    kept.add(line_of("wine", "river: a", 0, 0.5))
    kept.add(line_of("wine", "river: a", 1, 0.6))
    path.write_text(path.read_text(encoding="utf-8")[:-7], encoding="utf-8")
    again = Kept(path)
    assert list(again.of("wine", "river: a")) == [0]
    again.add(line_of("wine", "river: a", 1, 0.6))
    assert list(Kept(path).of("wine", "river: a")) == [0, 1]


def test_what_is_to_be_made_again_is_forgotten(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "passes.json")
    for name in ("coterie: auto-ucb", "river: a"):
        kept.add(line_of("wine", name, 0, 0.5))
    kept.forget("coterie")
    for each in (kept, Kept(tmp_path / "passes.json")):
        assert each.of("wine", "coterie: auto-ucb") == {}
        assert list(each.of("wine", "river: a")) == [0]


def test_ours_and_the_fastest_that_come_near_are_timed_in_turn(tmp_path: Path) -> None:
    own = method_of(Always(0), "own", "coterie", patient=True)
    others = [method_of(Always(0), f"number {each}") for each in range(6)]
    lines = [line_of("set", own.key, 0, 0.8)]
    lines += [line_of("set", other.key, 0, 0.77, ms=6.0 - place) for place, other in enumerate(others)]
    lines[1]["reward"] = 0.75  # not near, and the slowest
    rows = summary(lines)["rows"]
    chosen = to_time(rows, "set", own, [own, *others])
    assert chosen == [own, *others[: -RIVALS - 1 : -1]]
    times = Kept(tmp_path / "times.json")
    units = list(untimed("set", chosen, times))
    assert units == [(method, repeat) for repeat in range(REPEATS) for method in chosen]
    times.add(line_of("set", own.key, 0, 0.8))
    assert list(untimed("set", chosen, times)) == units[1:]
    assert to_time(rows, "other", own, [own, *others]) == []
    assert to_time(rows[:2], "set", own, [own, *others]) == []


def many_methods() -> list[Method]:
    return [method_of(Always(0), f"number {each}") for each in range(5)] + [method_of(Always(0), library="patient")]


def reward_of(method: Method) -> float:
    return 0.1 * int(method.name[-1]) if method.library == "fake" else 0.5


def play_all(methods: list[Method], kept: Kept, *, seeds: int = 6, at_most: float = math.inf, ms: float = 0.1) -> int:
    made = 0
    while made < at_most and (units := due("set", methods, kept, seeds)):
        method, seed = units[0]
        kept.add(line_of("set", method.key, seed, reward_of(method), ms))
        made += 1
    return made


def test_the_best_have_all_the_seeds_and_the_others_a_few(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "passes.json")
    play_all(many_methods(), kept)
    seeds = [len(kept.of("set", f"fake: number {each}")) for each in range(5)]
    assert seeds == [TRIED] * (5 - FINALISTS) + [6] * FINALISTS


def test_slow_methods_have_fewer_seeds_unless_they_are_ours(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "passes.json")
    slow = 1e3 * LONG / 100 + 1  # of 100 rounds
    methods = [*many_methods()[:5], method_of(Always(0), "own", "ours", patient=True)]
    play_all(methods, kept, ms=slow)
    assert [len(kept.of("set", f"fake: number {each}")) for each in range(5)] == [1, 1, 6, 6, 6]
    assert len(kept.of("set", "ours: own")) == 6


def test_a_method_that_was_stopped_is_not_tried_again(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "passes.json")
    methods = many_methods()[:1]
    kept.add(line_of("set", methods[0].key, 0, 1.0, 1e3 * LIMIT / 100 + 1, stopped=True))
    assert due("set", methods, kept, 6) == []


@pytest.mark.parametrize("stop", [1, 8, 20])
def test_a_resumed_run_makes_no_pass_twice(tmp_path: Path, stop: int) -> None:
    methods = many_methods()
    whole_run = Kept(tmp_path / "whole.json")
    play_all(methods, whole_run)
    play_all(methods, Kept(tmp_path / "stopped.json"), at_most=stop)
    resumed = Kept(tmp_path / "stopped.json")
    assert play_all(methods, resumed) == len(whole_run.lines) - stop
    assert resumed.lines == whole_run.lines
    assert play_all(methods, resumed) == 0


def test_the_command_keeps_passes_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = pytest.importorskip("benchmarks.context.__main__", reason="it needs the extra 'bench'")
    learner = Always(1)
    part = command.Part({"small": lambda: SMALL}, [method_of(learner)], play)
    kept = Kept(tmp_path / "passes.json")
    command.run(part, kept, seeds=2, stamp={"machine": "one core"})
    assert [line["seed"] for line in kept.lines] == [0, 1]
    assert kept.lines[0]["reward"] == pytest.approx(1 / 3)
    assert len(learner.taught) == 24
    command.run(part, Kept(tmp_path / "passes.json"), seeds=2, stamp={"machine": "one core"})
    assert len(learner.taught) == 24
    assert "seed 1: 0.333" in capsys.readouterr().out


def test_a_peer_that_is_not_installed_is_left_out_with_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    command = pytest.importorskip("benchmarks.context.__main__", reason="it needs the extra 'bench'")
    methods = [method_of(Always(0), library="numpy"), method_of(Always(0), library="no_such_library")]
    assert list(command._installed(methods)) == methods[:1]
    assert "no_such_library is not installed and left out" in capsys.readouterr().out


def kept_lines() -> Iterator[Line]:
    for seed, shift in enumerate((-0.01, 0.0, 0.01)):
        yield line_of("digits", "coterie: auto-ucb", seed, 0.80 + shift, 0.8)
        yield line_of("digits", "vowpalwabbit: bag", seed, 0.77 + shift, 0.2)
        yield line_of("digits", "vowpalwabbit: first", seed, 0.70 + shift, 0.1)
        yield line_of("wine", "coterie: auto-ucb", seed, 0.95 + shift, 0.3)
        yield line_of("wine", "vowpalwabbit: bag", seed, 0.93 + shift, 0.2)
        yield line_of("mixed", "coterie: auto-ucb", seed, 0.90 + shift, 0.3)
        yield line_of("mixed", "mabwiser: LinUCB", seed, 0.40 + shift, 0.5)
        yield line_of("digits, 100 users", "coterie: the graph", seed, 0.60 + shift, 1.0)
    yield line_of("mixed", "mabwiser: Radius", 0, 0.99, 9.0, stopped=True)


def timed_lines() -> Iterator[Line]:
    for repeat, busy in enumerate((1.0, 9.0, 1.0)):
        yield line_of("digits", "coterie: auto-ucb", repeat, 0.8, 4.0 * busy)
        yield line_of("digits", "vowpalwabbit: bag", repeat, 0.7, 1.0 * busy)


def test_the_tables_are_made_from_the_kept_passes(tmp_path: Path) -> None:
    kept, times = Kept(tmp_path / "passes.json"), Kept(tmp_path / "times.json")
    for line in kept_lines():
        kept.add(line)
    for line in timed_lines():
        times.add(line)
    page = write_page(kept, times, tmp_path).read_text(encoding="utf-8")
    bag = "0.770 ± 0.006, 0.2 ms: bag"
    assert f"| digits | 100 | 0.86 | **0.800 ± 0.006** | {bag} | not run | not run | +0.030 |" in page
    assert "| digits | 4 | vowpalwabbit: bag | 0.770 | 1 | **4.0** | **4.0** |" in page
    assert "| wine | 0.3 | not timed yet |" in page
    assert "| mixed | 0.3 | none is |" in page
    assert "Not run, as it was not installed: river." in page
    assert "stopped after 100 rounds, 9 ms" in page
    assert "| digits, 100 users | 0.600 ± 0.006, 1 ms | - | - |" in page
    assert json.loads((tmp_path / "context.json").read_text(encoding="utf-8")) == summary(kept_lines(), timed_lines())


def test_words_between_the_tables_stay(tmp_path: Path) -> None:
    (tmp_path / "context.md").write_text(f"{NEW_PAGE}\nWords.\n", encoding="utf-8")
    kept = Kept(tmp_path / "passes.json")
    kept.add(line_of("wine", "river: LinUCBDisjoint", 0, 0.5))
    page = write_page(kept, Kept(tmp_path / "times.json"), tmp_path).read_text(encoding="utf-8")
    assert page.endswith("\nWords.\n")
    assert "| 0.500, 0.1 ms: LinUCBDisjoint |" in page


def test_the_page_is_what_its_results_say() -> None:
    found = json.loads((DOCS / "context.json").read_text(encoding="utf-8"))
    page = (DOCS / "context.md").read_text(encoding="utf-8")
    assert whole(page, found) == page
    for row in found["rows"]:
        row["reward"] = row["reward"] / 2
    assert whole(page, found) != page


def test_each_community_permutes_the_labels() -> None:
    data = many_users.Communities(clusters(5_000))
    order, users, right = data.dealt(3)
    assert sorted(order.tolist()) == list(range(5_000))
    assert set(users.tolist()) == set(range(100))
    maps = set()
    for each in range(5):
        inside = many_users.community(users) == each
        pairs = set(zip(data.data.labels[order][inside].tolist(), right[inside].tolist(), strict=True))
        assert len(pairs) == len({label for label, _ in pairs}) == len({paid for _, paid in pairs}) == 10
        maps.add(tuple(sorted(pairs)))
    assert len(maps) == 5


def test_the_graph_is_dense_inside_the_communities_and_sparse_between() -> None:
    graph = many_users.graph_of(0)
    communities = dict(enumerate(many_users.community(np.arange(100)).tolist()))
    inside = sum(communities[one] == communities[other] for one, other, *_ in graph.edges())  # type: ignore[index]
    assert graph.n_users == 100
    assert inside / (5 * 190) == pytest.approx(many_users.INSIDE, abs=0.05)
    assert (graph.n_edges - inside) / (4950 - 950) == pytest.approx(many_users.ACROSS, abs=0.01)


class FakeBandit:
    """Takes the calls that a `Bandit` will, and remembers them."""

    made: list["FakeBandit"]

    def __init__(self, *, graph: Any, arms: list[str], seed: int) -> None:
        self.graph, self.arms, self.seed = graph, arms, seed
        self.calls: list[tuple[Any, ...]] = []
        FakeBandit.made.append(self)

    def decide(self, user: Any, *, context: Any) -> SimpleNamespace:
        assert user in self.graph.users
        self.calls.append(("decide", user, context))
        return SimpleNamespace(id=len(self.calls), arm=self.arms[1])

    def reward(self, decision: int, value: float) -> None:
        assert decision == len(self.calls)
        self.calls.append(("reward", decision, value))


@pytest.fixture
def fake_bandits(monkeypatch: pytest.MonkeyPatch) -> list[FakeBandit]:
    FakeBandit.made = []
    monkeypatch.setattr("coterie.Bandit", FakeBandit)
    return FakeBandit.made


def test_ours_is_one_user_with_classes_as_arms(fake_bandits: list[FakeBandit]) -> None:
    found = play(ours.OURS, SMALL, 7)
    (bandit,) = fake_bandits
    assert found.reward == pytest.approx(1 / 3)
    assert (bandit.seed, bandit.arms) == (7, ["class 0", "class 1", "class 2"])
    assert [call[0] for call in bandit.calls] == ["decide", "reward"] * 12
    assert sorted(call[2].tolist() for call in bandit.calls[::2]) == SMALL.values()
    assert sum(call[2] for call in bandit.calls[1::2]) == 4


@pytest.mark.parametrize("data", [SMALL, mixed(20)], ids=lambda data: data.name)
def test_a_real_bandit_plays(data: Labelled) -> None:
    assert play(ours.OURS, data, 0).rounds == data.n_rows


@pytest.mark.parametrize(
    ("name", "n_bandits", "n_users"),
    [
        ("the graph", 1, 100),
        ("one model for all", 1, 1),
        ("one model a user", 100, 1),
    ],
)
def test_many_users_three_ways(fake_bandits: list[FakeBandit], name: str, n_bandits: int, n_users: int) -> None:
    (entry,) = (each for each in many_users.ENTRIES if each.name == name)
    data = many_users.Communities(clusters(400))
    found = many_users.play_many(entry, data, 0)
    assert found.rounds == 400
    assert len(fake_bandits) == n_bandits
    assert {bandit.graph.n_users for bandit in fake_bandits} == {n_users}
    users = data.dealt(0)[1].tolist()
    if name == "the graph":
        assert [call[1] for call in fake_bandits[0].calls[::2]] == users
    if name == "one model a user":
        assert [len(bandit.calls) // 2 for bandit in fake_bandits] == [users.count(user) for user in range(100)]
