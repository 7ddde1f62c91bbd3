"""The settings of the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paddle_dialog.config.fields import Problem, at_least
from paddle_dialog.config.loader import build, read_config


@dataclass
class ModelSource:
    """Where the model of a task comes from.

    Args:
        config: the recipe that decides on decoding; by default the bundle's own settings do.
        weights: a bundle; by default that of the recipe's run, else the shipped one.
    """

    config: str | None = None
    weights: str | None = None


@dataclass
class BatchingConfig:
    """How requests are gathered.

    Args:
        max_batch: requests decoded together at most; 1 switches batching off.
        max_wait_ms: how long the first request of a batch waits for others while the worker is free.
        queue: requests that may wait; a further one is refused with 503.
    """

    max_batch: int = at_least(1, 16)
    max_wait_ms: float = at_least(0.0, 5.0)
    queue: int = at_least(1, 128)


@dataclass
class LimitsConfig:
    """What one request may ask for.

    Args:
        body_bytes: size of its body.
        characters: of one text in it.
        turns: of a conversation.
        n_best: candidates.
        beam_size: hypotheses kept while searching.
        seconds: for its body to arrive, and again for it to be answered.
    """

    body_bytes: int = at_least(1, 65536)
    characters: int = at_least(1, 1000)
    turns: int = at_least(1, 41)
    n_best: int = at_least(1, 10)
    beam_size: int = at_least(1, 20)
    seconds: float = field(default=30.0, metadata={"above": 0.0})


@dataclass
class ServeConfig:
    """A server.

    Args:
        host: address to listen on; the loopback address can be reached from this machine only.
        port: 0 takes a free one.
        models: by the task's name; null, or no entry, leaves a task out.
        api_key: asked for at ``/v1/`` and ``/metrics``; null or empty asks for none.
        workers: processes that decode; by default one a core. Where the models need Paddle, or the system is not
            Linux, one thread of the server decodes.
        banned_words: a UTF-8 file with a word or phrase a line, refused in input and never written.
        log_user_text: whether the log may carry what users write.
    """

    host: str = "127.0.0.1"
    port: int = field(default=8000, metadata={"min": 0, "max": 65535})
    models: dict[str, ModelSource | None] = field(default_factory=dict)
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    workers: int | None = field(default=None, metadata={"min": 1})
    api_key: str | None = None
    banned_words: str | None = None
    log_user_text: bool = False

    def problems(self) -> Iterator[Problem]:
        """Yields settings that make no sense."""
        if not any(self.models.values()):
            yield "models", "names no model; add one, e.g. couplet: {config: configs/couplet.yaml}"


def load_serve_config(path: str | Path, overrides: Sequence[str] = ()) -> ServeConfig:
    """Reads a server's settings.

    Args:
        path: the YAML file, or the name of one that ships.
        overrides: ``section.key=value`` each, the last one of a key wins.

    Raises:
        UserError: all that is wrong with it, at once.
    """
    return build(ServeConfig, read_config(path, overrides), str(path))
