"""Fit the judge of replies to rated conversations; write the bundle with it.

PYTHONPATH=. python tools/weights/empathetic/judge_fitting.py -c CONFIG --weights IN --ratings FILE --output OUT

A line of `--ratings` is `{"id": "3-2", "context": [turn, …], "candidates": [{"text": …, "origin": …,
"sensible": 0 or 1, "specific": 0 or 1, "empathy": 1 to 5}, …]}` for the second turn of the third conversation;
candidates without ratings are skipped. See docs/empathetic.md.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.command_line import load_named_model, run_tool
from paddle_dialog.config.models import CausalTransformerConfig
from paddle_dialog.data.files import Record, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import FEATURES, ReplyPrediction, judge_inputs, score_replies
from tools.weights.judges import fit_order, judge_parser, save_with

FOLDS = 5
MAX_REFLECTIONS = 10_000  # of a turn
WORTH = (0.5, 0.25, 1.0)  # of sensible, of specific, and of empathy from 0 to 1
PENALTY = 3000.0  # of the squared weights, chosen by cross-validation over conversations


class Rated(NamedTuple):
    """A turn of a conversation with rated replies."""

    talk: str  # the conversation
    place: int  # of the turn in it, from 1
    context: list[str]  # turns, the speaker's first and last
    replies: list[str]  # the texts
    # `reflected` of one in the speaker's words, else `model`; written replies are known by their texts.
    origins: list[Any]
    sensible: np.ndarray  # whether each is [N]
    values: np.ndarray  # value of each [N], see `WORTH`


def read_ratings(path: str) -> list[Rated]:
    """Read the rated replies to each turn; turns without any rating have no replies."""

    def rated(record: Record) -> Rated:
        replies = [one for one in record["candidates"] if "sensible" in one]
        ratings = np.array([_ratings(one) for one in replies]).reshape(-1, 3)
        talk, place = str(record["id"]).rsplit("-", 1)
        return Rated(
            talk,
            int(place),
            [str(turn) for turn in record["context"]],
            [str(one["text"]) for one in replies],
            ["reflected" if one.get("origin") == "reflected" else "model" for one in replies],
            ratings[:, 0],
            ratings @ np.array(WORTH),
        )

    form = '{"id": "1-1", "context": […], "candidates": [{"text", "sensible", "specific", "empathy"}, …]}'
    found = list(read_records(path, rated, form))
    if not any(one.replies for one in found):
        raise UserError(f"{path}: no ratings in this file")
    return found


def _ratings(reply: Record) -> tuple[float, float, float]:
    return float(reply["sensible"]), float(reply["specific"]), (float(reply["empathy"]) - 1) / 4


def fitted_judge(rows: Sequence[np.ndarray], rated: Sequence[Rated]) -> Judge:
    """Fit a judge to measured replies [N, FEATURES + 6 D] of each turn."""
    numbers = np.repeat(np.arange(len(rated)), [len(one.values) for one in rated])
    values = np.concatenate([one.values for one in rated])
    return Judge(fit_order(np.concatenate(rows), values, numbers, FEATURES, PENALTY))


def main(arguments: argparse.Namespace) -> None:
    """Fit the judge, print its figures on conversations held out, and write the bundle."""
    predictor = load_named_model(arguments)[1].predictor
    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(f"{arguments.config}: is of another task; name an empathetic config")
    if not isinstance(predictor.config.model, CausalTransformerConfig):
        raise UserError(
            f"{arguments.config}: a judge reads causal models; take model.name: causal_transformer"
        )
    rated = [one for one in read_ratings(arguments.ratings) if one.replies]
    rows = []
    for number, one in enumerate(rated, start=1):
        rows.append(_inputs_of(predictor, one))
        if number % 100 == 0:
            print(f"{number:,} of {len(rated):,} turns read", file=sys.stderr)
    _report(rows, rated, np.array([zlib.crc32(one.talk.encode()) % FOLDS for one in rated]))
    save_with(arguments, {JUDGE: fitted_judge(rows, rated).to_bytes()})


def _inputs_of(predictor: EmpatheticPredictor, rated: Rated) -> np.ndarray:
    """Return the judge's inputs for the rated replies to a turn [N, FEATURES + 6 D]."""
    (context,) = predictor.read(predictor.encode([rated.context]))
    reading, turn, felt = predictor.read_newest_turn(rated.context), context.turns[-1], context.emotions
    prepared = [
        *predictor.written.matches(turn, reading.acts, felt, None, reading.tone),
        *predictor.reflector.replies(turn, felt, reading.tone, MAX_REFLECTIONS),
    ]
    known = {one.text: one for one in prepared}
    candidates = [
        known.get(text, ReplyPrediction(text, 0.0, (), origin))
        for text, origin in zip(rated.replies, rated.origins, strict=True)
    ]
    return judge_inputs(context, reading.acts, *score_replies(predictor.encoder, context, candidates))


def _report(rows: Sequence[np.ndarray], rated: Sequence[Rated], folds: np.ndarray) -> None:
    """Print how often the reply that a judge of other conversations puts first is sensible."""
    first = np.zeros(len(rated))
    for fold in np.unique(folds):
        known = [number for number in range(len(rated)) if folds[number] != fold]
        judge = fitted_judge([rows[number] for number in known], [rated[number] for number in known])
        for number in np.flatnonzero(folds == fold).tolist():
            first[number] = rated[number].sensible[judge(rows[number]).argmax()]
    places = np.array([one.place for one in rated])
    for name, chosen in (("turn 1", places == 1), ("turn 2", places == 2), ("turns 3 to 6", places > 2)):
        if chosen.any():
            print(
                f"{name}: the first of the list is sensible in {first[chosen].mean():.3f} of {chosen.sum():,}"
            )


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    return judge_parser(__doc__, "rated replies, one turn of a conversation a line")


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
