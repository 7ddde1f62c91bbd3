"""Replies: what an answer holds, the candidates that need no network, and the judge that chooses among them.

Written replies are right for nearly everybody who says such a thing; each answers a dialogue act (Stolcke et al.
2000, "Dialogue Act Modeling"). Reflections mirror a clause of the speaker in a frame that answers the feeling:
reflective listening (Rogers 1951, "Client-Centered Therapy"), by the means of ELIZA (Weizenbaum 1966). The judge is a
linear map of a few features and of the network's states, fitted to blind ratings. It has learned what kind of reply
answers what kind of turn; besides, no reply is given twice. Where none is left, the generator answers.
"""

from __future__ import annotations

import json
import logging
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.data.files import Record
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.predictor import Prediction
from paddle_dialog.tasks.empathetic.clauses import KINDS, Clause, Kind, clauses_of, option_of
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.encoding import DialogueEncoder, Packed
from paddle_dialog.tasks.empathetic.data.language import Language
from paddle_dialog.tasks.empathetic.turns import ACTS, STATEMENT, Act, Tone, read_turn
from paddle_dialog.text.characters import LanguageName

logger = logging.getLogger("paddle_dialog")

TOP_EMOTIONS = 5
REPEATED = {"en": 4, "zh": 6}  # words or characters in a row that nobody wants to read twice

# Written replies.
ANY_AGREEMENT = 0.25  # agreement of a reply that is meant for any emotion
MIN_AGREEMENT = 0.6  # least probability of the emotions that a reply is meant for
MIN_ACT = 0.4  # least probability of an act whose replies may be used, unless it is the likeliest
MIN_SIMILARITY = 0.35  # of the turns of a reply that is not general

# Reflections.
EITHER_OR = ACTS.index("either_or")
SLOT = "{}"  # in a reply or frame, of what it takes from the turn
ANY = "any"  # in the place of an emotion in the files of frames
CLAUSES = 5  # of a turn, at most
LIKELY = 2  # emotions whose frames are tried, besides those for any
MIN_EMOTION = 0.25  # their least probability: comfort for the wrong feeling is worse than none
_TONES: dict[Tone, tuple[str, ...]] = {  # of the emotions that have one
    "sorry": (
        "afraid", "angry", "annoyed", "anxious", "apprehensive", "ashamed", "devastated", "disappointed", "disgusted",
        "embarrassed", "furious", "guilty", "jealous", "lonely", "sad", "terrified",
    ),
    "glad": (
        "calm", "confident", "content", "excited", "faithful", "grateful", "happy", "hopeful", "impressed", "joyful",
        "prepared", "proud", "trusting",
    ),
}  # fmt: skip
_KIND_OF_TONE: dict[Tone, Kind] = {"glad": "good", "sorry": "trouble", "plain": "plain"}

# What the judge reads.
ORIGINS = ("model", "written", "reflected")
PER_ORIGIN = 2 + len(ACTS)  # features of each origin: 1, log-probability, acts
SHARED = 5  # features whatever the origin
FEATURES = len(ORIGINS) * PER_ORIGIN + SHARED

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\u3400-\u9fff]")


@dataclass(frozen=True)
class ReplyPrediction(Prediction):
    """One reply."""

    tokens: tuple[str, ...]  # as the model wrote or reads it
    # The model; this project (`written`); the speaker, whose words it mirrors (`reflected`); or the fixed sentence to
    # somebody in danger (`care`), whose score is 0.
    origin: Literal["model", "written", "reflected", "care"] = "model"
    act: int | None = None  # that a written reply answers, an index of `ACTS`; None of others
    similarity: float = 0.0  # of the newest turn and that of a written reply, in 0–1; 0 of others
    agreement: float = 0.0  # probability of the emotions that a prepared reply is meant for; 0 of others
    emotion: str | None = None  # of the speaker, as `Answer.emotion`; set by `predict`

    def as_dict(self) -> Record:
        """Return the reply as the command line prints it."""
        return super().as_dict() | {"origin": self.origin}


