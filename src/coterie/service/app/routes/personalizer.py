"""Routes shaped like Personalizer v1.0, so that an old client works by changing its base address.

Which experiment: the only one of the key, or else that of the settings. Features are flattened: {"day": {"wet": true}}
is the feature "day.wet"; lists of objects are taken together, other lists and nulls are left out. The feature named
`personalizer_user`, at any level of contextFeatures, is the user, "anyone" if there is none; a user that the graph does
not have is added to it without friends. What is left of contextFeatures is the context. Where the context schema has no
names yet, it takes those of the first decision; later on, names that the schema does not have are left out, and what is
missing or of another kind is 0, false or an empty text. Actions are candidates: where the arms have features, those
with the names of the arms' features count, flags as 0 and 1, and what is missing is 0. An experiment that was made with
a context schema takes the features of each request; in another an action that is no arm yet becomes one, and is known
by its id from then on.

A rank has the probabilities of all actions, the chosen one first and the others by probability. An action that is
excluded, or a retired arm, has probability 0. `deferActivation`, rewards and activations are those of the service: a
reward is a number, and its answer is empty.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct

from coterie.errors import CandidatesError
from coterie.kernels import ArmPool
from coterie.service.app.requests.access import check_experiment
from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.bodies import BodyType, converted
from coterie.service.app.requests.calls import Call, Route
from coterie.service.app.requests.failures import RequestError
from coterie.service.app.routes.events import check_event, event_of, give
from coterie.service.engine.answers import check_candidates
from coterie.service.engine.bandits import check_named_once
from coterie.service.engine.experiment import Experiment
from coterie.service.records import Arm, ArmsChange, DecisionRequest, EventId, Id, RewardRequest, User, UsersChange

Features: TypeAlias = dict[str, float | bool | str]

ANYONE = "anyone"
KINDS: dict[str, tuple[Callable[[Any], bool], float | bool | str]] = {
    "number": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), 0.0),
    "flag": (lambda value: isinstance(value, bool), False),
    "category": (lambda value: isinstance(value, str), ""),
}
MOST_ACTIONS = 1000
MOST_DEPTH = 20
LARGEST_WHOLE = 2**63


class Action(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What can be chosen, and its features."""

    id: Id
    features: Annotated[list[dict[str, Any]], Meta(max_length=100)] = []


class RankRequest(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A decision to be made, as Personalizer takes it."""

    actions: Annotated[list[Action], Meta(min_length=1, max_length=MOST_ACTIONS)]
    context_features: Annotated[list[dict[str, Any]], Meta(max_length=100)] | None = None
    excluded_actions: Annotated[list[Id], Meta(max_length=MOST_ACTIONS)] | None = None
    event_id: EventId | None = None
    defer_activation: bool | None = None


class RankedAction(Struct, frozen=True, kw_only=True):
    """An action and its probability."""

    id: str
    probability: float


class RankAnswer(Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision as Personalizer gives it."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What came of a decision."""

    value: float


def rank(call: Call) -> Answer:
    """Chooses an action."""
    given: RankRequest = call.given
    experiment = call.engine.state.get(_experiment_of(call))
    named = call.service.settings.personalizer_user
    flat = dict(flattened(given.context_features or []))
    found = [flat.pop(name) for name in list(flat) if name.rpartition(".")[2] == named]
    user = converted(str(found[0]), Id, root=f"$.contextFeatures.{named}") if found else ANYONE
    request = DecisionRequest(
        user=user,
        candidates=_candidates(experiment, given.actions),
        context=_context(experiment, flat),
        event_id=given.event_id,
        exclude=_excluded(experiment, given),
        defer_activation=bool(given.defer_activation),
        probabilities=True,
    )
    if given.event_id is None or call.engine.state.decided(given.event_id) is None:
        _make_known(call, experiment, request, given.actions)
    answer, is_new = call.engine.decide(experiment.id, request)
    call.service.metrics.decision(is_new=is_new)
    chances = {} if answer.probabilities is UNSET else answer.probabilities
    others = sorted(
        (each.id for each in given.actions if each.id != answer.arm), key=lambda arm: -chances.get(arm, 0.0)
    )
    ranking = [RankedAction(id=arm, probability=chances.get(arm, 0.0)) for arm in (answer.arm, *others)]
    return answer_of(RankAnswer(ranking=ranking, event_id=answer.event_id, reward_action_id=answer.arm), 201)


def reward(call: Call) -> Answer:
    """Learns what came of a decision."""
    give(call, event_of(call), RewardRequest(value=call.given.value))
    return Answer(204, b"")


def activate(call: Call) -> Answer:
    """Lets a deferred decision count."""
    event_id = event_of(call)
    check_event(call, event_id)
    call.engine.activate(event_id)
    return Answer(204, b"")


def flattened(given: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, float | bool | str]]:
    """Yields the features of nested objects: numbers, flags and texts, by their path.

    Examples:
        >>> dict(flattened([{"day": {"wet": True}}, {"age": 30, "tags": ["a"]}]))
        {'day.wet': True, 'age': 30}
    """
    if depth > MOST_DEPTH:
        rule = f"features nest up to {MOST_DEPTH} deep"
        raise RequestError(400, "body", f"{path!r} is nested too deep", rule, "Flatten it", path="$")
    if isinstance(given, dict):
        for name, value in given.items():
            yield from flattened(value, f"{path}.{name}" if path else name, depth + 1)
    elif isinstance(given, list):
        for each in given:
            if isinstance(each, dict):
                yield from flattened(each, path, depth + 1)
    elif isinstance(given, int) and abs(given) > LARGEST_WHOLE:
        rule = "numbers are of 64 bits"
        raise RequestError(400, "body", f"the number of {path!r} is too large", rule, "Send a smaller one", path="$")
    elif given is not None:
        yield path, given


