"""The services that are compared, each a process of its own: python -m benchmarks.service.servers KIND STORE PORT.

durable: as `coterie serve` runs. memory: the same app with its log off. single: the same app with one commit for each
event, before the next request is looked at. bare: an ASGI app that reads a body and answers a constant. fitting: as
durable, while another thread fits hyperparameters again and again.
"""

import asyncio
import sys
import threading
from functools import partial
from time import sleep
from typing import Any

import numpy as np
import uvicorn

import coterie.service.engine.running as running_module
from coterie.policies.auto.auto_policy import AutoPolicy
from coterie.product.bandit import Bandit
from coterie.service.app import ServiceSettings, create_app
from coterie.service.app.serving import server_config, tuned
from coterie.service.engine.commits import Commits
from coterie.service.engine.running import RunningEngine, ensure_admin_key
from coterie.service.journal import MemoryJournal, SqliteJournal

REWARDS = 600  # that each service learns before it is measured
ANSWER = b'{"event_id":"01a1ee48-efb0-7bd2-899e-d4633e5de6c9","arm":"a1","propensity":1.0,"mean":0.1,"std":0.2}'


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and answers."""
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
    while (await receive()).get("more_body", False):
        pass
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": ANSWER})


class OneByOne(Commits):
    """Commits each event before anything else is done."""

    def start(self) -> None:
        """Starts to write, where each event happens."""
        super().start()
        self._engine.state.when_changed = self._write_now

    def _write_now(self) -> None:
        for event in self._engine.state.take_batch():
            self._journal.append([event])
            self.durable_seq = event.seq


def fit_for_ever(bandit: Bandit) -> None:
    """Fits hyperparameters to 512 rewards of an experiment like this one, again and again, as long as this decides."""
    rng = np.random.default_rng(0)
    users = [bandit.users[row] for row in rng.integers(len(bandit.users), size=512)]
    arms = [bandit.arms.ids[row] for row in rng.integers(len(bandit.arms), size=512)]
    like = Bandit(graph=bandit.graph, arms=bandit.arms, wait_for_fits=True)
    like.learn_many(users, arms, rng.normal(size=512))
    policy = like._learned.policy
    assert isinstance(policy, AutoPolicy)
    while True:
        before = bandit.n_decisions
        sleep(0.02)
        if bandit.n_decisions > before:  # or else another service is being measured
            fit = policy._started_fit(512)
            while not fit.is_ready:  # as a bandit looks, which waits for no fit
                sleep(0.005)
            fit.finish()


async def when_ready(running: RunningEngine, *, fits: bool) -> None:
    """Prints the key; a thread fits as soon as there is something to fit."""
    print("key", await ensure_admin_key(running) or "", flush=True)
    experiments = running.engine.state.experiments
    while fits and not any(each.bandit.n_rewards >= REWARDS for each in experiments.values()):
        await asyncio.sleep(0.05)
    if fits:
        threading.Thread(target=fit_for_ever, args=(experiments["bench"].bandit,), daemon=True).start()


def main(kind: str, store: str, port: int) -> None:
    """Serves until it is told to stop."""
    settings = ServiceSettings(store=store, port=port, log_requests=False)
    if kind == "bare":
        uvicorn.Server(server_config(bare, settings)).run()
        return
    if kind == "single":
        vars(running_module)["Commits"] = OneByOne
    running = RunningEngine(MemoryJournal if kind == "memory" else partial(SqliteJournal, store))
    app = create_app(running, settings, when_ready=partial(when_ready, fits=kind == "fitting"))
    with tuned():
        uvicorn.Server(server_config(app, settings)).run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
