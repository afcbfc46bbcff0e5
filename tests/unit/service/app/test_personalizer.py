"""The routes shaped like Personalizer v1.0."""

from typing import Any

import pytest

from coterie.service.app import ServiceSettings
from service_app import NEWS, service

RANK = "/personalizer/v1.0/rank"
SHOP = {"id": "shop", "graph": {"users": ["ana"]}, "arms": [{"id": "tea"}]}
PLAIN = {
    "contextFeatures": [{"user": "ana", "hour": 21}, {"day": {"wet": True}}],
    "actions": [{"id": "tea", "features": [{"price": 2}]}, {"id": "ale", "features": []}],
}


def test_an_old_client_ranks_rewards_and_activates() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        assert call("POST", "/v1/experiments", SHOP).status_code == 201
        old = {"ocp-apim-subscription-key": call.key}
        answer = call.client.post(RANK, json=PLAIN | {"eventId": "e1", "deferActivation": True}, headers=old)
        assert answer.status_code == 201
        told = answer.json()
        assert set(told) == {"ranking", "eventId", "rewardActionId"}
        assert told["ranking"][0]["id"] == told["rewardActionId"]
        assert {each["id"] for each in told["ranking"]} == {"tea", "ale"}
        assert abs(sum(each["probability"] for each in told["ranking"]) - 1) < 1e-9
        for part, body in (("activate", None), ("reward", {"value": 0.5})):
            answer = call.client.post(f"/personalizer/v1.0/events/e1/{part}", json=body, headers=old)
            assert (answer.status_code, answer.content) == (204, b"")
        assert call.running.engine.view("shop").n_rewards == 1


def test_the_same_event_gets_the_same_ranking() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP)
        first = call("POST", RANK, PLAIN | {"eventId": "e1"})
        call("POST", "/personalizer/v1.0/events/e1/reward", {"value": 1})
        assert call("POST", RANK, PLAIN | {"eventId": "e1"}).content == first.content
        assert call("POST", RANK, {**PLAIN, "actions": [{"id": "tea"}], "eventId": "e1"}).status_code == 409


def test_users_and_actions_that_are_not_there_are_added_and_a_context_is_taken_as_the_schema_has_it() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP)
        assert call("POST", RANK, PLAIN).status_code == 201
        zoe = {
            "contextFeatures": [{"deep": {"user": "zoe"}}, {"day": {"wet": 3}, "more": 1}],
            "actions": [{"id": "gin"}],
        }
        assert call("POST", RANK, zoe).json()["rewardActionId"] == "gin"
        assert call("POST", RANK, {"actions": [{"id": "gin"}, {"id": "tea"}]}).status_code == 201
        view = call.running.engine.view("shop")
        assert (view.n_users, view.n_arms) == (3, 3)  # ana, zoe and anyone; tea, ale and gin
        assert call.running.engine.state.get("shop").bandit.context_schema is not None


def test_actions_have_the_features_that_the_arms_have() -> None:
    arms = [
        {"id": "tea", "features": {"price": 1.0, "hot": 1.0}},
        {"id": "ale", "features": {"price": 3.0, "hot": 0.0}},
    ]
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP | {"arms": arms})
        action = {"id": "rum", "features": [{"price": 5, "label": "x", "other": 1}, {"hot": True}]}
        assert call("POST", RANK, {"contextFeatures": [{"user": "ana"}], "actions": [action]}).status_code == 201
        pool = call.running.engine.state.get("shop").bandit.arms
        assert pool.features[pool.index_of("rum")].tolist() == [5.0, 1.0]


def test_where_there_are_contexts_each_request_brings_the_features_of_its_actions() -> None:
    arms = [{"id": "tea", "features": {"price": 1.0}}, {"id": "ale", "features": {"price": 3.0}}]
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP | {"arms": arms, "context_schema": {"hour": "number"}})
        action = {"id": "rum", "features": [{"price": 5}]}
        asked = {"contextFeatures": [{"user": "ana", "hour": 3}], "actions": [action]}
        assert call("POST", RANK, asked).json()["rewardActionId"] == "rum"
        assert call.running.engine.view("shop").n_arms == 2


