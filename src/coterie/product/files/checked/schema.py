"""What a saved bandit is: every name, type, size and range that a file may have; `container.py` has the layout.

What is not said here is not in a file. Sizes are by name: `users`, `arms` and `events` are those of the bandit, others
(the `rows` of a history, the `width` of weights) are whatever the arrays agree on.
"""

from math import inf
from typing import Any

from coterie.algebra.panels import PANEL
from coterie.contracts import LARGEST_FEATURE, LARGEST_REWARD, LEAST_SPREAD
from coterie.kernels.schema import KINDS
from coterie.models.choose import OPTIONS as ENGINES_OPTIONS
from coterie.policies.auto.auto_policy import LIKELIHOODS
from coterie.policies.auto.hyper import Hyper, InputHyper
from coterie.policies.factory.engine_choice import FEATURE_OPTIONS
from coterie.policies.factory.ingredients import LEARNED
from coterie.policies.factory.registry import OPTION_NAMES
from coterie.product.bandit_checks import LONGEST_WAIT, PENDING, REWARDS
from coterie.product.files.checked.kinds import (
    FLOATS,
    WHOLES,
    Held,
    Kind,
    Table,
    Values,
    any_plain,
    either,
    list_of,
    maybe,
    one_of,
    plain,
    real,
    row_of,
    table_of,
    tagged,
    whole,
)
from coterie.product.files.kernel_settings import KERNEL_OPTIONS
from coterie.product.slates import LEAST_EXAMINED

TEXT, FLAG, SIZE = plain(str), plain(bool), maybe(whole(1))
POSITIVE = real(5e-324)
LARGEST_COUNT = 1e15  # of rewards
ID = plain(str, int, bool)
PLAIN = plain(str, int, float, bool, type(None))


def numbers(*shape: str | int | None, **rules: Any) -> Values:
    """Returns an array of finite floats."""
    return Values(FLOATS, shape, **rules)


def arms_of(size: str) -> Kind:
    """Returns an array of rows of arms; or of inputs, a row of numbers each, where arms have contexts."""
    rows, inputs = rows_of("arms", size), numbers(size, "inputs")

    def read(value: Any, where: str, held: Held) -> Any:
        has_inputs = "inputs" in held.sizes and not held.is_empty(value)  # no arms have no columns
        return (inputs if has_inputs else rows)(value, where, held)

    return read


def rows_of(what: str, *shape: str, **rules: Any) -> Values:
    """Returns an array of rows of users, arms, ..."""
    return Values(WHOLES, shape, least=0, below=what, **rules)


# What the bandit was made with

OPTIONS: dict[str, Kind] = {
    name: PLAIN for name in OPTION_NAMES if name not in ("graph", "arms", "seed", "likelihood", "users", "places")
}
ENGINE_OPTIONS = {"memory_limit", *FEATURE_OPTIONS, *(name for names in ENGINES_OPTIONS.values() for name in names)}
GONE: Table = {"keeps_common": FLAG}  # an option of "sparse" while it had a common part
OPTIONS |= dict.fromkeys(KERNEL_OPTIONS, any_plain)
OPTIONS |= {"context_schema": any_plain, "request_features": maybe(list_of(TEXT))}
OPTIONS["engine_options"] = maybe(table_of({}, dict.fromkeys(ENGINE_OPTIONS, PLAIN), gone=GONE))
EXAMINED = real(LEAST_EXAMINED, 1)


def _places(value: Any, where: str, held: Held) -> Any:
    """Returns the effect of places: none, learned, or given."""
    return (list_of(EXAMINED) if isinstance(value, list) else maybe(one_of(LEARNED)))(value, where, held)


SETTINGS = table_of(
    {
        "policy": TEXT,
        "seed": whole(0, most=inf),
        "max_pending": whole(1),
        "expire_after": maybe(real(5e-324, LONGEST_WAIT)),
        "forgetting": real(5e-324, 1),
        "window": maybe(whole(1)),
        "pending": one_of(*PENDING),
        "min_propensity": real(0, 1),
        "options": table_of({}, OPTIONS),
    },
    {"reward": one_of(*REWARDS), "likelihood": one_of(*LIKELIHOODS), "wait_for_fits": FLAG, "places": _places},
)

# What a model believes

