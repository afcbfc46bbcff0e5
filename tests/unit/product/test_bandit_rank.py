"""Slates: each place a decision of its own, with a true propensity and a reward of its own."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import coterie as ct
from coterie.errors import CandidatesError, CoterieError, DecisionError, ParameterError, SavedFileError
from coterie.product.slates import checked_places

ARMS = dict(zip("abcdef", np.random.default_rng(0).normal(size=(6, 2)).tolist(), strict=True))
EXAMINED = [1.0, 0.6, 0.3]


def make(**options: Any) -> ct.Bandit:
    graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy", 0.5)], users=["ana", "bo", "cy", "dee"])
    return ct.Bandit(
        **{"graph": graph, "arms": ARMS, "policy": "lk-gp-ts", "seed": 3, "wait_for_fits": True, **options}
    )


def taught(**options: Any) -> ct.Bandit:
    """Returns a bandit that knows something of four of its six arms."""
    bandit, rng = make(**options), np.random.default_rng(5)
    for t in range(12):
        bandit.learn(["ana", "bo"][t % 2], "abcd"[t % 4], float(rng.normal()))
    return bandit


def told(decision: ct.Decision) -> tuple[Any, ...]:
    return decision.id, decision.user, decision.arm, decision.explored, tuple(decision.candidates)


def beliefs(bandit: ct.Bandit, **at: Any) -> Any:
    return np.array([list(bandit.predict(user, **at).values()) for user in bandit.users])


# What a slate is


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"engine": "exact", "sampling": "joint", "min_propensity": 0.05},
        {"policy": "lk-gp-ucb", "min_propensity": 0.15},
        {"engine": "exact", "pending": "hallucinate"},
        {"engine": "exact", "pending": "hallucinate", "sampling": "joint"},
        {"window": 5},
        {"policy": "club"},
    ],
    ids=str,
)
def test_a_slate_is_decisions_one_after_another_among_those_left(options: dict[str, Any]) -> None:
    one, other = taught(**options), taught(**options)
    for _ in range(5):
        slate, left = one.rank("ana", list("fbdace"), 4), list("fbdace")
        for place in slate:
            decision = other.decide("ana", left)
            assert told(place) == told(decision)
            numbers = [(each.mean, each.std, each.score) for each in place.candidates.values()]
            wanted = [(each.mean, each.std, each.score) for each in decision.candidates.values()]
            np.testing.assert_allclose(numbers, wanted, atol=1e-8)
            left.remove(str(place.arm))
    assert one.pending == other.pending
    assert one.n_decisions == other.n_decisions == 20


@pytest.mark.parametrize("policy", ["auto-ucb", "auto-ts"])
def test_a_slate_of_one_is_a_decision(policy: str) -> None:
    one, other = taught(policy=policy), taught(policy=policy)
    for _ in range(5):
        assert one.rank("ana", k=1)[0] == other.decide("ana")


def test_a_slate_tells_its_places() -> None:
    bandit = taught()
    bandit.decide("bo")
    slate = bandit.rank("ana", list("abcd"), 3)
    assert (slate.id, slate.user, len(slate), bandit.n_decisions) == (1, "ana", 3, 4)
    assert [each.id for each in slate] == [1, 2, 3]
    assert slate.arms == tuple(each.arm for each in slate.decisions)
    assert len(set(slate.arms)) == 3
    assert slate.propensity == pytest.approx(np.prod([each.propensity or 0.0 for each in slate]))
    assert repr(slate).startswith("Slate(id=1, user='ana', arms=[")
    rows = list(slate.rows())
    assert [(row["slate"], row["place"], row["decision"]) for row in rows] == [(1, 1, 1), (1, 2, 2), (1, 3, 3)]
    assert [row["arm"] for row in rows] == list(slate.arms)
    assert [len(row["candidates"]) for row in rows] == [4, 3, 2]
    assert [row["propensity"] for row in rows] == [each.propensity for each in slate]
    assert {row["user"] for row in rows} == {"ana"}


def test_a_slate_by_a_score_of_ones_own_has_no_propensity() -> None:
    assert taught(score=lambda mean, std, width, **_: mean + width * std).rank("ana", k=2).propensity is None


def test_each_place_waits_for_a_reward_of_its_own() -> None:
    bandit = make()
    slate = bandit.rank("ana", k=3)
    assert bandit.pending == {each.id: ("ana", each.arm) for each in slate}
    bandit.reward(slate[2].id, 1.0)
    assert (bandit.n_rewards, bandit.n_pending) == (1, 2)
    bandit.reward_many([each.id for each in slate[:2]], [0, 0])
    with pytest.raises(DecisionError, match="already"):
        bandit.reward(slate[0].id, 1.0)
    bandit.reward(slate[0].id, 1.0, replace=True)
    assert bandit.n_rewards == 3


# Propensities are true


def stated_by(bandit: ct.Bandit, rounds: int) -> tuple[Counter[Any], dict[Any, float], dict[Any, float]]:
    """Returns slates of two that came, and the probability of each as stated, and by the first place's alone."""
    came: Counter[Any] = Counter()
    second: dict[Any, dict[Any, float]] = {}
    first: dict[Any, float] = {}
    for _ in range(rounds):
        slate = bandit.rank("ana", list("abcde"), 2)
        came[slate.arms] += 1
        if slate[0].arm not in second:
            first = {arm: each.propensity or 0.0 for arm, each in slate[0].candidates.items()}
            second[slate[0].arm] = {arm: each.propensity or 0.0 for arm, each in slate[1].candidates.items()}
            assert slate.propensity == pytest.approx(first[slate[0].arm] * second[slate[0].arm][slate[1].arm])
    true = {(one, two): first[one] * chance for one, rest in second.items() for two, chance in rest.items()}
    return came, true, first