def test_where_the_schema_has_no_fields_yet_the_first_context_says_which_there_are() -> None:
    arms = [{"id": "none", "features": {"price": 0.0}}]
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP | {"arms": arms, "context_schema": {}})
        actions = [{"id": "tea", "features": [{"price": 2}]}, {"id": "ale", "features": [{"price": 3}]}]
        first = {"contextFeatures": [{"user": "zoe", "hour": 21}, {"day": {"wet": True}}], "actions": actions}
        told = call("POST", RANK, first | {"eventId": "e1"})
        assert told.status_code == 201
        assert {each["id"] for each in told.json()["ranking"]} == {"tea", "ale"}
        schema = call.running.engine.state.get("shop").bandit.context_schema
        assert schema is not None
        assert [(field.name, field.kind) for field in schema.fields] == [("hour", "number"), ("day.wet", "flag")]
        assert call("POST", RANK, first | {"eventId": "e1"}).content == told.content
        assert call("POST", RANK, {"contextFeatures": [{"user": "bo", "more": 1}], "actions": actions}).is_success
        view = call.running.engine.view("shop")
        assert (view.n_users, view.n_arms, view.n_decisions) == (3, 1, 2)


def test_an_action_that_is_an_arm_and_comes_without_features_has_those_of_the_arm() -> None:
    arms = [{"id": "tea", "features": {"price": 1.0}}]
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP | {"arms": arms, "context_schema": {}})
        assert call("POST", RANK, {"actions": [{"id": "tea"}]}).status_code == 201


FEATURED = {"arms": [{"id": "tea", "features": {"price": 1.0}}]}
NEW = [{"id": "rum", "features": [{"price": 5}]}, {"id": "gin"}]


@pytest.mark.parametrize("features", [{}, FEATURED], ids=["without features", "with features"])
@pytest.mark.parametrize("schema", [{}, {"context_schema": {}}], ids=["learned", "open"])
@pytest.mark.parametrize(
    "broken",
    [
        {"contextFeatures": [{"user": "zoe", "hour": 1e300}]},
        {"contextFeatures": [{"user": "zoe", "": 1}]},
        {"contextFeatures": [{"user": "zoe"}], "actions": [*NEW, NEW[0]]},
        {"contextFeatures": [{"user": "zoe"}], "actions": NEW, "excludedActions": ["rum", "gin"]},
        {"contextFeatures": [{"user": "zoe"}], "actions": [{"id": f"a{number}"} for number in range(11)]},
    ],
    ids=["number", "name", "twice", "excluded", "floor"],
)
def test_a_rank_that_is_refused_changes_nothing(broken: Any, schema: Any, features: Any) -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP | {"exploration_floor": 0.1} | schema | features)
        before = call.digest
        assert call("POST", RANK, {"actions": NEW} | broken).status_code == 422
        assert call.digest == before


def test_a_rank_for_an_event_that_is_taken_changes_nothing() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP)
        call("POST", RANK, PLAIN | {"eventId": "e1"})
        before = call.digest
        zoe = {"contextFeatures": [{"user": "zoe"}], "actions": NEW, "eventId": "e1"}
        assert call("POST", RANK, zoe).status_code == 409
        assert call.digest == before


def test_an_excluded_action_is_never_chosen() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP)
        for _ in range(5):
            told = call("POST", RANK, PLAIN | {"excludedActions": ["ale"]}).json()
            assert told["rewardActionId"] == "tea"
            assert {each["id"]: each["probability"] for each in told["ranking"]} == {"tea": 1.0, "ale": 0.0}


def test_an_excluded_action_that_is_none_of_them_does_nothing() -> None:
    with service(ServiceSettings(personalizer_experiment="shop"), news=False) as call:
        call("POST", "/v1/experiments", SHOP)
        told = call("POST", RANK, PLAIN | {"excludedActions": ["nobody-knows-it"]})
        assert told.status_code == 201
        assert {each["id"] for each in told.json()["ranking"]} == {"tea", "ale"}


def test_the_experiment_is_the_only_one_of_the_key_or_nobody_knows_it() -> None:
    with service() as call:
        only = call.make_key("decide", experiments=["news"])["key"]
        actions = [{"id": "tea", "features": [{"0": 1}]}]
        assert call("POST", RANK, {"actions": actions}, key=only).status_code == 201
        two = call.make_key("decide", experiments=["news", "shop"])["key"]
        assert call("POST", RANK, {"actions": actions}, key=two).status_code == 422
        assert NEWS["id"] == "news"
