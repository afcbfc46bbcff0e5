"""A study: worlds, policies, trials and how they are tuned; read from TOML, every default written out."""

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from coterie.errors import SettingError, listed, or_similar
from coterie.problems import context_settings, world_settings
from coterie.problems.setting_rules import Rule, check_keys, flag, positives, whole
from coterie.runs.entries import LearnerSettings, check_shared, learner_settings
from coterie.runs.learners import complete_learner
from coterie.runs.worlds import DrawnWorld, LogWorld, StudyWorld, log_settings

Place = tuple[str | int, ...]  # keys from the top, with the number of the entry after the name of an array of tables

PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]*")
_OTHERS = re.compile(r"[^A-Za-z0-9._=+-]+")
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"""^\s*("[^"]*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")
KEYS = ("name", "title", "trials", "seed", "reference", "quick", "left_out", "learners", "worlds", "policies", "tuning")
QUICK_TRIALS, QUICK_PILOT = 2, 60
PILOT_RULES: dict[str, Rule] = {
    "trials": whole(1),
    "horizon": whole(1),
    "width": positives,
    "lambda_base": positives,
    "hindsight": flag,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """A pilot: every setting of the grid on trials of its own, the best mean regret frozen.

    Attributes:
        trials: Pilot trials.
        horizon: Pilot rounds; never more than the world's own.
        width: The grid of widths, for every policy that has one.
        lambda_base: The grid of the noise schedule's base, for the policies on kernels.
        hindsight: Whether the settings are tried on the study's own trials: what no one could have known beforehand, as
            a bar to measure what needs no tuning against.
    """

    trials: int = 5
    horizon: int = 1500
    width: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    lambda_base: tuple[float, ...] = (0.001, 0.005, 0.01, 0.05, 0.1)
    hindsight: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Every policy on every world, trial by trial."""

    name: str
    title: str
    trials: int
    seed: int
    reference: str
    worlds: tuple[StudyWorld, ...]
    policies: tuple[LearnerSettings, ...]
    tuning: Pilot | None = None
    quick: bool = False
    left_out: tuple[str, ...] = ()  # policies that a study made small does without

    @property
    def of_logs(self) -> bool:
        """Whether its worlds are logs."""
        return self.worlds[0].is_log

    def on(self, folder: Path) -> "Study":
        """Returns the study on the log in this folder; one whose worlds are no logs has nothing to read from it."""
        if not self.of_logs:
            rule = "its worlds are drawn, not read"
            raise SettingError(f"the study {self.name!r} was given --data", rule, "Leave --data out", key="data")
        return replace(self, worlds=tuple(each.on(folder) for each in self.worlds))

    def check(self) -> None:
        """Raises if a world cannot be played: what is wrong with a log is said before anything is run."""
        for each in self.worlds:
            each.check()

    def world(self, name: str) -> StudyWorld:
        """Returns a world by its name."""
        return next(each for each in self.worlds if each.name == name)

    def policy(self, label: str) -> LearnerSettings:
        """Returns a policy by its label."""
        return next(each for each in self.policies if each.label == label)

    def playing(self, world: str) -> list[LearnerSettings]:
        """Returns the policies that play this world."""
        return [each for each in self.policies if not each.worlds or world in each.worlds]

    def grids(self, world: str) -> dict[str, list[dict[str, Any]]]:
        """Returns the settings to try in the pilot for each policy that plays worlds tuned here."""
        if self.tuning is None:
            return {}
        served = [each.name for each in self.worlds if each.tuned_on == world]
        playing = {each.label: each for name in served for each in self.playing(name)}
        shared = {"width": self.tuning.width, "lambda_base": self.tuning.lambda_base}
        grids = {label: each.grid(shared) for label, each in playing.items()}
        return {label: grid for label, grid in grids.items() if grid}

    def changed(self, *, trials: int | None = None, seed: int | None = None, quick: bool = False) -> "Study":
        """Returns the study with another number of trials or another seed, or made small."""
        study = self._made_quick() if quick else self
        return replace(
            study, trials=study.trials if trials is None else trials, seed=study.seed if seed is None else seed
        )

    def _made_quick(self) -> "Study":
        """Returns the study made small: to see that it works, not what it says."""
        worlds = tuple(each.quick() for each in self.worlds)
        tuning = self.tuning and replace(
            self.tuning, trials=1, horizon=min(QUICK_PILOT, self.tuning.horizon), width=self.tuning.width[1:3],
            lambda_base=self.tuning.lambda_base[2:3] or self.tuning.lambda_base[:1],
        )  # fmt: skip
        policies = tuple(each.quick() for each in self.policies if each.in_quick)
        left_out = tuple(each.label for each in self.policies if not each.in_quick)
        trials = min(self.trials, 1 if self.of_logs else QUICK_TRIALS)
        small = replace(self, trials=trials, worlds=worlds, tuning=tuning, policies=policies, quick=True)
        return replace(small, left_out=left_out)

    def as_dict(self) -> dict[str, Any]:
        """Returns the study as plain values, every default written out; `study_from` reads it back."""
        out: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "trials": self.trials,
            "seed": self.seed,
            "reference": self.reference,
            "quick": self.quick,
            "worlds": [each.as_dict() for each in self.worlds],
            "policies": [each.as_dict() for each in self.policies],
        }
        if self.left_out:
            out["left_out"] = list(self.left_out)
        if self.tuning is not None:
            grids = {"width": list(self.tuning.width), "lambda_base": list(self.tuning.lambda_base)}
            out["tuning"] = {**asdict(self.tuning), **grids}
        return out


