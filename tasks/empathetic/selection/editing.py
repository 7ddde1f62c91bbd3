"""How the replies of a language are tidied and chosen for a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tasks.empathetic.data.language import Language
from tasks.empathetic.selection.chinese_cleaning import CHINESE_RULES, same_characters
from tasks.empathetic.selection.cleaning import RULES, Rule, same_words
from tasks.empathetic.selection.tidying import tidied


@dataclass(frozen=True)
class Editor:
    """The editor of one language's replies.

    Args:
        tidied: gives a reply's spelling and marks their usual form.
        rules: that find fault with a reply, by name.
        same_words: what two replies that differ in punctuation alone have in common, of their tokens.
        question_mark: by which a question is known.
    """

    tidied: Callable[[str], str]
    rules: Mapping[str, Rule]
    same_words: Callable[[Sequence[str]], tuple[str, ...]]
    question_mark: str


_EDITORS = {
    "en": Editor(tidied, RULES, same_words, "?"),
    "zh": Editor(str.strip, CHINESE_RULES, same_characters, "？"),
}


def editor_of(language: Language) -> Editor:
    """Return the editor of a language."""
    return _EDITORS[language.name]