def p_value(came: Counter[Any], stated: dict[Any, float], rounds: int) -> float:
    """Returns that of a chi-square test; slates of which fewer than five are expected count as one."""
    expected = {slate: rounds * chance for slate, chance in stated.items()}
    common = [slate for slate, number in expected.items() if number >= 5]
    pairs = [(came[slate], expected[slate]) for slate in common]
    rest = rounds - sum(number for number, _ in pairs), rounds - sum(number for _, number in pairs)
    if rest[1] >= 5:
        pairs.append(rest)
    statistic = sum((number - wanted) ** 2 / wanted for number, wanted in pairs)
    return float(chi2.sf(statistic, len(pairs) - 1))


@pytest.mark.parametrize(
    ("options", "rounds"),
    [
        ({"policy": "auto-ts", "width": 1.0}, 8000),
        ({"policy": "lk-gp-ts"}, 8000),
        ({"policy": "lk-gp-ts", "sampling": "joint", "min_propensity": 0.1}, 3000),
        ({"policy": "lk-gp-ucb", "min_propensity": 0.15}, 3000),
    ],
    ids=["auto-ts", "lk-gp-ts", "joint", "ucb"],
)
def test_slates_come_as_often_as_they_say(options: dict[str, Any], rounds: int) -> None:
    came, true, first = stated_by(taught(**options), rounds)
    assert sum(true.values()) == pytest.approx(1.0, abs=2e-3)
    assert p_value(came, true, rounds) > 1e-3
    # Propensities that ignore that the first is gone, or only share out what it had, fail the same test.
    unconditional = {slate: first[slate[0]] * first[slate[1]] for slate in true}
    assert p_value(came, unconditional, rounds) < 1e-6
    shared_out = {slate: first[slate[0]] * first[slate[1]] / (1 - first[slate[0]]) for slate in true}
    assert p_value(came, shared_out, rounds) < 1e-6


@pytest.mark.parametrize("policy", ["auto-ucb", "auto-ts"])
@pytest.mark.parametrize("places", [None, EXAMINED, "learned"])
def test_every_candidate_that_is_left_has_the_least_probability_at_each_place(policy: str, places: Any) -> None:
    bandit = taught(policy=policy, min_propensity=0.1, places=places)
    for place in bandit.rank("ana", k=3):
        chances = [each.propensity or 0.0 for each in place.candidates.values()]
        assert sum(chances) == pytest.approx(1.0)
        assert min(chances) >= 0.1 - 1e-12


