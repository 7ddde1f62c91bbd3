"""A conversation of many turns with a model: its state, and the commands of the user."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.answer import Answer, origin_note
from paddle_dialog.tasks.empathetic.data.dialogue import clean_turn
from paddle_dialog.tasks.empathetic.data.emotions import NO_CLEAR_EMOTION, emotion_id
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.text.vocabulary import Vocabulary

SHOWN_EMOTIONS = 3
MOST_CANDIDATES = 50
_OTHER_FORMS = (".gz", ".xz", ".csv", ".tgz")  # which a reader would take for compressed or for CSV


@dataclass(frozen=True)
class Response:
    """The response to a line."""

    reply: str | None = None  # emotion and reply, for the user to read; None after a command
    note: str | None = None  # a further message, e.g. what a command did; None if there is none


class Chat:
    """The state of a chat, driven by lines of text, with no terminal involved.

    Args:
        predictor: the model.
        history: a file to which each conversation is added when it ends, or None.

    Attributes:
        turns: the user's turns and the replies, alternating; the last is a reply.
        emotion: the one the user has set, or None where the model predicts it.
        n_best: replies shown for a turn; the first of them is the one that was given.
        finished: whether the user has asked to end.

    Raises:
        UserError: `history` cannot be written.
    """

    def __init__(self, predictor: EmpatheticPredictor, history: Path | None = None) -> None:
        self.predictor = predictor
        self.turns: list[str] = []
        self._told: list[str | None] = []  # the emotion set for each reply
        self.emotion: str | None = None
        self.n_best = predictor.config.decoding.n_best
        self.finished = False
        self._history = history
        if history is not None:
            _append(history, "")
        self._commands: dict[str, tuple[Callable[[str], Response], str]] = {
            "/emotion": (
                self._emotion,
                "LABEL   sets your emotion for the replies; /emotion auto gives it back",
            ),
            "/reset": (self._reset, "        begins a new conversation"),
            "/undo": (self._undo, "        takes back your last turn and its reply"),
            "/n-best": (self._n_best, "N       shows N replies to a turn; the first one counts as given"),
            "/save": (
                self._save,
                "FILE    adds the conversation to a file, as a line that evaluate.py reads",
            ),
            "/help": (self._help, "        shows this"),
            "/quit": (self._quit, "        ends the chat, as the end of input does"),
        }

    def handle(self, line: str) -> Response:
        """Answer a turn or carry out a command.

        Args:
            line: a turn of any length, or a command, which begins with a slash.

        Raises:
            UserError: the line cannot be answered or carried out; the conversation is unchanged.
        """
        try:
            cleaned = clean_turn(line, "the turn")
        except ValueError as error:
            raise UserError(f"{error}; write what you would say, or /help") from error
        if not line.startswith("/"):
            return self._reply(cleaned)
        name, _, argument = cleaned.partition(" ")
        if name not in self._commands:
            nearest = difflib.get_close_matches(name, self._commands, n=1, cutoff=0.5)
            hint = f"did you mean {nearest[0]}?" if nearest else "/help lists them"
            raise UserError(
                f"unknown command {name[:40]!r}; {hint} (a turn that begins with a slash needs a blank before it)"
            )
        return self._commands[name][0](argument)

    def end(self) -> None:
        """Add the conversation, if there is one, to the history file, if there is one.

        Raises:
            UserError: the file cannot be written.
        """
        if self._history is not None and self.turns:
            self._write(self._history)

    def as_example(self) -> dict[str, object]:
        """Return the conversation as a dialogue example: its last reply is the target.

        It has an emotion only if the user had set one for that reply: a prediction is not an annotation.
        """
        example: dict[str, object] = {"context": self.turns[:-1], "target": self.turns[-1]}
        return example if self._told[-1] is None else {**example, "emotion": self._told[-1]}

    def _reply(self, turn: str) -> Response:
        (answer,) = self.predictor.answer([[*self.turns, turn]], self.n_best, [self.emotion])
        if not answer.predictions or not answer.predictions[0].text:
            raise UserError("the model found no reply; say it in other words")
        self.turns += [turn, answer.predictions[0].text]
        self._told.append(self.emotion)
        note = self._reading_note(turn) if answer.hint is None else f"({answer.hint})"
        return Response(format_answer(answer, self.emotion is not None), None if answer.care else note)

    def _reading_note(self, turn: str) -> str | None:
        """Describe what the model could not read of a turn."""
        words, limit = self.predictor.language.tokens_of(turn), self.predictor.config.data.max_length
        if len(words) > limit:
            return f"(your turn has {len(words):,} words; the model reads the last {limit} of them)"
        vocabulary = self.predictor.vocabulary
        if all(vocabulary.id(word) == Vocabulary.unk_id for word in words):
            return "(the model knows none of these words)"
        return None

    def _emotion(self, argument: str) -> Response:
        if not argument:
            now = "predicted by the model" if self.emotion is None else f"set to {self.emotion}"
            return Response(
                note=f"the emotion is {now}; /emotion takes auto or one of: {', '.join(self.predictor.emotions)}"
            )
        if argument.lower() == "auto":
            self.emotion = None
            return Response(note="the model predicts the emotion again")
        label = self.predictor.emotions[emotion_id(argument, self.predictor.emotions)]
        if self.predictor.config.emotion.prepend == "none":
            raise UserError(
                "this model writes its replies without an emotion (emotion.prepend: none), so none can be set"
            )
        self.emotion = label
        return Response(note=f"the emotion is {label} until /emotion auto")

    def _reset(self, argument: str) -> Response:
        self.end()
        self.turns, self._told, self.emotion = [], [], None
        return Response(note="a new conversation")

    def _undo(self, argument: str) -> Response:
        if not self.turns:
            raise UserError("there is no turn to take back; the conversation has not begun")
        *self.turns, turn, _ = self.turns
        self._told.pop()
        return Response(note=f"taken back: {_shortened(turn)}")

    def _n_best(self, argument: str) -> Response:
        if not (argument.isascii() and argument.isdecimal() and 1 <= int(argument[:9]) <= MOST_CANDIDATES):
            raise UserError(f"/n-best takes a whole number from 1 to {MOST_CANDIDATES}, e.g. /n-best 3")
        if int(argument) > 1 and self.predictor.config.decoding.strategy == "greedy":
            raise UserError("greedy search gives one reply; start with -o decoding.strategy=beam or sample")
        self.n_best = int(argument)
        return Response(note=f"{self.n_best} {'reply' if self.n_best == 1 else 'replies'} to a turn")

    def _save(self, argument: str) -> Response:
        if not argument:
            raise UserError("/save needs the name of a file, e.g. /save chat.jsonl")
        if not self.turns:
            raise UserError("there is nothing to save; the conversation has not begun")
        self._write(Path(argument).expanduser())
        return Response(note=f"{len(self.turns)} turns added to {argument}")

    def _help(self, argument: str) -> Response:
        rows = [f"{name:<9}{about}" for name, (_, about) in self._commands.items()]
        return Response(
            note="\n".join([*rows, "Anything else is a turn. Of a long conversation the newest is read."])
        )

    def _quit(self, argument: str) -> Response:
        self.finished = True
        return Response()

    def _write(self, path: Path) -> None:
        _append(path, json.dumps(self.as_example(), ensure_ascii=False) + "\n")


def format_answer(answer: Answer, is_set: bool = False) -> str:
    """Format an answer for a reader: the likeliest emotions with probabilities, if one is clear, and the replies.

    Args:
        answer: with one reply, or several, which are numbered and shown with their scores.
        is_set: the user has set the emotion.
    """
    if answer.care:
        return f"[care]\n{answer.predictions[0].text}"
    top = np.argsort(-answer.probabilities, kind="stable")[:SHOWN_EMOTIONS]
    predicted = ", ".join(f"{answer.emotions[index]} {answer.probabilities[index]:.0%}" for index in top)
    if answer.emotion is None:
        predicted = NO_CLEAR_EMOTION
    head = f"[{answer.emotion}, set by you; predicted: {predicted}]" if is_set else f"[{predicted}]"
    if len(answer.predictions) == 1:
        return f"{head}\n{answer.predictions[0].text}{origin_note(answer.predictions[0].as_dict())}"
    rows = [
        f"{n}. {reply.text} ({reply.score:.2f}){origin_note(reply.as_dict())}"
        for n, reply in enumerate(answer.predictions, start=1)
    ]
    return "\n".join([head, *rows])


def _shortened(turn: str) -> str:
    return turn if len(turn) <= 60 else f"{turn[:59]}…"


def _append(path: Path, line: str) -> None:
    """Add a line to a file of dialogues.

    Raises:
        UserError: it cannot be written, or a reader would take it for another format.
    """
    if path.suffix.lower() in _OTHER_FORMS:
        raise UserError(f"{path}: a conversation is saved as plain JSON lines; take a name like chat.jsonl")
    try:
        with path.open("a+b") as file:
            if line and file.tell():
                file.seek(-1, 2)
                line = line if file.read() == b"\n" else f"\n{line}"
            file.write(line.encode("utf-8"))
    except OSError as error:
        raise UserError(f"{path}: the conversation cannot be saved ({error.strerror})") from error
