"""The interface of a task over HTTP, and the choice among models of several languages."""

from __future__ import annotations

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import filterfalse
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from paddle_dialog.config.typed import help_of
from paddle_dialog.data.files import Record, read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.text.characters import LanguageName, is_hanzi, is_one_word, language_of, simplified_line

# A letter, digit or underscore other than hanzi: Chinese puts no blanks between words.
_LETTER = r"[^\W\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003347f]"
_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
R = TypeVar("R", bound=BaseModel)
_TEXT, _COUNT = object(), object()
# Fields of requests that the server's limits bound: what a user wrote, and the number of candidates.
Text = Annotated[str, _TEXT]
OptionalText = Annotated[str | None, _TEXT]
Count = Annotated[int, _COUNT]
# For the schema; the model refuses it with a plainer message.
NOT_BLANK: dict[str, Any] = {"pattern": r"[^\s\x00-\x1f\x7f-\x9f]"}
ANSWERED: Any = Field(None, description="Of the model that answered.")
LANGUAGE: Any = Field(
    None,
    description="Which model answers: en or zh; by default that of the newest text whose language is clear, "
    "one of a single English word last, or the only one there is.",
)


class WordFilter:
    """Finds words in texts.

    A word with a hanzi is found anywhere, blanks and invisible characters between its characters aside. Any other
    one is found as a whole word, whatever its case and width: `ass` is not found in `class`.
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        self.words: Sequence[str] = [word.strip() for word in words if _spaced(word)]
        self._chinese = [_joined(word) for word in self.words if any(map(is_hanzi, word))]
        others = [re.escape(_spaced(word)) for word in self.words if not any(map(is_hanzi, word))]
        others.sort(key=len, reverse=True)
        pattern = rf"(?<!{_LETTER})(?:{'|'.join(others)})(?!{_LETTER})"
        self._others = re.compile(pattern) if others else None

    @classmethod
    def load(cls, path: str | None) -> WordFilter:
        """Load the words of a UTF-8 file, one a line; no file gives an empty filter."""
        if path is None:
            return cls()
        words = cls(line for _, line in read_lines(path))
        if not words.words:
            raise UserError(f"banned_words: {path} holds no word; give one a line, or banned_words: null")
        return words

    def finds(self, text: str) -> bool:
        """Return whether a text has one of the words."""
        if self._others is not None and self._others.search(_spaced(text)):
            return True
        joined = _joined(text) if self._chinese else ""
        return any(word in joined for word in self._chinese)


def _joined(text: str) -> str:
    """Return a text as Chinese words are looked for in it: simplified, without blanks and invisible characters."""
    return simplified_line(text).casefold()


def _spaced(text: str) -> str:
    """Return a text as other words are looked for in it: of one case and width, its words one blank apart."""
    plain = unicodedata.normalize("NFKC", text.translate(_PLAIN)).casefold()
    return " ".join("".join(c for c in plain if unicodedata.category(c) != "Cf").split())


class NoResult(UserError):
    """A valid request that has no answer; the message is sent to the client."""


class Candidate(BaseModel):
    """One of several answers."""

    text: str
    score: float = Field(description="Log-probability per token, in verse per character, the ends included.")


class Attention(BaseModel):
    """Where the model looked while it wrote the best answer."""

    source: list[str] = Field(description="Tokens of the input as the model read them.")
    target: list[str] = Field(description="Tokens of the answer, the end last.")
    weights: list[list[float]] = Field(description="For each target token a weight for each source token.")


class RequestModel(BaseModel):
    """A request's JSON: no unknown keys, no conversions but of 2.0 to 2, which JSON takes for equal, no NaN."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _is_whole(cls, data: Any) -> Any:
        try:
            json.dumps(data, ensure_ascii=False, default=str).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("a text has half of a surrogate pair; write the whole character") from error
        if not isinstance(data, dict):
            return data
        return {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in data.items()}

    @model_validator(mode="before")
    @classmethod
    def _knows_names(cls, data: Any) -> Any:
        for name in data if isinstance(data, dict) else ():
            near = get_close_matches(str(name), cls.model_fields, 1, cutoff=0.75)
            if name not in cls.model_fields and near:
                raise ValueError(f"'{str(name)[:40]}' is unknown; did you mean {near[0]}?")
        return data


def changed(config: type, name: str, **bounds: Any) -> Any:
    """Return the field of a request that replaces a setting of the server where it is given."""
    return Field(None, description=help_of(config, name), **bounds)


