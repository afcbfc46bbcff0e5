"""The whole diagnosis: its words, its pictures, its page and its command say what was found."""

import json
from dataclasses import replace
from functools import partial
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the page needs the extra 'lab'")
from coterie.__main__ import main
from coterie.graphs import UserGraph, make_graph
from coterie.kernels import ArmPool
from coterie.logs import Log, Ragged, load_lastfm, write_log
from coterie.runs.diagnosis import Diagnosis, diagnosis
from coterie.runs.diagnosis.answers import (
    console_lines,
    evidence_words,
    homophily_words,
    payoff_words,
    suggestions,
    verdict,
)
from coterie.runs.diagnosis.homophily import Alike
from coterie.runs.diagnosis.page import write_diagnosis
from coterie.runs.diagnosis.payoff import Simulation
from coterie.runs.diagnosis.pictures import draw_evidence, draw_features, draw_homophily, draw_payoff
from originals import real
from planted import planted_log, with_users_permuted

FEW = Simulation(n_users=20, n_truths=6)
diagnose = partial(diagnosis.diagnose, simulation=FEW)


def small() -> Log:
    return planted_log(n_users=40, each=6)


def without_edges(log: Log) -> Log:
    empty = make_graph("empty", log.graph.n_users)
    return replace(log, graph=UserGraph.from_matrix(empty.weights, users=log.graph.users))


@pytest.fixture(scope="module")
def found() -> Diagnosis:
    return diagnose(small(), name="planted", n_rewirings=39, rounds=80)


def test_a_planted_graph_looks_worth_it(found: Diagnosis) -> None:
    assert found.kernel is not None
    gain = found.kernel.fitted.gains["graph"]
    told = verdict(found)
    assert told.startswith("The graph looks worth an experiment: linked users share ")
    assert f"the rewards are e^{gain:.1f} times likelier with the graph" in told
    assert [each.p_value for each in found.alike] == [1 / 40] * 3


def test_in_a_line_it_is_its_verdict(found: Diagnosis) -> None:
    assert str(found) == f"Diagnosis of planted: {verdict(found)}"


def test_there_is_no_evidence_for_a_permuted_one() -> None:
    dealt = diagnose(with_users_permuted(small(), seed=2), n_rewirings=19, rounds=5)
    assert verdict(dealt).startswith(
        "There is no evidence for the graph: linked users are no more alike than by chance"
    )


def test_the_same_seed_gives_the_same_figures(found: Diagnosis) -> None:
    again = diagnose(small(), name="planted", n_rewirings=39, rounds=80)
    assert json.dumps(again.figures()) == json.dumps(found.figures())


def test_figures_are_those_of_the_parts(found: Diagnosis) -> None:
    figures = json.loads(json.dumps(found.figures(), allow_nan=False))
    assert found.kernel is not None
    assert found.payoff is not None
    hyper = found.kernel.fitted.hyper
    assert figures["log"]["edges"] == small().graph.n_edges
    assert figures["homophily"]["shared"]["observed"] == found.alike[0].observed
    assert figures["kernel"]["laplacian_ridge"] == pytest.approx(exp(hyper.ridge))
    assert figures["kernel"]["shares"]["graph"] == pytest.approx(hyper.shares()["graph"])
    assert figures["kernel"]["sample"] == {"blocks": 1, "users": 40, "pairs": 240, "zeros": 0}
    assert figures["kernel"]["effective_dim"] == pytest.approx(found.kernel.effective_dim)
    assert figures["kernel"]["reward_var"] == pytest.approx(small().events.reward.var())
    assert figures["payoff"]["pays_from"] == found.payoff.pays_from
    assert (figures["payoff"]["n_users"], figures["payoff"]["rounds"], figures["payoff"]["n_truths"]) == (20, 80, 6)


def test_words_have_the_figures(found: Diagnosis) -> None:
    assert found.kernel is not None
    shared, _, opinions = found.alike
    words = homophily_words(found)
    assert f"share {shared.observed:.2f} positives, those of rewired graphs {shared.expected:.2f}" in words[0]
    assert f"correlate by {opinions.observed:.3f}" in words[2]
    assert "above" in words[-1]
    assert "of 39 rewirings" in words[-1]
    evidence = evidence_words(found.kernel, found.question)
    assert len(evidence) == 5
    assert evidence[0].startswith("Judged are the rewards as they are")
    assert "240 pairs of 40 users" in evidence[-1]
    assert "drawn" not in evidence[-1]
    table = {name: (value, meaning) for name, value, meaning in suggestions(found.kernel)}
    assert table["laplacian_ridge (rho)"][0] == f"{exp(found.kernel.fitted.hyper.ridge):.3g}"
    assert table["linear share"][1] == "a linear model of the features will do"
    assert table["features"] == ("2 of 3", "so many explain as much as all: sweet, hot")


