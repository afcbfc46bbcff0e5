"""Keys: made, listed, replaced, revoked. The key itself is told once, to who makes it."""

from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.bodies import BodyType
from coterie.service.app.requests.calls import Call, Route
from coterie.service.engine.events import KeyMade
from coterie.service.envelopes import Keys, KeyView, MadeKey, NewKey


def _new(made: KeyMade, key: str) -> Answer:
    answer = MadeKey(id=made.id, scopes=made.scopes, experiments=made.experiments, key=key)
    return answer_of(answer, 201)


def _view(key: KeyMade) -> KeyView:
    return KeyView(id=key.id, scopes=key.scopes, experiments=key.experiments)


def listed(call: Call) -> Answer:
    """Lists the keys that are good."""
    return answer_of(Keys(keys=[_view(key) for key in call.engine.state.keys]))


def make(call: Call) -> Answer:
    """Makes a key, and tells it, once."""
    made, key, _ = call.engine.make_key(list(dict.fromkeys(call.given.scopes)), call.given.experiments)
    return _new(made, key)


def rotate(call: Call) -> Answer:
    """Puts another key in the place of one, with the same scopes, and tells it, once; the old one is no good."""
    made, key, _ = call.engine.rotate_key(call.params["key"])
    return _new(made, key)


def revoke(call: Call) -> Answer:
    """Makes a key no good, at once."""
    revoked = call.engine.state.keys.get(call.params["key"])
    call.engine.revoke_key(revoked.id)
    return answer_of(_view(revoked))


ROUTES = (
    Route(method="GET", path="/v1/keys", scope="admin", where="all", handler=listed, answer={200: Keys}),
    Route(
        method="POST",
        path="/v1/keys",
        scope="admin",
        where="all",
        handler=make,
        changes=True,
        body=BodyType(NewKey),
        answer={201: MadeKey},
    ),
    Route(
        method="POST",
        path="/v1/keys/{key}/rotate",
        scope="admin",
        where="all",
        handler=rotate,
        changes=True,
        answer={201: MadeKey},
        also=(404,),
    ),
    Route(
        method="DELETE",
        path="/v1/keys/{key}",
        scope="admin",
        where="all",
        handler=revoke,
        changes=True,
        answer={200: KeyView},
        also=(404,),
    ),
)
