"""What goes in and out of the service: the records that engine, app and client share, and their limits.

Every record refuses unknown fields, and numbers that are no numbers: msgspec takes no NaN, no infinity, no text and no
true in the place of a number.
"""

from typing import Annotated, Literal, TypeAlias

from coterie.errors.extras import require_extra

with require_extra("service", "the service"):
    from msgspec import UNSET, Meta, Struct, UnsetType

MOST_CANDIDATES = 10_000
MOST_PLACES = 50
MOST_NAMES = 256
MOST_ROWS = 50_000

Id: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)",
        description="Any text without control characters",
    ),
]
EventId: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._~:-]+$(?!\n)", description="Letters, digits and . _ ~ : -"
    ),
]
ExperimentId: TypeAlias = Annotated[
    str,
    Meta(max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$(?!\n)", description="Lower-case letters, digits, _ and -"),
]
Features: TypeAlias = (
    Annotated[dict[str, float], Meta(max_length=MOST_NAMES)] | Annotated[list[float], Meta(max_length=MOST_NAMES)]
)
Context: TypeAlias = (
    Annotated[dict[str, float | bool | str], Meta(max_length=MOST_NAMES)]
    | Annotated[list[float], Meta(max_length=MOST_NAMES)]
)
Seconds: TypeAlias = Annotated[float, Meta(gt=0, le=10 * 366 * 86_400)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=0.5)]
Aggregation: TypeAlias = Literal["first", "last", "sum", "mean", "max"]
RewardStatus: TypeAlias = Literal["applied", "duplicate", "late", "held"]
Scope: TypeAlias = Literal["decide", "reward", "read", "admin"]  # what a key may do


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A record that the service is given."""


class Answer(Struct, frozen=True, kw_only=True):
    """A record that the service gives; a newer one may hold more than an older client knows."""


class Arm(Record, frozen=True, kw_only=True):
    """An arm: its id, and features where it has any."""

    id: Id
    features: Features | None = None


class Edge(Record, frozen=True, kw_only=True):
    """Two users and the weight of what joins them; weight 0 takes the edge away."""

    user: Id
    other: Id
    weight: Annotated[float, Meta(ge=0, le=1e9)] = 1.0


class User(Record, frozen=True, kw_only=True):
    """A user, and the weights of their edges to friends."""

    id: Id
    friends: dict[str, float] | list[str] | None = None


class Graph(Record, frozen=True, kw_only=True):
    """Who is near whom; users without edges are named, others need not be."""

    users: Annotated[list[Id], Meta(max_length=MOST_ROWS)] = []
    edges: Annotated[list[Edge], Meta(max_length=MOST_ROWS)] = []


class Settings(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What can be changed of an experiment while it runs; written whole, so that no later default changes a log.

    Attributes:
        wait_time: Seconds in which rewards of a decision count; later ones are kept in the log and not learned.
        default_reward: What a decision without a reward counts as after that time; none means that it does not count.
        aggregation: What several rewards of one decision come to.
        reward_range: The least and the greatest reward; others are refused.
        exploration_floor: The least probability of every candidate.
    """

    wait_time: Seconds = 86_400.0
    default_reward: float | None = None
    aggregation: Aggregation = "first"
    reward_range: tuple[float, float] | None = None
    exploration_floor: Share = 0.0


class ExperimentSettings(Settings, frozen=True, kw_only=True):
    """All settings of an experiment: also those that stay as they were when it was made.

    Attributes:
        policy: What decides, by name.
        seed: Fixes the randomness of decisions.
        forgetting: What a reward's weight is multiplied by with each reward after it; 1 keeps everything.
        binary: Whether rewards are 0 or 1.
        max_pending: How many decisions may wait for rewards; the oldest expire first.
        context_schema: What a context holds, by name: "number", "flag", "category" or a list of categories; learned
            from the first context if it is not given.
    """

    policy: Annotated[str, Meta(max_length=64)] = "auto-ucb"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    forgetting: Annotated[float, Meta(gt=0, le=1)] = 1.0
    binary: bool = False
    max_pending: Annotated[int, Meta(ge=1, le=1_000_000)] = 100_000
    context_schema: dict[str, str | list[str]] | None = None


class NewExperiment(ExperimentSettings, frozen=True, kw_only=True):
    """An experiment to be: a graph, arms, and how to decide and learn."""

    id: ExperimentId | None = None
    graph: Graph
    arms: Annotated[list[Arm], Meta(min_length=1, max_length=MOST_ROWS)]


class SettingsChange(Record, frozen=True, kw_only=True):
    """Settings that are to be others; what is left out stays."""

    wait_time: Seconds | UnsetType = UNSET
    default_reward: float | UnsetType | None = UNSET
    aggregation: Aggregation | UnsetType = UNSET
    reward_range: tuple[float, float] | UnsetType | None = UNSET
    exploration_floor: Share | UnsetType = UNSET