def test_features_that_hardly_tell_are_called_so(found: Diagnosis) -> None:
    assert found.kernel is not None
    report = replace(found.kernel.features, losses=np.array([1.0, 0.5, 0.0]), kept_losses=np.array([2.0, 1.0, 0.0]))
    kernel = replace(found.kernel, features=report)
    assert ("features", "1 of 3", "features say little: none of them is clearly missed") in suggestions(kernel)
    assert [draw_features(each).axes[1].get_yscale() for each in (kernel, found.kernel)] == ["linear", "symlog"]


def test_less_likely_and_about_as_likely_are_told_apart(found: Diagnosis) -> None:
    assert found.kernel is not None
    gains = {"graph": 12.34, "own": -5.0, "common": 0.4}
    told = evidence_words(replace(found.kernel, fitted=replace(found.kernel.fitted, gains=gains)), "rewards")[1:]
    assert told[0].startswith("The rewards are e^12.3 times likelier with the part that follows the graph")
    assert told[1].startswith("The rewards are e^5.0 times less likely with")
    assert told[2].startswith("The rewards are about as likely with")


def test_homophily_without_evidence_is_not_clear(found: Diagnosis) -> None:
    assert found.kernel is not None
    weak = replace(found.kernel, fitted=replace(found.kernel.fitted, gains={"graph": 0.1}))
    assert verdict(replace(found, kernel=weak)).startswith("The graph may help, not clearly")
    faint = [Alike(name="lift", observed=1.05, rewired=np.full(39, 1.0))]
    told = verdict(replace(found, kernel=weak, alike=faint))
    assert told.startswith("There is little evidence for the graph: linked users share 1.05 times what rewired ones do")
    opinions = [Alike(name="opinions", observed=0.25, rewired=np.full(39, 0.01))]
    told = verdict(replace(found, kernel=weak, alike=opinions))
    assert told.startswith(
        "The graph may help, not clearly: linked users judge alike what both have met (correlation 0.25"
    )
    chance = [Alike(name="lift", observed=1.0, rewired=np.array([0.9, 1.1]))]
    assert verdict(replace(found, alike=chance)).startswith(
        "The graph may help: linked users are no more alike than by chance"
    )


def test_payoff_in_words(found: Diagnosis) -> None:
    assert found.payoff is not None
    gap = np.tile(np.arange(1.0, 81.0), (6, 1)) - 40.5 + np.arange(6)[:, None] * 1e-3
    late = replace(found.payoff, with_graph=gap, without=np.zeros_like(gap))
    assert payoff_words(late, 400)[0].startswith("From round 41 on (2.0 a user) the graph is ahead")
    assert "For all 400 users, served alike, that would be about 820 rounds" in payoff_words(late, 400)[0]
    never = replace(late, with_graph=-gap)
    assert payoff_words(never, 400)[0].startswith("Not within 80 rounds (4 a user).")
    assert "does not clearly pay off within 4 rounds a user" in verdict(replace(found, payoff=never))


def test_without_clear_evidence_the_payoff_says_so_first(found: Diagnosis, tmp_path: Path) -> None:
    assert found.kernel is not None
    weak = replace(found, kernel=replace(found.kernel, fitted=replace(found.kernel.fitted, gains={"graph": 0.1})))
    lines = list(console_lines(weak))
    after = lines[lines.index("When does the graph pay off?") + 1]
    assert after.startswith("There is no clear evidence for the graph. What follows is simulated as if")
    assert "simulated" not in verdict(weak)
    assert any("share of the graph" in line and "not clear, none fits about as well" in line for line in lines)
    assert "no clear evidence for the graph" in write_diagnosis(weak, tmp_path, command="again").read_text()
    assert not any("not clear, none" in line or "no clear evidence" in line for line in console_lines(found))


