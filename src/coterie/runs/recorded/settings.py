"""Everything that can be said of a world that is a log, checked when it is said."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

from coterie.errors import SettingError, listed, or_similar
from coterie.policies.online.learner import LEVELS
from coterie.problems.checks import Rule, choice, whole
from coterie.problems.recorded import Negatives

Data: TypeAlias = Literal["plain", "lastfm", "deezer", "filmtrust", "open-bandit"]
Protocol: TypeAlias = Literal["one-positive", "replay"]

QUICK_ROUNDS = 5000


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise SettingError(f"{key} is {value!r}", "it is a text", "Write it in quotes", key=key)


def _features(key: str, value: Any) -> tuple[str, ...]:
    known = isinstance(value, list | tuple) and len(set(value)) == len(value) and not set(value) - set(LEVELS)
    if known:
        return tuple(value)
    rule = f"it is a list of some of {listed(LEVELS)}, or an empty one"
    raise SettingError(f"{key} is {value!r}", rule, 'Write, say, ["popularity"]', key=key)


RULES: dict[str, Rule] = {
    "data": choice(get_args(Data)),
    "folder": _text,
    "protocol": choice(get_args(Protocol)),
    "negatives": choice(get_args(Negatives)),
    "n_candidates": whole(2),
    "least_positives": whole(1),
    "horizon": whole(1),
    "online_features": _features,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """A world that is a log.

    Attributes:
        data: A data set that Coterie knows by its original files, or "plain" for a folder of edges, arms and events.
        folder: Where its files lie.
        protocol: "one-positive" for candidates of which one was liked, "replay" for those that were logged.
        negatives: How the other candidates are drawn: "uniform", or in proportion to "popularity".
        n_candidates: How many are shown, where they are drawn.
        least_positives: How many positives a user has at least who comes.
        horizon: Rounds; of a replay, rows at most.
        online_features: What learners see of their own past: "popularity", "friends".

    Examples:
        >>> LogSettings(data="lastfm").negatives
        'uniform'
        >>> LogSettings(data="last.fm")
        Traceback (most recent call last):
        coterie.errors.SettingError: data is 'last.fm'; it is one of ... Did you mean 'lastfm'?
    """

    data: str = "plain"
    folder: str = ""
    protocol: str = "one-positive"
    negatives: str = "uniform"
    n_candidates: int = 25
    least_positives: int = 10
    horizon: int = 20_000
    online_features: tuple[str, ...] = ("popularity",)

    def __post_init__(self) -> None:
        for key, rule in RULES.items():
            object.__setattr__(self, key, rule(key, getattr(self, key)))


def log_settings(values: Mapping[str, Any]) -> LogSettings:
    """Returns the settings that plain values stand for, such as a table of a study file.

    Examples:
        >>> log_settings({"data": "deezer", "horizon": 100}).horizon
        100
    """
    known = [field.name for field in fields(LogSettings)]
    for key in values:
        if key not in known:
            rule = f"settings of a log are {listed(known, len(known))}"
            raise SettingError(
                f"{key!r} is no setting of a log", rule, or_similar(key, known, "Remove it"), key=str(key)
            )
    return LogSettings(**values)


def log_settings_as_dict(settings: LogSettings) -> dict[str, Any]:
    """Returns the settings as plain values, every default written out; `log_settings` reads them back."""
    return {**asdict(settings), "online_features": list(settings.online_features)}
