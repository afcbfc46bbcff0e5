"""Costs of the engines and effective dimension by family, on sizes too small to be slow."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie.graphs import FAMILIES
from coterie.runs.paper.experiments import engines, families
from coterie.runs.paper.reproduce import COMPUTED

SMALL = {
    "engines": engines.EnginesSettings(horizons=(5, 10), fixed_horizon=5, n_users=(9, 18), fixed_users=9),
    "families": families.FamiliesSettings(n_users=9, times=(5, 20, 60), repeats=1),
}
SCALING = COMPUTED["scaling"]


@pytest.fixture(scope="module")
def record() -> Any:
    return SCALING.run(True, lambda _: None, SMALL)


def test_every_engine_is_measured_in_time_and_memory(record: Any) -> None:
    for part, points in (("rounds", 2), ("users", 2)):
        lines = record["engines"][part]
        assert [line["engine"] for line in lines] == list(engines.ENGINES)
        for line in lines:
            for key in ("microseconds", "held_mib", "peak_mib"):
                assert len(line[key]) == points
                assert min(line[key]) > 0


def test_memory_is_what_the_belief_holds_and_more(record: Any) -> None:
    for line in record["engines"]["users"]:
        assert all(peak >= 0.9 * held for peak, held in zip(line["peak_mib"], line["held_mib"], strict=True))
    grid = next(line for line in record["engines"]["users"] if line["engine"] == "grid")
    assert grid["held_mib"][-1] >= 8 * (18 * 20) ** 2 / 2**20


def test_every_family_has_its_effective_dimension(record: Any) -> None:
    lines = {line["family"]: line for line in record["families"]["lines"]}
    assert list(lines) == list(FAMILIES)
    for line in lines.values():
        assert np.all(np.diff(line["gain"]) > 0)
    assert lines["complete"]["dim"][-1] < lines["ring"]["dim"][-1] < lines["empty"]["dim"][-1]
    assert lines["empty"]["max_variance"] == pytest.approx(10.0)


def test_findings_judge_no_claim(record: Any) -> None:
    assert record["findings"]
    assert not any("verdict" in each for each in record["findings"])
    assert all(name in record["findings"][0]["evidence"] for name in engines.ENGINES)


def test_the_record_is_small_json(record: Any) -> None:
    assert len(json.dumps(record, allow_nan=False)) < 60_000


@pytest.mark.parametrize("name", sorted(SCALING.parts))
def test_pictures_are_drawn_from_a_stored_record(record: Any, name: str, tmp_path: Path) -> None:
    stored = json.loads(json.dumps(record))
    for drawn in SCALING.parts[name].draw(stored[name], tmp_path):
        assert drawn.title
        assert drawn.caption
        assert drawn.png.read_bytes().startswith(b"\x89PNG")
        assert "</svg>" in drawn.svg.read_text()
