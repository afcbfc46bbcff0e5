"""A forked child never writes to its parent's journal, and never waits for a lock that nobody will release."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

START = """
import os, signal, sys, threading, traceback
import coterie as ct
graph = ct.UserGraph.from_edges([("ana", "bo"), ("bo", "cy")])
arms = {name: [float(i), float(i % 2)] for i, name in enumerate("abcd")}

def in_child(work):
    child = os.fork()
    if not child:
        signal.alarm(20)  # ends a child that hangs
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""

WITH_JOURNAL = """
from coterie.errors import JournalError
bandit = ct.Bandit(graph=graph, arms=arms, policy=sys.argv[1], journal="journal")
bandit.save("snapshot")
for t in range(12):
    bandit.reward(bandit.decide("ana").id, float(t % 3))

def work():
    believed = bandit.predict("bo")
    for change in (lambda: bandit.decide("ana"), lambda: bandit.learn("bo", "a", 1.0), lambda: bandit.add_user("eve")):
        try:
            change()
        except JournalError as error:
            assert "was forked from the one that writes to" in str(error), error
        else:
            raise AssertionError("a change in a child was not refused")
    assert bandit.predict("bo") == believed and bandit.n_rewards == 12
    bandit.save("of-child")

held = open("journal", "rb").read()
assert in_child(work) == 0
assert open("journal", "rb").read() == held
second = bandit.decide("bo")
bandit.reward(second.id, 2.0)
believed = bandit.predict("cy")
assert ct.replay("of-child", "journal", decision=second.id).arm == second.arm
del bandit
assert ct.Bandit.load("snapshot", journal="journal").predict("cy") == believed
"""

WHILE_USED = """
bandit = ct.Bandit(graph=graph, arms=arms, policy=sys.argv[1], **({"journal": "journal"} if len(sys.argv) > 2 else {}))
stop = threading.Event()

def use():
    while not stop.is_set():
        bandit.reward(bandit.decide("ana").id, 1.0)

def work():
    assert len(bandit.predict("bo")) == 4
    if len(sys.argv) < 3:
        bandit.reward(bandit.decide("bo").id, 1.0)

threads = [threading.Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
codes = [in_child(work) for _ in range(25)]
stop.set()
for thread in threads:
    thread.join()
assert codes == [0] * 25, codes
believed = bandit.predict("bo")
"""


def run(folder: Path, script: str, *args: str) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + script, *args]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("policy", ["auto-ucb", "lk-gp-ts"])
def test_a_child_reads_and_leaves_the_journal_to_its_parent(tmp_path: Path, policy: str) -> None:
    run(tmp_path, WITH_JOURNAL, policy)


@pytest.mark.parametrize("journal", [[], ["journal"]])
def test_a_fork_while_other_threads_use_the_bandit_hangs_nobody(tmp_path: Path, journal: list[str]) -> None:
    run(tmp_path, WHILE_USED, "lk-gp-ucb", *journal)


ADDING = """
bandit = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", engine="sparse")
sys.setswitchinterval(1e-6)
stop, number = threading.Event(), [0]

def use():
    while not stop.is_set():
        number[0] += 1
        bandit.add_user(f"new-{number[0]}", friends={"ana": 1.0})

thread = threading.Thread(target=use)
thread.start()
codes = [in_child(lambda: bandit.add_user("of-child", friends={"bo": 1.0})) for _ in range(25)]
stop.set()
thread.join()
assert codes == [0] * 25, codes
"""

LET_GO = """
bandit = ct.Bandit(graph=graph, arms=arms, policy="lk-gp-ucb", journal="journal")
bandit.save("snapshot")
child = os.fork()
if not child:
    signal.pause()
del bandit
assert ct.Bandit.load("snapshot", journal="journal").n_decisions == 0
os.kill(child, signal.SIGKILL)
"""


def test_a_fork_while_users_are_added_hangs_nobody(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    run(tmp_path, ADDING)


def test_a_child_does_not_keep_the_journal_locked(tmp_path: Path) -> None:
    run(tmp_path, LET_GO)


IN_CONTEXTS = """
bandit = ct.Bandit(graph=graph, arms=arms)
stop = threading.Event()

def use(name):
    t = 0
    while not stop.is_set():
        t += 1
        bandit.reward(bandit.decide("ana", None, {"hour": t % 24, "device": f"{name}-{t % 9}"}).id, 1.0 + t % 2)

def work():
    first = len(bandit.context_schema.fields[1].categories)
    decision = bandit.decide("bo", {"a": None, "new": [0.5, 0.5]}, {"hour": 3, "device": "of-child"}, keep=True)
    bandit.reward(decision.id, 1.0)
    assert len(bandit.context_schema.fields[1].categories) == first + 1
    assert bandit.arms.ids[-1] == "new"

bandit.decide("ana", None, {"hour": 1, "device": "first"})
threads = [threading.Thread(target=use, args=(name,)) for name in "xy"]
for thread in threads:
    thread.start()
codes = [in_child(work) for _ in range(15)]
stop.set()
for thread in threads:
    thread.join()
assert codes == [0] * 15, codes
assert "of-child" not in bandit.context_schema.fields[1].categories and "new" not in bandit.arms.ids
"""


def test_a_child_learns_contexts_of_its_own(tmp_path: Path) -> None:
    run(tmp_path, IN_CONTEXTS)
