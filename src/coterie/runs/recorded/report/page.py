"""The page of a study on logs: what is on it, in which order."""

from collections.abc import Iterator
from pathlib import Path

from coterie.runs.recorded.outcome import LogWorld, Outcome
from coterie.runs.recorded.report.figures import draw_outcome
from coterie.runs.recorded.report.tables import tables
from coterie.runs.recorded.report.words import answer
from coterie.runs.report.page import settings_section
from coterie.runs.report.sheet import Section, write_page
from coterie.runs.report.words import counted


def write_log_report(outcome: Outcome, folder: Path) -> Path:
    """Returns the path of folder/report.html, written with its pictures beside it in folder/figures."""
    sections = [
        Section(title="What was run", points=list(_setup(outcome))),
        Section(title="Pictures", pictures=draw_outcome(outcome, folder / "figures")),
        *(Section(title=table.title, tables=[table]) for table in tables(outcome)),
        settings_section(outcome.study.as_dict()),
        Section(
            title="How to run it again",
            paragraphs=[f"It ran on {', '.join(f'{name} {version}' for name, version in outcome.versions.items())}."],
            commands=["coterie run manifest.json --out again"],
        ),
    ]
    return write_page(folder / "report.html", title=outcome.study.title, answer=answer(outcome), sections=sections)


def _setup(outcome: Outcome) -> Iterator[str]:
    for world in outcome.worlds:
        yield _world_line(outcome, world)
        for what, count in world.facts.get("left_out", {}).items():
            if world is outcome.worlds[0]:
                yield f"Left out of the log: {what}, {count:,}."
    if outcome.study.left_out:
        yield f"Too slow for a quick run, and left out: {', '.join(outcome.study.left_out)}."
    yield "Settings are those of the study file; the run itself tunes none."
    yield "Every policy met the same users and candidates; a trial is one seed."


def _world_line(outcome: Outcome, world: LogWorld) -> str:
    facts, settings = world.facts, world.settings
    people = f"{facts['n_users']:,} users, {facts['n_edges']:,} edges"
    log = f"{people}, {facts['n_arms']:,} arms of {facts['dimension']} features"
    trials = f"{facts['rounds']:,} rounds, {counted(outcome.study.trials, 'trial')}"
    online = settings["online_features"]
    own = f"; learners see their own past as features: {', '.join(online)}" if online else ""
    if world.replays:
        return f"{world.name}: {log}; candidates as logged, learned where the choice was the logged one; {trials}{own}."
    short = f" ({facts['n_short']:,} more have too few arms left)" if facts.get("n_short") else ""
    served = f"{facts['n_served']:,} users with at least {settings['least_positives']} positives come{short}"
    how = "uniformly" if settings["negatives"] == "uniform" else "in proportion to popularity"
    shown = f"{settings['n_candidates']} candidates, one of them liked, the others drawn {how}"
    return f"{world.name}: {log}; {served}; {shown}; {trials}{own}."
