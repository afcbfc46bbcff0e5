"""The command line: run studies, compare and report them, reproduce the paper; keep a bandit in a file."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TypeAlias

from coterie.contracts import VERSION
from coterie.errors import CoterieError, SavedFileError
from coterie.logs.data_command import add_data, run_data
from coterie.models.engines.sparse.compiling import warm_up
from coterie.policies import list_policies
from coterie.policies.factory.registry import summary
from coterie.product.bandit_checks import REWARDS
from coterie.product.bulk.fit_command import add_fit, run_fit
from coterie.product.bulk.score_command import add_score, run_score
from coterie.product.cluster.places import add_place, usable_cores
from coterie.product.evaluation.evaluate_command import add_evaluate, run_evaluate
from coterie.product.project import init_project, shell
from coterie.runs import console, studies
from coterie.runs.diagnosis.page import add_diagnose, run_diagnose
from coterie.runs.paper.reproduce import PARTS, reproduce
from coterie.runs.places import open_place
from coterie.runs.runner import Place
from coterie.runs.store import Store
from coterie.service.serve_command import add_serve, run_serve

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

STOPPED = 130
GROUPS = {
    "use a bandit": ("init", "fit", "score", "decide", "reward", "inspect", "export", "replay"),
    "look at a log": ("data", "diagnose", "evaluate"),
    "serve decisions": ("serve",),
    "run experiments": ("demo", "run", "compare", "plot", "report", "reproduce"),
    "look something up": ("studies", "policies", "warmup"),
}


def positive(text: str) -> int:
    """Returns a whole number >= 1 given on the command line."""
    return whole(text, least=1)


def natural(text: str) -> int:
    """Returns a whole number >= 0 given on the command line."""
    return whole(text, least=0)


def whole(text: str, *, least: int) -> int:
    """Returns a whole number of at least this size given on the command line."""
    if not text.strip().lstrip("+-").isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number >= {least}")
    return int(text)


def number(text: str) -> float:
    """Returns a number given on the command line."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def parser(named: str | None = None) -> argparse.ArgumentParser:
    """Returns the command line's parser, with all commands or with the one that is named."""
    root = argparse.ArgumentParser(
        prog="coterie",
        description="Bandits that learn together, on a graph of users.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"coterie {VERSION}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND")
    if named is not None:
        _COMMANDS[named][0](commands)
        return root
    for add, _ in _COMMANDS.values():
        add(commands)
    root.epilog = _grouped({action.dest: action.help or "" for action in commands._choices_actions})
    commands._choices_actions.clear()  # which argparse would list in one heap
    return root


def _grouped(helps: Mapping[str, str]) -> str:
    """Returns the commands by what a person is doing, one line each."""
    lines = []
    for purpose, names in GROUPS.items():
        lines += [f"{purpose}:", *(f"  {name:<11}{helps[name]}" for name in names), ""]
    return "\n".join([*lines, "coterie COMMAND --help says more of each."])


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="a quick study of the main policies on two small worlds, with a report",
        description="Plays the main policies against each other on two small worlds of users on a graph, prints a "
        "table of their regret (what better choices would have paid more) and writes a report, in about a minute.",
    )
    demo.add_argument("--out", type=Path, default=None, help="folder for the results (default: coterie-demo)")
    demo.add_argument("--seed", type=natural, default=0, help="seed of all randomness (default: %(default)s)")
    demo.add_argument("--quick", action="store_true", help="few rounds and trials: to see that it works")


def _add_run(commands: Commands) -> None:
    run = commands.add_parser(
        "run",
        help="run a study from a TOML file, and write its report",
        description="Runs every policy of a study on every world, trial by trial, and writes tables, figures and one "
        "HTML page. Each trial is stored as soon as it is done; an interrupted study goes on with --resume.",
    )
    run.add_argument(
        "study",
        metavar="STUDY",
        help="a TOML file, the manifest.json of a result, the name of a study (see: coterie studies), or a folder with "
        "edges, arms and events (see: coterie data): would its graph have helped?",
    )
    run.add_argument("--data", type=Path, metavar="DIR", help="for lastfm, deezer, filmtrust: the original files")
    run.add_argument("--trials", type=positive, help="how many trials, instead of the study's number")
    run.add_argument("--seed", type=natural, help="seed of all randomness, instead of the study's")
    run.add_argument("--out", type=Path, help="folder for the results (default: results/NAME)")
    _add_running(run)


def _add_reproduce(commands: Commands) -> None:
    paper = commands.add_parser(
        "reproduce",
        help="the paper's figures, table and claims",
        description="Runs the paper's comparison, with its own pilot tuning and 20 trials, and checks its theory; ends "
        "with a page that says for each claim whether it holds. `all` takes about half an hour on two cores.",
    )
    paper.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"], help="default: %(default)s")
    paper.add_argument("--out", type=Path, help="folder (default: reproduction, with --quick reproduction-quick)")
    _add_running(paper)