def origin_note(record: Mapping[str, Any]) -> str:
    """Return the note shown with a reply of `ReplyPrediction.as_dict`; empty for one of the model's own."""
    notes = {"reflected": " (in your own words)", "written": " (written for this project)"}
    return notes.get(record["origin"], "")


@dataclass(frozen=True)
class Context:
    """A context as a model reads it."""

    original: Sequence[str]  # turns of the conversation, the speaker's first and last
    turns: Sequence[str]  # the same as they are read: emoji alone are in words
    packed: Packed  # as the encoder packs it
    language: Language  # of the conversation
    given: int | None = None  # the emotion that the user has given, a class id, or None
    # What follows is None before the model has run.
    predicted: np.ndarray | None = None  # probabilities of the emotions [C]
    model: Any = None  # `NumpyEmoPrepend`, or what answers as it does through Paddle
    batch: Any = None  # its state before the first word, a row for each context that it has read together
    row: int = 0  # of this context

    @property
    def state(self) -> Any:
        """The model's state before the first word of a reply to this context alone."""
        return self.model.reorder(self.batch, np.array([self.row]))

    @property
    def emotions(self) -> np.ndarray:
        """Probabilities of the emotions [C]; 1 for the given one, if any."""
        if self.given is not None:
            return np.eye(len(self.language.emotions))[self.given]
        assert self.predicted is not None, "the model has not read the context"
        return self.predicted


@dataclass(frozen=True)
class Answer:
    """The answer to a context."""

    context: Sequence[str]  # its turns
    # The most probable one, or the one that was given; None where none is probable enough.
    emotion: str | None
    probabilities: np.ndarray  # of all emotions, as predicted [C]
    predictions: Sequence[ReplyPrediction]  # the replies, best first
    emotions: Sequence[str] = EMOTIONS  # that the probabilities are of [C]
    act: Act | None = None  # the dialogue act of the newest turn; None without a judge
    care: bool = False  # the newest turn speaks of danger: a fixed sentence answers it, no emotion is named
    hint: str | None = None  # to a speaker whose language the model does not read

    @property
    def predicted_emotion(self) -> str:
        """The most probable emotion, even if another one was given."""
        return self.emotions[int(self.probabilities.argmax())]

    def as_dict(self) -> Record:
        """Return the answer as the command line prints it."""
        top = np.argsort(-self.probabilities, kind="stable")[: 0 if self.care else TOP_EMOTIONS]
        record: Record = {
            "context": list(self.context),
            "emotion": self.emotion,
            "emotions": {self.emotions[i]: round(float(self.probabilities[i]), 4) for i in top},
            "predictions": [prediction.as_dict() for prediction in self.predictions],
        }
        others = {"act": self.act, "care": self.care or None, "hint": self.hint}
        return record | {name: value for name, value in others.items() if value is not None}


def units(text: str) -> list[str]:
    """Return the words of a text in lower case, its Chinese characters one by one, and one mark if it asks."""
    return [*_words(text), *(["?"] if "?" in text or "？" in text else [])]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower().replace("’", "'"))


def repeats(reply: str, turns: Sequence[str], language: str) -> bool:
    """Return whether a reply has a phrase that the listener has said before, or is one of the earlier replies."""
    size = REPEATED[language]
    phrases = _phrases(reply, size)
    return any(reply == turn or phrases & _phrases(turn, size) for turn in turns[1::2])


def _phrases(text: str, size: int) -> set[tuple[str, ...]]:
    words = _words(text)
    return {tuple(words[start : start + size]) for start in range(len(words) - size + 1)}


def is_question(text: str) -> bool:
    """Return whether a text ends with a question."""
    return text.rstrip("\"'”’」 ").endswith(("?", "？"))


def tone_of_emotions(emotions: Sequence[str]) -> Tone:
    """Return the tone that suits all of the emotions; plain where none does."""
    suiting = [tone for tone, names in _TONES.items() if emotions and all(name in names for name in emotions)]
    return suiting[0] if suiting else "plain"