def _lines(axes: Any) -> list[np.ndarray]:
    return [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]


def test_picture_of_homophily_shows_rewirings_and_the_graph(found: Diagnosis) -> None:
    for panel, each in zip(draw_homophily(found.alike).axes, found.alike, strict=True):
        assert sum(bar.get_height() for bar in panel.patches) == 39
        assert list(panel.lines[0].get_xdata()) == [each.observed] * 2
        low, high = panel.get_xlim()
        assert low < min(each.observed, each.rewired.min())
        assert high > max(each.observed, each.rewired.max())


def test_picture_of_evidence_shows_shares_and_gains(found: Diagnosis) -> None:
    assert found.kernel is not None
    left, right = draw_evidence(found.kernel).axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx(
        [100 * share for share in found.kernel.fitted.hyper.shares().values()]
    )
    assert [bar.get_width() for bar in right.patches] == pytest.approx(list(found.kernel.fitted.gains.values()))
    assert right.get_xlim()[1] > max(found.kernel.fitted.gains.values())


def test_picture_of_features_shows_losses_numbers_kept_and_eigenvalues(found: Diagnosis) -> None:
    assert found.kernel is not None
    left, middle, right = draw_features(found.kernel).axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx(found.kernel.features.losses.tolist())
    assert [label.get_text() for label in left.get_yticklabels()] == found.kernel.features.names
    assert _lines(middle)[0] == pytest.approx(found.kernel.features.kept_losses)
    assert middle.get_ylim()[1] > found.kernel.features.kept_losses.max()
    seen = found.kernel.eigenvalues[found.kernel.eigenvalues > 1e-3]
    assert _lines(right)[0] == pytest.approx(seen)
    assert right.lines[2].get_xdata()[0] == pytest.approx(found.kernel.effective_dim)


def test_picture_of_the_payoff_shows_both_curves_and_their_difference(found: Diagnosis) -> None:
    assert found.payoff is not None
    left, right = draw_payoff(found.payoff).axes
    with_graph, without = _lines(left)
    assert with_graph == pytest.approx(found.payoff.with_graph.mean(axis=0))
    assert without == pytest.approx(found.payoff.without.mean(axis=0))
    assert _lines(right)[0] == pytest.approx(found.payoff.ahead)
    assert len(right.lines) == (2 if found.payoff.pays_from is None else 3)


def test_the_page_has_every_picture_and_every_line_in_itself(found: Diagnosis, tmp_path: Path) -> None:
    page = write_diagnosis(found, tmp_path, command="coterie diagnose <here>").read_text(encoding="utf-8")
    assert page.count("<svg role=") == 4
    assert "http" not in page
    assert "coterie diagnose &lt;here&gt;" in page
    assert found.kernel is not None
    for name, value, _ in suggestions(found.kernel):
        assert f'<td class="words">{name}</td><td>{value}</td>' in page


def test_without_edges_the_rest_is_told() -> None:
    lone = diagnose(without_edges(small()), rounds=5)
    assert verdict(lone) == "There is no graph to judge: the log has no edges."
    assert lone.missing[0].startswith("There are no edges")
    assert lone.payoff is None
    assert lone.kernel is not None
    assert lone.kernel.fitted.hyper.shares()["graph"] < 0.01
    assert "share of the graph" not in {name for name, _, _ in suggestions(lone.kernel)}
    assert [len(axes.patches) for axes in draw_evidence(lone.kernel).axes] == [2, 2]


def test_without_features_homophily_is_told(tmp_path: Path) -> None:
    log = small()
    bare = diagnose(replace(log, arms=log.arm_ids), n_rewirings=19)
    assert bare.kernel is None
    assert bare.payoff is None
    assert bare.missing[0].startswith("Arms have no features")
    assert verdict(bare).startswith("Linked users share ")
    page = write_diagnosis(bare, tmp_path, command="again").read_text(encoding="utf-8")
    assert page.count("<svg role=") == 1
    assert any("Arms have no features" in line for line in console_lines(bare))


