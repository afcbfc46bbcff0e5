"""Peak memory, growth included, as NumPy reports it to tracemalloc."""

import tracemalloc

import numpy as np

from benchmarks.timing import Row
from coterie.kernels import FreeKernel, PoolKernel, SquaredExponential
from coterie.models import ExactModel, GridModel


def mib(value: float) -> str:
    return f"{value / 2**20:.1f} MiB"


def exact_peak(t: int) -> int:
    features = np.random.default_rng(0).normal(size=(t, 20))
    tracemalloc.start()
    model = ExactModel(FreeKernel(np.eye(1), SquaredExponential(3.0)), noise_var=0.01)
    for row in features:
        model.update(0, row, 0.5)
    model.set_noise_var(0.02)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def grid_peak(n_users: int, n_arms: int) -> tuple[int, int]:
    kernel = PoolKernel(np.eye(n_users) + 0.1, np.eye(n_arms) + 0.1)
    tracemalloc.start()
    model = GridModel(kernel, noise_var=0.01)
    for i in range(200):
        model.update(i % n_users, i % n_arms, 0.5)
    model.set_noise_var(0.02)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, 8 * kernel.n_pairs**2


def rows() -> list[Row]:
    out = []
    for t in (1000, 3000):
        peak = exact_peak(t)
        ratio = peak / (8 * t**2)
        out.append(
            Row(
                f"exact, peak while growing to t = {t}, then changing noise_var",
                mib(peak),
                f"{mib(8 * t**2)} (8 t^2)",
                f"{ratio:.2f}x",
                "<= 1.25x",
                ratio <= 1.25,
            )
        )
    peak, matrix = grid_peak(100, 30)
    ratio = peak / matrix
    out.append(
        Row(
            "grid, peak at n*m = 3000, then changing noise_var",
            mib(peak),
            f"{mib(matrix)} (one (n m)^2 matrix)",
            f"{ratio:.2f}x",
            "1 + pending block",
            None,
        )
    )
    return out
