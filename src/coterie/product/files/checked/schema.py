"""What a saved bandit is: every name, type, size and range that a file may have. `container.py` tells the rest.

What is not said here is not in a file. Sizes are by name: `users`, `arms` and `events` are those of the bandit, others
(the `rows` of a history, the `width` of weights) are whatever the arrays agree on.
"""

from collections.abc import Mapping
from typing import Any

from coterie.algebra.panels import PANEL
from coterie.contracts import LARGEST_REWARD
from coterie.models.choose import OPTIONS as ENGINES_OPTIONS
from coterie.policies.auto.parts import Hyper
from coterie.policies.factory.engine_choice import FEATURE_OPTIONS
from coterie.policies.factory.registry import OPTION_NAMES
from coterie.product.bandit_checks import LONGEST_WAIT, PENDING, REWARDS
from coterie.product.files.checked.kinds import (
    FLOATS,
    WHOLES,
    Either,
    Fields,
    Held,
    Kind,
    ListOf,
    Maybe,
    OneOf,
    Plain,
    Real,
    Row,
    TaggedKind,
    Values,
    Whole,
)

Table = Mapping[str, Kind]

TEXT, FLAG, SIZE = Plain((str,)), Plain((bool,)), Maybe(Whole(1))
POSITIVE = Real(5e-324)
ID = Plain((str, int, bool))
PLAIN = Plain((str, int, float, bool, type(None)))


def numbers(*shape: str | int | None, **rules: Any) -> Values:
    """Returns an array of finite floats."""
    return Values(FLOATS, shape, **rules)


def rows_of(what: str, *shape: str, **rules: Any) -> Values:
    """Returns an array of rows of users, arms, ..."""
    return Values(WHOLES, shape, least=0, below=what, **rules)


# What the bandit was made with

OPTIONS: dict[str, Kind] = {name: PLAIN for name in OPTION_NAMES if name not in ("graph", "arms", "seed", "likelihood")}
ENGINE_OPTIONS = {"memory_limit", *FEATURE_OPTIONS, *(name for names in ENGINES_OPTIONS.values() for name in names)}
GONE: Table = {"keeps_common": FLAG}  # an option of "sparse" while it had a common part
OPTIONS["engine_options"] = Maybe(Fields({}, dict.fromkeys(ENGINE_OPTIONS, PLAIN), gone=GONE))
SETTINGS = Fields(
    {
        "policy": TEXT,
        "seed": Whole(0, most=None),
        "max_pending": Whole(1),
        "expire_after": Maybe(Real(5e-324, LONGEST_WAIT)),
        "forgetting": Real(5e-324, 1),
        "window": Maybe(Whole(1)),
        "pending": OneOf(PENDING),
        "min_propensity": Real(0, 1),
        "options": Fields({}, OPTIONS),
    },
    {"reward": OneOf(REWARDS), "likelihood": OneOf(("gaussian", "bernoulli")), "wait_for_fits": FLAG},
)

# What a model believes

HISTORY = Fields(
    {
        "n_observations": Whole(),
        "users": rows_of("users", "rows"),
        "arms": rows_of("arms", "rows"),
        "counts": numbers("rows", least=5e-324),
        "means": numbers("rows"),
        "scatters": numbers("rows", least=0),
    },
    {"largest": Real(0)},
    own=("rows",),
)
JITTER = Fields({"count": Whole(), "largest": Real(0, 1e-7)})
COVARIANCE = Fields(
    # Of the matrix the lower triangle counts, and the upper one may be anything.
    {"matrix": numbers("size", "size", least=None), "pending": numbers("size", "columns"), "block_size": Whole(1)},
    own=("columns",),
)
EVERY: Table = {"engine": TEXT, "reason": TEXT, "noise_var": POSITIVE, "history": HISTORY}
CONDITIONED: Table = {**EVERY, "info_gain": Real(), "log_likelihood": Real(), "jitter": JITTER}

