"""The server's log: one line a request, and nothing of what users write unless asked."""

from __future__ import annotations

import logging
import sys
import traceback

LOGGER = "paddle_dialog.serving"


def configure_log() -> None:
    """Send the server's log to stderr; of uvicorn only its warnings, which carry no text of requests."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name, level in ((LOGGER, logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


def fault(logger: logging.Logger, error: BaseException) -> None:
    """Log where an exception came from but not its message, which may quote a user."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("fault of the program: %s\n%s", type(error).__name__, frames.rstrip())