def test_a_least_probability_that_is_too_high_for_the_first_place_is_refused() -> None:
    with pytest.raises(ParameterError, match="min_propensity"):
        make(min_propensity=0.2).rank("ana", k=2)


# The effect of places: given


def played(bandit: ct.Bandit, rounds: int = 14) -> list[tuple[str, str, float, float]]:
    """Lets slates be rewarded, some of them not; returns user, arm, reward and how likely the place is looked at."""
    rng, out = np.random.default_rng(7), []
    for t in range(rounds):
        user = ["ana", "bo", "cy", "dee"][t % 4]
        for examined, place in zip(EXAMINED, bandit.rank(user, k=3), strict=True):
            if rng.random() < 0.8:
                out.append((user, str(place.arm), float(rng.normal()), examined))
                bandit.reward(place.id, out[-1][2])
    return out


def posterior(bandit: ct.Bandit, told: list[tuple[str, str, float, float]], weights: Any = 1.0) -> tuple[Any, Any]:
    """Returns mean and std of every pair from rewards e f + noise, by the dense formula."""
    model = bandit._learned.policy.model
    graph, pool = bandit.graph, bandit.arms
    users = np.array([graph.index_of(user) for user, _, _, _ in told])
    arms = np.array([pool.index_of(arm) for _, arm, _, _ in told])
    rewards, examined = (np.array([each[i] for each in told]) for i in (2, 3))
    everybody, everything = np.repeat(np.arange(graph.n_users), len(pool)), np.tile(np.arange(len(pool)), graph.n_users)
    gram = np.outer(examined, examined) * model.kernel.cross(users, arms, users, arms)
    gram += np.diag(model.noise_var / np.broadcast_to(weights, len(told)))
    cross = model.kernel.cross(everybody, everything, users, arms) * examined
    mean = cross @ np.linalg.solve(gram, rewards)
    prior = np.diag(model.kernel.cross(everybody, everything, everybody, everything))
    variance = prior - np.sum(cross * np.linalg.solve(gram, cross.T).T, axis=1)
    return mean.reshape(graph.n_users, -1), np.sqrt(variance).reshape(graph.n_users, -1)


@pytest.mark.parametrize("engine", ["dense", "exact", "grid", "hybrid", "features", "linear", "local"])
def test_given_effects_make_the_posterior_of_rewards_that_are_so_many_times_those_at_the_first(engine: str) -> None:
    kernel = {"arm_kernel": ct.Linear()} if engine == "linear" else {}
    bandit = make(engine=engine, noise_var=0.2, places=EXAMINED, **kernel)
    mean, std = posterior(bandit, played(bandit))
    found = beliefs(bandit)
    np.testing.assert_allclose(found[..., 0], mean, atol=1e-7)
    np.testing.assert_allclose(found[..., 1], std, atol=1e-6)
    np.testing.assert_allclose(beliefs(bandit, place=2), 0.6 * found, atol=1e-12)


@pytest.mark.parametrize(
    ("memory", "name"), [({"forgetting": 0.9}, "f"), ({"window": 6}, "w")], ids=["fades", "window"]
)
def test_given_effects_and_weights_that_fade(memory: dict[str, Any], name: str) -> None:
    del name
    bandit = make(noise_var=0.2, places=EXAMINED, **memory)
    came = played(bandit)
    bandit.explain("ana", "a")  # brings the weights up to date
    weights = bandit._learned.memory.weights(len(came))
    kept = np.flatnonzero(weights)
    mean, std = posterior(bandit, [came[i] for i in kept], weights[kept])
    found = beliefs(bandit)
    np.testing.assert_allclose(found[..., 0], mean, atol=1e-7)
    np.testing.assert_allclose(found[..., 1], std, atol=1e-6)


