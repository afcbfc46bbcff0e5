"""How much may be in work at once, and how often a key may come."""

from time import monotonic

from coterie.service.app.requests.failures import RETRY_AFTER, RequestError
from coterie.service.app.settings import ServiceSettings


class Limits:
    """Counts what is in work, and refuses what would be too much.

    Args:
        settings: The limits.

    Attributes:
        n_requests: How many requests are in work, or wait for a commit.
        n_bytes: How large their bodies are.
        n_refused: How many requests were refused.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._most_requests, self._most_bytes = settings.most_requests, settings.most_bytes_in_work
        self._rate, self._burst = settings.rate_per_key, float(settings.burst_per_key)
        self._buckets: dict[str, tuple[float, float]] = {}
        self.n_requests = self.n_bytes = self.n_refused = 0

    def enter(self) -> None:
        """Counts a request, or raises if there are too many; `leave` has to be called either way."""
        self.n_requests += 1
        if self.n_requests > self._most_requests:
            self._refuse(
                503, "busy", f"{self._most_requests} requests are in work", "the service takes no more at once"
            )

    def leave(self, n_bytes: int) -> None:
        """Counts a request out, with what was taken of its body."""
        self.n_requests -= 1
        self.n_bytes -= n_bytes

    def take(self, n_bytes: int) -> None:
        """Counts bytes of a body, or raises if there are too many of all bodies."""
        self.n_bytes += n_bytes
        if self.n_bytes > self._most_bytes:
            self._refuse(503, "busy", f"{self.n_bytes} bytes are in work", f"at most {self._most_bytes} are at once")

    def check_rate(self, key: str) -> None:
        """Raises if a key comes more often than it may: it has tokens for a burst, and gets new ones at its rate."""
        if self._rate is None:
            return
        now = monotonic()
        tokens, at = self._buckets.get(key, (self._burst, now))
        tokens = min(tokens + (now - at) * self._rate, self._burst)
        self._buckets[key] = (max(tokens - 1, tokens if tokens < 1 else 0), now)
        if tokens < 1:
            self._refuse(429, "rate", "the key came too often", f"it may come {self._rate:g} times a second")

    def _refuse(self, status: int, code: str, problem: str, rule: str) -> None:
        self.n_refused += 1
        raise RequestError(status, code, problem, rule, "Send it again later", headers=(RETRY_AFTER,))