class ExperimentView(Answer, frozen=True, kw_only=True):
    """An experiment as it stands.

    Attributes:
        id: Its id.
        is_archived: Whether it takes no further decisions.
        settings: How it decides and learns.
        n_users: How many users there are.
        n_edges: How many pairs of them are joined.
        n_arms: How many arms there are, retired ones included.
        n_decisions: How many decisions were made since the last reset, each place of a slate counted.
        n_rewards: How many were learned since then.
        n_pending: How many decisions can still be rewarded, also those that have a reward already.
        graph_version: How often the graph was changed.
        arms_version: How often the arms were changed.
        model_version: How often the posterior was changed.
        seq: The number of the last event of the journal.
    """

    id: str
    is_archived: bool
    settings: ExperimentSettings
    n_users: int
    n_edges: int
    n_arms: int
    n_decisions: int
    n_rewards: int
    n_pending: int
    graph_version: int
    arms_version: int
    model_version: int
    seq: int


class EdgesChange(Record, frozen=True, kw_only=True):
    """Edges to be set; weight 0 takes one away."""

    edges: Annotated[list[Edge], Meta(max_length=MOST_ROWS)]


class UsersChange(Record, frozen=True, kw_only=True):
    """Users to be added, with their friends, and users to be removed, with what was learned from them.

    One who is there already stays, and is joined to the friends that are named.
    """

    add: Annotated[list[User], Meta(max_length=MOST_ROWS)] = []
    remove: Annotated[list[Id], Meta(max_length=1000)] = []


class ArmsChange(Record, frozen=True, kw_only=True):
    """Arms to be added or given other features, to be retired, or to be shown again."""

    put: Annotated[list[Arm], Meta(max_length=MOST_ROWS)] = []
    retire: Annotated[list[Id], Meta(max_length=MOST_ROWS)] = []
    revive: Annotated[list[Id], Meta(max_length=MOST_ROWS)] = []


class Changed(Answer, frozen=True, kw_only=True):
    """What a change of graph or arms led to."""

    version: int
    seq: int


class DecisionRequest(Record, frozen=True, kw_only=True):
    """A decision to be made.

    Attributes:
        user: For whom.
        candidates: Ids of arms, or new arms with features; none given means every arm that is not retired. In an
            experiment with contexts new arms are candidates of this decision only; in one without they join its arms.
        context: What is different about this moment.
        event_id: The caller's own id, by which a repeat is known; one is made if none is given.
        exclude: Arms that are not to be chosen.
        k: How many places a slate has; none given means one decision.
        defer_activation: Whether the decision counts only once it is activated.
        probabilities: Whether the answer has the probability of each candidate.
    """

    user: Id
    candidates: Annotated[list[str | Arm], Meta(min_length=1, max_length=MOST_CANDIDATES)] | None = None
    context: Context | None = None
    event_id: EventId | None = None
    exclude: Annotated[list[Id], Meta(max_length=MOST_CANDIDATES)] = []
    k: Annotated[int, Meta(ge=1, le=MOST_PLACES)] | None = None
    defer_activation: bool = False
    probabilities: bool = False


class Place(Answer, frozen=True, kw_only=True):
    """A place of a slate."""

    arm: str
    propensity: float | None
    mean: float
    std: float


class DecisionAnswer(Answer, frozen=True, kw_only=True):
    """A decision that was made.

    Attributes:
        event_id: By which rewards find it.
        arm: What was chosen; that of the first place of a slate.
        propensity: The probability with which it was to be chosen; none where it is not known.
        mean: The posterior mean of its reward.
        std: The posterior std.
        model_version: How often the posterior had been changed.
        seq: The number of its event in the journal.
        probabilities: The probability of each candidate, where they were asked for.
        slate: All places, where a slate was asked for.
    """

    event_id: str
    arm: str
    propensity: float | None
    mean: float
    std: float
    model_version: int
    seq: int
    probabilities: dict[str, float] | UnsetType = UNSET
    slate: list[Place] | UnsetType = UNSET


class RewardRequest(Record, frozen=True, kw_only=True):
    """What came of a decision.

    Attributes:
        value: The reward.
        reward_id: The caller's own id, by which a repeat is known.
        observed_at: When it was observed, in seconds since 1970; kept in the log.
        place: Which place of a slate it is for, from 1.
    """

    value: float
    reward_id: EventId | None = None
    observed_at: Annotated[float, Meta(ge=0, le=1e11)] | None = None
    place: Annotated[int, Meta(ge=1, le=MOST_PLACES)] = 1


class RewardAnswer(Answer, frozen=True, kw_only=True):
    """What became of a reward: learned, known already, too late to be learned, or kept until its decision comes."""

    event_id: str
    status: RewardStatus
    seq: int


class ActivationAnswer(Answer, frozen=True, kw_only=True):
    """What became of an activation: done, done before, or too late."""

    event_id: str
    status: Literal["activated", "duplicate", "late"]
    seq: int