def _experiment_of(call: Call) -> str:
    assert call.key is not None
    own = call.key.experiments
    name = own[0] if own is not None and len(own) == 1 else call.service.settings.personalizer_experiment
    if name is None:
        rule = "it is the only one of the key, or that of the settings"
        remedy = "Use a key for one experiment, or set personalizer_experiment"
        raise RequestError(422, "experiment", "nobody says which experiment is meant", rule, remedy)
    call.experiment = name
    check_experiment(call.key, "decide", name)
    return name


def _context(experiment: Experiment, flat: Features) -> Features | None:
    """Returns what the experiment's schema has of features; all of them if they are the first."""
    schema = experiment.bandit.context_schema
    if schema is None or (schema.is_named and not schema.fields):
        return flat if flat and experiment.bandit.n_decisions == 0 else None
    if not schema.is_named:
        return None
    out: Features = {}
    for field in schema.fields:
        is_kind, missing = KINDS[field.kind]
        value = flat.get(field.name, missing)
        out[field.name] = value if is_kind(value) else missing
    return out


def _candidates(experiment: Experiment, actions: list[Action]) -> list[str | Arm]:
    if _takes_features(experiment):
        pool = experiment.bandit.arms
        return [
            action.id if action.id in pool.index and not action.features else _arm(pool, action) for action in actions
        ]
    return [action.id for action in actions]


def _takes_features(experiment: Experiment) -> bool:
    return experiment.bandit.arms.has_features and experiment.settings.context_schema is not None


def _arm(pool: ArmPool, action: Action) -> Arm:
    """Returns an action as an arm, with the features that the arms have; what it has not, or has as a text, is 0."""
    if not pool.has_features:
        return Arm(id=action.id)
    flat = {name: float(value) for name, value in flattened(action.features) if not isinstance(value, str)}
    names = pool.feature_names or [str(number) for number in range(pool.dimension)]
    features = {name: flat.get(name, 0.0) for name in names}
    return Arm(id=action.id, features=features if pool.feature_names else list(features.values()))


def _excluded(experiment: Experiment, given: RankRequest) -> list[str]:
    """Returns the actions that are not to be chosen: those that the request says, and those that are retired arms."""
    named = {action.id for action in given.actions}
    return [str(arm) for arm in (*(given.excluded_actions or ()), *experiment.bandit.retired) if arm in named]


def _make_known(call: Call, experiment: Experiment, request: DecisionRequest, actions: list[Action]) -> None:
    """Adds the user and, where requests cannot bring them, the actions that are not there, or raises before that."""
    bandit, joins, user = experiment.bandit, not _takes_features(experiment), request.user
    check_named_once("actions", [action.id for action in actions])
    excluded = set(request.exclude)
    kept = [action.id for action in actions if action.id not in excluded]
    if not kept:
        raise CandidatesError("all actions are excluded or retired", "one of the others is chosen", "Leave one")
    new = [_arm(bandit.arms, action) for action in actions if joins and action.id not in bandit.arms.index]
    is_there = user in bandit.graph.index
    if new or not is_there:
        brought = {arm.id: arm.features for arm in (*new, *(request.candidates or ())) if isinstance(arm, Arm)}
        check_candidates(bandit, {arm: brought.get(arm) for arm in kept}, request.context, join=joins)
    if new:
        call.engine.change_arms(experiment.id, ArmsChange(put=new))
    if not is_there:
        call.engine.change_users(experiment.id, UsersChange(add=[User(id=user)]))


ROUTES = (
    Route(
        method="POST",
        path="/personalizer/v1.0/rank",
        scope="decide",
        where="some",
        handler=rank,
        changes=True,
        body=BodyType(RankRequest),
        answer={201: RankAnswer},
        also=(404, 409),
    ),
    Route(
        method="POST",
        path="/personalizer/v1.0/events/{event_id}/reward",
        scope="reward",
        where="some",
        handler=reward,
        changes=True,
        body=BodyType(RewardValue),
        answer={204: None},
    ),
    Route(
        method="POST",
        path="/personalizer/v1.0/events/{event_id}/activate",
        scope="reward",
        where="some",
        handler=activate,
        changes=True,
        answer={204: None},
        also=(400, 404),
    ),
)
