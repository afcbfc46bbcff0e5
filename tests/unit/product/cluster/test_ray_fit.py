"""Whether the parts of a graph have room is said before the work."""

import pytest

from coterie.errors import ClusterError
from coterie.product.bulk.budget import BASE, FitSizes
from coterie.product.cluster.ray_fit import check_room

SIZES = FitSizes(n_users=10**6, n_edges=5 * 10**6, n_arms=200, n_features=8, n_rows=10**7)


def test_a_part_needs_its_share() -> None:
    whole, half = SIZES.in_a_part(1), SIZES.in_a_part(2)
    assert whole - BASE == pytest.approx(2 * (half - BASE))
    assert half > 0.44e9  # what such a part was seen to hold (docs/capacity.md)


@pytest.mark.parametrize("room", [[(2, 8e9)], [(1, 8e9), (1, 8e9)], [(8, 9e9), (8, 1e9)]])
def test_parts_that_fit_are_taken(room: list[tuple[int, float]]) -> None:
    check_room(2, 4 * 10**9, room)


@pytest.mark.parametrize("room", [[(2, 7e9)], [(1, 64e9), (1, 3e9)]])
def test_parts_that_do_not_fit_are_told_with_their_size(room: list[tuple[int, float]]) -> None:
    with pytest.raises(ClusterError, match=r"2 parts of 4\.0 GB each are asked for; nodes have room for 1 of them"):
        check_room(2, 4 * 10**9, room)


def test_parts_without_a_cpu_are_told_first() -> None:
    with pytest.raises(ClusterError, match=r"3 parts are asked for; each has a CPU, and the cluster has 2"):
        check_room(3, 4 * 10**9, [(2, 1e9)])
