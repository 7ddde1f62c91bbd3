"""The hint to somebody who writes in a language that the model does not read."""

from __future__ import annotations

from paddle_dialog.text.language import LanguageName, language_of

FEWEST_WORDS = 2  # of English that are worth a hint; everybody writes "OK"
_HINTS: dict[LanguageName, str] = {  # by the language of the turn
    "en": "This model reads Chinese and not English; please say it in Chinese.",
    "zh": "这个模型只懂英文，读不懂中文；请用英文说。",
}


def language_hint(turn: str, language: LanguageName) -> str | None:
    """Return a sentence for the writer of a turn in another language than the model's.

    Args:
        turn: the newest; a mixed one counts as the language that most of it is in.
        language: of the model.

    Returns:
        The sentence, in the language of the turn; None where the model reads it.
    """
    written = language_of(turn)
    if written is None or written == language:
        return None
    if written == "en" and sum(word.isascii() and word.isalpha() for word in turn.split()) < FEWEST_WORDS:
        return None
    return _HINTS[written]
