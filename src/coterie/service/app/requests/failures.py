"""Errors to answers of HTTP: each with a code, what is wrong, the rule, a way out, and the path of the field if any."""

import logging
from typing import NamedTuple

from msgspec import UNSET
from numpy.linalg import LinAlgError

from coterie.errors import (
    ArmError,
    CandidatesError,
    ContextError,
    CoterieError,
    DecisionError,
    DuplicateIdError,
    GraphError,
    InputError,
    NumericalError,
    ParameterError,
    RewardError,
    UnknownArmError,
    UnknownNameError,
    UnknownUserError,
)
from coterie.service.app.requests.answers import Answer, Header, encode
from coterie.service.engine.failures import ConflictError, NotThereError, UnavailableError
from coterie.service.envelopes import ErrorAnswer, Refusal

log = logging.getLogger(__name__)
RETRY_AFTER: Header = (b"retry-after", b"1")


class RequestError(CoterieError):
    """A request that the app refuses before it reaches the engine.

    Attributes:
        status: The status of HTTP.
        code: A name for programs.
        path: The field that it is about.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        code: str,
        *parts: str,
        path: str | None = None,
        headers: tuple[Header, ...] = (),
    ) -> None:
        super().__init__(*parts)
        self.status, self.code, self.path, self.headers = status, code, path, headers


class Meaning(NamedTuple):
    """What an error of the engine is over HTTP, and the field that it is about."""

    status: int
    code: str
    path: str | None = None


MEANINGS: tuple[tuple[type[CoterieError], Meaning], ...] = (
    (NotThereError, Meaning(404, "not_there")),
    (ConflictError, Meaning(409, "conflict")),
    (UnavailableError, Meaning(503, "unavailable")),
    (UnknownUserError, Meaning(422, "unknown_user", "$.user")),
    (UnknownArmError, Meaning(422, "unknown_arm")),
    (UnknownNameError, Meaning(422, "unknown_name")),
    (DuplicateIdError, Meaning(422, "duplicate_id")),
    (CandidatesError, Meaning(422, "candidates", "$.candidates")),
    (ContextError, Meaning(422, "context", "$.context")),
    (DecisionError, Meaning(422, "decision")),
    (RewardError, Meaning(422, "reward", "$.value")),
    (ArmError, Meaning(422, "arm")),
    (GraphError, Meaning(422, "graph")),
    (ParameterError, Meaning(422, "parameter")),
    (InputError, Meaning(422, "input")),
    (NumericalError, Meaning(422, "numbers")),
)
NUMBERS = "the numbers led to a matrix without a factor", "models compute in 64 bits", "Send numbers of like size"


class Failure(NamedTuple):
    """An error as an answer has it."""

    status: int
    refusal: Refusal
    headers: tuple[Header, ...] = ()

    @property
    def answer(self) -> Answer:
        """The answer of a request that failed so."""
        return Answer(self.status, encode(ErrorAnswer(error=self.refusal)), headers=self.headers)


def failure_of(error: BaseException) -> Failure:
    """Returns what an error is over HTTP; one that nobody expected is logged, and says nothing to the caller.

    Examples:
        >>> failure_of(NotThereError("event 'e1' is not there", "it was made", "Pass another")).status
        404
    """
    if isinstance(error, RequestError):
        return Failure(error.status, _refusal(error, error.code, error.path), error.headers)
    if isinstance(error, LinAlgError):
        error = NumericalError(*NUMBERS)
    for kind, meaning in MEANINGS:
        if isinstance(error, kind):
            headers = (RETRY_AFTER,) if meaning.status == 503 else ()
            return Failure(meaning.status, _refusal(error, meaning.code, meaning.path), headers)
    log.error("a request failed", exc_info=error)
    rule, remedy = "this is a fault of the service", "Report it; the log of the service says more"
    return Failure(500, Refusal(code="internal", problem="the service failed", rule=rule, remedy=remedy))


def _refusal(error: CoterieError, code: str, path: str | None) -> Refusal:
    """Returns an error in its three parts; ids that are no text are written so that they can be sent."""
    parts = [str(part).encode("utf-8", "backslashreplace").decode() for part in error.args]
    problem, rule, remedy = (*parts, "", "", "")[:3]
    return Refusal(code=code, problem=problem, rule=rule, remedy=remedy, path=path or UNSET)
