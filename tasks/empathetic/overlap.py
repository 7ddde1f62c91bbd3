"""What a reply shares with the turns before it, and joy at what the speaker denied."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from paddle_dialog.text.word_lists import read_lists

Tokens = Sequence[str]


@lru_cache(maxsize=1)
def _lists() -> dict[str, frozenset[str]]:
    return read_lists("tasks.empathetic", "texts/words.txt")


def word_list(name: str) -> frozenset[str]:
    """Return a list of `texts/words.txt` by name."""
    return _lists()[name]


# Function words; all others are content words.
_FUNCTION_WORDS = word_list("function words")
# Of Chinese pieces those that consist of such characters alone.
_FUNCTION_CHARACTERS = frozenset(
    "的了是我你他她它们这那在有和也就都不很会要能可以吗呢吧啊么什怎为自己一个上下到得着过说去来对想让把被给而且但与及或于没好多些"
)
_LETTERS_OF_STEM = 5  # "walk", "walked" and "walking" begin alike
# Words of a stored reply that match a turn do not see its "not".
_DENIED = re.compile(
    r"(?:\b(?:not|never|no longer|cannot)|n['’]t)(?: \w+){0,2} "
    r"(?:happy|glad|good|great|well|okay|pass(?:ed)?|win|won|proud|excited|fun|better)\b"
    r"|[不没](?:.{0,2})(?:开心|高兴|快乐|幸福|考上|考过|通过|录取|赢|成功|中奖|升职|好转)"
    r"|(?:开心|高兴|快乐)不起来",
    re.IGNORECASE,
)
_JOY = re.compile(
    r"congrat|wonderful|lovely|awesome|amazing|fantastic|great news|good news|(?:happy|glad|excited) (?:for|with) you"
    r"|恭喜|祝贺|太棒|真棒|太好了|真好|为你高兴|为你开心|替你高兴|替你开心",
    re.IGNORECASE,
)


def stem(token: str) -> str:
    """Return a word's first letters, which most of its forms share."""
    return token[:_LETTERS_OF_STEM]


def content_words(tokens: Tokens) -> set[str]:
    """Return the stems of a text's content words."""
    return {
        stem(token)
        for token in tokens
        if token not in _FUNCTION_WORDS
        and not _FUNCTION_CHARACTERS.issuperset(token)
        and any(character.isalpha() for character in token)
    }


def overlaps(reply: Tokens, turns: Sequence[Tokens]) -> tuple[float, float]:
    """Return the shares of a reply's content words that occur in the last turn, and in earlier turns only; in 0–1."""
    own = content_words(reply)
    if not own or not turns:
        return 0.0, 0.0
    last = content_words(turns[-1])
    earlier = set().union(*map(content_words, turns[:-1])) - last
    return len(own & last) / len(own), len(own & earlier) / len(own)


def echo(reply: Tokens, turns: Sequence[Tokens]) -> float:
    """Return how much a reply asks for what was said already.

    That is the share of its questions' content words that occur in the speaker's turns, in 0–1.

    Args:
        reply: tokens.
        turns: of the conversation, the speaker's first and last.
    """
    asked = set().union(*map(content_words, _questions(reply)))
    if not asked:
        return 0.0
    said = set().union(*map(content_words, turns[::2]))
    return len(asked & said) / len(asked)


def repetition(reply: Tokens, turns: Sequence[Tokens]) -> float:
    """Return the greatest `likeness` of a reply to a turn of the listener; in 0–1, 1 for the same words."""
    listener = list(turns[1::2])
    return float(likeness([reply, *listener])[0, 1:].max()) if listener else 0.0


def likeness(texts: Sequence[Tokens]) -> np.ndarray:
    """Return the F1 of the uni- and bigrams of each two texts, in 0–1 [K, K], K at least 1."""
    places: dict[Hashable, int] = {}
    bags = [[places.setdefault(gram, len(places)) for gram in [*text, *pairwise(text)]] for text in texts]
    counts = np.stack([np.bincount(bag, minlength=len(places)) for bag in bags])  # [K, n-grams]
    sizes = counts.sum(axis=1)  # [K]
    shared = np.stack([np.minimum(counts, one).sum(axis=1) for one in counts])  # [K, K]
    found: np.ndarray = 2 * shared / np.maximum(sizes[:, None] + sizes, 1)
    return found


def _questions(tokens: Tokens) -> list[list[str]]:
    """Return the sentences that end with a question mark."""
    found: list[list[str]] = []
    sentence: list[str] = []
    for token in tokens:
        if token in (".", "!", "?"):
            if token == "?":
                found.append(sentence)
            sentence = []
        else:
            sentence.append(token)
    return found


def rejoices_at_denied(reply: str, turn: str) -> bool:
    """Return whether a reply rejoices where a turn says that something good is not so, in English or Chinese."""
    return bool(_DENIED.search(turn) and _JOY.search(reply))
