"""The language of a pre-trained model: its own tokens, of which the vocabulary is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.models.pretrained_base import base_folder, load_tokenizer
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.tasks.empathetic.data.language import ENGLISH, Language, make_language
from paddle_dialog.tasks.empathetic.data.vocabulary import reserved_entries
from paddle_dialog.text.language import LanguageName
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def language_of_model(config: EmpatheticConfig, pieces: bytes | None) -> Language:
    """Return the language of a recipe's models: a pre-trained model's own tokens, else words or pieces.

    Args:
        pieces: the model of the pieces of Chinese, see `make_language`.
    """
    if not isinstance(config.model, PretrainedConfig):
        return make_language(config.language, pieces)
    return _pretrained_language(load_tokenizer(base_folder(config.model)), config.language)


def pretrained_vocabulary(config: EmpatheticConfig) -> Vocabulary:
    """Return the entries that the task reserves, and the tokens of a recipe's pre-trained model that are text."""
    assert isinstance(config.model, PretrainedConfig)
    tokenizer = load_tokenizer(base_folder(config.model))
    reserved = [*SPECIAL_TOKENS, *reserved_entries(EMOTIONS_OF[config.language])]
    never = {"", *reserved, *tokenizer.all_special_tokens}
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    kept = [token for token in tokens if token not in never and token is not None]
    return Vocabulary([*reserved, *(token for token in kept if "\n" not in token and "\r" not in token)])


def _pretrained_language(tokenizer: Any, name: LanguageName) -> Language:
    def tokenise(text: str) -> Sequence[str]:
        tokens: list[str] = tokenizer.convert_ids_to_tokens(tokenizer.encode(text, add_special_tokens=False))
        return tokens

    def detokenise(tokens: Iterable[str]) -> str:
        return str(tokenizer.convert_tokens_to_string(list(tokens))).strip()

    def units(tokens: Sequence[str]) -> Sequence[str]:
        text = detokenise(tokens)
        return ENGLISH.tokenise(text) if name == "en" else tuple(text)

    phrase = ENGLISH.stock_phrase if name == "en" else tuple("理解你")
    return Language(name, EMOTIONS_OF[name], tokenise, detokenise, units, phrase, 0 if name == "en" else 4)