def test_a_reward_that_is_replaced_counts_as_its_place_does() -> None:
    bandit = make(noise_var=0.2, places=EXAMINED, engine="grid")
    slate = bandit.rank("ana", k=3)
    bandit.reward_many([each.id for each in slate], [1.0, 2.0, 3.0])
    bandit.reward_many([each.id for each in slate], [0.0, 1.0, -1.0], replace=True)
    wanted = make(noise_var=0.2, places=EXAMINED, engine="grid")
    for place, (each, reward) in enumerate(zip(slate, [0.0, 1.0, -1.0], strict=True), start=1):
        wanted.learn("ana", each.arm, reward, place=place)
    np.testing.assert_allclose(beliefs(bandit), beliefs(wanted), atol=1e-9)
    assert list(bandit._learned.events.rewards) == [0.0, 1.0, -1.0]  # what came, not what it is learned as


@pytest.mark.parametrize("policy", ["lk-gp-ucb", "auto-ucb"])
def test_given_effects_stay_through_changes_of_users_and_arms(policy: str) -> None:
    bandit = make(policy=policy, places=EXAMINED)
    came = played(bandit, rounds=6)
    bandit.remove_user("dee")
    bandit.add_arms({"g": [0.3, 0.1]})
    bandit.add_user("eve", {"ana": 1.0})
    learned = bandit._learned
    kept = [each for each in came if each[0] != "dee"]
    assert list(learned.events.examined) == [examined for _, _, _, examined in kept]
    other = learned._make(graph=bandit.graph, arms=bandit.arms, **learned.options)
    other.relearn_with(learned.policy.hyperparameters() or {}, learned.history())
    found = np.array([other.predict(user) for user in bandit.users]).transpose(0, 2, 1)
    np.testing.assert_allclose(beliefs(bandit), found, atol=1e-9)


def test_the_noise_that_is_learned_is_that_of_the_rewards_as_they_came() -> None:
    """A reward at the fifth place, over 0.2, is 25 times as noisy: fits must not take that for the noise."""
    examined = [1.0, 0.6, 0.4, 0.3, 0.2]
    bandit, rng = make(policy="auto-ts", places=examined), np.random.default_rng(0)
    for t in range(60):
        slate = bandit.rank(["ana", "bo", "cy", "dee"][t % 4], k=5)
        paid = [
            e * np.tanh(ARMS[str(each.arm)][0]) + 0.3 * rng.normal() for e, each in zip(examined, slate, strict=True)
        ]
        bandit.reward_many([each.id for each in slate], paid)
    policy = bandit._learned.policy
    assert policy.fits
    assert policy.model.noise_var == pytest.approx(0.09, rel=0.25)


def test_an_explanation_adds_up_with_given_effects() -> None:
    bandit = make(policy="auto-ucb", places=EXAMINED)
    played(bandit)
    explanation = bandit.explain("ana", "a")
    assert explanation.mean == pytest.approx(bandit.predict("ana")["a"][0])
    assert abs(explanation.rest) < 1e-6


def test_pending_places_shrink_the_uncertainty_as_much_as_their_rewards_will() -> None:
    options: dict[str, Any] = {"pending": "hallucinate", "engine": "exact", "noise_var": 0.2, "places": EXAMINED}
    bandit = make(policy="lk-gp-ucb", **options)
    slate = bandit.rank("ana", k=3)
    waiting = bandit.decide("ana").candidates
    for each in slate:
        bandit.reward(each.id, 0.0)
    for arm, (_, std) in bandit.predict("ana").items():
        assert waiting[arm].std == pytest.approx(std)


# The effect of places: learned


