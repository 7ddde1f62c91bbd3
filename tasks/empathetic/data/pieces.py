"""Chinese text as pieces of a unigram language model (Kudo 2018, "Subword Regularization"), by SentencePiece."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from paddle_dialog.errors import UserError
from paddle_dialog.text.simplified import simplified

PIECES = "pieces.model"  # the file in a bundle
BLANK = "▁"  # stands for a blank inside a piece
MOST_TURNS = 40_000  # of the training text that the pieces are learned from
_FULL_WIDTH = str.maketrans(",!?;:", "，！？；：")  # as the corpora write them
_MISSING = "the package sentencepiece is not installed; pip install sentencepiece==0.2.3"


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
    return "".join(pieces).replace(BLANK, " ").strip()


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise UserError(_MISSING) from error
    return sentencepiece
