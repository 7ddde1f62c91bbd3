"""The language of a model: how its texts are read and written, and the emotions it knows.

English is cut into words as published systems on EmpatheticDialogues do: lower case, contractions, Treebank. That is
written out here, not taken from nltk, because importing any part of nltk loads scikit-learn, scipy and pandas where
they are installed, which doubles the start-up time of every command. A test compares the two. Chinese is cut into
pieces of a unigram language model (Kudo 2018, "Subword Regularization"), by SentencePiece.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.pretrained_base import base_folder, load_tokenizer
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS_OF
from paddle_dialog.text.characters import LanguageName, read_as_simplified

PIECES = "pieces.model"  # the file in a bundle
MAX_TURNS = 40_000  # of the training text that the pieces are learned from
REMEMBERED_TURNS = 1 << 16  # a turn occurs in many contexts of a corpus
_BLANK = "▁"  # a blank inside a piece
_FULL_WIDTH = str.maketrans(",!?;:", "，！？；：")  # as the corpora write them

Tokens = Sequence[str]

# Replaced wherever they occur, even inside a longer word ("spirit's" gives "spirit is"), as in the published data.
# Contractions that are missing here ("i'll", "haven't", "he's") are left to Treebank.
_CONTRACTIONS = """
i'm=i_am i've=i_have i'd=i_would you're=you_are you'd=you_would you'll=you_will it's=it_is
we've=we_have they're=they_are that's=that_is what's=what_is there's=there_is there're=there_are
isn't=is_not aren't=are_not wasn't=was_not weren't=were_not don't=do_not doesn't=does_not
didn't=did_not couldn't=could_not can't=cannot won't=will_not
"""
CONTRACTIONS = {
    short: full.replace("_", " ") for short, full in (pair.split("=") for pair in _CONTRACTIONS.split())
}
# Words whose period does not end a sentence; the first line is what the published training files show.
ABBREVIATIONS: frozenset[str] = frozenset(
    {"ok", "dr", "mrs", "mr", "st", "ft", "ct", "pa", "u.s", "pre-k", "feb", "ill", "reps", "vs"}
    | {"ms", "jr", "sr", "prof", "gen", "rev", "u.k", "a.m", "p.m"}
    | {"jan", "mar", "apr", "aug", "sept", "oct", "nov", "dec"}
)


_CONTRACTION = re.compile("|".join(sorted(map(re.escape, CONTRACTIONS), key=len, reverse=True)))
_CLOSERS = r"[\])}>\"']*"
_FINAL_PERIOD = re.compile(rf"(?P<head>.*[^.])\.{_CLOSERS}$")
_NUMBER_OR_INITIAL = re.compile(r"[.,]?\d[\d,.:-]*|[^\W\d]")
_INNER_PERIOD = r"(?<=[^.])\.(?=[?!;:*@({\[])"
_PUNCTUATION = rf"\.{{3}}|--|''|``|[;@#$%&?!()\[\]{{}}<>\"]|[:,](?!\d)|{_INNER_PERIOD}"
_PIECES = re.compile(rf"(?:{_PUNCTUATION})|(?:(?!{_PUNCTUATION}).)+")
_PIECES_WITH_PERIOD = re.compile(
    rf"(?:{_PUNCTUATION}|(?<=[^.])\.(?={_CLOSERS}$))"
    rf"|(?:(?!{_PUNCTUATION}|(?<=[^.])\.(?={_CLOSERS}$)).)+"
)
_SHORT_CLITIC = re.compile(r"(.*[^'])('s|'m|'d|')")
_LONG_CLITIC = re.compile(r"(.*[^'])('ll|'re|'ve|n't)")
TYPOGRAPHIC = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "…": "..."})
_PICTOGRAPH = re.compile(r"([\u2600-\u27bf\U0001f000-\U0001faff][\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff]*)")
_CLITICS = frozenset({"'s", "'m", "'d", "'ll", "'re", "'ve", "n't", "'"})
_CLOSING = frozenset({".", ",", "!", "?", ";", ":", ")", "]", "}", "%", "...", "..", "''"})
_OPENING = frozenset({"(", "[", "{", "$", "#", "``"})
_SECOND_HALVES = {("can", "not"), ("gon", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me"), ("wan", "na")}
_HALVES = {first + second: f"{first} {second}" for first, second in _SECOND_HALVES}
_JOINED = re.compile(rf"\b(?:{'|'.join(_HALVES)})\b")
_QUOTES = {"``": '"', "''": '"'}
# The published contraction rules turn "isn't she" into "is not she", which nobody says.
_INVERTED = re.compile(
    r"\b(is|are|was|were|do|does|did|could|can|will|would|should|has|have|had)"
    r" ?not (?=(?:i|you|he|she|it|we|they)\b)"
)
_PRONOUN_I = re.compile(r"\bi(?=$|[^\w.]|\.(?!\w))")
_SENTENCE_START = re.compile(r"(^|(?<!\.)[.!?][)\"']* )([(\"']*)([^\W\d_])")


def tokenise(text: str) -> list[str]:
    """Split a turn into lower-case tokens; joined by blanks they are the form of the published `.tok` files.

    Unlike there, typographic quotes are plain ones, so that "I’m" and "I'm" are the same words, and emoji are words.
    """
    text = _PICTOGRAPH.sub(r" \1 ", text.translate(TYPOGRAPHIC))
    text = _CONTRACTION.sub(lambda match: CONTRACTIONS[match.group()], text.lower())
    chunks = text.split()
    tokens: list[str] = []
    for position, chunk in enumerate(chunks):
        following = chunks[position + 1] if position + 1 < len(chunks) else None
        tokens.extend(_split_chunk(chunk, _ends_sentence(chunk, following)))
    return tokens


def forget_chunks() -> None:
    """Empty the cache of chunks, which a server must not keep for every user."""
    _split_chunk.cache_clear()


def _ends_sentence(chunk: str, following: str | None) -> bool:
    """Return whether the period at the end of a blank-separated chunk is a full stop of its own."""
    if "." not in chunk:
        return False
    match = _FINAL_PERIOD.match(chunk)
    if match is None:
        return False
    if following is None:
        return True
    word = match["head"].lstrip('([{)]}"`:;,&#*@-')
    if word in ABBREVIATIONS:
        return False
    # "5. go home" and "plan b. works" stay attached; "in 2018. 10 years" does not (Kiss and Strunk, 2006).
    return not (chunk.endswith(".") and _NUMBER_OR_INITIAL.fullmatch(word) and following[0].isalpha())


@lru_cache(maxsize=1 << 16)
def _split_chunk(chunk: str, ends_sentence: bool) -> tuple[str, ...]:
    """Return Treebank tokens of a chunk without blanks (rules of the Penn Treebank tokenisation)."""
    if chunk.isalpha() and not _JOINED.fullmatch(chunk):
        return (chunk,)
    tokens: list[str] = []
    pieces = (_PIECES_WITH_PERIOD if ends_sentence else _PIECES).findall(chunk)
    for number, piece in enumerate(pieces):
        if piece in ('"', "''"):
            opens = number == 0 or pieces[number - 1] in "([{<"
            tokens.append("``" if opens else "''")
        else:
            tokens.extend(_split_word(piece))
    return tuple(tokens)


def _split_word(word: str) -> list[str]:
    tail: list[str] = []
    for clitic in (_SHORT_CLITIC, _LONG_CLITIC):
        match = clitic.fullmatch(word)
        if match is not None:
            word = match[1]
            tail.insert(0, match[2])
    return _JOINED.sub(lambda match: f" {_HALVES[match[0]]} ", word).split() + tail


def detokenise(tokens: Iterable[str]) -> str:
    """Turn reply tokens into one line of readable text.

    Punctuation and clitics join their word, split words join again ("can not" gives "cannot"), sentences
    start with a capital letter and "i" becomes "I". It is for reading: `tokenise` need not give the same
    tokens back.
    """
    text = ""
    previous = ""
    for token in _join_faces(list(tokens)):
        is_second = previous in _OPENING or (previous, token) in _SECOND_HALVES
        attached = is_second or token in _CLITICS or token in _CLOSING
        text += ("" if attached or not text else " ") + _QUOTES.get(token, token)
        previous = token
    text = _INVERTED.sub(lambda match: _negated(match[1]) + " ", text)
    text = _PRONOUN_I.sub("I", text)
    return _SENTENCE_START.sub(lambda match: match[1] + match[2] + match[3].upper(), text)


def _negated(verb: str) -> str:
    return {"will": "won't", "can": "can't"}.get(verb, verb + "n't")


def _join_faces(tokens: list[str]) -> list[str]:
    """Make ":" and ")" one token again, likewise the other plain faces."""
    last_closing = max((number for number, token in enumerate(tokens) if token == ")"), default=-1)
    joined: list[str] = []
    for number, token in enumerate(tokens):
        face = token == ")" or (token == "(" and number > last_closing)
        if face and joined and joined[-1] in {":", ";", "="}:
            joined[-1] += token
        else:
            joined.append(token)
    return joined


@dataclass(frozen=True, eq=False)
class Language:
    """One language, made once and handed on."""

    name: LanguageName  # as in the setting `language`
    tokenise: Callable[[str], Tokens]  # one turn to tokens
    detokenise: Callable[[Iterable[str]], str]  # tokens of a reply to readable text
    units: Callable[[Tokens], Tokens]  # tokens to what figures count: words, or the characters of pieces

    @property
    def emotions(self) -> tuple[str, ...]:
        """The emotions that a model of it predicts."""
        return EMOTIONS_OF[self.name]

    @cached_property
    def tokens_of(self) -> Any:
        """`tokenise` with a memory, as `functools` makes it."""
        return lru_cache(maxsize=REMEMBERED_TURNS)(lambda turn: tuple(self.tokenise(turn)))


ENGLISH = Language("en", tokenise, detokenise, units=lambda tokens: tokens)


def make_language(name: LanguageName, pieces: bytes | None) -> Language:
    """Return the language of a setting."""
    if name == "en":
        return ENGLISH
    if pieces is None:
        raise UserError(f"these weights have no {PIECES}, which a Chinese model needs; take another bundle")
    return Language("zh", piece_splitter(pieces), join_pieces, lambda tokens: tuple(join_pieces(tokens)))


def learn_pieces(turns: Iterable[str], size: int) -> bytes:
    """Learn pieces from text; return the content of a SentencePiece model, a function of text and size."""
    from sentencepiece import SentencePieceTrainer  # only Chinese needs it

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
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
    """Return the content of a file of pieces."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); null learns pieces anew") from error


