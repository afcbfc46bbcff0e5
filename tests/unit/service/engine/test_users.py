from coterie.service.engine.engine import Engine
from coterie.service.engine.opening import open_engine
from coterie.service.journal import MemoryJournal
from coterie.service.records import Arm, Edge, Graph, NewExperiment, User, UsersChange


def experiment(engine: Engine) -> None:
    graph = Graph(edges=[Edge(user="ana", other="bo"), Edge(user="bo", other="cy")])
    engine.create(NewExperiment(id="drinks", graph=graph, arms=[Arm(id="tea"), Arm(id="ale")]))


def test_a_user_who_is_there_already_is_joined_to_the_friends_that_are_named() -> None:
    engine, _ = open_engine(MemoryJournal())
    experiment(engine)
    change = UsersChange(add=[User(id="ana", friends={"cy": 0.5}), User(id="cy", friends={"ana": 0.5}), User(id="dee")])
    for _ in range(2):  # the second time changes nothing
        engine.change_users("drinks", change)
        graph = engine.state.get("drinks").bandit.graph
        assert graph.users == ("ana", "bo", "cy", "dee")
        assert sorted(graph.edges()) == [("ana", "bo", 1.0), ("ana", "cy", 0.5), ("bo", "cy", 1.0)]


def test_a_replay_adds_them_again() -> None:
    journal = MemoryJournal()
    engine, _ = open_engine(journal)
    experiment(engine)
    engine.change_users("drinks", UsersChange(add=[User(id="ana", friends=["dee"]), User(id="dee", friends=["bo"])]))
    journal.append(engine.state.take_batch())
    again, _ = open_engine(journal)
    made, once = (list(each.state.get("drinks").bandit.graph.edges()) for each in (again, engine))
    assert made == once
    assert ("ana", "dee", 1.0) in made
