"""What both clients do alike: where they send to, and what they make of an answer or of none."""

import os
from typing import Any

from coterie.errors import ParameterError
from coterie.errors.extras import require_extra
from coterie.service.client.requests.call import Call
from coterie.service.client.sending.failures import AGAIN, ServiceError, failure_of_answer
from coterie.service.client.sending.retries import Retries

with require_extra("service", "the client of the service"):
    import httpx

URL, KEY = "COTERIE_URL", "COTERIE_KEY"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DEFAULT_URL = "http://127.0.0.1:8711"
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
NOT_DONE = frozenset({429, 503})  # the service says so before it does anything


def connection(url: str | None, key: str | None, timeout: float) -> dict[str, Any]:
    """Returns what a client of httpx is made with.

    Args:
        url: The base address; none given means that of the environment, else this computer.
        key: None given means that of the environment.
        timeout: Seconds that connecting, sending or waiting for an answer may take.
    """
    address = url or os.environ.get(URL) or DEFAULT_URL
    try:
        parsed = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise _bad_address(address, str(error)) from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise _bad_address(address, "it has no scheme or no host")
    secret = key or os.environ.get(KEY) or ""
    if not (secret.isascii() and secret.isprintable()):
        raise ParameterError(
            "the key has odd characters", "a key is ctr_ and letters, digits, - and _", "Copy it again"
        )
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {secret}"} if secret else {})
    is_here = parsed.host in LOOPBACK  # and no proxy of the environment leads there
    return {"base_url": parsed, "headers": headers, "timeout": timeout, "trust_env": not is_here}


def _bad_address(address: str, why: str) -> ParameterError:
    rule = f"an address is like {DEFAULT_URL}"
    return ParameterError(f"the address is {address!r}: {why}", rule, f"Pass such as url=, or set {URL}")


class Tries:
    """The tries of one call: says how long to wait before the next, or raises if there is none.

    Args:
        call: Which.
        retries: How often, and how long to wait.
    """

    def __init__(self, call: Call[Any], retries: Retries) -> None:
        self._call, self._retries, self._tried = call, retries, 0

    def wait_after_answer(self, answer: httpx.Response) -> float:
        """Returns how long to wait after an answer that is no success, or raises what it says."""
        failure = failure_of_answer(answer.status_code, answer.content)
        may = AGAIN if self._call.is_repeatable else NOT_DONE
        return self._wait(failure, answer.headers.get("Retry-After")) if answer.status_code in may else _raised(failure)

    def wait_after_silence(self, error: httpx.TransportError) -> float:
        """Returns how long to wait after no answer came, or raises."""
        request = error.request
        problem = f"{request.method} {request.url} got no answer: {str(error) or type(error).__name__}"
        if self._call.is_repeatable or isinstance(error, NEVER_SENT):
            rule = f"it was tried {self._tried + 1} times"
            failure = ServiceError(problem, rule, "Check the address, and that the service runs")
            may = isinstance(error, httpx.NetworkError | httpx.TimeoutException | httpx.RemoteProtocolError)
            return self._wait(failure, None) if may else _raised(failure)
        rule = "nobody knows whether it was done"
        return _raised(ServiceError(problem, rule, "Look whether it was, and try again if not"))

    def _wait(self, failure: ServiceError, retry_after: str | None) -> float:
        self._tried += 1
        most = self._call.attempts
        wait = None if most is not None and self._tried >= most else self._retries.wait(self._tried, retry_after)
        return _raised(failure) if wait is None else wait


def _raised(failure: ServiceError) -> float:
    raise failure