def bounded(model: type[R], limits: LimitsConfig, **bounds: Any) -> type[R]:
    """Return a request model with a server's limits on its texts and counts.

    Args:
        model: the model, whose fields keep their other bounds, defaults and descriptions.
        bounds: of further fields by name, each a type and a `Field`.
    """
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        field, kind = copy(field), field.annotation
        if name in bounds:
            kind, limit = bounds[name]
            field.json_schema_extra = limit.json_schema_extra
        elif _TEXT in field.metadata:
            limit = Field(max_length=limits.characters)
        elif _COUNT in field.metadata:
            limit, field.default = Field(le=limits.n_best), min(field.default, limits.n_best)
        else:
            continue
        fields[name] = (Annotated[kind, limit], field)
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)


@dataclass(frozen=True)
class Job:
    """One checked request."""

    item: Any  # what is asked
    settings: Hashable  # how to decode it; only jobs of equal settings are decoded together
    cost: int = 1  # about how many decoder steps it takes, one for each row of a beam


class Endpoint(ABC, Generic[R]):
    """One `POST` address of a task, for one model.

    Models of several languages share an address if its requests have a field `language`, see `LANGUAGE`.
    `texts` and `prepare` run in the event loop and must be quick; `answer` runs in a thread or process that decodes.

    Attributes:
        page: the folder of the task's tab of the page, see docs/tabs.md; None where it has none, as at all but one
            of a task's addresses.
        request_model: of the request's JSON; an instance has it within the server's limits.
        answer_model: of the answer's JSON, for the API's description.
    """

    task: str
    path: str
    summary: str
    page: Path | None = None
    language: str | None = None  # of the model, if it has one of its own
    request_model: type[R]
    answer_model: type[BaseModel]
    predictor: Any
    words = WordFilter()  # refused in input and not written

    def __init__(self, limits: LimitsConfig) -> None:
        self.request_model = bounded(self.request_model, limits)

    def use(self, predictor: Any, words: WordFilter) -> Record:
        """Take a loaded model and the banned words; return the `details` of the endpoint.

        Raises:
            UserError: the model cannot serve.
        """
        self.predictor, self.words, self.language = predictor, words, predictor.config.language
        return self.details()

    def details(self) -> Record:
        """Answer an example, to make the first request quick; return what the model card reports of this endpoint."""
        return {}

    def texts(self, request: R) -> Iterable[str]:
        """Return everything a user wrote in a request."""
        for name, field in type(self).request_model.model_fields.items():
            if _TEXT in field.metadata:
                yield getattr(request, name) or ""

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
    def answer(self, items: Sequence[Any], settings: Any) -> list[Record | NoResult]:
        """Answer a batch of jobs of equal settings, in order."""

    def answer_in_parts(self, item: Any, settings: Any) -> Iterator[Record | NoResult]:
        """Yield what there is of the answer to one job so far, and at last the answer; by default that alone."""
        yield from self.answer([item], settings)

    def without_banned(self, candidates: Iterable[Any]) -> list[Any]:
        """Return the candidates whose `text` has no banned word."""
        return [candidate for candidate in candidates if not self.words.finds(candidate.text)]

    def all_banned(self, what: str, instead: str) -> NoResult:
        """Return the answer where no candidate is without a banned word."""
        sentence = f"every {what} has a word that this server does not write; {instead}"
        return NoResult(sentence, "banned_written")


def of_language(endpoints: Mapping[str | None, Endpoint[Any]], request: BaseModel) -> Endpoint[Any]:
    """Return the one of an address's endpoints, by the language of their models, that answers a request.

    Raises:
        UserError: there is none of the language that the request asks for.
    """
    wanted: LanguageName | None = getattr(request, "language", None)
    first = next(iter(endpoints.values()))
    if wanted is not None:
        if wanted not in endpoints:
            there = " and ".join(map(str, endpoints))
            sentence = f"language: this server has a model for {there} only, and none for {wanted}"
            raise UserError(sentence, "language_not_served", language=wanted)
        return endpoints[wanted]
    if len(endpoints) == 1:
        return first
    texts = [*first.texts(request)][::-1]
    # One English word, such as "OK", is said in Chinese conversations too.
    languages = [language_of(text) for text in (*filterfalse(is_one_word, texts), *texts)]
    return next((endpoints[language] for language in languages if language in endpoints), first)
