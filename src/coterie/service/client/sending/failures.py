"""What a call of the service can fail with, in its own words."""

from msgspec import UNSET, MsgspecError
from msgspec.json import decode

from coterie.errors import CoterieError
from coterie.service.envelopes import ErrorAnswer, Refusal

AGAIN = frozenset({429, 502, 503, 504})  # what may go well if it is tried again


class ServiceError(CoterieError):
    """A call that failed: the service cannot be reached, is not able to do it now, or refused it.

    Attributes:
        status: The HTTP status; None if there was no answer.
        code: The kind of error, for programs; empty if the service did not say.
        path: Where in the body, as "$.candidates[3]"; None if it is no matter of one place.
    """

    def __init__(
        self,
        problem: str,
        rule: str,
        remedy: str,
        *,
        status: int | None = None,
        code: str = "",
        path: str | None = None,
    ) -> None:
        super().__init__(problem, rule, remedy)
        self.status, self.code, self.path = status, code, path

    def __str__(self) -> str:
        return super().__str__() if self.path is None else f"{self.path}: {super().__str__()}"


class RequestRefusedError(ServiceError):
    """A request that the service will not take as it is; to try it again changes nothing."""


def failure_of(status: int, refusal: Refusal) -> ServiceError:
    """Returns the error that an answer stands for.

    Examples:
        >>> why = Refusal(code="not_found", problem="user 'zoe' is unknown", rule="users are 'ana'", remedy="Add her")
        >>> failure_of(422, why)
        RequestRefusedError("user 'zoe' is unknown", "users are 'ana'", 'Add her')
    """
    kind = RequestRefusedError if 400 <= status < 500 and status not in AGAIN else ServiceError
    path = None if refusal.path is UNSET else refusal.path
    return kind(refusal.problem, refusal.rule, refusal.remedy, status=status, code=refusal.code, path=path)


def failure_of_answer(status: int, content: bytes) -> ServiceError:
    """Returns the error of an answer whose status is none of success, whoever gave it."""
    try:
        return failure_of(status, decode(content, type=ErrorAnswer).error)
    except MsgspecError:  # not the service: a proxy before it, or another server
        kind = RequestRefusedError if 400 <= status < 500 and status not in AGAIN else ServiceError
        rule = "the service says in JSON why it refuses something"
        return kind(f"the answer has status {status}", rule, "Check the address, and what is before it", status=status)