def title_of(path: Path) -> str:
    """Returns the title of a study's file, and looks at nothing else in it: to list studies takes no engine."""
    _, given = _read(path)
    return str(given.get("title", path.stem))


def read_study(path: Path) -> Study:
    """Returns the study of a TOML file; an error names the file, the line and what is allowed."""
    text, given = _read(path)
    try:
        study = study_from(given, name=path.stem)
        return _completed(study, path.parent)
    except SettingError as error:
        line = line_of(text, error.path)
        where = path.name if line is None else f"{path.name}, line {line}"
        raise SettingError(f"{where}: {error.problem}", error.rule, error.remedy, key=error.key) from None


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """Returns a TOML file as a text and as values."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path.name} is not TOML: {error}", "a study is a TOML file", "Mend that line") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise SettingError(
            f"the study {str(path)!r} cannot be read: {reason}", "a study is a TOML file", "Check the path"
        ) from None


def _completed(study: Study, folder: Path) -> Study:
    """Returns the study with the options of one's own methods, which may lie beside the file; raises on bad ones."""
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    policies = []
    for i, policy in enumerate(study.policies):
        with _at(("policies", i)):
            policies.append(complete_learner(policy))
    return replace(study, policies=tuple(policies))


def study_from(given: Mapping[str, Any], *, name: str = "study") -> Study:
    """Returns the study that these values describe; see docs/studies.md for the keys.

    Examples:
        >>> study = study_from({"worlds": [{"level": "easy"}], "policies": [{"policy": "random"}]})
        >>> study.trials, study.worlds[0].settings.horizon, study.policies[0].label
        (20, 1000, 'random')
        >>> study_from({"worlds": [{}], "policies": [{"policy": "randon"}]})
        Traceback (most recent call last):
        coterie.errors.SettingError: policy 'randon' is unknown; ...
    """
    with _at(()):
        check_keys(given, KEYS, "keys are")
        name = _plain_name("name", given.get("name", name))
        title = _filled("title", given.get("title", name))
        trials, seed = whole(1)("trials", given.get("trials", 20)), whole(0)("seed", given.get("seed", 0))
    learners = _table(given.get("learners", {}), ("learners",))
    with _at(("learners",)):
        check_shared(learners)
    worlds = [_world(each, ("worlds", i), i) for i, each in enumerate(_tables(given, "worlds"))]
    names = [each.name for each in worlds]
    _check_distinct(names, "worlds", "name")
    _check_alike(worlds, tuned="tuning" in given)
    for i, each in enumerate(worlds):
        _check_known(each.tuned_on, names, "world", ("worlds", i, "tuned_on"))
    policies = []
    for i, table in enumerate(_tables(given, "policies")):
        with _at(("policies", i)):
            policies.append(learner_settings(table, learners))
        for world in policies[-1].worlds:
            _check_known(world, names, "world", ("policies", i, "worlds"))
    labels = [each.label for each in policies]
    _check_distinct(labels, "policies", "label")
    reference = given.get("reference", labels[0])
    _check_known(reference, labels, "policy", ("reference",))
    return Study(
        name=name,
        title=title,
        trials=trials,
        seed=seed,
        reference=reference,
        worlds=tuple(worlds),
        policies=tuple(policies),
        tuning=_tuning(given["tuning"]) if "tuning" in given else None,
        quick=bool(given.get("quick", False)),
        left_out=tuple(given.get("left_out", ())),
    )