def _add_running(command: argparse.ArgumentParser) -> None:
    jobs = "processes, or CPUs of a Ray that is started here (default: all cores)"
    command.add_argument("--jobs", type=positive, default=usable_cores(), help=jobs)
    add_place(command)
    command.add_argument("--quick", action="store_true", help="few rounds and trials: to see that it works")
    command.add_argument("--resume", action="store_true", help="go on with what --out holds of this study")


def _add_init(commands: Commands) -> None:
    init = commands.add_parser(
        "init",
        help="make a bandit and a small program from your own edges and arms",
        description="Writes a bandit, a small program that uses it and a README into a folder, and overwrites nothing. "
        "Both tables are CSV or Parquet.",
    )
    init.add_argument("folder", type=Path, metavar="DIR", help="where")
    init.add_argument("--edges", type=Path, required=True, help="table: two users and perhaps a weight")
    init.add_argument("--arms", type=Path, required=True, help="table with a header: the arm's id, then numbers")
    init.add_argument("--policy", default="auto-ucb", help="see: coterie policies (default: %(default)s)")
    init.add_argument(
        "--reward", choices=REWARDS, default="real", help="any numbers, or 0 and 1 (default: %(default)s)"
    )
    least = "the least probability of every arm that can be chosen, for evaluation later (default: %(default)s)"
    init.add_argument("--min-propensity", type=number, default=0.0, metavar="P", help=least)
    init.add_argument("--seed", type=natural, default=0, help="seed of all randomness (default: %(default)s)")
    init.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the CSV file of edges has a header (default: see for itself)",
    )
    init.add_argument("--int-ids", action="store_true", help="ids that are all whole numbers become numbers, not texts")


def _add_compare(commands: Commands) -> None:
    compare = commands.add_parser("compare", help="tables of one result or of several: means, differences, ranks, time")
    compare.add_argument("results", nargs="+", type=Path, metavar="RESULT", help="folder given as --out to run")


def _add_plain(commands: Commands, name: str, text: str) -> None:
    commands.add_parser(name, help=text)


def _add_again(commands: Commands, name: str, text: str) -> None:
    again = commands.add_parser(name, help=text)
    again.add_argument("result", type=Path, metavar="RESULT", help="folder given as --out to run")


def _add_saved(commands: Commands, name: str, text: str) -> argparse.ArgumentParser:
    """Adds a command on a saved bandit."""
    command = commands.add_parser(name, help=text)
    command.add_argument("file", type=Path, metavar="FILE", help="a saved bandit (see: coterie init)")
    return command


def _add_decide(commands: Commands) -> None:
    decide = _add_saved(commands, "decide", "let a saved bandit decide for a user")
    decide.add_argument("user", metavar="USER", help="for whom")
    decide.add_argument("arms", nargs="*", default=[], metavar="ARM", help="what to choose among (default: every arm)")
    decide.add_argument("--context", metavar="CONTEXT", help="in which: hour=21,device=phone, or JSON")
    decide.add_argument("--json", action="store_true", help="print JSON")


def _add_reward(commands: Commands) -> None:
    reward = _add_saved(commands, "reward", "give a saved bandit the reward of a decision")
    reward.add_argument("decision", type=natural, metavar="DECISION", help="the number that decide printed")
    reward.add_argument("reward", type=number, metavar="REWARD", help="any number (-- before one such as -1e-3)")
    reward.add_argument("--replace", action="store_true", help="in place of the reward that came before")


def _add_inspect(commands: Commands) -> None:
    inspect = _add_saved(commands, "inspect", "what a saved bandit holds and has learned")
    inspect.add_argument("--user", help="with --arm: why it believes what it believes of this arm for this user")
    inspect.add_argument("--arm", help="see --user")
    inspect.add_argument("--context", metavar="CONTEXT", help="with --user: in which, as for decide")


def _add_export(commands: Commands) -> None:
    export = _add_saved(commands, "export", "write a saved bandit as JSON and arrays that anything can read")
    export.add_argument("folder", type=Path, metavar="DIR", help="where; it must be new")