FACTOR = Fields(
    {
        "size": Whole(),
        "log_det": Real(),
        "left": ListOf(numbers(PANEL, None, by_rows=True)),
        "diagonal": ListOf(numbers(PANEL, PANEL, by_rows=True)),
    }
)
SCORED = Fields(
    {
        "user": Whole(0, "users"),
        "arms": rows_of("arms", "scored"),
        "solved": numbers("scored", "factored"),
        "mean": numbers("scored"),
        "variance": numbers("scored", least=0),
    }
)
EXACT: Table = {
    "factor": FACTOR,
    "users": rows_of("users", "factored"),
    "arms": Maybe(rows_of("arms", "factored")),
    "whitened": numbers("factored"),
    "scored": Maybe(SCORED),
}
GRID: Table = {
    "block_size": SIZE,
    "memory_limit": SIZE,
    "cov": COVARIANCE,
    "mean": numbers("size"),
    "variance": numbers("size"),
    "scale": Real(0),
}
HYBRID: Table = {**CONDITIONED, "switch_after": Whole(), "memory_limit": SIZE, "stage": TEXT}
FEATURES: Table = {
    "user_features": numbers("users", "user features"),
    "arm_features": numbers("arms", "arm features"),
    "own": numbers("pairs", least=0),
    "weights": numbers("size"),
    "observed": numbers("pairs"),
    "count": numbers("pairs", least=0),
    "scale": Real(0),
    "memory_limit": SIZE,
    "cov": COVARIANCE,
    "user_rank": SIZE,
    "arm_rank": SIZE,
    "correction": FLAG,
    "prior_error": Real(0),
    "prior_error_norm": Real(0),
}
SHARED = Fields({"width": Whole(1), "cov": COVARIANCE, "mean": numbers("size")})
APART = Fields({"tables": numbers("kinds", "width+1", "width", by_rows=True)})
LINEAR: Table = {
    "memory_limit": SIZE,
    "features": numbers("arms", "width", by_rows=True),
    "weights": Either((SHARED, APART)),
}
GROUPS: Table = {
    "groups": Values(WHOLES, ("groups",), once=True),
    "tables": numbers("groups", "width+1", "width", by_rows=True),
    "parted": Values(WHOLES, ("parted",), once=True),
    "sums": numbers("parted", "width+1", "width", by_rows=True),
}
LOCAL: Table = {
    "near_rows": Whole(1),
    "trend_features": Whole(1),
    "chosen_for": numbers("chosen", least=5e-324),
    "mean": numbers("size"),
    "cov": numbers("size", "size"),
}
DENSE: Table = {
    "users": rows_of("users", "remembered"),
    "arms": rows_of("arms", "remembered"),
    "rewards": numbers("remembered"),
    "weights": numbers("remembered", least=5e-324),
}

# The engine "sparse": its loops are compiled, and would follow a wrong row anywhere

SQUARE = numbers("width", "width", by_rows=True)
EVERYBODY = numbers("users", "width", by_rows=True)


def blocks(*names: str, **others: Kind) -> Fields:
    """Returns the matrices of some of the users, by these names, and what else there is of each."""
    matrices: dict[str, Kind] = {name: numbers("blocks", "width", "width", by_rows=True) for name in names}
    return Fields({"users": rows_of("users", "blocks", once=True), **matrices}, others, own=("blocks",))


EACH = numbers("blocks", least=0)
RESIDUAL = Fields(
    {
        "rounding": Real(0),
        "weights": EVERYBODY,
        "left": EVERYBODY,
        "queue": rows_of("users", "waiting", once=True),
    },
    {
        "since": Whole(),
        "total": SQUARE,
        "uneven": Real(1),
        "measured": Row((POSITIVE, Whole())),
        "largest": Real(0),
        "refreshed": Real(0),
    },
    own=("waiting",),
)
HUBS = Fields(dict.fromkeys(("ratio", "share", "lift"), numbers("users")))
GROWTH = Fields(
    {"smallest": POSITIVE, "largest": POSITIVE}
    | dict.fromkeys(("degrees", "shape", "reach"), numbers("users", least=0, by_rows=True)),
    {"hubs": HUBS},
)
SPARSE = Fields(
    {
        **CONDITIONED,
        "eps": POSITIVE,
        "accuracy": POSITIVE,
        "max_work": Whole(1),
        "residual": RESIDUAL,
        "data": blocks("inverse", added=EACH, weight=EACH, heaviest=Real(0)),
        "marginals": blocks("matrix", stale=numbers("blocks", least=0)),
    },
    {
        "certified": FLAG,
        "growth": GROWTH,
        "sums_are_old": FLAG,
    },
    gone=GONE,
)
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


