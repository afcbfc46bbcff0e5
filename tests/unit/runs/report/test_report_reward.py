"""What the report of a study on logs says: did the graph help, by how much, for whom, and what could not be."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.runs.report import real_data
from coterie.runs.report.figures import draw_rewards
from coterie.runs.report.page import write_report
from coterie.runs.report.real_data import summary_of
from coterie.runs.report.reward import answer, best_without_graph, by_visit, gain, over_time, sentence, thirds
from coterie.runs.report.tables import reward_tables
from coterie.runs.results import LogResults, Results
from coterie.runs.study import Study, study_from

GRAPHS = {"auto-ucb": "shown", "auto, permuted": "permuted", "auto, rewired": "rewired", "auto, none": "none"}


def study(trials: int = 5, **changes: Any) -> Study:
    autos = [{"policy": "auto-ucb", "label": label, "graph": graph} for label, graph in GRAPHS.items()]
    policies = [*autos, {"policy": "popularity"}, {"policy": "random"}]
    worlds = [{"name": name, "data": "plain", "negatives": name, "horizon": 600} for name in ("uniform", "popularity")]
    return study_from({"trials": trials, "worlds": worlds, "policies": policies, **changes})


def world(name: str, chances: Mapping[str, float], *, trials: int = 5, more_for_many: float = 0.0) -> LogResults:
    """Returns a world in which policies hit with these chances; `more_for_many` comes on top for users of degree 9."""
    rng = np.random.default_rng(0)
    users = [rng.integers(20, size=600) for _ in range(trials)]
    degrees = {trial: np.where(users[trial] < 7, 1, np.where(users[trial] < 14, 4, 9)) for trial in range(trials)}

    def rewards(policy: str, chance: float, trial: int) -> Any:
        own = more_for_many * (degrees[trial] == 9) if policy == "auto-ucb" else 0.0
        return (rng.random(600) < chance + own).astype(float)

    return LogResults(
        name=name,
        settings={
            "negatives": name,
            "protocol": "one-positive",
            "data": "plain",
            "folder": "/home/me/log",
            "n_candidates": 25,
            "least_positives": 10,
            "online_features": ["popularity"],
        },
        facts={
            "n_users": 20,
            "n_edges": 30,
            "n_arms": 40,
            "dimension": 3,
            "rounds": 600,
            "n_served": 20,
            "n_short": 2,
            "left_out": {"ratings": 7},
        },
        rewards={
            policy: {trial: rewards(policy, chance, trial) for trial in range(trials)}
            for policy, chance in chances.items()
        },
        visits={
            trial: np.array([np.sum(users[trial][:t] == user) for t, user in enumerate(users[trial])])
            for trial in range(trials)
        },
        degrees=degrees,
        seconds={policy: dict.fromkeys(range(trials), 0.002) for policy in chances},
        memory=dict.fromkeys(chances, 2**28),
    )


HELPS = {
    "auto-ucb": 0.3,
    "auto, permuted": 0.15,
    "auto, rewired": 0.2,
    "auto, none": 0.15,
    "popularity": 0.1,
    "random": 0.04,
}


def results(first: Mapping[str, float] = HELPS, *, trials: int = 5, **changes: Any) -> Results:
    logs = {
        "uniform": world("uniform", first, trials=trials, more_for_many=0.3),
        "popularity": world("popularity", dict.fromkeys(HELPS, 0.1), trials=trials),
    }
    made = study(trials, **changes)
    return Results(name=made.name, title=made.title, settings=made.as_dict(), versions={"coterie": "1"}, logs=logs)


def uniform(found: Results) -> LogResults:
    return found.logs["uniform"]


def test_the_sentence_says_whether_how_much_for_whom_and_names_the_controls() -> None:
    helped, chance = (sentence(results(), each) for each in results().logs.values())
    assert helped.startswith("Others drawn uniformly: the graph helped auto-ucb: 0.39")
    assert "without (+0.2" in helped
    assert "times)" in helped
    assert "as controls, 0.1" in helped
    assert "with users permuted and 0.1" in helped
    assert "most for users with 9 friends (+0.4" in helped
    assert helped.endswith(". No policy got more than auto-ucb.")
    assert "made no difference to auto-ucb beyond chance" in chance
    assert "most for" not in chance


def test_a_gain_that_a_rewired_graph_has_too_is_not_the_friends() -> None:
    same = {**HELPS, "auto, rewired": 0.4}
    told = sentence(results(same), uniform(results(same)))
    assert "how many friends users have helped auto-ucb, not who they are" in told
    assert "the graph helped" not in told
    assert "so that" not in sentence(results(), uniform(results()))


def test_the_best_policy_is_named_when_it_is_another() -> None:
    better = {**HELPS, "popularity": 0.6}
    assert "The best was popularity, 0." in sentence(results(better), uniform(results(better)))


def test_what_was_learned_is_shown_fit_by_fit() -> None:
    fit = dict.fromkeys(("graph", "own", "common", "linear", "ridge", "lengthscale", "noise", "offset"), 0.25)
    found = results()
    first = replace(uniform(found), fits={"auto-ucb": {0: [{"rewards": 8, **fit}, {"rewards": 16, **fit}]}})
    told = [
        each
        for each in reward_tables(replace(found, logs={"uniform": first}))
        if each.title.startswith("What was learned")
    ]
    assert [row[0] for row in told[0].rows] == ["8", "16"]
    assert told[0].rows[0][1] == "25%"


def test_a_gain_that_comes_mostly_with_a_wrong_graph_too_is_said_to() -> None:
    most = {**HELPS, "auto, permuted": 0.33}  # with the graph it comes to 0.4
    assert "most of it comes with a wrong graph too" in sentence(results(most), uniform(results(most)))


def test_a_graph_that_hurts_is_said_to() -> None:
    told = sentence(results({**HELPS, "auto, none": 0.7}), uniform(results({**HELPS, "auto, none": 0.7})))
    assert "the graph hurt auto-ucb" in told


def test_one_trial_is_too_few_and_a_quick_or_unfinished_run_says_so() -> None:
    told = answer(results(trials=1, quick=True))
    assert "A quick run, 1 trial" in told
    assert "too few to say whether by chance" in told
    assert "Unfinished" not in told
    whole = results()
    lost = {**whole.logs, "uniform": replace(uniform(whole), rewards={})}
    assert "Unfinished: 30 of 60 runs are missing." in answer(replace(whole, logs=lost))


@pytest.mark.parametrize("other", [0.01, 0.9])
def test_with_too_few_trials_the_graph_neither_helped_nor_hurt(other: float) -> None:
    found = results({**HELPS, "auto, none": other}, trials=1)
    said = sentence(found, uniform(found))
    assert "whether the graph helped auto-ucb cannot be judged yet: 0.4" in said
    assert "1 trial, too few to say whether by chance" in said
    assert not any(words in said for words in ("the graph helped auto-ucb:", "hurt", "most for", "so that"))


def test_trials_of_a_replay_give_no_interval_and_no_verdict() -> None:
    made = results()
    first = uniform(made)
    found = replace(made, logs={"replay": replace(first, settings={**first.settings, "protocol": "replay"})})
    said = answer(found)
    assert "whether the graph helped auto-ucb cannot be judged here: 0.39" in said
    assert said.endswith(
        "All trials of a replay read the same log, so no interval is known; `coterie evaluate` gives intervals."
    )
    assert not any(words in said for words in ("the graph helped auto-ucb:", "[", "too few", "most for"))
    rates, by_degree, *_ = reward_tables(found)
    row = dict(zip(rates.columns, rates.rows[0], strict=True))
    assert row["a round"].endswith(" ± -")
    assert row["against none"].endswith(" [-]")
    assert "read the same log" in rates.note
    assert "bootstrap" not in rates.note
    assert all(row[4].endswith(" [-]") for row in by_degree.rows)
    (summary,) = summary_of(found)["worlds"]
    assert all(each["rate"]["std_err"] is None for each in summary["policies"])
    assert summary["policies"][0]["against_none"]["gap"]["interval"] is None


def test_pairs_are_pairs_of_the_same_rounds() -> None:
    found = uniform(results())
    first = gain(found, "auto-ucb", "auto, none")
    assert first is not None
    each = [found.rewards["auto-ucb"][trial].mean() - found.rewards["auto, none"][trial].mean() for trial in range(5)]
    assert first.gap.mean == pytest.approx(np.mean(each))
    assert first.gap.interval is not None
    assert gain(found, "auto-ucb", "nobody") is None


def test_thirds_cover_all_rounds_once() -> None:
    found = uniform(results())
    names = [name for name, _ in thirds(found, "auto-ucb", "auto, none", "degree")]
    assert names == ["1", "4", "9"]
    gaps = [part.gap.mean for _, part in thirds(found, "auto-ucb", "auto, none", "degree")]
    assert gaps[2] > 2 * gaps[0]
    visits = [name for name, _ in thirds(found, "auto-ucb", "auto, none", "visits")]
    assert visits[0].startswith("1 to ")
    assert len(visits) == 3


def test_curves_are_means_of_the_right_rounds() -> None:
    found = uniform(results())
    ends, rates = over_time(found, "random")
    assert ends[-1] == 600
    assert rates[0] == pytest.approx(np.mean([found.rewards["random"][trial][:30].mean() for trial in range(5)]))
    numbers, hits = by_visit(found, "random")
    assert numbers[0] == 1
    firsts = np.concatenate([found.rewards["random"][trial][found.visits[trial] == 0] for trial in range(5)])
    assert hits[0] == pytest.approx(firsts.mean())


@pytest.mark.parametrize("unused", [1, 10_000])
def test_a_replay_that_used_no_first_visit_has_no_curve_by_visits(unused: int) -> None:
    """Neither has one that used no row at all."""
    found = uniform(results())
    known = found.rewards["random"]
    rewards = {trial: np.where(found.visits[trial] < unused, np.nan, known[trial]) for trial in known}
    numbers, hits = by_visit(replace(found, rewards={"random": rewards}), "random")
    assert len(numbers) == len(hits) == 0


def test_a_visit_with_few_rewards_does_not_end_the_curve_by_visits() -> None:
    visits = np.repeat([0, 1, 2, 3, 4], [20, 18, 9, 25, 3])
    rewards = (visits == 3).astype(float)
    short = replace(uniform(results()), visits={0: visits}, rewards={"random": {0: rewards}})
    numbers, hits = by_visit(short, "random")
    assert numbers.tolist() == [1, 2, 4]
    assert hits.tolist() == [0, 0, 1]


def test_the_best_without_a_graph_is_found() -> None:
    assert best_without_graph(results(), uniform(results())) == "auto, none"


def test_tables_compare_each_policy_with_itself_without_a_graph() -> None:
    first, second, by_degree, by_visits = reward_tables(results())
    assert first.title == "Reward: others drawn uniformly"
    rows = {row[0]: row for row in first.rows}
    assert next(iter(rows)) == "auto-ucb"
    assert rows["auto-ucb"][3].startswith("+0.2")
    assert rows["auto, none"][3] == rows["popularity"][3] == "-"
    assert rows["random"][4:] == ("2.00", "256")
    assert len(by_degree.rows) == len(by_visits.rows) == 6
    assert second.title == "Reward: others drawn by popularity"


def test_the_page_holds_the_sentence_the_pictures_and_what_was_left_out(tmp_path: Path) -> None:
    made = results(quick=True, left_out=["lk-gp-ts"])
    page = write_report(made, tmp_path).read_text(encoding="utf-8")
    assert "the graph helped auto-ucb" in page
    assert page.index("The reward of a round is 1") < page.index("<svg") < page.index("<table")
    assert "Too slow for a quick run, and left out: lk-gp-ts." in page
    assert "2 more have too few arms left" in page
    assert "Left out of the log: ratings, 7." in page
    assert page.count("<svg") == 3
    assert sorted(path.name for path in (tmp_path / "figures").glob("*.png")) == [
        "cold-start.png",
        "over-time.png",
        "reward.png",
    ]


def test_a_failure_is_in_the_tables(tmp_path: Path) -> None:
    made = results()
    failed = replace(uniform(made), failed={"club": "too large"})
    found = replace(made, logs={"uniform": failed})
    assert list(reward_tables(found))[-1].rows == (("uniform", "club", "too large"),)
    assert draw_rewards(found, tmp_path)[0].title == "Reward in all"


def test_the_page_of_real_data_is_made_of_summaries_alone(tmp_path: Path) -> None:
    made = summary_of(results())
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "mine.json").write_text(json.dumps(made))
    assert real_data.main([str(tmp_path / "real"), str(tmp_path / "real-data.md")]) == 0
    page = (tmp_path / "real-data.md").read_text()
    assert "    coterie run DIR --trials 5 --seed 0" in page
    assert "- Others drawn uniformly: the graph helped auto-ucb" in page
    assert "| auto-ucb | 0.39" in page
    assert "The best without a graph is auto, none; with it 2." in page
    assert "| others drawn uniformly | neighbours | 9 |" in page
    assert "It took 0.0 hours on one core, 0.2 GiB" in page
    assert real_data.page([made]) == page


def summary_with(name: str, rates: dict[str, float], times: float) -> dict[str, Any]:
    policies = [{"policy": policy, "rate": {"mean": rate}} for policy, rate in rates.items()]
    against = {"best_without_graph": "gp-ucb", "against_best_without_graph": {"times": times}}
    return {"name": name, "quick": False, "worlds": [{"name": "uniform", "policies": policies, **against}]}


def test_goals_are_met_or_not_by_what_was_found() -> None:
    rates = {"auto-ucb": 0.36, "auto-ucb, no graph": 0.3, "auto-ucb, users permuted": 0.28, "gob-lin": 0.37}
    assert list(real_data.goals(summary_with("lastfm", rates, 1.2))) == [
        ("uniform", "`auto-ucb` hits at least 0.35", "0.360", "yes"),
        ("uniform", "1.15 times the best without a graph", "1.20 (`gp-ucb`)", "yes"),
        ("uniform", "above `gob-lin`", "0.370", "**no**"),
        (
            "uniform",
            "`auto-ucb, users permuted` loses at most 5 % to `auto-ucb, no graph`",
            "0.280 for 0.300, loses 6.7%",
            "**no**",
        ),
    ]
    asked = "`auto-ucb` loses at most 5 % to `auto-ucb, no graph`"
    assert list(real_data.goals(summary_with("deezer", rates, 1.2))) == [
        ("uniform", asked, "0.360 for 0.300, gains 20.0%", "yes")
    ]
    assert not list(real_data.goals(summary_with("mine", rates, 1.2)))
    assert not list(real_data.goals({**summary_with("lastfm", rates, 1.2), "quick": True}))


def test_no_path_of_a_machine_gets_into_a_summary() -> None:
    assert "/home/me" in str(uniform(results()).settings)
    assert "/home/me" not in json.dumps(summary_of(results()))