def sample_of_turns(conversations: Sequence[Sequence[str]]) -> list[str]:
    """Return the turns of evenly spread conversations, `MAX_TURNS` or a few more."""
    turns = sum(map(len, conversations))
    step = max(1, turns // MAX_TURNS)
    return [turn for conversation in conversations[::step] for turn in conversation if turn]


def piece_splitter(model: bytes) -> Callable[[str], Sequence[str]]:
    """Return the function from a text to its pieces, characters that the model does not know among them.

    Traditional characters are read as simplified ones, and half-width signs as full-width ones.
    """
    from sentencepiece import SentencePieceProcessor  # only Chinese needs it

    processor = SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
    except RuntimeError as error:
        raise UserError(f"{PIECES}: is no model of SentencePiece; take another bundle") from error

    def split(text: str) -> Sequence[str]:
        pieces: list[str] = processor.encode(read_as_simplified(text).translate(_FULL_WIDTH), out_type=str)
        return pieces

    return split


def join_pieces(pieces: Iterable[str]) -> str:
    """Join pieces to readable text."""
    return "".join(pieces).replace(_BLANK, " ").strip()


def language_of_model(config: EmpatheticConfig, pieces: bytes | None) -> Language:
    """Return the language of a recipe's models: a pre-trained model's own tokens, else words or pieces."""
    if not isinstance(config.model, PretrainedConfig):
        return make_language(config.language, pieces)
    name, tokenizer = config.language, load_tokenizer(base_folder(config.model))

    def tokenise(text: str) -> Sequence[str]:
        tokens: list[str] = tokenizer.convert_ids_to_tokens(tokenizer.encode(text, add_special_tokens=False))
        return tokens

    def detokenise(tokens: Iterable[str]) -> str:
        return str(tokenizer.convert_tokens_to_string(list(tokens))).strip()

    def units(tokens: Sequence[str]) -> Sequence[str]:
        text = detokenise(tokens)
        return ENGLISH.tokenise(text) if name == "en" else tuple(text)

    return Language(name, tokenise, detokenise, units)
