"""The bandit of an experiment: made from its settings, saved to bytes, loaded from them."""

from collections import Counter
from collections.abc import Sequence
from math import inf

from coterie.errors import ArmError, DuplicateIdError, listed
from coterie.graphs import UserGraph
from coterie.kernels import ArmPool
from coterie.product.bandit import Bandit
from coterie.product.files.container import IN_MEMORY, content_of
from coterie.product.files.recording import Steady
from coterie.product.files.replaying import Replay
from coterie.product.files.saving import bandit_of, bytes_of_parts, copied_parts
from coterie.product.inputs.arm_inputs import as_arm_pool
from coterie.service.records import MOST_PLACES, Arm, ExperimentSettings, Graph, User

SOURCE = "the journal of the service"  # in errors of a replay


def check_named_once(what: str, ids: Sequence[str]) -> None:
    """Raises if an id is named twice.

    Examples:
        >>> check_named_once("users", ["ana", "bo", "ana"])
        Traceback (most recent call last):
        coterie.errors.DuplicateIdError: users 'ana' are named twice; ids are unique. Name each once.
    """
    if len(set(ids)) < len(ids):
        twice = [each for each, times in Counter(ids).items() if times > 1]
        raise DuplicateIdError(f"{what} {listed(twice)} are named twice", "ids are unique", "Name each once")


def graph_of(given: Graph) -> UserGraph:
    """Returns a graph: users that are named first, then others in the order of the edges.

    Examples:
        >>> from coterie.service.records import Edge
        >>> graph_of(Graph(users=["cy"], edges=[Edge(user="ana", other="bo")])).users
        ('cy', 'ana', 'bo')
    """
    check_named_once("users", given.users)
    users = dict.fromkeys(given.users) | dict.fromkeys(end for edge in given.edges for end in (edge.user, edge.other))
    return UserGraph.from_edges([(edge.user, edge.other, edge.weight) for edge in given.edges], users=list(users))


def edges_of(users: Sequence[User]) -> list[tuple[str, str, float]]:
    """Returns the edges of users to their friends, each once.

    Examples:
        >>> edges_of([User(id="ana", friends={"bo": 0.5}), User(id="bo", friends=["cy"]), User(id="dee")])
        [('ana', 'bo', 0.5), ('bo', 'cy', 1.0)]
    """
    found: dict[frozenset[str], tuple[str, str, float]] = {}
    for user in users:
        friends = user.friends if isinstance(user.friends, dict) else dict.fromkeys(user.friends or (), 1.0)
        found |= {frozenset((user.id, friend)): (user.id, friend, weight) for friend, weight in friends.items()}
    return list(found.values())


def arms_of(given: Sequence[Arm]) -> ArmPool:
    """Returns a pool: all arms have features, or none has.

    Examples:
        >>> arms_of([Arm(id="tea", features=[0.0]), Arm(id="ale", features=[1.0])]).ids
        ('tea', 'ale')
    """
    ids = [arm.id for arm in given]
    check_named_once("arms", ids)
    bare = [arm.id for arm in given if arm.features is None]
    if not bare:
        return as_arm_pool({arm.id: arm.features for arm in given})
    if len(bare) < len(given):
        rule = "all arms have features, or none has"
        raise ArmError(
            f"arms {listed(bare)} have no features, and others have", rule, "Give features to all, or to none"
        )
    return ArmPool.without_features(ids)


def new_bandit(settings: ExperimentSettings, graph: UserGraph, arms: ArmPool) -> tuple[Bandit, Replay]:
    """Returns a bandit that has learned nothing, and what makes changes of it again; ended, that lets it go on."""
    clock = Steady(lambda: inf, stands=True)
    bandit = Bandit(
        graph=graph,
        arms=arms,
        policy=settings.policy,
        seed=settings.seed,
        max_pending=2 * settings.max_pending + MOST_PLACES,  # so that what the service waits for is never forgotten
        forgetting=settings.forgetting,
        min_propensity=settings.exploration_floor,
        reward="binary" if settings.binary else "real",
        context_schema=settings.context_schema,
        wait_for_fits=False,  # whatever the default is: a replay has to be told of fits as the journal has them
        clock=clock,
    )
    return bandit, Replay(bandit, clock, SOURCE, takes_arms=True)


def bandit_as_bytes(bandit: Bandit) -> bytes:
    """Returns the file of a bandit, as `Bandit.save` writes it; it decides and learns meanwhile."""
    return bytes_of_parts(copied_parts(bandit))


def bandit_of_bytes(content: bytes) -> tuple[Bandit, Replay]:
    """Returns the bandit of a file, and what makes further changes of it again."""
    clock = Steady(lambda: inf, stands=True)
    bandit = bandit_of(content_of(content), IN_MEMORY, clock=clock)
    return bandit, Replay(bandit, clock, SOURCE, takes_arms=True)
