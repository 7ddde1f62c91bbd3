"""Talk with a trained empathetic model.

python tools/chat.py -c configs/empathetic.yaml
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from paddle_dialog.command_line import base_parser, load_named_model, piped_lines, typed_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.dialogue import clean_turn, in_words
from paddle_dialog.tasks.empathetic.data.emotions import NO_CLEAR_EMOTION, emotion_id
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import Answer, origin_note
from paddle_dialog.text.vocabulary import Vocabulary

NOT_UTF8 = "this line is not UTF-8; set the terminal to UTF-8, or convert the text first"
SHOWN_EMOTIONS = 3
HELP = """\
/emotion LABEL   sets your emotion for the replies; /emotion auto gives it back
/undo            takes back your last turn and its reply
/reset           begins a new conversation
/quit            ends the chat, as the end of input does
Anything else is a turn. Of a long conversation the newest is read."""


@dataclass(frozen=True)
class Response:
    """The response to a line."""

    reply: str | None = None  # emotion and reply, for the user to read; None after a command
    note: str | None = None  # a further message, e.g. what a command did


class Chat:
    """The state of a chat, driven by lines of text without a terminal.

    Attributes:
        turns: the user's turns and the replies, alternating; the last is a reply.
        emotion: the one the user has set, or None where the model predicts it.
        finished: whether the user has asked to end.
    """

    def __init__(self, predictor: EmpatheticPredictor) -> None:
        self.predictor = predictor
        self.turns: list[str] = []
        self.emotion: str | None = None
        self.finished = False
        self._commands: dict[str, Callable[[str], Response]] = {
            "/emotion": self._emotion,
            "/undo": self._undo,
            "/reset": self._reset,
            "/quit": self._quit,
            "/help": lambda argument: Response(note=HELP),
        }

    def handle(self, line: str) -> Response:
        """Answer a turn or carry out a command, which begins with a slash."""
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
        return self._commands[name](argument)

    def _reply(self, turn: str) -> Response:
        (answer,) = self.predictor.answer([[*self.turns, turn]], emotions=[self.emotion])
        if not answer.predictions or not answer.predictions[0].text:
            raise UserError("the model found no reply; say it in other words")
        self.turns += [turn, answer.predictions[0].text]
        note = self._reading_note(turn) if answer.hint is None else f"({answer.hint})"
        return Response(format_answer(answer, self.emotion is not None), None if answer.care else note)

    def _reading_note(self, turn: str) -> str | None:
        """Describe what the model could not read of a turn."""
        language, limit = self.predictor.language, self.predictor.config.data.max_length
        words = language.tokens_of(in_words(turn, language.name))
        if len(words) > limit:
            return f"(your turn has {len(words):,} words; the model reads the last {limit} of them)"
        vocabulary = self.predictor.vocabulary
        if all(vocabulary.id(word) == Vocabulary.unk_id for word in words):
            return "(the model knows none of these words)"
        return None

    def _emotion(self, argument: str) -> Response:
        known = self.predictor.emotions
        if argument.lower() == "auto":
            self.emotion = None
        elif argument:
            self.emotion = known[emotion_id(argument, known)]
        now = "predicted by the model" if self.emotion is None else f"set to {self.emotion}"
        return Response(note=f"the emotion is {now}; /emotion takes auto or one of: {', '.join(known)}")

    def _undo(self, argument: str) -> Response:
        if not self.turns:
            raise UserError("there is no turn to take back; the conversation has not begun")
        *self.turns, turn, _ = self.turns
        return Response(note=f"taken back: {turn if len(turn) <= 60 else f'{turn[:59]}…'}")

    def _reset(self, argument: str) -> Response:
        self.turns, self.emotion = [], None
        return Response(note="a new conversation")

    def _quit(self, argument: str) -> Response:
        self.finished = True
        return Response()


def format_answer(answer: Answer, is_set: bool = False) -> str:
    """Format an answer for a reader: the likeliest emotions with probabilities, if one is clear, and the replies."""
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


def main(arguments: argparse.Namespace) -> None:
    """Answer turn by turn until `/quit` or the end of input."""
    predictor = load_named_model(arguments)[1].predictor
    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(
            "a chat needs a model of dialogues; name an empathetic config, e.g. configs/empathetic.yaml"
        )
    if sys.stdin.isatty():
        talk(Chat(predictor), typed_lines("say something; /help lists the commands, Ctrl-D ends"))
    else:
        talk(Chat(predictor), (line for _, line in piped_lines()))


def talk(chat: Chat, lines: Iterator[str | None]) -> None:
    """Print the response to each line: replies to stdout, everything else to stderr."""
    for line in lines:
        try:
            if line is None:
                raise UserError(NOT_UTF8)
            response = chat.handle(line)
        except UserError as error:  # report it and continue
            print(f"error: {error}", file=sys.stderr)
            continue
        if response.note is not None:
            print(response.note, file=sys.stderr)
        if response.reply is not None:
            print(response.reply, flush=True)
        if chat.finished:
            return


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    return base_parser(__doc__, config_required=False)
