"""The server's metrics, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)

__all__ = ["CONTENT_TYPE", "Metrics"]


class Metrics:
    """The counters of one server.

    Attributes:
        requests: by path, method and status.
        seconds: from a request's arrival to the end of its answer, by path.
        batch_size: requests decoded together, by task.
        decode_seconds: how long a batch took, by task.
        refused: requests that found the queue full.
        abandoned: requests whose client left, or whose time was over, before they were decoded.
        failures: batches that ended in a fault of the program.
        lost: batches whose decoding process died.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "paddle_dialog_requests", "Requests.", ["path", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "paddle_dialog_request_seconds",
            "Time from a request to the end of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_size = Histogram(
            "paddle_dialog_batch_size",
            "Requests decoded together.",
            ["task"],
            buckets=_SIZES,
            registry=self.registry,
        )
        self.decode_seconds = Histogram(
            "paddle_dialog_decode_seconds",
            "Time to decode a batch.",
            ["task"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.refused = Counter(
            "paddle_dialog_refused", "Requests that found the queue full.", registry=self.registry
        )
        self.abandoned = Counter(
            "paddle_dialog_abandoned",
            "Requests given up by client or time before they were decoded.",
            registry=self.registry,
        )
        self.failures = Counter(
            "paddle_dialog_failures", "Batches that failed by a fault.", registry=self.registry
        )
        self.lost = Counter(
            "paddle_dialog_lost", "Batches whose decoding process died.", registry=self.registry
        )
        self._queue = Gauge("paddle_dialog_queue_length", "Requests that wait.", registry=self.registry)
        ProcessCollector(registry=self.registry)
        for collector in (PLATFORM_COLLECTOR, GC_COLLECTOR):
            self.registry.register(collector)

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Report what `length` returns whenever the metrics are read."""
        self._queue.set_function(length)

    def text(self) -> bytes:
        """Return all metrics, of content type `CONTENT_TYPE`."""
        return generate_latest(self.registry)
