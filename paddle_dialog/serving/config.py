"""The settings of the server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from paddle_dialog.config.typed import MAX_COUNT, Problem, at_least, setting


@dataclass(frozen=True)
class ModelSource:
    """Where the model of a task comes from."""

    config: str | None = setting(
        None, "the recipe, or the folder of a run or a bundle; by default the recipe of the model's name"
    )
    weights: str | None = setting(
        None, "a run or a bundle, with its own settings; by default the weights that the recipe names"
    )


@dataclass(frozen=True)
class BatchingConfig:
    """How requests are gathered."""

    max_batch: int = at_least(1, 16, "requests decoded together at most; 1 switches batching off")
    queue: int = at_least(1, 128, "requests that may wait; a further one is refused with status 503")


@dataclass(frozen=True)
class LimitsConfig:
    """What one request may ask for at most."""

    body_bytes: int = at_least(1, 65536, "size of a request's body", maximum=MAX_COUNT)
    characters: int = at_least(1, 1000, "length of one text in it")
    turns: int = at_least(1, 41, "turns of a conversation")
    n_best: int = at_least(1, 10, "candidates asked for", maximum=1000)
    beam_size: int = at_least(1, 20, "hypotheses kept while searching", maximum=1000)
    seconds: float = setting(30.0, "time for the body to arrive, and again for it to be answered", above=0.0)


@dataclass(frozen=True)
class ServeConfig:
    """A server."""

    host: str = setting(
        "127.0.0.1", "address to listen on; the loopback address can be reached from this machine only"
    )
    hosts: list[str] | None = setting(  # noqa: RUF009
        None, "names that a request's Host may have; by default those of host, and any for 0.0.0.0"
    )
    origins: list[str] | None = setting(None, "pages elsewhere that may ask, e.g. https://example.org (CORS)")  # noqa: RUF009
    port: int = setting(8000, "port to listen on; 0 takes a free one", minimum=0, maximum=65535)
    models: dict[str, ModelSource | None] = field(default_factory=dict)
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    workers: int | None = setting(
        None,
        "processes that decode; by default one a core; where the models need Paddle, or the system is not Linux, one "
        "thread of the server decodes",
        minimum=1,
        maximum=256,
    )
    api_key: str | None = setting(None, "asked for at `/v1/` and `/metrics`; null or empty asks for none")
    banned_words: str | None = setting(
        None, "a UTF-8 file with a word or phrase a line, refused in input and never written"
    )
    log_user_text: bool = setting(False, "the log may carry what users write")

    def problems(self) -> Iterator[Problem]:
        if not self.host.strip():
            yield "host", "is empty; give an address such as 127.0.0.1, or 0.0.0.0 for all interfaces"
        if not any(self.models.values()):
            yield "models", "names no model; add one as TASK: {config: RECIPE.yaml}"

    @property
    def listens_everywhere(self) -> bool:
        """Whether the address is that of all interfaces."""
        return self.host in ("0.0.0.0", "::")

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """The names that a request's Host may have; None where any is allowed."""
        if self.hosts is not None:
            return frozenset(name.lower() for name in self.hosts)
        if self.listens_everywhere:
            return None
        loopback = {"localhost", "127.0.0.1", "::1"}
        return frozenset({self.host.lower()} | (loopback if self.host.lower() in loopback else set()))
