"""The demonstration is a stream that can be learned from, is bounded, and ends with its service."""

import httpx

from coterie.service.client import Client, Retries
from coterie.service.command.demo import Demo, Town


def test_a_community_has_a_taste_that_pays() -> None:
    town = Town()
    assert len(town.users) == 40
    assert {user for edge in town.edges() for user in edge} == set(town.users)
    best = [max(town.liking(user, arm) for arm in town.arms) for user in town.users]
    assert min(best) > town.by_chance() + 0.4
    assert len({tuple(town.liking(user, arm) for arm in town.arms) for user in town.users}) == 4


class Service:
    """Answers as the service does, until it is gone."""

    def __init__(self, n_answers: int) -> None:
        self.n_left, self.paths = n_answers, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        if len(self.paths) > self.n_left:
            raise httpx.ConnectError("gone")
        if request.method == "GET":
            return httpx.Response(404 if self.paths == [request.url.path] else 200, json=VIEW)
        if request.url.path.endswith("/reward"):
            return httpx.Response(200, json={"event_id": "e", "status": "applied", "seq": 9})
        return httpx.Response(201, json=VIEW if request.url.path == "/v1/experiments" else DECISION)


COUNTS = ("n_users", "n_edges", "n_arms", "n_decisions", "n_rewards", "n_pending")
VERSIONS = ("graph_version", "arms_version", "model_version", "seq")
VIEW = {"id": "demo", "is_archived": False, "settings": {}, **dict.fromkeys((*COUNTS, *VERSIONS), 1)}
DECISION = {"event_id": "e", "arm": "arm-1", "propensity": 1, "mean": 0, "std": 1, "model_version": 0, "seq": 8}


def played(service: Service, most: int) -> list[str]:
    told: list[str] = []
    client = Client(transport=httpx.MockTransport(service), retries=Retries(attempts=1))
    demo = Demo(client, told.append, rate=1e6, most=most)
    demo.start()
    demo.wait()
    demo.stop()
    return told


def test_it_makes_its_experiment_decides_and_ends_when_it_is_enough() -> None:
    service = Service(1000)
    told = played(service, most=7)
    assert service.paths[:2] == ["/v1/experiments/demo", "/v1/experiments"]
    assert service.paths.count("/v1/experiments/demo/decisions") == 7
    assert service.paths.count("/v1/events/e/reward") == 7
    assert told[0].startswith("demo: 1 decision; mean reward ")
    assert told[-1] == "demo: 7 decisions were made; the service goes on without more"


def test_it_ends_silently_with_the_service() -> None:
    assert len(played(Service(5), most=1000)) == 1


def test_it_says_why_it_ended_if_the_service_goes_on() -> None:
    def refuse(_: httpx.Request) -> httpx.Response:
        return httpx.Response(500)

    told: list[str] = []
    demo = Demo(Client(transport=httpx.MockTransport(refuse)), told.append)
    demo.start()
    demo.wait()
    demo.stop()
    assert told[0].startswith("demo: ended: the answer has status 500")
