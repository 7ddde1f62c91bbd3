"""What a turn means: dialogue act, mood, and whether somebody needs help now, which fixed sentences answer.

One linear classifier a language reads the n-grams of the turn and of the listener's reply before it, with a head for
each of the three. It is fitted to labelled turns (tools/weights/empathetic/turns) and comes with the task, not with a
bundle, so that care holds for every model.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import log2
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.config.loader import read_config
from paddle_dialog.config.typed import Problem, build
from paddle_dialog.data.eight_bits import EightBitWeights
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import CareConfig
from paddle_dialog.text.characters import LANGUAGES, LanguageName, is_hanzi, language_of, simplified

# Stolcke et al. 2000, "Dialogue Act Modeling"; questions are divided by what answers them.
Act = Literal[
    "statement", "either_or", "yes_no", "about_you", "knowledge", "advice", "favour", "joke", "correction",
    "complaint", "thanks", "greeting", "farewell", "acknowledgement", "refusal",
]  # fmt: skip
Mood = Literal[
    "joy", "relief", "pride", "gratitude", "sadness", "fear", "anger", "shame", "loneliness", "surprise", "none",
]  # fmt: skip
Care = Literal["none", "self_harm", "abuse", "violence", "threat", "emergency"]
Tone = Literal["glad", "sorry", "plain"]  # of a reply
ACTS: tuple[Act, ...] = get_args(Act)
MOODS: tuple[Mood, ...] = get_args(Mood)
CARES: tuple[Care, ...] = get_args(Care)
STATEMENT = ACTS.index("statement")  # news and feelings
_GLAD, _SORRY = slice(0, MOODS.index("sadness")), slice(MOODS.index("sadness"), MOODS.index("surprise"))
# A goodbye to somebody who goes on hurts.
_ENDING = [ACTS.index(act) for act in ("thanks", "greeting", "farewell", "acknowledgement", "refusal")]
GLAD, SORRY = 0.4, 0.7  # least probabilities of the moods of a tone, chosen on held-out turns
ENDING = 0.5  # least probability of these
_HEADS = {"act": len(ACTS), "mood": len(MOODS), "care": len(CARES)}
_ENDS = np.cumsum([*_HEADS.values()])

BUCKETS = 1 << 16
OPENING = 3  # words of the first sentence that are features of their own
MAX_LENGTH = 6  # classes of length, by powers of two
SKIPPED = 3  # words at most between the two of a pair with a gap
PARTS = (3, 4, 5)  # letters of the pieces of a word, which typing errors leave alone
SENTENCES, LONG = 3, 400  # sentences and characters of a turn; those of a longer one are read for themselves
FOREIGN = 3  # words, or hanzi, in the other language that are read for themselves
_MINOR = 0.7  # length of the vector of all features but the n-grams of the turn
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\u3400-\u9fff]|[?？!！.。]+|[^\s\w]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")
_LATIN = re.compile("[A-Za-z']+")
_STRETCHED = re.compile(r"(.)\1\1+")  # dieeee
_APOSTROPHES = str.maketrans("’‘´`ʼ", "'''''")
_THRESHOLDS = "care_thresholds"

# Care.
KINDS = CARES[1:]
_DENIALS: tuple[Act, ...] = ("correction", "complaint", "refusal", "joke", "acknowledgement")

_CARE_ANSWERS = Path(__file__).parent / "texts" / "care_answers.yaml"
# The blank that YAML makes of it, in Chinese.
_LINE_END = re.compile(r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])")


class TurnReading(NamedTuple):
    """Probabilities of what a turn means."""

    acts: np.ndarray  # of `ACTS` [A]
    moods: np.ndarray  # of `MOODS` [M]
    care: Care  # what it asks help for
    sure: bool = True  # whether that is likely enough for the whole answer, and not for asking only

    @property
    def act(self) -> Act:
        """The likeliest act."""
        return ACTS[int(self.acts.argmax())]

    @property
    def tone(self) -> Tone:
        """The tone that suits the mood; plain where it is not clear, since sorrow at joy hurts."""
        glad, sorry = float(self.moods[_GLAD].sum()), float(self.moods[_SORRY].sum())
        if glad >= max(GLAD, sorry):
            return "glad"
        return "sorry" if sorry >= SORRY else "plain"


class TurnReader:
    """Reads turns of one language.

    Args:
        weights: `table`, logits of all heads for each n-gram [BUCKETS, A + M + C].
        thresholds: least probabilities of all kinds of care together, for asking and for the whole answer.
    """

    def __init__(self, weights: EightBitWeights, thresholds: Sequence[float] = (0.5, 0.5)) -> None:
        self._weights = weights
        self.thresholds = thresholds

    def __call__(self, turn: str, previous: str = "") -> TurnReading:
        """Read a turn after the listener's reply before it."""
        acts, moods, care = self.probabilities(turn, previous)
        unlikely = np.isin(np.arange(len(ACTS)), _ENDING) & (acts < ENDING)
        acts = np.where(unlikely, 0.0, acts) / acts[~unlikely].sum()
        asking, sure = self.thresholds
        kind = CARES[1 + int(care[1:].argmax())] if 1 - care[0] >= asking else "none"
        return TurnReading(acts, moods, kind, bool(1 - care[0] >= sure))

    def probabilities(self, turn: str, previous: str = "") -> list[np.ndarray]:
        """Return the probabilities of the three heads, float64 [A], [M] and [C]."""
        buckets, weights = turn_features(turn, previous)
        rows = self._weights.values_of("table")[buckets] * self._weights.scales["table"][buckets]
        logits = np.split(weights @ rows, _ENDS[:-1])
        shares = [np.exp(each - each.max()) for each in logits]
        return [share / share.sum() for share in shares]

    def to_bytes(self) -> bytes:
        """Return the file, in 8 bits."""
        table, scales = self._weights.values_of("table"), self._weights.scales["table"].astype(np.float16)
        return save({"table": table, "table.scale": scales, _THRESHOLDS: np.array(self.thresholds)})

    @classmethod
    def from_bytes(cls, content: bytes, where: str) -> TurnReader:
        """Read what `to_bytes` made."""
        with file_errors(where, "reader of turns", "fit it anew"):
            tensors = load(content)
            thresholds, weights = tensors.pop(_THRESHOLDS).tolist(), EightBitWeights(tensors)
        if weights.values_of("table").shape != (BUCKETS, _ENDS[-1]):
            raise UserError(f"{where}: has other n-grams or labels than are needed; fit it anew")
        return cls(weights, thresholds)


