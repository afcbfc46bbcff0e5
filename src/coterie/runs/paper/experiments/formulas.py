"""The bounds that the paper's proofs arrive at, with their constants, and the mended lemma on uncertainty."""

from math import log, log1p, pi, sqrt


def ucb_bound(beta: float, gain: float, *, horizon: int, max_variance: float, norm_bound: float) -> float:
    """Returns 2 beta_T sqrt(2 T max(1, K_max) gain) + B_Delta, the last line of the proof of Theorem 3."""
    return 2 * beta * sqrt(2 * horizon * max(1.0, max_variance) * gain) + largest_gap(norm_bound, max_variance)


def ts_bound(
    beta: float,
    gain: float,
    *,
    horizon: int,
    max_variance: float,
    norm_bound: float,
    n_candidates: int,
    failure_prob: float,
) -> float:
    """Returns 194 c_T sqrt(2 T max(1, K_max) gain) + (4 + pi^2/6 + delta) B_Delta, the proof of Theorem 4.

    c_T = beta_T (1 + sqrt(2 log(T^2 M))) with M candidates; beta_T has failure probability delta / T.
    """
    spread = beta * (1 + sqrt(2 * log(horizon**2 * n_candidates)))
    rest = (4 + pi**2 / 6 + failure_prob) * largest_gap(norm_bound, max_variance)
    return 194 * spread * sqrt(2 * horizon * max(1.0, max_variance) * gain) + rest


def largest_gap(norm_bound: float, max_variance: float) -> float:
    """Returns B_Delta = 2 B sqrt(K_max): no round can regret more, whatever is chosen."""
    return 2 * norm_bound * sqrt(max_variance)


def printed_bound(gain: float, *, horizon: int, max_variance: float) -> float:
    """Returns sqrt(2 T max(1, K_max) gain), the lemma as the paper has it."""
    return sqrt(2 * horizon * max(1.0, max_variance) * gain)


def simple_bound(gain: float, *, horizon: int, max_variance: float, noise_var: float) -> float:
    """Returns sqrt(2 T max(noise_var, K_max) gain), what both cases of the paper's proof give when carried through.

    In its first case, noise_var >= K_max, the proof has sum std^2 <= 2 noise_var gain and then puts K_max in place of
    noise_var, which is the smaller of the two.
    """
    return sqrt(2 * horizon * max(noise_var, max_variance) * gain)


def tight_bound(gain: float, *, horizon: int, max_variance: float, noise_var: float) -> float:
    """Returns sqrt(T K_max / log(1 + K_max / noise_var) gain), which bounds the sum of std for every noise_var.

    x / log(1 + x) rises with x, so std^2 <= K_max gives std^2 <= K_max / log(1 + K_max / noise_var) times
    log(1 + std^2 / noise_var), and those logarithms add up to the gain. It is an equality for independent pairs.

    Examples:
        >>> gain = 3 * log1p(2.0 / 50.0)                      # three independent pairs of variance 2
        >>> round(tight_bound(gain, horizon=3, max_variance=2.0, noise_var=50.0) / (3 * sqrt(2.0)), 12)
        1.0
    """
    return sqrt(horizon * max_variance / log1p(max_variance / noise_var) * gain)