def _world(given: Mapping[str, Any], path: Place, number: int) -> StudyWorld:
    values = dict(given)
    with _at(path):
        name = _plain_name("name", values.pop("name", values.get("level") or f"world-{number + 1}"))
        tuned_on = _filled("tuned_on", values.pop("tuned_on", name))
        if "data" in values:
            return LogWorld(name=name, settings=log_settings(values), tuned_on=tuned_on)
        settings = context_settings(values) if "contexts" in values else world_settings(values)
        return DrawnWorld(name=name, settings=settings, tuned_on=tuned_on)


def _check_alike(worlds: list[StudyWorld], *, tuned: bool) -> None:
    """Raises if some worlds are logs and others are not, or if logs are to be tuned on."""
    logs = [each.is_log for each in worlds]
    if any(logs) and not all(logs):
        place = ("worlds", logs.index(not logs[0]), "data")
        raise _wrong("some worlds are logs", "either all are or none", "Make two studies", place)
    if tuned and any(logs):
        rule = "what is learned from a log may not choose settings for it"
        raise _wrong(
            "tuning is given for a log", rule, "Leave [tuning] out, and give each policy its options", ("tuning",)
        )


def _tuning(given: Any) -> Pilot:
    values = _table(given, ("tuning",))
    with _at(("tuning",)):
        check_keys(values, PILOT_RULES, "keys are")
        return Pilot(**{key: PILOT_RULES[key](key, value) for key, value in values.items()})


@contextmanager
def _at(path: Place) -> Iterator[None]:
    """Gives the errors raised inside their place in the file."""
    try:
        yield
    except SettingError as error:
        raise _wrong(error.problem, error.rule, error.remedy, (*path, error.key)) from None


def _wrong(problem: str, rule: str, remedy: str, path: Place) -> SettingError:
    key = path[-1] if path and isinstance(path[-1], str) else ""
    return SettingError(problem, rule, remedy, key=key, path=path)


def _check_known(name: Any, known: list[str], what: str, path: Place) -> None:
    if name not in known:
        rule = f"the study's are {listed(known, 30)}"
        raise _wrong(f"{what} {name!r} is not in the study", rule, or_similar(name, known, "Use one of these"), path)


def _check_distinct(names: list[str], what: str, key: str) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            remedy = f"Give one of them another {key}"
            raise _wrong(f"{key} {name!r} is given twice", f"{what} have distinct names", remedy, (what, i, key))


def _tables(given: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    tables = given.get(key)
    if not isinstance(tables, list) or not tables or not all(isinstance(each, Mapping) for each in tables):
        met = "missing" if tables is None else repr(tables)
        raise _wrong(f"{key} is {met}", "it is one or more tables", f"Write [[{key}]] and its keys below", (key,))
    return tables


def _table(value: Any, path: Place) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise _wrong(f"{path[-1]} is {value!r}", "it is a table", f"Write [{path[-1]}] and its keys below", path)


def _filled(key: str, value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise SettingError(f"{key} is {value!r}", "it is a text", 'Write it in quotes, such as "easy"', key=key)


def _plain_name(key: str, value: Any) -> str:
    if isinstance(value, str) and PLAIN_NAME.fullmatch(value):
        return value
    rule = "it names files: letters, digits and . _ = + - only, a letter or digit first"
    raise SettingError(f"{key} is {value!r}", rule, 'Choose, say, "easy"', key=key)


def line_of(text: str, path: Place) -> int | None:
    r"""Returns the line of a key, or of the nearest table above it that the file writes down; None if there is none.

    Examples:
        >>> text = 'trials = 2\n[[policies]]\npolicy = "random"\n[[policies]]\npolicy = "gredy"\n'
        >>> line_of(text, ("policies", 1, "policy")), line_of(text, ("policies", 1, "width")), line_of(text, ("x",))
        (5, 4, None)
    """
    lines = dict(reversed(list(_keys(text))))  # the first of each wins
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _keys(text: str) -> Iterator[tuple[Place, int]]:
    """Yields every header and key at the start of a line, with its path and line number."""
    table: Place = ()
    entries: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header:
            name = header.group(2).strip("\"'")
            entries[name] = entries.get(name, -1) + 1
            table = (name, entries[name]) if header.group(1) == "[[" else tuple(name.split("."))
            yield table, number
        elif key:
            yield (*table, key.group(1).strip("\"'")), number


def plain_name(text: str) -> str:
    """Returns a name of the letters, digits and signs that a study may have; empty if nothing is left.

    Examples:
        >>> plain_name("my log, 2"), plain_name("_log"), plain_name("...")
        ('my-log-2', 'log', '')
    """
    return _OTHERS.sub("-", text).lstrip("-.=+_").rstrip("-.")