HISTORY = table_of(
    {
        "n_observations": whole(),
        "users": rows_of("users", "rows"),
        "arms": arms_of("rows"),
        "counts": numbers("rows", least=5e-324),
        "means": numbers("rows"),
        "scatters": numbers("rows", least=0),
    },
    {"largest": real(0), "spare": real(0, LARGEST_COUNT)},
    own=("rows",),
)
JITTER = table_of({"count": whole(), "largest": real(0, 1e-7)})
COVARIANCE = table_of(
    # Of the matrix the lower triangle counts, and the upper one may be anything.
    {"matrix": numbers("size", "size", least=None), "pending": numbers("size", "columns"), "block_size": whole(1)},
    own=("columns",),
)
EVERY: Table = {"engine": TEXT, "reason": TEXT, "noise_var": POSITIVE, "history": HISTORY}
CONDITIONED: Table = {**EVERY, "info_gain": real(), "log_likelihood": real(), "jitter": JITTER}

FACTOR = table_of(
    {
        "size": whole(),
        "log_det": real(),
        "left": list_of(numbers(PANEL, None, by_rows=True)),
        "diagonal": list_of(numbers(PANEL, PANEL, by_rows=True)),
    }
)
SCORED = table_of(
    {
        "user": whole(0, "users"),
        "arms": arms_of("scored"),
        "solved": numbers("scored", "factored"),
        "mean": numbers("scored"),
        "variance": numbers("scored", least=0),
    }
)
EXACT: Table = {
    "factor": FACTOR,
    "users": rows_of("users", "factored"),
    "arms": maybe(arms_of("factored")),
    "whitened": numbers("factored"),
    "scored": maybe(SCORED),
}
GRID: Table = {
    "block_size": SIZE,
    "memory_limit": SIZE,
    "cov": COVARIANCE,
    "mean": numbers("size"),
    "variance": numbers("size"),
    "scale": real(0),
}
HYBRID: Table = {**CONDITIONED, "switch_after": whole(), "memory_limit": SIZE, "stage": TEXT}
FEATURES: Table = {
    "user_features": numbers("users", "user features"),
    "arm_features": numbers("arms", "arm features"),
    "own": numbers("pairs", least=0),
    "weights": numbers("size"),
    "observed": numbers("pairs"),
    "count": numbers("pairs", least=0),
    "scale": real(0),
    "memory_limit": SIZE,
    "cov": COVARIANCE,
    "user_rank": SIZE,
    "arm_rank": SIZE,
    "correction": FLAG,
    "prior_error": real(0),
    "prior_error_norm": real(0),
}
SHARED: Table = {"width": whole(1), "cov": COVARIANCE, "mean": numbers("size")}
APART: Table = {"tables": numbers("kinds", "width+1", "width", by_rows=True)}
LINEAR: Table = {
    "memory_limit": SIZE,
    "features": numbers("arms", "width", by_rows=True),
    "weights": either(SHARED, APART),
}
GROUPS: Table = {
    "groups": Values(WHOLES, ("groups",), once=True),
    "tables": numbers("groups", "width+1", "width", by_rows=True),
    "parted": Values(WHOLES, ("parted",), once=True),
    "sums": numbers("parted", "width+1", "width", by_rows=True),
}
LOCAL: Table = {
    "near_rows": whole(1),
    "trend_features": whole(1),
    "chosen_for": numbers("chosen", least=5e-324),
    "mean": numbers("size"),
    "cov": numbers("size", "size"),
}
INPUT_FEATURES: Table = {**LOCAL, "near_rows": whole(1, most=1), "exact_rows": whole(1)}
DENSE: Table = {
    "users": rows_of("users", "remembered"),
    "arms": arms_of("remembered"),
    "rewards": numbers("remembered"),
    "weights": numbers("remembered", least=5e-324),
}

# The engine "sparse": its loops are compiled, and would follow a wrong row anywhere

SQUARE = numbers("width", "width", by_rows=True)
EVERYBODY = numbers("users", "width", by_rows=True)


def blocks(*names: str, **others: Kind) -> Kind:
    """Returns the matrices of some of the users, by these names, and what else there is of each."""
    matrices: dict[str, Kind] = {name: numbers("blocks", "width", "width", by_rows=True) for name in names}
    return table_of({"users": rows_of("users", "blocks", once=True), **matrices}, others, own=("blocks",))


