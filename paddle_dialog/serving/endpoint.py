"""The interface of a task over HTTP."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, create_model

from paddle_dialog.data.records import Record
from paddle_dialog.serving.word_filter import WordFilter

R = TypeVar("R", bound=BaseModel)


class Unanswerable(Exception):
    """A valid request that has no answer; the message is sent to the client."""


class RequestModel(BaseModel):
    """A request's JSON: no unknown keys, no conversions, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def bounded(model: type[R], **bounds: Any) -> type[R]:
    """Return a request model with a server's bounds on some of its fields.

    Args:
        model: the model, whose fields keep their own bounds, defaults and descriptions.
        bounds: a `Field` by the field's name, e.g. `text=Field(max_length=100)`, or its type and a `Field`; a
            default in it replaces the field's.
    """
    fields: dict[str, Any] = {}
    for name, bound in bounds.items():
        own = copy(model.model_fields[name])
        kind, limit = bound if isinstance(bound, tuple) else (own.annotation, bound)
        if not limit.is_required():
            own.default = limit.default
        fields[name] = (Annotated[kind, limit], own)
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


@dataclass(frozen=True)
class Job:
    """One checked request.

    Args:
        item: what is asked.
        settings: how to decode it; only jobs of equal settings are decoded together.
    """

    item: Any
    settings: Hashable


class Endpoint(ABC, Generic[R]):
    """One `POST` address of a task.

    `texts` and `prepare` run in the event loop and must be quick; `use` and `answer` run in the one worker thread.

    Attributes:
        task: the task's name.
        path: the address.
        summary: what it does, in a line.
        page: the folder of the task's tab of the page, see docs/tabs.md; None where it has none, as at all but one
            of a task's addresses.
        request_model: of the request's JSON, within the server's limits.
        answer_model: of the answer's JSON, for the API's description.
    """

    takes_models: ClassVar[bool] = False  # whether `use` may be called for several models, see `ByLanguage`
    task: str
    path: str
    summary: str
    page: Path | None = None
    request_model: type[R]
    answer_model: type[BaseModel]

    @abstractmethod
    def use(self, predictor: Any, words: WordFilter) -> Record:
        """Take a loaded model and the words it must not write.

        Returns:
            What the model card tells of this endpoint, ready for JSON.

        Raises:
            UserError: the model cannot serve.
        """

    @abstractmethod
    def texts(self, request: R) -> Iterable[str]:
        """Return everything a user wrote in a request."""

    def takes_any_words(self, request: R) -> bool:
        """Return whether a request is answered even with words that the server does not take; by default none is.

        Raises:
            UserError: it cannot be answered, see `prepare`.
        """
        return False

    @abstractmethod
    def prepare(self, request: R) -> Job:
        """Check a request against the model.

        Raises:
            UserError: it cannot be answered; the message is sent to the client and must name no path.
        """

    @abstractmethod
    def answer(self, items: Sequence[Any], settings: Any) -> list[Record | Unanswerable]:
        """Answer a batch of jobs of equal settings, in order."""
