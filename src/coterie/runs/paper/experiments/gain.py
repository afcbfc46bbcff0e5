"""The data of figure 1: gains of actual designs beside the paper's expressions."""

from dataclasses import asdict, dataclass

import numpy as np

from coterie.contracts import Array
from coterie.graphs import make_graph
from coterie.kernels import Green
from coterie.runs.paper.experiments import spectral
from coterie.runs.paper.experiments.gain_findings import findings
from coterie.runs.paper.experiments.record import Record, Tell, mean_and_error, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class GainSettings:
    """The paper gives neither T, rho nor lambda: rho is its learners' 0.1, lambda runs from small to Theta(1)."""

    laplacian_ridge: float = 0.1
    noise_vars: tuple[float, ...] = (0.01, 0.1, 1.0)
    horizons: tuple[int, ...] = (200, 1000, 2000)
    n_users: tuple[int, ...] = (2, 4, 10, 20, 40, 100, 200)
    dim_horizons: tuple[int, ...] = (20, 50, 100, 200, 400, 700, 1000, 1400, 2000)
    dim_users: tuple[int, ...] = (5, 10, 20, 50, 100)
    rounds_per_user: tuple[int, ...] = (1, 2, 5)
    clique_users: tuple[int, ...] = (10, 20, 50, 100, 200, 400)
    repeats: int = 8
    seed: int = 1


QUICK = GainSettings(
    noise_vars=(0.01, 1.0),
    horizons=(40, 200),
    n_users=(2, 10, 40),
    dim_horizons=(20, 50, 100, 200),
    dim_users=(5, 20, 50),
    rounds_per_user=(1, 2),
    clique_users=(10, 50, 100),
    repeats=3,
)


def run(quick: bool, tell: Tell) -> Record:
    """Returns the record of figure 1: settings, the data of each panel, and what they say of the paper's claims."""
    settings = QUICK if quick else GainSettings()
    record: Record = {
        "study": "figure-1",
        "settings": asdict(settings) | {"dimension": spectral.DIMENSION, "arm_kernel": "exp(-|x - y|^2 / 2)"},
        "gain": _gain_cells(settings, tell),
        "dimension": _dimension_lines(settings, tell),
        "proposition": _proposition_cells(settings, tell),
    }
    record = plain(record)
    return record | {"findings": findings(record)}


def _gain_cells(settings: GainSettings, tell: Tell) -> list[Record]:
    """Returns panel (a): for each n, T and lambda on the complete graph, the gain and the three expressions."""
    cells = []
    for n_users in settings.n_users:
        tell(f"figure-1 (a): {n_users} users on a complete graph")
        iid = _iid_gains(settings, "complete", n_users, settings.horizons)
        for i, noise_var in enumerate(settings.noise_vars):
            for j, horizon in enumerate(settings.horizons):
                expressions = _expressions(settings, n_users, horizon, noise_var)
                mean, error = mean_and_error(iid[:, i, j])
                place = {"n_users": n_users, "horizon": horizon, "noise_var": noise_var}
                cells.append(place | {"iid": mean, "iid_error": error} | expressions)
    return cells


def _iid_gains(settings: GainSettings, family: str, n_users: int, horizons: tuple[int, ...]) -> Array:
    """Returns the gains of i.i.d. designs: repeats x noise variances x horizons."""
    user_cov = Green(laplacian_ridge=settings.laplacian_ridge).matrix(make_graph(family, n_users))
    gains = []
    for repeat in range(settings.repeats):
        rng = np.random.default_rng([settings.seed, n_users, repeat])
        users, features = spectral.iid_design(n_users, max(horizons), rng)
        gains.append(
            [
                spectral.gains_of_design(user_cov, users, features, noise_var=noise_var, horizons=horizons)
                for noise_var in settings.noise_vars
            ]
        )
    return np.array(gains)


def _expressions(settings: GainSettings, n_users: int, horizon: int, noise_var: float) -> Record:
    """Returns both expressions on the complete graph, the operator bound also with the 1/n of uniform users."""
    user_values = spectral.user_eigenvalues(make_graph("complete", n_users), settings.laplacian_ridge)
    regular, error = mean_and_error(_regular_gains(settings, user_values, horizon // n_users, noise_var))
    bounds = {
        name: spectral.operator_bound(
            user_values, spectral.cube_spectrum(), horizon=horizon, noise_var=noise_var, uniform_users=uniform
        )
        for name, uniform in (("operator", False), ("operator_uniform", True))
    }
    return {"regular": regular, "regular_error": error} | bounds


def _regular_gains(settings: GainSettings, user_values: Array, n_arms: int, noise_var: float) -> Array:
    """Returns the gains of regular designs on as many sets of common arms as there are repeats."""
    generators = (np.random.default_rng([settings.seed, n_arms, repeat, 7]) for repeat in range(settings.repeats))
    pools = (rng.random((n_arms, spectral.DIMENSION)) for rng in generators)
    return np.array([spectral.regular_gain(user_values, pool, noise_var) for pool in pools])


def _dimension_lines(settings: GainSettings, tell: Tell) -> list[Record]:
    """Returns panels (b) and (c): gain and effective dimension against T for each graph, n and lambda."""
    lines = []
    for family in ("empty", "complete"):
        for n_users in settings.dim_users:
            tell(f"figure-1 (b, c): {n_users} users on the {family} graph")
            gains = _iid_gains(settings, family, n_users, settings.dim_horizons)
            most = spectral.largest_variance(make_graph(family, n_users), settings.laplacian_ridge)
            for i, noise_var in enumerate(settings.noise_vars):
                place = {"graph": family, "n_users": n_users, "noise_var": noise_var, "max_variance": most}
                lines.append(place | _dimensions(settings, gains[:, i], most, noise_var))
    return lines


def _dimensions(settings: GainSettings, gains: Array, max_variance: float, noise_var: float) -> Record:
    horizons = np.array(settings.dim_horizons)
    dims = spectral.effective_dim(gains, horizon=horizons, max_variance=max_variance, noise_var=noise_var)
    errors = [mean_and_error(column)[1] for column in dims.T]
    return {"gain": gains.mean(axis=0), "dim": dims.mean(axis=0), "dim_error": errors}


def _proposition_cells(settings: GainSettings, tell: Tell) -> list[Record]:
    """Returns panel (d): T = C n on the complete graph, the gain of both designs and the proposition's bound."""
    cells = []
    for n_users in settings.clique_users:
        tell(f"figure-1 (d): T = C n with {n_users} users")
        horizons = tuple(each * n_users for each in settings.rounds_per_user)
        iid = _iid_gains(settings, "complete", n_users, horizons).mean(axis=0)
        for i, noise_var in enumerate(settings.noise_vars):
            for j, each in enumerate(settings.rounds_per_user):
                place = {"n_users": n_users, "rounds_per_user": each, "noise_var": noise_var, "iid": iid[i, j]}
                cells.append(place | _clique_expressions(settings, n_users, each, noise_var))
    return cells


def _clique_expressions(settings: GainSettings, n_users: int, each: int, noise_var: float) -> Record:
    graph, ridge = make_graph("complete", n_users), settings.laplacian_ridge
    user_values, most = spectral.user_eigenvalues(graph, ridge), spectral.largest_variance(graph, ridge)
    return {
        "regular": float(_regular_gains(settings, user_values, each, noise_var).mean()),
        "bound": spectral.clique_bound(each, laplacian_ridge=ridge, noise_var=noise_var),
        "trace": each * n_users * most / noise_var,
        "hadamard": spectral.hadamard_bound(each * n_users, max_variance=most, noise_var=noise_var),
    }