def test_what_cannot_be_told_of_odd_logs_is_said() -> None:
    log = small()
    complete = UserGraph.from_matrix(make_graph("complete", 40).weights, users=log.graph.users)
    bare = diagnose(replace(log, graph=complete, arms=log.arm_ids), n_rewirings=2)
    assert bare.missing[0].startswith("No edge can be rewired")
    lone = UserGraph.from_edges([log.graph.users[:2]], users=log.graph.users)
    assert diagnose(replace(log, graph=lone, arms=log.arm_ids)).missing[0].startswith("There are too few edges")
    same = ArmPool(np.ones((30, 2)), ids=log.arm_ids)
    assert diagnose(replace(log, arms=same), n_rewirings=2, rounds=5).missing[0].startswith("All arms have the same")


def test_as_many_candidates_are_shown_as_were_logged() -> None:
    log = small()
    lists = Ragged.of([[int(arm), (int(arm) + 1) % 30, (int(arm) + 2) % 30] for arm in log.events.arm])
    shown = diagnosis._shown(replace(log, events=replace(log.events, candidates=lists)), 10)
    assert shown == 3
    assert diagnosis._shown(log, 10) == 10


def test_zeros_that_were_drawn_are_said() -> None:
    one = diagnose(planted_log(n_users=40, each=6, one_class=True), n_rewirings=2, rounds=5)
    assert one.kernel is not None
    assert one.kernel.n_zeros == one.kernel.n_pairs // 2
    told = evidence_words(one.kernel, one.question)
    assert f"{one.kernel.n_zeros} of these pairs are drawn" in told[-1]
    assert "against what they never had" in told[0]
    assert "A positive is any event" in homophily_words(one)[-1]


def test_the_command_prints_writes_the_page_and_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = planted_log(n_users=20, each=5)
    write_log(replace(log, arms=log.arm_ids), tmp_path / "shop")  # without features it is quick
    monkeypatch.chdir(tmp_path)
    code = main(["diagnose", "shop", "--json", "figures.json", "--rewirings", "5", "--rounds", "20"])
    told = capsys.readouterr().out
    assert code == 0
    assert "Are linked users alike?" in told
    assert "The page: diagnosis-shop/report.html" in told
    assert "coterie diagnose shop --seed 0 --rounds 20 --rewirings 5" in Path("diagnosis-shop/report.html").read_text()
    assert json.loads(Path("figures.json").read_text())["log"]["name"] == "shop"


def test_only_an_earlier_diagnosis_of_the_same_log_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = planted_log(n_users=20, each=5)
    for name in ("a&b", "other"):
        write_log(replace(log, arms=log.arm_ids), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    given = ["--rewirings", "2", "--out", "page"]
    assert [main(["diagnose", "a&b", *given]) for _ in range(2)] == [0, 0]
    assert capsys.readouterr().out.count("The page, written again: page/report.html") == 1
    before = Path("page/report.html").read_text()
    assert main(["diagnose", "other", *given]) == 2
    assert "'page' holds another report" in capsys.readouterr().err
    assert Path("page/report.html").read_text() == before


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = planted_log(n_users=20, each=5)
    few = replace(log.events, user=log.events.user[:4], arm=log.events.arm[:4], reward=log.events.reward[:4])
    write_log(replace(log, events=few), tmp_path / "few")
    assert main(["diagnose", str(tmp_path / "few")]) == 2
    assert "the log has 4 events; a diagnosis needs at least 20" in capsys.readouterr().err
    assert main(["diagnose", str(tmp_path / "nowhere")]) == 2


@pytest.mark.slow
def test_last_fm_is_homophilous_and_the_evidence_sees_it() -> None:
    log = load_lastfm(real("hetrec2011-lastfm-2k")).log()
    assert isinstance(log.arms, ArmPool)
    found = diagnose(log, rounds=50)
    shared = found.alike[0]
    assert shared.observed == pytest.approx(8.74, abs=0.01)
    assert shared.ratio == pytest.approx(1.93, abs=0.03)
    assert shared.p_value == 0.01
    assert found.kernel is not None
    assert found.kernel.fitted.gains["graph"] > 3
    assert diagnose(with_users_permuted(log), rounds=50).kernel.fitted.gains["graph"] < 3  # type: ignore[union-attr]


@pytest.mark.parametrize("rewired", [1.0 + 1e-16 * np.arange(20), np.zeros(5), np.linspace(0.9, 1.1, 30)])
def test_rewirings_that_are_all_alike_are_drawn_too(rewired: Any) -> None:
    each = Alike(name="shared", observed=float(rewired[0]), rewired=rewired)
    assert len(draw_homophily([each]).axes) == 1