@dataclass(frozen=True)
class WrittenReply:
    """A reply that is right for nearly everybody who says such a thing."""

    act: int  # that it answers, an index of `ACTS`
    turn: str  # an example of what it answers
    text: str  # of the reply
    emotions: tuple[str, ...] = ()  # of the speaker for which a reply to a statement is meant; empty for any
    general: bool = False  # fits nearly every turn of the act; others need a turn like their own

    @property
    def tone(self) -> Tone:
        """The tone that suits its emotions; plain where it is meant for any."""
        return tone_of_emotions(self.emotions)


class WrittenReplies:
    """The written replies of a language, searched by act, words and emotion."""

    def __init__(self, language: str, emotions: Sequence[str]) -> None:
        self.replies = read_written(language)
        bags = [_bag(reply.turn) for reply in self.replies]
        found = Counter(gram for bag in bags for gram in bag)
        self._idf = {gram: math.log(len(bags) / count) for gram, count in found.items()}
        # Of each n-gram the replies whose turn has it, with its weight.
        self._rows: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for row, bag in enumerate(bags):
            for gram, weight in self._unit_vector(bag).items():
                self._rows[gram].append((row, weight))
        self._acts = np.array([reply.act for reply in self.replies])  # [N]
        self._meant = np.array([[e in reply.emotions for e in emotions] for reply in self.replies])  # [N, C]
        self._for_any = ~self._meant.any(axis=1)  # [N]
        self._general = np.array([reply.general for reply in self.replies])  # [N]
        self._tones = np.array([reply.tone for reply in self.replies])  # [N]
        self._has_slot = np.array([SLOT in reply.text for reply in self.replies])  # [N]
        self._language = language

    def matches(
        self, turn: str, acts: np.ndarray, felt: np.ndarray, count: int | None = None, tone: Tone = "plain"
    ) -> list[ReplyPrediction]:
        """Return the replies that fit a turn best by act, words and emotion; what is not scored has score 0.

        A reply that is not general needs a turn like its own, and one for an emotion needs that emotion.

        Args:
            acts: probabilities of its acts [A].
            felt: probabilities of the emotions [C].
            count: how many, at most; None returns all, whether they fit or not.
            tone: that suits the turn; replies of another one do not fit.
        """
        similarities = np.zeros(len(self.replies))  # [N], cosines of TF-IDF
        for gram, weight in self._unit_vector(_bag(turn)).items():
            for row, other in self._rows.get(gram, ()):
                similarities[row] += weight * other
        agreements = np.where(self._for_any, ANY_AGREEMENT, self._meant @ felt)  # [N]
        values = acts[self._acts] + similarities + agreements * (self._acts == STATEMENT)
        option = None
        if count is not None:
            is_like = self._general | (similarities >= MIN_SIMILARITY)
            is_felt = self._for_any | (agreements >= MIN_AGREEMENT)
            suits = (self._tones == "plain") | (self._tones == tone)
            fits = is_like & is_felt & suits & (acts[self._acts] >= min(MIN_ACT, acts.max()))
            # A slot needs an option of the turn; where there is one, only such replies answer an either-or question.
            option = None if tone == "sorry" else option_of(turn, self._language)
            fits &= ~self._has_slot if option is None else self._has_slot | (self._acts != EITHER_OR)
            values[~fits] = -np.inf
            count = min(count, int(fits.sum()))
        best = np.argsort(-values, kind="stable")[:count]
        texts = [self.replies[row].text for row in best]
        if option is not None:
            texts = [framed(text, option) for text in texts]
        figures = zip(
            self._acts[best].tolist(), similarities[best].tolist(), agreements[best].tolist(), strict=True
        )
        return [
            ReplyPrediction(text, 0.0, (), "written", *each)
            for text, each in zip(texts, figures, strict=True)
        ]

    def _unit_vector(self, bag: set[str]) -> dict[str, float]:
        """Return the IDF of each known n-gram, scaled to unit length."""
        weights = {gram: self._idf[gram] for gram in bag if gram in self._idf}
        norm = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
        return {gram: weight / norm for gram, weight in weights.items()}


def _text_lines(name: str) -> list[str]:
    path = Path(__file__).parent / "texts" / name
    return path.read_text(encoding="utf-8").splitlines()


