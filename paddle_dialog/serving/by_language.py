"""One address for several models of a task, each of another language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse
from typing import Any

from pydantic import BaseModel, Field

from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from paddle_dialog.serving.endpoint import Endpoint, Job, Unanswerable
from paddle_dialog.serving.word_filter import WordFilter
from paddle_dialog.text.language import LanguageName, is_one_word, language_of

ANSWERED: Any = Field(None, description="Of the model that answered.")
LANGUAGE: Any = Field(
    None,
    description="Which model answers: en or zh; by default that of the newest text whose language can be told, "
    "one of a single English word last, or the only one there is.",
)


class ByLanguage(Endpoint[Any]):
    """Hands each request to the endpoint of its language.

    Args:
        make: makes an endpoint, one for each model; its requests have a field `language`, see `LANGUAGE`.
    """

    takes_models = True

    def __init__(self, make: Callable[[], Endpoint[Any]]) -> None:
        self._make = make
        like = make()
        self.__doc__ = like.__doc__
        self.task, self.path, self.summary, self.page = like.task, like.path, like.summary, like.page
        self.request_model, self.answer_model = like.request_model, like.answer_model
        self._endpoints: dict[str, Endpoint[Any]] = {}

    def use(self, predictor: Any, words: WordFilter) -> Record:
        """Take a further model; see `Endpoint`."""
        language = predictor.config.language
        if language in self._endpoints:
            raise UserError(f"{self.task}: two models of the language '{language}'; leave one out")
        endpoint = self._make()
        details = endpoint.use(predictor, words)
        self._endpoints[language] = endpoint
        return {"language": language, **details}

    def texts(self, request: Any) -> Iterable[str]:
        """See `Endpoint`."""
        return next(iter(self._endpoints.values())).texts(request)

    def takes_any_words(self, request: Any) -> bool:
        """See `Endpoint`."""
        return self._endpoints[self._language(request)].takes_any_words(request)

    def prepare(self, request: Any) -> Job:
        """See `Endpoint`."""
        language = self._language(request)
        job = self._endpoints[language].prepare(request)
        return Job(job.item, (language, job.settings))

    def answer(self, items: Sequence[Any], settings: Any) -> list[Record | Unanswerable]:
        """See `Endpoint`."""
        language, own = settings
        answers = self._endpoints[language].answer(items, own)
        return [a if isinstance(a, Unanswerable) else {**a, "language": language} for a in answers]

    def _language(self, request: BaseModel) -> str:
        """Return the language of the model that answers.

        Raises:
            UserError: there is none of the language that the request asks for.
        """
        wanted: LanguageName | None = getattr(request, "language", None)
        if wanted is not None:
            if wanted not in self._endpoints:
                there = " and ".join(self._endpoints)
                raise UserError(f"language: this server has a model for {there} only, and none for {wanted}")
            return wanted
        if len(self._endpoints) > 1:
            texts = [*self.texts(request)][::-1]
            # One English word, such as "OK", is said in Chinese conversations too.
            told = [language_of(text) for text in (*filterfalse(is_one_word, texts), *texts)]
            found = next((language for language in told if language in self._endpoints), None)
            if found is not None:
                return found
        return next(iter(self._endpoints))
