"""What is counted, for Prometheus: in a registry of its own for each app."""

from collections.abc import Iterator
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from coterie.service.app.requests.limits import Limits
from coterie.service.engine.running import RunningEngine

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class Metrics:
    """Counts requests, decisions and rewards, and tells them with what the engine counts.

    Args:
        running: The engine.
        limits: What is in work.
    """

    def __init__(self, running: RunningEngine, limits: Limits) -> None:
        self._registry = CollectorRegistry()
        labels = ["method", "route"]
        self._requests = Counter("coterie_requests", "Requests", [*labels, "status"], registry=self._registry)
        self._seconds = Histogram(
            "coterie_request_seconds", "Time of requests", labels, registry=self._registry, buckets=BUCKETS
        )
        self._decisions = Counter(
            "coterie_decisions", "Decisions, by whether they are new", ["new"], registry=self._registry
        )
        self._rewards = Counter(
            "coterie_rewards", "Rewards, by what became of them", ["status"], registry=self._registry
        )
        self._of_new, self._of_repeat = self._decisions.labels("true"), self._decisions.labels("false")
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(_OfEngine(running, limits))

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request."""
        key = method, route, status
        if key not in self._children:
            counts = self._requests.labels(method, route, status)
            self._children[key] = counts, self._seconds.labels(method, route)
        count, histogram = self._children[key]
        count.inc()
        histogram.observe(seconds)

    def decision(self, *, is_new: bool) -> None:
        """Counts a decision."""
        (self._of_new if is_new else self._of_repeat).inc()

    def reward(self, status: str) -> None:
        """Counts a reward."""
        self._rewards.labels(status).inc()

    def text(self) -> bytes:
        """Returns all counts in the text format of Prometheus."""
        return generate_latest(self._registry)


class _OfEngine:
    """Tells what the engine counts, when it is asked."""

    def __init__(self, running: RunningEngine, limits: Limits) -> None:
        self._running, self._limits, self._started = running, limits, monotonic()

    def describe(self) -> list[Metric]:
        """Returns nothing: names are told with the counts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields the counts of this moment."""
        yield _gauge("uptime_seconds", "Since the app was made", monotonic() - self._started)
        yield _gauge("requests_in_work", "Requests that are in work or wait for a commit", self._limits.n_requests)
        yield _gauge("bytes_in_work", "Size of their bodies", self._limits.n_bytes)
        yield _count("refused", "Requests that were refused because there were too many", self._limits.n_refused)
        if self._running.is_ready:
            yield from self._of_journal()
            yield from self._of_experiments()

    def _of_journal(self) -> Iterator[Metric]:
        commits, recovery = self._running.commits, self._running.recovery
        yield _count("events_durable", "Events that are durable", commits.durable_seq)
        yield _count("batches", "Batches that were committed", commits.n_batches)
        yield _gauge("waiting", "Answers that wait for a commit", commits.n_waiting)
        yield _gauge("journal_full", "Whether there is no room for the journal", float(commits.is_full))
        yield _gauge("snapshot_seconds", "How long the last snapshot held up decisions", commits.snapshot_seconds)
        yield _gauge("replay_seconds", "How long the replay took", recovery.seconds)
        yield _gauge("replayed_events", "Events that were made again at the start", recovery.n_events)
        yield _gauge("replayed_otherwise", "Decisions that came out otherwise than logged", recovery.n_odd)
        yield _count("damaged_snapshots", "Snapshots that could not be used", recovery.n_damaged)

    def _of_experiments(self) -> Iterator[Metric]:
        found = list(self._running.engine.state.experiments.values())
        yield _gauge("experiments", "Experiments", len(found))
        yield _gauge("pending", "Decisions that wait for rewards", sum(len(each.pending) for each in found))
        yield _gauge("held_rewards", "Rewards that wait for decisions", len(self._running.engine.state.held))
        yield _count("fits_taken", "Fits of hyperparameters that were taken", sum(each.n_fits for each in found))
        yield _count("fits_refused", "Fits that failed", sum(each.n_refused_fits for each in found))


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"coterie_{name}", text, value=value)


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"coterie_{name}", text, value=value)
