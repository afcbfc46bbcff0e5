"""The methods of both clients, from one plan each: what to ask for is written once, and done in two ways."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar, overload

from coterie.service.client.requests import changes, events, reading
from coterie.service.client.requests.call import Plan

P = ParamSpec("P")
T = TypeVar("T")


class Waits(ABC):
    """A client whose calls wait for the answer."""

    @abstractmethod
    def carry_out(self, plan: Plan[T]) -> T:
        """Returns what came of a plan."""


class IsAwaited(ABC):
    """A client whose calls are awaited."""

    @abstractmethod
    async def carry_out(self, plan: Plan[T]) -> T:
        """Returns what came of a plan."""


class Method(Generic[P, T]):
    """A method that carries out a plan: of a client that waits it returns the answer, of the other it is awaited."""

    def __init__(self, plan: Callable[P, Plan[T]]) -> None:
        self._plan = plan
        self.__doc__ = plan.__doc__

    @overload
    def __get__(self, client: Waits, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: IsAwaited, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Callable[P, Plan[T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        """Returns the method of a client; of a class, the plan."""
        if client is None:
            return self._plan

        def method(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client.carry_out(self._plan(*args, **kwargs))

        return update_wrapper(method, self._plan)


class Methods:
    """What both clients can do."""

    create_experiment = Method(changes.create_experiment)
    experiments = Method(changes.experiments)
    experiment = Method(changes.experiment)
    configure = Method(changes.configure)
    archive = Method(changes.archive)
    reset = Method(changes.reset)
    set_edges = Method(changes.set_edges)
    replace_edges = Method(changes.replace_edges)
    add_users = Method(changes.add_users)
    remove_users = Method(changes.remove_users)
    replace_users = Method(changes.replace_users)
    put_arms = Method(changes.put_arms)
    retire_arms = Method(changes.retire_arms)
    revive_arms = Method(changes.revive_arms)
    replace_arms = Method(changes.replace_arms)
    decide = Method(events.decide)
    decide_many = Method(events.decide_many)
    reward = Method(events.reward)
    reward_many = Method(events.reward_many)
    activate = Method(events.activate)
    explain = Method(reading.explain)
    graph_report = Method(reading.graph_report)
    export = Method(reading.export)
    evaluations = Method(reading.evaluations)
    metrics = Method(reading.metrics)
    log_page = Method(reading.log_page)
    keys = Method(reading.keys)
    make_key = Method(reading.make_key)
    rotate_key = Method(reading.rotate_key)
    revoke_key = Method(reading.revoke_key)
    livez = Method(reading.livez)
    ready = Method(reading.ready)
