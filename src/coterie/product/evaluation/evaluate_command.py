"""`coterie evaluate`: what other policies would have earned on a log, from the command line."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

from coterie.contracts import VERSION
from coterie.errors import InputError, ParameterError, counted
from coterie.logs.plain.reading import read_log
from coterie.product.evaluation.estimators import ESTIMATORS
from coterie.product.evaluation.evaluating import compare
from coterie.product.evaluation.material import Material, check_long, material_of, material_of_journal
from coterie.product.evaluation.report import Comparison, answer, known
from coterie.product.evaluation.targets import N_DRAWS, Asked, Target

SHARED = ("graph", "arms", "seed")


class _Policy(argparse.Action):
    """Begins the settings of another policy."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:  # noqa: ARG002
        """Adds it."""
        namespace.policy = [*(namespace.policy or []), (values, {})]


class _Option(argparse.Action):
    """Adds a setting to the policy that was named last."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Adds it, or says that no policy was named."""
        if not namespace.policy:
            parser.error(f"{option_string} belongs to the --policy before it, and there is none")
        namespace.policy[-1][1].update([values])


def setting(text: str) -> tuple[str, Any]:
    """Returns a name and a value given on the command line as KEY=VALUE.

    Examples:
        >>> setting("width=0.5"), setting("sampling=joint"), setting("expected_rounds=100")
        (('width', 0.5), ('sampling', 'joint'), ('expected_rounds', 100))
    """
    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals or not value:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE, such as width=0.5")
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


def offset(text: str) -> float | str:
    """Returns "mean" or a number given on the command line."""
    if text == "mean":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor 'mean'") from None


def add_evaluate(
    commands: Any, *, natural: Callable[[str], int], positive: Callable[[str], int], number: Callable[[str], float]
) -> None:
    """Adds `evaluate` to the command line."""
    command = commands.add_parser(
        "evaluate",
        help="would another policy have earned more? asked of a log of decisions with propensities",
        description="Fits policies on the earlier part of a log, freezes them, and estimates from the rest what each "
        "would have earned: by replay, IPS, SNIPS, the direct method, doubly robust and SWITCH, with intervals and "
        "warnings. See docs/evaluation.md.",
    )
    log = "a folder with edges, arms and events (docs/data.md), or the journal of a bandit (with --bandit)"
    command.add_argument("log", type=Path, metavar="LOG", help=log)
    saved = "a file that the bandit was saved to before the decisions in its journal LOG"
    command.add_argument("--bandit", type=Path, metavar="FILE", help=saved)
    policy = "which policy (see: coterie policies); again for each that is to be compared"
    command.add_argument("--policy", action=_Policy, required=True, metavar="NAME", help=policy)
    given = "a setting of the policy before it, such as width=0.5; again for each"
    command.add_argument("--option", action=_Option, type=setting, metavar="KEY=VALUE", help=given)
    learning = "let each policy learn as it is replayed on the whole log; only replay can judge that"
    command.add_argument("--learning", action="store_true", help=learning)
    share = "which part of the log, in order of time, is learned (default: %(default)s)"
    command.add_argument("--fit-share", type=number, default=0.5, help=share)
    graph = "the log's graph, or users without edges (default: %(default)s)"
    command.add_argument("--graph", choices=["shown", "none"], default="shown", help=graph)
    contexts = "show the log's contexts to auto-* policies, or none (default: %(default)s)"
    command.add_argument("--contexts", choices=["shown", "none"], default="shown", help=contexts)
    some = "one of these only; again for each (default: all that the log serves)"
    command.add_argument("--estimator", dest="estimators", action="append", choices=list(ESTIMATORS), help=some)
    _add_fine(command, positive, number)
    command.add_argument("--seed", type=natural, default=0, help="of all randomness (default: %(default)s)")
    command.add_argument("--out", type=Path, metavar="FILE", help="also write everything as JSON, to a new file")


def _add_fine(command: argparse.ArgumentParser, positive: Callable[[str], int], number: Callable[[str], float]) -> None:
    model = "the policy whose posterior mean is the reward model of dm, dr and switch (default: %(default)s)"
    command.add_argument("--reward-model", default="auto-ucb", metavar="NAME", help=model)
    given = "a setting of the reward model"
    reward_options: dict[str, Any] = {"action": "append", "type": setting, "default": [], "metavar": "KEY=VALUE"}
    command.add_argument("--reward-option", dest="reward_options", help=given, **reward_options)
    taken = "what is taken off rewards before policies other than auto-* learn them: a number, or mean, that of the "
    taken += "earlier part (default: mean, with --learning 0)"
    command.add_argument("--offset", type=offset, help=taken)
    above = "the weight above which switch uses the reward model (default: root of the number of decisions)"
    command.add_argument("--threshold", type=number, help=above)
    draws = "of the bootstrap (default: %(default)s)"
    command.add_argument("--confidence", type=number, default=0.95, help="of the intervals (default: %(default)s)")
    command.add_argument("--draws", dest="n_draws", type=positive, default=N_DRAWS, metavar="DRAWS", help=draws)