EACH = numbers("blocks", least=0)
RESIDUAL = table_of(
    {
        "rounding": real(0),
        "weights": EVERYBODY,
        "left": EVERYBODY,
        "queue": rows_of("users", "waiting", once=True),
    },
    {
        "since": whole(),
        "total": SQUARE,
        "uneven": real(1),
        "measured": row_of(POSITIVE, whole()),
        "largest": real(0),
        "refreshed": real(0),
    },
    own=("waiting",),
)
HUBS = table_of(dict.fromkeys(("ratio", "share", "lift"), numbers("users")))
GROWTH = table_of(
    {"smallest": POSITIVE, "largest": POSITIVE}
    | dict.fromkeys(("degrees", "shape", "reach"), numbers("users", least=0, by_rows=True)),
    {"hubs": HUBS},
)
SPARSE: Table = {
    "eps": POSITIVE,
    "accuracy": POSITIVE,
    "max_work": whole(1),
    "residual": RESIDUAL,
    "data": blocks("inverse", added=EACH, weight=EACH, heaviest=real(0)),
    "marginals": blocks("matrix", stale=EACH),
}
OWN_SIZES = (
    "size",
    "width",
    "chosen",
    "kinds",
    "factored",
    "scored",
    "remembered",
    "user features",
    "arm features",
    "pairs",
)


def engine(*parts: Table, gone: Table | None = None, **optional: Kind) -> Kind:
    """Returns what a model of an engine is; its sizes are its own."""
    kinds = {name: kind for part in parts for name, kind in part.items()}
    return table_of(kinds, optional, own=OWN_SIZES, gone=gone)


def _of_features(value: Any, where: str, held: Held) -> Any:
    """Returns a model of engine "features": of arms in contexts it is as one of "local"."""
    of_arms, of_inputs = engine(CONDITIONED, FEATURES), engine(CONDITIONED, INPUT_FEATURES, grown=table_of(EXACT))
    return (of_inputs if "inputs" in held.sizes else of_arms)(value, where, held)


STAGES = {name: engine(HYBRID, {"inner": table_of(inner)}) for name, inner in (("exact", EXACT), ("grid", GRID))}
MODEL = tagged(
    "engine",
    {
        "dense": engine(EVERY, DENSE, scatters=numbers("remembered", least=0)),
        "exact": engine(CONDITIONED, EXACT),
        "grid": engine(CONDITIONED, GRID),
        "hybrid": tagged("stage", STAGES),
        "features": _of_features,
        "linear": engine(CONDITIONED, LINEAR),
        "local": engine(CONDITIONED, LOCAL, exact_rows=whole(1), grown=table_of(EXACT)),
        "groups": engine(CONDITIONED, GROUPS),
        "sparse": engine(CONDITIONED, SPARSE, gone=GONE, certified=FLAG, growth=GROWTH, sums_are_old=FLAG),
    },
)

# What a policy has learned besides


def _later_arms(value: Any, where: str, held: Held) -> Any:
    """Returns the arms of rewards that came after a fit started: rows, or inputs."""
    kind = list_of(list_of(real(), "inputs"), "later") if "inputs" in held.sizes else list_of(whole(0, "arms"), "later")
    return kind(value, where, held)


CONTEXT_FIELD = table_of(
    {
        "name": TEXT,
        "kind": one_of(*KINDS),
        "categories": list_of(TEXT),
        "is_open": FLAG,
        "default": PLAIN,
        "n_unknown": whole(),
    }
)
SCHEMA = table_of({"fields": list_of(CONTEXT_FIELD), "is_named": FLAG})
SCALING = table_of(
    {
        "centre": list_of(real(-LARGEST_FEATURE, LARGEST_FEATURE), "scaled"),
        "weight": list_of(real(0, 10 / LEAST_SPREAD), "scaled"),
    }
)
LOGARITHM = real(-1000, 700)
HYPER = either(dict.fromkeys(Hyper._fields, LOGARITHM), dict.fromkeys(InputHyper._fields, LOGARITHM))
FITS = list_of(table_of({"rewards": whole(), "hyper": HYPER}))
PENDING_FIT = table_of(
    {
        "started": whole(),
        "due": whole(),
        "shift": real(),
        "history": HISTORY,
        "hyper": HYPER,
        "later": table_of(
            {
                "users": list_of(whole(0, "users"), "later"),
                "arms": _later_arms,
                "values": list_of(real(), "later"),
            },
            {"weights": list_of(real(LEAST_EXAMINED**2, 1), "later")},
        ),
    },
    {"scaling": SCALING},
)
BELIEF = table_of(
    {"n_decisions": whole(), "refused": TEXT},
    {
        "n_refused": whole(),
        "model": MODEL,
        "doubt": MODEL,
        "kernel": table_of({"user_cov": numbers("users", "users"), "arm_cov": numbers("arms", "arms")}),
        "hyper": HYPER,
        "centre": real(-LARGEST_REWARD, LARGEST_REWARD),
        "fits": FITS,
        "normalised": FLAG,
        "settled_at": whole(),
        "moved": real(0),
        "trials": HISTORY,
        "begun": maybe(PENDING_FIT),
        "scale": real(0),
        "begun_at": whole(),
        "scaling": SCALING,
        "schema": SCHEMA,
    },
)