def read_written(language: str) -> list[WrittenReply]:
    """Read `texts/written_*.jsonl`: `act`, `turn` and `reply` a line, and perhaps `emotions` and `general`."""
    replies = []
    for line in map(json.loads, _text_lines(f"written_{language}.jsonl")):
        act, emotions = ACTS.index(line["act"]), tuple(line.get("emotions", ()))
        replies.append(WrittenReply(act, line["turn"], line["reply"], emotions, line.get("general", False)))
    return replies


def _bag(turn: str) -> set[str]:
    """Return the words and pairs of words of a turn; of Chinese its characters and pairs of them."""
    words = units(turn)
    return {*words, *("_".join(pair) for pair in pairwise(words))}


class Reflector:
    """Mirrors what a speaker has said; which clause and frame fit is left to the judge."""

    def __init__(self, language: LanguageName, emotions: Sequence[str]) -> None:
        self._emotions = emotions
        self._language = language
        self._frames = read_frames(language)

    def replies(self, turn: str, felt: np.ndarray, tone: Tone, count: int) -> list[ReplyPrediction]:
        """Return replies to a turn; none is scored, so each has score 0.

        Args:
            felt: probabilities of the emotions [C].
            tone: that suits the turn; no clause of the opposite one is mirrored, no emotion of it answered.

        Returns:
            Each clause in one frame for each of the likeliest emotions and in one for any; then in more of them.
        """
        best = np.argsort(-felt, kind="stable")[:LIKELY]
        likely = [self._emotions[index] for index in best if felt[index] >= MIN_EMOTION]
        likely = [emotion for emotion in likely if tone_of_emotions([emotion]) == tone]
        found = self._clauses(turn, tone)
        tried: dict[str, ReplyPrediction] = {}
        rounds = range(max(map(len, self._frames.values())))
        for number, clause, emotion in product(rounds, found, (*likely, ANY)):
            frames = self._frames.get((self._kind(clause, emotion, tone), emotion), [])
            if number < len(frames):
                # A clause always begins with the same frame, others with others.
                frame = frames[(zlib.crc32(clause.text.encode()) + number) % len(frames)]
                text = framed(frame, clause.text)
                agreement = ANY_AGREEMENT if emotion == ANY else float(felt[self._emotions.index(emotion)])
                tried.setdefault(text, ReplyPrediction(text, 0.0, (), "reflected", agreement=agreement))
            if len(tried) == count:
                break
        return [*tried.values()]

    def _clauses(self, turn: str, tone: Tone) -> list[Clause]:
        """Return the clauses of a turn that may be answered in a tone, the last ones and those that have it first."""
        found = reversed(clauses_of(turn, self._language))
        read = [(clause, read_turn(clause.text, "", self._language).tone) for clause in found]
        if tone != "plain":
            read = [pair for own in (tone, "plain") for pair in read if pair[1] == own]
        return [clause for clause, _ in read[:CLAUSES]]

    def _kind(self, clause: Clause, emotion: str, tone: Tone) -> Kind:
        if emotion != ANY:
            return "plain"  # its frames say what is felt
        return clause.kind if tone == "plain" else _KIND_OF_TONE[tone]


def mirrors(turns: Sequence[str], language: str) -> bool:
    """Return whether the second of two turns, the listener's, mirrors a clause of the first."""
    if len(turns) < 2:
        return False
    reply = turns[1].lower()
    return any(clause.text.lower() in reply for clause in clauses_of(turns[0], language))


def framed(frame: str, clause: str) -> str:
    """Put a clause into a frame, with a capital at the beginning."""
    text = frame.replace(SLOT, clause)
    return text[:1].upper() + text[1:]


def read_frames(language: str) -> dict[tuple[Kind, str], list[str]]:
    """Read `texts/frames_*.tsv`: kind of clause, emotion or `any`, frame with {} for the clause."""
    frames: dict[tuple[Kind, str], list[str]] = defaultdict(list)
    for line in _text_lines(f"frames_{language}.tsv"):
        kind, emotion, frame = line.split("\t")
        frames[KINDS[KINDS.index(kind)], emotion].append(frame)
    return frames