def turn_features(turn: str, previous: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets of a turn's features and their weights.

    Words, in Chinese characters: one to three in a row, pairs with a gap, those of the last sentence and the first
    ones once more, since a turn asks or complains there; pieces of Latin words; and what the listener said before.
    """
    text = _normalised(turn)
    words = ["<s>", *_WORD.findall(text), "</s>"]
    inner = words[1:-1]
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence] or [""]
    grams = [
        *inner,
        *("_".join(pair) for pair in pairwise(words)),
        *("_".join(words[place : place + 3]) for place in range(len(words) - 2)),
        *(f"last:{word}" for word in _WORD.findall(sentences[-1])),
        *(f"first:{word}" for word in _WORD.findall(sentences[0])[:OPENING]),
        f"length:{min(MAX_LENGTH, int(log2(len(words) - 1)))}",
    ]
    minor = []
    for place, word in enumerate(inner):
        minor += [f"gap:{word}_{other}" for other in inner[place + 2 : place + 2 + SKIPPED]]
        if word[0].isascii() and word[0].isalpha():
            whole = f"^{word.replace(chr(39), '')}$"
            starts = [(size, start) for size in PARTS for start in range(len(whole) - size + 1)]
            minor += [f"part:{whole[start : start + size]}" for size, start in starts]
    before = _WORD.findall(_normalised(previous))
    minor += [f"before:{word}" for word in before] + [f"before:{'_'.join(pair)}" for pair in pairwise(before)]
    minor.append("before" if before else "opening")
    pairs = [_unit(grams, 1.0), _unit(minor, _MINOR)]
    buckets, places = np.unique(np.concatenate([each for each, _ in pairs]), return_inverse=True)
    return buckets, np.bincount(places, np.concatenate([weights for _, weights in pairs]))


def _normalised(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).lower().translate(_APOSTROPHES)
    text = "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Mn"))
    return _STRETCHED.sub(r"\1\1", simplified(text))


def _unit(features: list[str], length: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets of features and their weights, 1 + log of how often each occurs, scaled to a length."""
    hashes = [zlib.crc32(feature.encode()) % BUCKETS for feature in features]
    buckets, counts = np.unique(hashes, return_counts=True)
    weights = 1 + np.log(counts)
    return buckets, length * weights / np.linalg.norm(weights)


@cache
def turn_reader(language: LanguageName) -> TurnReader:
    """Return the reader of a language that ships with the task."""
    path = Path(__file__).parent / "texts" / f"turns_{language}.safetensors"
    return TurnReader.from_bytes(path.read_bytes(), path.name)


def read_turn(turn: str, previous: str, language: LanguageName) -> TurnReading:
    """Read a turn of a conversation in a language.

    Care is looked for without the reply before, in each sentence of a long turn, and in what is said in the other
    language, too.
    """
    own = language_of(turn) or language
    reading = turn_reader(own)(turn, previous)
    parts: list[tuple[LanguageName, str]] = [(own, turn)] if previous else []
    sentences = [part for part in _SENTENCE.split(turn) if part]
    if len(sentences) > SENTENCES or len(turn) > LONG:
        reading = reading if reading.sure else reading._replace(care="none")
        parts += [(own, part) for part in dict.fromkeys(sentences)]
    words = _LATIN.findall(turn)
    if own == "zh" and len(words) >= FOREIGN:
        parts.append(("en", " ".join(words)))
    if own == "en" and sum(map(is_hanzi, turn)) >= FOREIGN:
        parts.append(("zh", _LATIN.sub(" ", turn)))
    for name, part in parts:
        found = turn_reader(name)(part)
        better = found.sure or (part == turn and len(turn) <= LONG and reading.care == "none")
        if found.care != "none" and better and not (reading.care != "none" and reading.sure):
            reading = reading._replace(care=found.care, sure=found.sure)
    return reading


@dataclass(frozen=True)
class CareSentence:
    """What is said, in each language."""

    en: str
    zh: str

    def problems(self) -> Iterator[Problem]:
        yield from (
            (name, "is empty; say what to do") for name in LANGUAGES if not getattr(self, name).strip()
        )


@dataclass(frozen=True)
class CareAnswers:
    """The sentences of a file of `care.answers`."""

    self_harm: CareSentence
    abuse: CareSentence
    violence: CareSentence
    threat: CareSentence
    emergency: CareSentence
    check: CareSentence | None = None  # what is asked where the reader of turns is not sure
    again: CareSentence | None = None  # what is said to somebody who has the answer already
    denied: CareSentence | None = None  # what is said to somebody who corrects that he needs help


class CareResponder:
    """Answers turns whose speaker needs help now."""

    def __init__(self, config: CareConfig) -> None:
        path = _CARE_ANSWERS if config.answers is None else Path(config.answers)
        where = f"care.answers: {path}"
        try:
            content = read_config(path)
        except UserError as error:
            raise UserError(f"care.answers: {error}") from error
        if content.keys() & {*LANGUAGES}:
            sentence = build(CareSentence, content, where)
            self._answers = CareAnswers(*[sentence] * len(KINDS))
        else:
            self._answers = build(CareAnswers, content, where)

    def answer(self, turns: Sequence[str], reading: TurnReading, language: LanguageName) -> str | None:
        """Return the sentence for the newest turn; None where it asks for no care.

        Args:
            turns: of the conversation; what was answered before is not said in full again.
            reading: of the newest turn; earlier ones do not count, so that a conversation can go on.
            language: of the answer where that of the turn is not clear.
        """
        if reading.care == "none":
            return None
        written = language_of(turns[-1]) or language
        asked = None if reading.sure else self._said("check", written)
        sentence = asked or self._said(reading.care, written)
        if sentence in turns:
            return self._said("again", written) or sentence
        return sentence

    def reassurance(self, turns: Sequence[str], reading: TurnReading, language: LanguageName) -> str | None:
        """Return what is said to somebody who corrects the last answer, if that was one of these."""
        if len(turns) < 2 or reading.act not in _DENIALS:
            return None
        said = [self._said(kind, name) for kind in (*KINDS, "again", "check") for name in LANGUAGES]
        return self._said("denied", language_of(turns[-1]) or language) if turns[-2] in said else None

    def _said(self, kind: str, language: LanguageName) -> str | None:
        """Return a sentence on one line; None where there is none of a kind."""
        sentence = getattr(self._answers, kind)
        return None if sentence is None else _LINE_END.sub("", " ".join(getattr(sentence, language).split()))