# The whole

FEATURES_OF_USERS = list_of(any_plain, "users")
INPUTS = table_of(
    {"has_features": FLAG},
    {
        "user_features": maybe(FEATURES_OF_USERS),
        "event_guests": list_of(row_of(whole(), ID)),
        "pending_guests": list_of(row_of(whole(), ID)),
    },
)
STATE = table_of(
    {
        "settings": SETTINGS,
        "users": list_of(ID, "users"),
        "arms": list_of(ID, "arms"),
        "retired": list_of(ID),
        "n_decisions": whole(),
        "learned_at_once": whole(),
    },
    {
        "feature_names": maybe(list_of(TEXT)),
        "stale": whole(),
        "journal": maybe(row_of(TEXT, whole())),
        "belief": maybe(BELIEF),
        "inputs": INPUTS,
    },
)
ARRAYS: Table = {
    "graph_starts": Values(WHOLES, ("users+1",), least=0),
    "graph_columns": rows_of("users", "entries"),
    "graph_weights": numbers("entries"),
    "features": numbers("arms", "dimension"),
    "event_users": rows_of("users", "events"),
    "event_arms": rows_of("arms", "events"),
    "event_rewards": numbers("events"),
    "pending": Values(WHOLES, ("waiting", 3), least=0),
    "pending_made_at": numbers("waiting"),
    "settled": Values(WHOLES, ("settled", 2), least=0),
}


EXAMINED_ARRAYS: Table = {
    "event_examined": numbers("events", least=LEAST_EXAMINED),
    "pending_examined": numbers("waiting", least=LEAST_EXAMINED),
}
# A row may stand for several rewards of a pair.
COMBINED_ARRAYS: Table = {
    "event_counts": numbers("events", least=1),
    "event_scatters": numbers("events", least=0),
}
# An arm of one request only has the row -1.
GUEST_ARRAYS: Table = {
    "event_arms": Values(WHOLES, ("events",), least=-1, below="arms"),
    "pending": Values(WHOLES, ("waiting", 3), least=-1),
}
INPUT_ARRAYS: Table = {
    "event_inputs": numbers("events", "inputs"),
    "pending_inputs": numbers("waiting", "inputs"),
}


def is_of_another_kernel(state: dict[str, Any]) -> bool:
    """Returns whether a belief is of version 0.1 with learned hyperparameters, which meant something else there."""
    belief = state.get("belief")
    return isinstance(belief, dict) and "mean_gain" in belief


def read_saved(state: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    """Returns the state with its arrays in it, the plain ones under "arrays", or raises ValueError if one is odd."""
    if is_of_another_kernel(state):  # the rewards are learned again
        state = {**state, "belief": None, "learned_at_once": len(arrays.get("event_rewards", ()))}
        arrays = {name: array for name, array in arrays.items() if name in ARRAYS}
    held = Held(arrays)
    out: dict[str, Any] = STATE({**state, "belief": None}, "its state", held)
    has_inputs = "event_inputs" in arrays
    kinds: Table = {**ARRAYS, **GUEST_ARRAYS, **INPUT_ARRAYS} if has_inputs else ARRAYS
    if "event_examined" in arrays:
        kinds = {**kinds, **EXAMINED_ARRAYS}
    if "event_counts" in arrays:
        kinds = {**kinds, **COMBINED_ARRAYS}
    out["arrays"] = {name: kind({"array": name}, f"its {name}", held) for name, kind in kinds.items()}
    out["belief"] = maybe(BELIEF)(state.get("belief"), "its belief", held)
    if set(arrays) - held.used:
        raise ValueError(f"nobody knows its arrays {sorted(set(arrays) - held.used)!r:.200}")
    return out