def score_replies(
    encoder: DialogueEncoder, context: Context, candidates: Sequence[ReplyPrediction]
) -> tuple[list[ReplyPrediction], np.ndarray]:
    """Let the model read replies to a context, one or more.

    Returns:
        The candidates with their tokens and the mean of log p(token | context), the end token counted; and the
        decoder's mean output over each, then its last one, float32 [N, 2 D].
    """
    replies = [context.language.tokens_of(one.text) for one in candidates]
    ids = [encoder.target(encoder.numbers(tokens), context.packed[1]).tolist() for tokens in replies]
    totals, states = context.model.read_replies(context.state, ids)
    found = [
        replace(one, score=total / (len(tokens) + 1), tokens=tokens)
        for one, total, tokens in zip(candidates, totals.tolist(), replies, strict=True)
    ]
    return found, states


def order_by_judge(
    judge: Judge,
    encoder: DialogueEncoder,
    context: Context,
    acts: np.ndarray,
    candidates: Sequence[ReplyPrediction],
) -> list[ReplyPrediction]:
    """Return candidates with their scores, best first; what repeats an earlier reply comes last.

    Args:
        judge: of the numbers that `judge_inputs` returns.
        acts: probabilities of the acts of the newest turn [A].
    """
    if not candidates:
        return []
    found, states = score_replies(encoder, context, candidates)
    values = judge(judge_inputs(context, acts, found, states))  # [N]
    return repetitions_last([found[place] for place in np.argsort(-values, kind="stable")], context)


def repetitions_last(replies: Sequence[ReplyPrediction], context: Context) -> list[ReplyPrediction]:
    """Move what the listener has said before to the end; otherwise the order stays."""
    return sorted(replies, key=lambda one: repeats(one.text, context.turns, context.language.name))


def judge_inputs(
    context: Context, acts: np.ndarray, candidates: Sequence[ReplyPrediction], states: np.ndarray
) -> np.ndarray:
    """Return the judge's inputs for candidates: features, the network's states, and those again by origin.

    The states of written replies and of reflections have weights of their own too.

    Args:
        acts: probabilities of the acts of the newest turn [A].
        candidates: and their states [N, 2 D], from `score_replies`.

    Returns:
        float64 [N, FEATURES + 6 D], D the model's width.
    """
    is_written, is_reflected = (
        np.array([[one.origin == origin] for one in candidates]) for origin in ("written", "reflected")
    )  # [N, 1] each
    asked = sum(map(is_question, context.turns[-2:-6:-2]))  # of the listener's last two turns
    features = np.zeros((len(candidates), FEATURES))
    for row, one in zip(features, candidates, strict=True):
        place = ORIGINS.index(one.origin) * PER_ORIGIN
        row[place : place + PER_ORIGIN] = 1.0, one.score, *acts
        act = 0.0 if one.act is None else float(acts[one.act])
        asks = float(is_question(one.text))
        row[-SHARED:] = act, one.similarity, one.agreement, asks, asks * asked
    return np.concatenate([features, states, states * is_written, states * is_reflected], axis=1)


def judged_width(width: int) -> int:
    """Return the number of a judge's inputs for a model of a width."""
    return FEATURES + 6 * width


def judge_of_bundle(config: EmpatheticConfig, files: Mapping[str, bytes]) -> Judge | None:
    """Return the judge that a config asks for; None where it wants none, or the bundle has none."""
    wanted = config.replies.judge
    if wanted is False:
        return None
    missing, advice = (
        f"these weights have no judge of replies ({JUDGE})",
        "fit one (tools/weights/empathetic)",
    )
    if not isinstance(config.model, CausalTransformerConfig):
        missing, advice = f"{config.model.name} replies have no judge", "take model.name: causal_transformer"
    elif JUDGE in files:
        return Judge.from_bytes(files[JUDGE], judged_width(config.model.width))
    if wanted:
        raise UserError(
            f"replies.judge: {missing}; {advice}, or set -o replies.judge=false to let the generator answer alone"
        )
    logger.info("%s; the generator answers alone", missing)
    return None
