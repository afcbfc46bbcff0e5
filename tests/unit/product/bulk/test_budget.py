"""Memory: what is needed is told before the work, and less of it means smaller batches."""

from dataclasses import replace

import pytest

from coterie.errors import MemoryLimitError, ParameterError
from coterie.policies.reward_batches import WAITING
from coterie.product.bulk.budget import (
    BASE,
    FEWEST_ROWS,
    FEWEST_SCORES,
    FEWEST_WAITING,
    FitSizes,
    Reading,
    fit_reading,
    in_bytes,
    peak_memory,
    read_size,
    score_block,
)
from coterie.product.bulk.sources import ROWS
from coterie.product.scoring import BLOCK

SIZES = FitSizes(n_users=100_000, n_edges=500_000, n_arms=200, n_features=64, n_rows=10**7)


def test_less_memory_means_smaller_batches_until_nothing_fits() -> None:
    sizes = replace(SIZES, n_users=1_000, n_edges=5_000, n_rows=10**8)
    assert fit_reading(sizes, 10**11) == (ROWS, WAITING)
    limits = [10**9 - step * 10**6 for step in range(1000)]
    found = []
    for limit in limits:
        try:
            found.append(fit_reading(sizes, limit))
        except MemoryLimitError as error:
            assert f"at most {in_bytes(limit)} is allowed" in str(error)  # noqa: PT017
            assert "pairs" in str(error)  # noqa: PT017
            break
    assert found == sorted(found, reverse=True)
    assert found[-1] >= (FEWEST_ROWS, FEWEST_WAITING)
    assert len(set(found)) > 1
    assert len(found) < len(limits)


def test_what_is_needed_grows_with_everything() -> None:
    def needed(sizes: FitSizes) -> int:
        return sum(sizes.needed(Reading(FEWEST_ROWS, FEWEST_WAITING)).values())

    for name in ("n_users", "n_edges", "n_features", "n_rows"):
        assert needed(replace(SIZES, **{name: 2 * getattr(SIZES, name)})) > needed(SIZES)
    few = replace(SIZES, n_users=10, n_rows=10**9)
    assert few.n_pairs == 2_000
    assert few.held(2**16) == 2_000 + 2**16
    assert needed(replace(few, is_solved=False)) > 0


def test_blocks_of_scores() -> None:
    assert score_block(0, 10**12) == BLOCK
    assert FEWEST_SCORES <= score_block(10**6, BASE + 2 * 10**7) < BLOCK
    with pytest.raises(MemoryLimitError, match=r"the score needs .*the bandit 2.5 GB"):
        score_block(10**9, 10**9)
    assert score_block(0, None) > 0


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "4 pounds", "GB", "1e400GB", "nanMB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ParameterError, match="a size is a number above 0 and a unit"):
        read_size(text)


def test_what_this_process_held() -> None:
    assert peak_memory() == 0 or peak_memory() > 10**7
