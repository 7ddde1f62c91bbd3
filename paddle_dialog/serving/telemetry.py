"""Logging, without what users write unless asked, and metrics for Prometheus."""

from __future__ import annotations

import logging
import math
import sys
import traceback
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

LOGGER = "paddle_dialog.serving"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64)


def configure_log() -> None:
    """Send the server's log to stderr; of uvicorn only its warnings, which carry no text of requests."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in ((LOGGER, logging.INFO), ("uvicorn", logging.WARNING), ("asyncio", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    logging.getLogger("asyncio").addFilter(RateLimit())


class RateLimit(logging.Filter):
    """Lets one record pass in a second: without file descriptors asyncio logs as many as connections may wait."""

    _last = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a second has passed."""
        passes = record.created - self._last >= 1.0
        self._last = record.created if passes else self._last
        return passes


def log_exception(logger: logging.Logger, error: BaseException) -> None:
    """Log where an exception came from but not its message, which may quote a user."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("fault of the program: %s\n%s", type(error).__name__, frames.rstrip())


class Metrics:
    """The counters of one server, which `GET /metrics` returns."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, help: str, labels: Sequence[str] = ()) -> Counter:
            return Counter(f"paddle_dialog_{name}", help, labels, registry=registry)

        def histogram(name: str, help: str, label: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(f"paddle_dialog_{name}", help, [label], buckets=buckets, registry=registry)

        self.requests = counter("requests", "Requests.", ["path", "method", "status"])
        self.seconds = histogram(
            "request_seconds", "Time from a request to the end of its answer.", "path", _SECONDS
        )
        self.batch_size = histogram("batch_size", "Requests decoded together.", "task", _SIZES)
        self.decode_seconds = histogram("decode_seconds", "Time to decode a batch.", "task", _SECONDS)
        self.refused = counter("refused", "Requests that found the queue full.")
        self.abandoned = counter("abandoned", "Requests given up by client or time before they were decoded.")
        self.failures = counter("failures", "Batches that failed by a fault.")
        self.lost = counter("lost", "Batches whose decoding process died.")
        self.queue_length = Gauge("paddle_dialog_queue_length", "Requests that wait.", registry=registry)
        ProcessCollector(registry=registry)

    def text(self) -> bytes:
        """Return all metrics in the text format 0.0.4."""
        return generate_latest(self.registry)
