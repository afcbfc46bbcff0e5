"""Where long work is done: in this machine's processes, or on Ray; and whether that can be."""

import argparse
import os
import re

from coterie.errors import SettingError, listed

PLACES = ("processes", "ray")
LAST_PORT = 65_535
_ADDRESS = re.compile(r"auto|[^\s/:]+:\d{1,5}|\[[0-9A-Fa-f:.]+\]:\d{1,5}")


def add_place(command: argparse.ArgumentParser) -> None:
    """Adds the options of where a command's work is done."""
    on = "who does the work: processes of this machine, or Ray (extra 'ray'); the results are the same"
    command.add_argument("--on", choices=PLACES, default=PLACES[0], help=f"{on} (default: %(default)s)")
    address = "with --on ray: a cluster that runs, auto or HOST:PORT (default: start Ray here, and end it)"
    command.add_argument("--address", help=address)


def usable_cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_place(on: str, address: str | None) -> None:
    """Raises if there is no such place, or no such address there."""
    if on not in PLACES:
        raise SettingError(f"on is {on!r}", f"it is one of {listed(PLACES)}", "Choose one of these", key="on")
    if address is None:
        return
    if on != "ray":
        rule = "only Ray has one"
        raise SettingError(f"the address {address!r} is given", rule, "Add --on ray, or leave it out", key="address")
    if not _ADDRESS.fullmatch(address) or (address != "auto" and int(address.rpartition(":")[2]) > LAST_PORT):
        rule = "it is 'auto' or HOST:PORT"
        raise SettingError(f"address is {address!r}", rule, "Write, say, 10.0.0.7:6379", key="address")