def test_the_effect_of_places_is_learned() -> None:
    bandit, rng = make(policy="auto-ucb", places="learned"), np.random.default_rng(0)
    for t in range(50):
        slate = bandit.rank(["ana", "bo"][t % 2], rng.permutation(list("abcdef"))[:3].tolist(), 3)
        paid = [2.0 * e * (1 + 0.3 * ARMS[str(each.arm)][0]) for e, each in zip(EXAMINED, slate, strict=True)]
        bandit.reward_many([each.id for each in slate], [value + 0.05 * rng.normal() for value in paid])
    means = [np.mean([mean for mean, _ in bandit.predict("ana", place=place).values()]) for place in (1, 2, 3)]
    np.testing.assert_allclose(means, [2 * e for e in EXAMINED], atol=0.35)
    slate = bandit.rank("ana", k=3)
    assert slate[1].mean == pytest.approx(bandit.predict("ana", [slate[1].arm], place=2)[slate[1].arm][0], abs=1e-6)


def test_learned_places_with_contexts_of_every_form() -> None:
    named, rows = make(policy="auto-ucb", places="learned"), make(policy="auto-ucb", places="learned")
    for t in range(4):
        slate = named.rank("ana", k=2, context={"hour": 9.0 + t, "device": "phone"})
        named.reward_many([each.id for each in slate], [1.0, 0.0])
        assert slate.context == {"hour": 9.0 + t, "device": "phone"}
        slate = rows.rank("ana", k=2, context=[0.5, float(t)])
        rows.reward_many([each.id for each in slate], [1.0, 0.0])
    assert named.context_schema is not None
    assert [field.name for field in named.context_schema.fields] == ["hour", "device"]  # the place is hidden
    assert named.n_rewards == rows.n_rewards == 8
    with pytest.raises(CoterieError, match="context"):
        named.rank("ana", k=2)
    stated = make(policy="auto-ucb", places="learned", context_schema={"hour": "number"}, request_features=["price"])
    shown = {"a": {"price": 1.0}, "b": {"price": 2.0}, "c": {"price": 0.5}}
    slate = stated.rank("bo", shown, 2, {"hour": 3})
    inputs = [each.input for _, each in stated._ledger.pending()]
    assert [None if each is None else each.tolist()[2:] for each in inputs] == [
        [shown[str(each.arm)]["price"], 3.0, float(place)] for place, each in enumerate(slate, start=1)
    ]


def test_candidates_of_one_request_only_and_ones_that_stay() -> None:
    bandit = make(policy="auto-ts", places="learned")
    slate = bandit.rank("ana", {"a": None, "new": [0.1, 0.2], "newer": [0.3, 0.1]}, 3)
    assert sorted(map(str, slate.arms)) == ["a", "new", "newer"]
    assert len(bandit.arms) == 6
    bandit.reward_many([each.id for each in slate], [1.0, 0.0, 0.5])
    bandit.rank("ana", {"a": None, "new": [0.1, 0.2]}, 2, keep=True)
    assert bandit.arms.ids[6:] == ("new",)


# Kept


KEPT: list[dict[str, Any]] = [
    {"policy": "auto-ts", "places": EXAMINED},
    {"policy": "auto-ts", "places": "learned"},
    {"policy": "lk-gp-ts", "places": EXAMINED, "pending": "hallucinate", "window": 9},
    {"policy": "lk-gp-ts", "min_propensity": 0.05},
]


@pytest.mark.parametrize("options", KEPT, ids=str)
def test_pending_places_are_saved(tmp_path: Path, options: dict[str, Any]) -> None:
    bandit = make(**options)
    played(bandit, rounds=7)
    slate = bandit.rank("ana", k=3)
    bandit.save(tmp_path / "b")
    again = ct.Bandit.load(tmp_path / "b")
    for each in (bandit, again):
        each.reward_many([place.id for place in slate], [1.0, 0.0, 2.0])
    np.testing.assert_array_equal(beliefs(again), beliefs(bandit))
    assert again.rank("bo", k=3) == bandit.rank("bo", k=3)
    assert list(again._learned.events.examined) == list(bandit._learned.events.examined)


