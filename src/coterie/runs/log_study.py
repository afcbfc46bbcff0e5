"""The study of Last.fm on any log: a folder of edges, arms and events."""

import re
import tomllib
from pathlib import Path
from typing import Any

from coterie.errors import SettingError
from coterie.logs import Log
from coterie.policies.online import LEVELS
from coterie.problems.recorded import can_ask_for_positives
from coterie.runs.study import Study, study_from
from coterie.runs.worlds import LogSettings, log_of

# Pairs of a user and an arm at a level up to which a matrix over all of them is small beside everything else.
SMALL = 3000
FOUND_BY_HAND = "as on Last.fm"  # of settings that were found there: no log has them as a default


def study_of_folder(folder: Path, like: Path) -> Study:
    """Returns the study in the file `like` on the log in this folder; candidates that were logged are replayed too."""
    log = log_of("plain", str(folder))
    given = tomllib.loads(like.read_text(encoding="utf-8"))
    name = re.sub(r"[^A-Za-z0-9._=+-]+", "-", folder.resolve().name).strip("-.") or "log"
    learners = given.get("learners", {}) if _pairs(log) > SMALL else {}
    return study_from(
        {
            **given,
            "name": name,
            "title": f"{name}: would the graph have helped?",
            "learners": learners,
            "policies": [_renamed(each) for each in given["policies"]],
            "worlds": _worlds(log, folder, given["worlds"]),
        }
    )


def _renamed(policy: dict[str, Any]) -> dict[str, Any]:
    """Returns the entry of a policy; one with settings of its own says whose they are."""
    if not {"noise_var", "width", "laplacian_ridge"} & set(policy):
        return policy
    return {**policy, "label": f"{policy.get('label', policy['policy'])}, {FOUND_BY_HAND}"}


def _worlds(log: Log, folder: Path, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the worlds that this log can be: one positive among others, both ways, and what was logged."""
    here = {"data": "plain", "folder": str(folder)}
    candidates = min(LogSettings().n_candidates, max(len(log.arm_ids) // 2, 2))
    worlds = []
    if can_ask_for_positives(log):
        worlds += [{**each, **here, "n_candidates": candidates} for each in given]
    if log.events.candidates is not None:
        features = given[0]["online_features"]
        worlds.append({"name": "replay", "protocol": "replay", "online_features": features, **here})
    if not worlds:
        least = LogSettings().least_positives
        raise SettingError(
            f"the log in {str(folder)!r} has no candidates, and no user with {least} positives",
            "a study draws candidates around what users liked (a reward above 0), or replays those that were logged",
            "Log candidates, or write a study file with fewer least_positives (docs/studies.md)",
            key="data",
        )
    return worlds


def _pairs(log: Log) -> int:
    return log.graph.n_users * len(log.arm_ids) * LEVELS["popularity"].n_levels
