"""The language of a model: how its texts are read and written, and the emotions it knows.

English is cut into words, Chinese into pieces of a unigram language model (Kudo 2018, "Subword Regularization"), by
SentencePiece.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from paddle_dialog.errors import UserError
from paddle_dialog.text.language import LanguageName
from paddle_dialog.text.simplified import simplified
from tasks.empathetic.data.tokenise import detokenise, tokenise
from tasks.empathetic.emotion.labels import CHINESE_EMOTIONS, EMOTIONS

PIECES = "pieces.model"  # the file in a bundle
MOST_TURNS = 40_000  # of the training text that the pieces are learned from
REMEMBERED_TURNS = 1 << 16  # a turn occurs in many contexts of a corpus
_BLANK = "▁"  # stands for a blank inside a piece
_FULL_WIDTH = str.maketrans(",!?;:", "，！？；：")  # as the corpora write them
_RUNS = re.compile(r"[\u4e00-\u9fff]+|[a-z0-9]+")

Tokens = Sequence[str]


@dataclass(frozen=True, eq=False)
class Language:
    """One language, made once and handed on.

    Args:
        name: as in the setting `language`.
        emotions: that a model of it predicts.
        tokenise: one turn to tokens.
        detokenise: tokens of a reply to readable text.
        units: tokens to what figures count: words, or the characters of pieces.
        stock_phrase: the units of what listeners say too often.
        opening: how many units begin a reply alike, for `common_openings`; 0 where that is not reported.
        pairs: one turn to what conversations are compared by; None where that is its tokens.

    Attributes:
        tokens_of: `tokenise` with a memory, which `forget` empties.
    """

    name: LanguageName
    emotions: tuple[str, ...]
    tokenise: Callable[[str], Tokens]
    detokenise: Callable[[Iterable[str]], str]
    units: Callable[[Tokens], Tokens]
    stock_phrase: tuple[str, ...]
    opening: int = 0
    pairs: Callable[[str], Tokens] | None = None
    tokens_of: Callable[[str], tuple[str, ...]] = field(init=False)
    _memory: Any = field(init=False)  # the same, as functools knows it

    def __post_init__(self) -> None:
        split = self.tokenise
        remembering = lru_cache(maxsize=REMEMBERED_TURNS)(lambda turn: tuple(split(turn)))
        object.__setattr__(self, "tokens_of", remembering)
        object.__setattr__(self, "_memory", remembering)

    def terms(self, turn: str) -> Tokens:
        """Return what a turn is compared by with those of other conversations."""
        return self.tokens_of(turn) if self.pairs is None else self.pairs(turn)

    def remembered(self) -> int:
        """Return how many turns `tokens_of` remembers."""
        return int(self._memory.cache_info().currsize)

    def forget(self) -> None:
        """Empty its memory, which a server must not keep for every user."""
        self._memory.cache_clear()


ENGLISH = Language(
    "en",
    EMOTIONS,
    tokenise,
    detokenise,
    units=lambda tokens: tokens,
    stock_phrase=("sorry", "to", "hear"),
)


def character_pairs(turn: str) -> list[str]:
    """Return each two neighbouring hanzi of a Chinese turn, a hanzi that stands alone, and words of other letters.

    The pieces of two turns on one thing are often cut at different places; pairs are not.
    """
    pairs = []
    for run in _RUNS.findall(turn.lower()):
        if run[0] < "\u4e00" or len(run) == 1:
            pairs.append(run)
        else:
            pairs += [run[place : place + 2] for place in range(len(run) - 1)]
    return pairs


def make_language(name: LanguageName, pieces: bytes | None) -> Language:
    """Return the language of a setting.

    Args:
        name: of the language.
        pieces: the model of the pieces of Chinese; None for English.

    Raises:
        UserError: the pieces are missing or faulty, or the package that reads them is.
    """
    if name == "en":
        return ENGLISH
    if pieces is None:
        raise UserError(f"these weights have no {PIECES}, which a Chinese model needs; take another bundle")
    return Language(
        "zh",
        CHINESE_EMOTIONS,
        piece_splitter(pieces),
        join_pieces,
        units=lambda tokens: tuple(join_pieces(tokens)),
        stock_phrase=tuple("理解你"),
        opening=4,
        pairs=character_pairs,
    )


def learn_pieces(turns: Iterable[str], size: int) -> bytes:
    """Learn pieces from text.

    Args:
        turns: the text.
        size: how many pieces; fewer where the text has not so many.

    Returns:
        The content of a SentencePiece model, a function of text and size.

    Raises:
        UserError: the package is missing, or the text is too short.
    """
    model = io.BytesIO()
    try:
        _sentencepiece().SentencePieceTrainer.train(
            sentence_iterator=iter(turns),
            model_writer=model,
            model_type="unigram",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=0.9998,
            normalization_rule_name="identity",
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
            split_by_number=True,
            split_digits=True,
            max_sentencepiece_length=4,
            num_threads=1,
            minloglevel=2,
        )
    except RuntimeError as error:
        reason = str(error).rsplit("] ", 1)[-1].rstrip(" .")  # without the place in its source
        raise UserError(
            f"data.piece_count: {size:,} pieces cannot be learned from the training text ({reason}); give more text, "
            "or a number above that of its characters"
        ) from error
    return model.getvalue()


def read_pieces(path: str) -> bytes:
    """Return the content of a file of pieces.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); null learns pieces anew") from error


def sample_of_turns(conversations: Sequence[Sequence[str]]) -> list[str]:
    """Return the turns of evenly spread conversations, `MOST_TURNS` or a few more."""
    turns = sum(map(len, conversations))
    step = max(1, turns // MOST_TURNS)
    return [turn for conversation in conversations[::step] for turn in conversation if turn]


def piece_splitter(model: bytes) -> Callable[[str], Sequence[str]]:
    """Return the function from a text to its pieces, characters that the model does not know among them.

    Traditional characters are read as simplified ones, and half-width signs as full-width ones.

    Raises:
        UserError: the package is missing, or the content is no such model.
    """
    processor = _sentencepiece().SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise UserError(f"{PIECES}: is no model of SentencePiece; take another bundle") from error

    def split(text: str) -> Sequence[str]:
        pieces: list[str] = processor.encode(simplified(text).translate(_FULL_WIDTH), out_type=str)
        return pieces

    return split


def join_pieces(pieces: Iterable[str]) -> str:
    """Join pieces to readable text."""
    return "".join(pieces).replace(_BLANK, " ").strip()


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise UserError(
            "the package sentencepiece is not installed; pip install sentencepiece==0.2.3"
        ) from error
    return sentencepiece