@pytest.mark.parametrize("options", KEPT, ids=str)
def test_places_are_journalled_and_replayed(tmp_path: Path, options: dict[str, Any]) -> None:
    bandit = make(journal=tmp_path / "journal", **options)
    bandit.save(tmp_path / "b")
    played(bandit, rounds=6)
    bandit.learn("cy", "b", 0.5, place=3)
    slate = bandit.rank("ana", (each for each in "abdf"), k=3)
    for place in slate:
        again = ct.replay(tmp_path / "b", tmp_path / "journal", decision=place.id)
        assert again == place
        assert again.candidates == place.candidates
    believed = beliefs(bandit)
    del bandit
    loaded = ct.Bandit.load(tmp_path / "b", journal=tmp_path / "journal")
    np.testing.assert_array_equal(beliefs(loaded), believed)
    assert loaded.pending[slate.id + 2] == ("ana", slate.arms[2])


def test_a_bandit_of_given_effects_is_refused_if_a_reward_is_of_no_place(tmp_path: Path) -> None:
    bandit = make(places=EXAMINED)
    played(bandit, rounds=3)
    bandit._learned.events.examined[1] = 0.5
    bandit.save(tmp_path / "b")
    with pytest.raises(SavedFileError, match="of no place"):
        ct.Bandit.load(tmp_path / "b")


# Bad input


def test_what_cannot_be_ranked_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    bandit = make(journal=tmp_path / "journal", places=EXAMINED)
    size, before = (tmp_path / "journal").stat().st_size, beliefs(bandit)
    for k in (0, -2, 2.5, "3", None, True):
        with pytest.raises(ParameterError, match="k is"):
            bandit.rank("ana", k=k)  # type: ignore[arg-type]
    with pytest.raises(CandidatesError, match="k is 3 with 2 candidates"):
        bandit.rank("ana", ["a", "b"], 3)
    with pytest.raises(ParameterError, match="place 4 was asked for"):
        bandit.rank("ana", k=4)
    with pytest.raises(ParameterError, match="place 4 was asked for"):
        bandit.learn("ana", "a", 1.0, place=4)
    with pytest.raises(CoterieError):
        bandit.rank("zoe", k=2)
    with pytest.raises(CandidatesError):
        bandit.rank("ana", ["a", "a", "b"], 2)
    bandit.retire_arms(["f"])
    with pytest.raises(CandidatesError, match="k is 6"):
        make(arms={**ARMS}).rank("ana", ["a", "b", "c", "d", "e"], 6)
    with pytest.raises(CandidatesError, match="retired"):
        bandit.rank("ana", ["a", "f"], 2)
    bandit.revive_arms(["f"])
    assert (bandit.n_decisions, bandit.n_pending, bandit.n_rewards) == (0, 0, 0)
    np.testing.assert_array_equal(beliefs(bandit), before)
    lines = (tmp_path / "journal").read_bytes()[size:].splitlines()
    assert [b"retire_arms" in lines[0], b"revive_arms" in lines[1], len(lines)] == [True, True, 2]


def test_retired_arms_have_no_place() -> None:
    bandit = make()
    bandit.retire_arms(["a", "b"])
    with pytest.raises(CandidatesError, match="k is 5 with 4 candidates"):
        bandit.rank("ana")
    assert set(bandit.rank("ana", k=4).arms) == set("cdef")


@pytest.mark.parametrize(
    "places", ["given", [], [1.0, 0.0], [1.0, 2.0], [1.0, float("nan")], ["1"], 3, [0.5, 0.2], b"1"]
)
def test_effects_of_places_that_are_none_are_refused(places: Any) -> None:
    with pytest.raises(CoterieError, match="places"):
        make(places=places)


def test_effects_of_places_go_with_some_bandits_only() -> None:
    with pytest.raises(ParameterError, match="bernoulli"):
        make(policy="auto-ucb", reward="binary", likelihood="bernoulli", places=EXAMINED)
    with pytest.raises(ParameterError, match="'club'"):
        make(policy="club", places=EXAMINED)
    with pytest.raises(ParameterError, match="places"):
        make(policy="lk-gp-ucb", places="learned")
    assert checked_places(np.array([1.0, 0.5]), "gaussian") == [1.0, 0.5]