def engine(*parts: Table, gone: Table | None = None, **optional: Kind) -> Fields:
    """Returns what a model of an engine is; its sizes are its own."""
    kinds = {name: kind for part in parts for name, kind in part.items()}
    return Fields(kinds, optional, own=OWN_SIZES, gone=gone or {})


STAGES = {name: engine(HYBRID, {"inner": Fields(inner)}) for name, inner in (("exact", EXACT), ("grid", GRID))}
MODEL = TaggedKind(
    "engine",
    {
        "dense": engine(EVERY, DENSE, scatters=numbers("remembered", least=0)),
        "exact": engine(CONDITIONED, EXACT),
        "grid": engine(CONDITIONED, GRID),
        "hybrid": TaggedKind("stage", STAGES),
        "features": engine(CONDITIONED, FEATURES),
        "linear": engine(CONDITIONED, LINEAR),
        "local": engine(CONDITIONED, LOCAL),
        "groups": engine(CONDITIONED, GROUPS),
        "sparse": engine(SPARSE.kinds, gone=SPARSE.gone, **SPARSE.optional),
    },
)

# What a policy has learned besides

HYPER = Fields(dict.fromkeys(Hyper._fields, Real(-1000, 700)))  # logarithms
FITS = ListOf(Fields({"rewards": Whole(), "hyper": HYPER}))
BEGUN = Fields(
    {
        "started": Whole(),
        "due": Whole(),
        "shift": Real(),
        "history": HISTORY,
        "hyper": HYPER,
        "later": Fields(
            {
                "users": ListOf(Whole(0, "users"), "later"),
                "arms": ListOf(Whole(0, "arms"), "later"),
                "values": ListOf(Real(), "later"),
            }
        ),
    }
)
BELIEF = Fields(
    {"n_decisions": Whole(), "refused": TEXT},
    {
        "n_refused": Whole(),
        "model": MODEL,
        "doubt": MODEL,
        "kernel": Fields({"user_cov": numbers("users", "users"), "arm_cov": numbers("arms", "arms")}),
        "hyper": HYPER,
        "centre": Real(-LARGEST_REWARD, LARGEST_REWARD),
        "fits": FITS,
        "normalised": FLAG,
        "settled_at": Whole(),
        "moved": Real(0),
        "trials": HISTORY,
        "begun": Maybe(BEGUN),
        "scale": Real(0),
        "begun_at": Whole(),
    },
)

# The whole

STATE = Fields(
    {
        "settings": SETTINGS,
        "users": ListOf(ID, "users"),
        "arms": ListOf(ID, "arms"),
        "retired": ListOf(ID),
        "n_decisions": Whole(),
        "learned_at_once": Whole(),
    },
    {
        "feature_names": Maybe(ListOf(TEXT)),
        "stale": Whole(),
        "journal": Maybe(Row((TEXT, Whole()))),
        "belief": Maybe(BELIEF),
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
    out: dict[str, Any] = STATE.read({**state, "belief": None}, "its state", held)
    out["arrays"] = {name: kind.read({"array": name}, f"its {name}", held) for name, kind in ARRAYS.items()}
    out["belief"] = Maybe(BELIEF).read(state.get("belief"), "its belief", held)
    if set(arrays) - held.used:
        raise ValueError(f"nobody knows its arrays {sorted(set(arrays) - held.used)!r:.200}")
    return out
