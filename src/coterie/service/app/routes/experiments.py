"""Experiments: made, listed, changed, archived, reset; their users, edges and arms."""

from coterie.errors import ParameterError
from coterie.service.app.requests.answers import Answer, answer_of
from coterie.service.app.requests.bodies import BodyType
from coterie.service.app.requests.calls import Call, Handler, Method, Route
from coterie.service.engine.keys import may
from coterie.service.envelopes import AllArms, AllUsers, Experiments
from coterie.service.records import (
    Arm,
    ArmsChange,
    Changed,
    Edge,
    EdgesChange,
    ExperimentView,
    NewExperiment,
    SettingsChange,
    User,
    UsersChange,
)

MOST_REMOVED = 1000
HERE = "/v1/experiments/{experiment}"


def create(call: Call) -> Answer:
    """Makes an experiment."""
    view = call.engine.create(call.given)
    call.experiment = view.id
    return answer_of(view, 201)


def listed(call: Call) -> Answer:
    """Lists the experiments that the key may read."""
    assert call.key is not None
    names = [name for name in call.engine.state.experiments if may(call.key, "read", name)]
    return answer_of(Experiments(experiments=[call.engine.view(name) for name in names]))


def view(call: Call) -> Answer:
    """Returns an experiment as it stands."""
    return answer_of(call.engine.view(call.params["experiment"]))


def configure(call: Call) -> Answer:
    """Changes settings of an experiment; what is left out stays."""
    return answer_of(call.engine.configure(call.params["experiment"], call.given))


def archive(call: Call) -> Answer:
    """Archives an experiment: it can be read, and takes no changes."""
    return answer_of(call.engine.archive(call.params["experiment"]))


def reset(call: Call) -> Answer:
    """Lets an experiment forget what it has learned; graph, arms and settings stay."""
    return answer_of(call.engine.reset(call.params["experiment"]))


def set_edges(call: Call) -> Answer:
    """Sets edges of the graph; weight 0 takes one away."""
    edges = call.given if isinstance(call.given, list) else call.given.edges
    return answer_of(call.engine.set_edges(call.params["experiment"], edges))


def replace_edges(call: Call) -> Answer:
    """Sets the whole list of edges; others are taken away."""
    edges = call.given if isinstance(call.given, list) else call.given.edges
    return answer_of(call.engine.set_edges(call.params["experiment"], edges, whole=True))


def change_users(call: Call) -> Answer:
    """Adds users with their friends, and removes users with what was learned from them."""
    change = UsersChange(add=call.given) if isinstance(call.given, list) else call.given
    return answer_of(call.engine.change_users(call.params["experiment"], change))


def replace_users(call: Call) -> Answer:
    """Sets the whole list of users, with their friends; those that it does not name are removed."""
    users = call.given if isinstance(call.given, list) else call.given.users
    there, named = call.engine.state.get(call.params["experiment"]).bandit.graph, {user.id for user in users}
    gone = [str(user) for user in there.users if user not in named]
    if len(gone) > MOST_REMOVED:
        rule = f"at most {MOST_REMOVED} are removed at once"
        raise ParameterError(f"{len(gone)} users are not named", rule, "Remove some with PATCH first")
    change = UsersChange(add=users, remove=gone)
    return answer_of(call.engine.change_users(call.params["experiment"], change))


def replace_arms(call: Call) -> Answer:
    """Sets the whole list of arms: those that it does not name are retired, retired ones that it names are not."""
    arms = call.given if isinstance(call.given, list) else call.given.arms
    there, named = call.engine.state.get(call.params["experiment"]).bandit, {arm.id for arm in arms}
    retire = [str(arm) for arm in there.arms.ids if arm not in named and arm not in there.retired]
    revive = [str(arm) for arm in there.retired if arm in named]
    change = ArmsChange(put=arms, retire=retire, revive=revive)
    return answer_of(call.engine.change_arms(call.params["experiment"], change))


def change_arms(call: Call) -> Answer:
    """Adds arms or gives them other features, retires arms, and lets retired ones be shown again."""
    change = ArmsChange(put=call.given) if isinstance(call.given, list) else call.given
    return answer_of(call.engine.change_arms(call.params["experiment"], change))


def _change(method: Method, part: str, handler: Handler, body: BodyType) -> Route:
    return Route(
        method=method,
        path=f"{HERE}/{part}",
        scope="admin",
        handler=handler,
        changes=True,
        body=body,
        answer={200: Changed},
        also=(404, 409),
    )


ROUTES = (
    Route(
        method="POST",
        path="/v1/experiments",
        scope="admin",
        where="all",
        handler=create,
        changes=True,
        body=BodyType(NewExperiment),
        answer={201: ExperimentView},
        also=(409,),
    ),
    Route(method="GET", path="/v1/experiments", scope="read", where="some", handler=listed, answer={200: Experiments}),
    Route(method="GET", path=HERE, scope="read", handler=view, answer={200: ExperimentView}, also=(404,)),
    Route(
        method="PATCH",
        path=HERE,
        scope="admin",
        handler=configure,
        changes=True,
        body=BodyType(SettingsChange),
        answer={200: ExperimentView},
        also=(404, 409),
    ),
    Route(
        method="DELETE",
        path=HERE,
        scope="admin",
        handler=archive,
        changes=True,
        answer={200: ExperimentView},
        also=(404, 409),
    ),
    Route(
        method="POST",
        path=f"{HERE}/reset",
        scope="admin",
        handler=reset,
        changes=True,
        answer={200: ExperimentView},
        also=(404, 409),
    ),
    _change("PATCH", "graph/edges", set_edges, BodyType(EdgesChange, Edge)),
    _change("PUT", "graph/edges", replace_edges, BodyType(EdgesChange, Edge)),
    _change("PATCH", "users", change_users, BodyType(UsersChange, User)),
    _change("PUT", "users", replace_users, BodyType(AllUsers, User)),
    _change("PUT", "arms", replace_arms, BodyType(AllArms, Arm)),
    _change("PATCH", "arms", change_arms, BodyType(ArmsChange, Arm)),
)
