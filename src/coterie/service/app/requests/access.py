"""Who may call what: nobody, unless a key says so."""

from coterie.service.app.requests.answers import Header
from coterie.service.app.requests.calls import Call, Route
from coterie.service.app.requests.failures import RequestError
from coterie.service.engine.events import KeyMade
from coterie.service.engine.keys import may
from coterie.service.records import Scope

CHALLENGE: Header = (b"www-authenticate", b"Bearer")


def admit(route: Route, call: Call) -> None:
    """Takes the key of a call, or raises if it has none that is good for the route."""
    if route.scope is None:
        return
    call.key = key = _key_of(call)
    call.service.limits.check_rate(key.id)
    if route.where == "some":
        if route.scope not in key.scopes and "admin" not in key.scopes:
            _refuse(key, route.scope, None)
        return
    check_experiment(key, route.scope, call.params["experiment"] if route.where == "path" else None)


def check_experiment(key: KeyMade, scope: Scope, experiment: str | None) -> None:
    """Raises if a key is not good for something in an experiment; None stands for all of them."""
    if not may(key, scope, experiment):
        _refuse(key, scope, experiment)


def _key_of(call: Call) -> KeyMade:
    given = call.headers.get(b"authorization", b"").decode("latin-1")
    kind, _, key = given.partition(" ")
    if kind.lower() != "bearer":
        key = call.headers.get(b"ocp-apim-subscription-key", b"").decode("latin-1")
    found = call.engine.state.keys.find(key.strip())
    if found is None:
        rule, remedy = "every call needs a key that is good", "Send 'Authorization: Bearer KEY'"
        raise RequestError(401, "no_key", "there is no such key", rule, remedy, headers=(CHALLENGE,))
    return found


def _refuse(key: KeyMade, scope: Scope, experiment: str | None) -> None:
    where = "all experiments" if experiment is None else f"experiment {experiment!r}"
    what = f"key {key.id} is not good for {scope!r} in {where}"
    raise RequestError(403, "forbidden", what, "a key is good for its scopes, in its experiments", "Use another key")
