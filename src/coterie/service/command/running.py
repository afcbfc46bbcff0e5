"""The service from the command line: it listens, tells where it is and its first key, and plays the demonstration."""

import argparse

from coterie.service.app.serving import listening, serve
from coterie.service.client import Client, Retries
from coterie.service.command.demo import EXPERIMENT, Demo
from coterie.service.command.greeting import address, key_lines, try_lines, where
from coterie.service.command.log_lines import logged_to_stderr
from coterie.service.command.options import settings_from
from coterie.service.engine.running import RunningEngine, ensure_admin_key

DEMO_KEY = "demo"  # the id of the demonstration's key: it has one, however often it is started and killed


def run(options: argparse.Namespace) -> None:
    """Serves until the process is told to stop."""
    settings = settings_from(options)
    level, demos = options.log_level or ("warning" if options.demo else "info"), list[Demo]()
    with logged_to_stderr(level), listening(settings) as listener:
        url = address(settings.host, listener.getsockname()[1])

        async def greet(running: RunningEngine) -> None:
            print(where(url, settings.store, running.engine.state.seq, settings.host), end="\n\n")
            await _tell_key(running, url, wants_key=options.new_key, is_demo=options.demo)
            if options.demo:
                client = Client(url, await _demo_key(running), retries=Retries(attempts=3))  # it ends with the service
                demos.append(Demo(client, _tell))
                demos[0].start()

        try:
            serve(settings, listener=listener, when_ready=greet)
        finally:
            for demo in demos:
                demo.stop()


async def _tell_key(running: RunningEngine, url: str, *, wants_key: bool, is_demo: bool) -> None:
    """Prints a key if there is none yet or one is wanted, and what to try with it."""
    key, experiment = await ensure_admin_key(running), EXPERIMENT if is_demo else "songs"
    if key is None and wants_key:
        _, key, seq = running.engine.make_key(["admin"])
        await running.commits.durable(seq)
    if key is not None:
        print(key_lines(url, key))
        is_there = is_demo or experiment in running.engine.state.experiments
        event_id = f"first-of-{key.split('_')[1]}"  # of the key's id: another key's lines have another one
        print(try_lines(experiment, "user-1" if is_demo else "bo", event_id, is_there=is_there))
    else:
        print("Keys of before are good; --new-key makes another that may do everything.\n")
    print("Ctrl-C ends it.", flush=True)


async def _demo_key(running: RunningEngine) -> str:
    """Returns a key of the demonstration's own, which nobody else gets to know; that of the last start is no good."""
    _, key, seq = running.engine.make_key(["admin"], name=DEMO_KEY)
    await running.commits.durable(seq)
    return key


def _tell(line: str) -> None:
    print(line, flush=True)