def run_evaluate(options: argparse.Namespace) -> int:
    """Runs `evaluate`, and returns the exit code."""
    targets, asked = [_target(*each) for each in options.policy], _asked(options)
    _check_new(options.out)
    found = _material(options)
    check_long(found)
    print("\n".join(_opening(options.log, found)), end="\n\n", flush=True)
    answers = compare(found.logged, targets, graph=found.graph, arms=found.arms, asked=asked, progress=TextLines())
    print(answers)
    if options.out is not None:
        about = {"coterie": VERSION, "log": str(options.log), "graph": options.graph, "notes": found.notes}
        about["contexts"] = options.contexts
        options.out.write_text(as_json(answers, asked=asked, targets=targets, about=about), encoding="utf-8")
    return 0


def _material(options: argparse.Namespace) -> Material:
    kept = {"graph": options.graph == "shown", "contexts": options.contexts == "shown"}
    if options.bandit is not None:
        return material_of_journal(options.bandit, options.log, **kept)
    if options.log.is_file():
        rule = "a log is a folder with edges, arms and events, or a journal with the bandit it belongs to"
        raise InputError(f"{str(options.log)!r} is a file", rule, "Give the folder, or --bandit")
    return material_of(read_log(options.log), **kept)


def _target(name: str, options: dict[str, Any]) -> Target:
    for key in SHARED:
        if key in options:
            rule = "graph, arms and seed are the same for all policies"
            raise ParameterError(f"--option {key} is given", rule, "Use --graph and --seed")
    return Target.of(name, **options)


def _asked(options: argparse.Namespace) -> Asked:
    given: dict[str, Any] = {each.name: getattr(options, each.name) for each in fields(Asked)}
    if options.offset is None:
        given["offset"] = 0.0 if options.learning else "mean"
    return Asked(**given | {"reward_options": dict(options.reward_options)})


def _check_new(out: Path | None) -> None:
    """Raises if the file is there already, or has no folder: better now than after the work."""
    if out is not None and out.exists():
        raise InputError(f"{str(out)!r} is there already", "nothing is overwritten", "Give another --out, or delete it")
    if out is not None and not out.parent.is_dir():
        raise InputError(f"there is no folder {str(out.parent)!r}", "--out is a file in a folder", "Make it first")


def _opening(path: Path, found: Material) -> Sequence[str]:
    log = found.logged
    users, edges = counted(found.graph.n_users, "user"), counted(found.graph.n_edges, "edge")
    counts = f"{counted(len(log), 'decision')} for {users} ({edges}), among {counted(len(found.arms), 'arm')}"
    return [f"{path}: {counts}; mean reward {log.rewards.mean():.4g}.", *found.notes]


OFTEN = 5.0  # seconds from one line to the next


class TextLines:
    """Progress as lines: one when a step starts, then one every five seconds with the time that is left.

    Examples:
        >>> now = iter([0.0, 6.0])
        >>> progress = TextLines(sys.stdout, clock=lambda: next(now))
        >>> progress("greedy: is asked", 0, 300), progress("greedy: is asked", 100, 300)
        greedy: is asked, 300 decisions
        greedy: is asked, 100 of 300, about 12 s left
        (None, None)
    """

    def __init__(self, out: TextIO | None = None, *, clock: Callable[[], float] = monotonic) -> None:
        self._out, self._clock = out or sys.stderr, clock
        self._what, self._started, self._last = "", 0.0, 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Prints a line if it is time for one."""
        now = self._clock()
        if what != self._what:
            self._what, self._started, self._last = what, now, now
            print(f"{what}, {total} decisions", file=self._out, flush=True)
        elif now - self._last >= OFTEN:
            self._last = now
            left = (now - self._started) * (total / done - 1) if done else 0.0
            print(f"{what}, {done} of {total}, about {left:.0f} s left", file=self._out, flush=True)


def as_json(found: Comparison, *, asked: Asked, targets: list[Target], about: dict[str, Any]) -> str:
    """Returns everything that was found, and what was asked; a number that is not known is null."""
    policies = [
        asdict(each) | {"name": target.name, "options": dict(target.options), "answer": answer(each)}
        for each, target in zip(found.evaluations, targets, strict=True)
    ]
    whole = about | {"asked": asdict(asked), "policies": policies, "by": found.by, "best": found.best}
    whole["gaps"] = [asdict(gap) for gap in found.gaps]
    return json.dumps(known(whole), indent=1) + "\n"
