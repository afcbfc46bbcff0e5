"""Sizes at which engine `sparse` takes another way; none of them changes what its bounds say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """When to solve globally, to deflate, to recompute and to evict.

    Attributes:
        few_users: Up to so many, a global solve settles what pushes do not settle soon.
        least_spread: Below so many users x ridge it does so too: what users have in common decays by the ridge alone.
        fit_rows: More rows than this at once are learned by one global solve, unless users are many times as many.
        deflation_patience: A step of deflation is due once pushes have cost so many times as much.
        deflation_user: What a step costs for each user, beside an edge of a push.
        deflation_row: What it costs for each row of rewards.
        deflation_gain: How large the residual along the null vector must be, beside the threshold, to be worth a step.
        rounding: The share of the allowed error that rounding may reach before the residual is recomputed.
        open_solves: How many candidates a certified decision keeps solves of.
        block_bytes: What matrices of users may take before all are evicted.
        solve_bytes: What a solve of many right-hand sides may take; a hub has more neighbours than there is room for.
    """

    few_users: int = 1000
    least_spread: float = 1000.0
    fit_rows: int = 1000
    deflation_patience: int = 8
    deflation_user: int = 3
    deflation_row: int = 2
    deflation_gain: float = 0.05
    rounding: float = 0.05
    open_solves: int = 8
    block_bytes: float = 2.0**30
    solve_bytes: float = 2.0**26


LIMITS = Limits()