def _add_replay(commands: Commands) -> None:
    replay = _add_saved(commands, "replay", "make a decision again from a saved bandit and its journal")
    replay.add_argument("journal", type=Path, metavar="JOURNAL", help="the journal that the bandit kept")
    replay.add_argument("decision", type=natural, metavar="NUMBER", help="which decision, made after FILE was saved")
    replay.add_argument("--json", action="store_true", help="print JSON")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code: 0, or 2 for a mistake that the message explains."""
    given = sys.argv[1:] if arguments is None else arguments
    named = given[0] if given and given[0] in _COMMANDS else None
    options = parser(named).parse_args(given)
    if options.command is None:
        parser().print_help()
        return 0
    try:
        return _COMMANDS[options.command][1](options) or 0
    except CoterieError as error:
        print(f"coterie: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read what we print has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"coterie: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("coterie: stopped; what was finished is stored, and --resume goes on with it", file=sys.stderr)
        return STOPPED


def _demo(options: argparse.Namespace) -> None:
    console.run_demo(
        out=options.out or console.free_folder(Path("coterie-demo")), seed=options.seed, quick=options.quick
    )


def _run(options: argparse.Namespace) -> None:
    study = studies.find_study(options.study).changed(trials=options.trials, seed=options.seed, quick=options.quick)
    if options.data is not None:
        study = study.on(options.data)
    out = options.out or Path("results") / f"{study.name}{'-quick' if options.quick else ''}"
    with _place(options) as place:
        console.run_and_report(study, out, place=place, resume=options.resume)


def _reproduce(options: argparse.Namespace) -> None:
    parts = list(PARTS) if options.part == "all" else [options.part]
    out = options.out or Path("reproduction-quick" if options.quick else "reproduction")
    with _place(options) as place:
        reproduce(parts, out=out, quick=options.quick, place=place, resume=options.resume)


def _place(options: argparse.Namespace) -> AbstractContextManager[Place]:
    return open_place(options.on, jobs=options.jobs, address=options.address)


def _compare(options: argparse.Namespace) -> None:
    console.show_comparison(options.results)


def _plot(options: argparse.Namespace) -> None:
    for path in console.draw(Store(options.result)):
        print(path)


def _report(options: argparse.Namespace) -> None:
    console.show(Store(options.result), tables=False)


def _studies(_: argparse.Namespace) -> None:
    for name, title in studies.list_studies().items():
        print(f"{name:<18} {title}")


def _policies(_: argparse.Namespace) -> None:
    for name in list_policies():
        print(f"{name:<20} {summary(name)}")


def _warmup(_: argparse.Namespace) -> None:
    print(f"engine 'sparse' is compiled; that took {warm_up():.1f} s")


def _init(options: argparse.Namespace) -> None:
    made = init_project(
        options.folder,
        edges=options.edges,
        arms=options.arms,
        policy=options.policy,
        reward=options.reward,
        min_propensity=options.min_propensity,
        seed=options.seed,
        header=options.header,
        int_ids=options.int_ids,
    )
    print(made)


def _decide(options: argparse.Namespace) -> None:
    given = {"context": options.context, "as_json": options.json, "tell": _tell}
    shell.decide(options.file, options.user, options.arms, **given)


def _tell(line: str) -> None:
    """Prints a line and sees that it gets out, or raises: a decision that nobody saw is not to be kept."""
    try:
        if sys.stdout is None:  # closed before we began
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        print(line, flush=True)
    except OSError as error:
        with suppress(AttributeError, OSError):  # what is left in its buffer would fail once more at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        problem = f"the decision cannot be printed: {error.strerror}"
        raise SavedFileError(problem, "one that nobody saw is not kept", "Nothing has changed; try again") from None


def _reward(options: argparse.Namespace) -> None:
    print(shell.reward(options.file, options.decision, options.reward, replace=options.replace))


def _inspect(options: argparse.Namespace) -> None:
    print(shell.inspect(options.file, user=options.user, arm=options.arm, context=options.context))


def _export(options: argparse.Namespace) -> None:
    print(shell.export(options.file, options.folder))


def _replay(options: argparse.Namespace) -> None:
    print(shell.replayed(options.file, options.journal, options.decision, as_json=options.json))


_COMMANDS: dict[str, tuple[Callable[[Commands], object], Callable[[argparse.Namespace], int | None]]] = {
    "demo": (_add_demo, _demo),
    "run": (_add_run, _run),
    "reproduce": (_add_reproduce, _reproduce),
    "compare": (_add_compare, _compare),
    "plot": (partial(_add_again, name="plot", text="draw the figures of a result again"), _plot),
    "report": (partial(_add_again, name="report", text="write the report of a result again"), _report),
    "studies": (partial(_add_plain, name="studies", text="list the studies that come with Coterie"), _studies),
    "policies": (partial(_add_plain, name="policies", text="list the policies"), _policies),
    "warmup": (
        partial(_add_plain, name="warmup", text="compile engine 'sparse' now, once on this machine (extra 'scale')"),
        _warmup,
    ),
    "data": (partial(add_data, natural=natural, positive=positive), run_data),
    "evaluate": (partial(add_evaluate, natural=natural, positive=positive, number=number), run_evaluate),
    "diagnose": (partial(add_diagnose, natural=natural, positive=positive), run_diagnose),
    "serve": (partial(add_serve, natural=natural, number=number), run_serve),
    "init": (_add_init, _init),
    "fit": (partial(add_fit, natural=natural, positive=positive, number=number), run_fit),
    "score": (partial(add_score, positive=positive), run_score),
    "decide": (_add_decide, _decide),
    "reward": (_add_reward, _reward),
    "inspect": (_add_inspect, _inspect),
    "export": (_add_export, _export),
    "replay": (_add_replay, _replay),
}


if __name__ == "__main__":
    sys.exit(main())
