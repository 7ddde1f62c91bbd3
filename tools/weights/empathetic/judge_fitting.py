"""Fit the classifier of dialogue acts and the judge of replies to rated conversations; write the bundle with both.

PYTHONPATH=. python tools/weights/empathetic/judge_fitting.py -c CONFIG --weights IN --turns FILE --ratings FILE \
  --output OUT

A line of `--turns` is an act, a tab and a turn, one of `--ratings` `{"id": "3-2", "act": "joke", "context":
[turn, …], "candidates": [{"text": …, "origin": …, "sensible": 0 or 1, "specific": 0 or 1, "empathy": 1 to 5}, …]}`
for the second turn of the third conversation; candidates without ratings are skipped. See docs/empathetic.md.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.command_line import load_model, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.data.records import Record, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.linear_classifier import LinearSettings, fit_classifier, sparse_rows
from paddle_dialog.tasks.empathetic.judge import (
    BUCKETS,
    DIALOGUE_ACTS,
    FEATURES,
    ActClassifier,
    act_features,
    measured,
)
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.reading import log_probs
from paddle_dialog.tasks.empathetic.replies import ACTS, ReplyPrediction, read_written
from tools.weights.judges import fit_order, judge_parser, save_with

FOLDS = 5
WORTH = (0.5, 0.25, 1.0)  # of sensible, of specific, and of empathy from 0 to 1
PENALTY = 3000.0  # of the squared weights, chosen by cross-validation over conversations
HELD_OUT = 5  # one in this many turns is held out to fit the scale of the acts
ACT_PENALTY = 10.0  # C of their logistic regressions, chosen by cross-validation over conversations


class Rated(NamedTuple):
    """A turn of a conversation with rated replies."""

    talk: str  # the conversation
    place: int  # of the turn in it, from 1
    act: str  # of the newest turn
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
        if record["act"] not in ACTS:
            raise ValueError(f"{record['act']!r} is no act")
        return Rated(
            talk,
            int(place),
            record["act"],
            [str(turn) for turn in record["context"]],
            [str(one["text"]) for one in replies],
            ["reflected" if one.get("origin") == "reflected" else "model" for one in replies],
            ratings[:, 0],
            ratings @ np.array(WORTH),
        )

    form = '{"id": "1-1", "act": …, "context": […], "candidates": [{"text", "sensible", "specific", "empathy"}, …]}'
    found = list(read_records(path, rated, form))
    if not any(one.replies for one in found):
        raise UserError(f"{path}: no ratings in this file")
    return found


def _ratings(reply: Record) -> tuple[float, float, float]:
    return float(reply["sensible"]), float(reply["specific"]), (float(reply["empathy"]) - 1) / 4


def read_turns(path: str) -> list[tuple[str, str]]:
    """Read labelled turns, act and turn."""
    found: list[tuple[str, str]] = []
    for number, line in read_lines(path):
        act, tab, turn = line.rstrip().partition("\t")
        if act not in ACTS or not tab:
            raise UserError(f"{path}:{number}: give an act, a tab and a turn; the acts are {', '.join(ACTS)}")
        found.append((act, turn))
    return found


def fit_acts(turns: Sequence[str], acts: Sequence[str]) -> ActClassifier:
    """Fit the classifier to labelled turns.

    Args:
        turns: N of them.
        acts: of each, among `ACTS`.
    """
    rows = [act_features(turn) for turn in turns]
    features = sparse_rows([buckets for buckets, _ in rows], [weights for _, weights in rows], BUCKETS)
    labels = np.array([ACTS.index(act) for act in acts])  # [N]
    held_out = np.array([zlib.crc32(turn.encode()) % HELD_OUT == 0 for turn in turns])
    settings = LinearSettings(ACT_PENALTY, "log", ratio_power=0.0)
    return ActClassifier(fit_classifier(features, labels, held_out, len(ACTS), settings))


def fitted_judge(rows: Sequence[np.ndarray], rated: Sequence[Rated]) -> Judge:
    """Fit a judge to measured replies [N, FEATURES + 6 D] of each turn."""
    numbers = np.repeat(np.arange(len(rated)), [len(one.values) for one in rated])
    values = np.concatenate([one.values for one in rated])
    return Judge(fit_order(np.concatenate(rows), values, numbers, FEATURES, PENALTY))


def main(arguments: argparse.Namespace) -> None:
    """Fit both, print their figures on conversations held out, and write the bundle."""
    predictor = load_model(arguments)[1].predictor
    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(f"{arguments.config}: is of another task; name an empathetic config")
    turns, every = read_turns(arguments.turns), read_ratings(arguments.ratings)
    turns += [(ACTS[one.act], one.turn) for one in read_written(predictor.language.name)]
    folds = np.array([zlib.crc32(one.talk.encode()) % FOLDS for one in every])
    probabilities = _held_out_acts(turns, every, folds)
    rated = [
        (one, acts, fold) for one, acts, fold in zip(every, probabilities, folds, strict=True) if one.replies
    ]
    rows = []
    for number, (one, acts, _) in enumerate(rated, start=1):
        rows.append(_measured(predictor, one, acts))
        if number % 100 == 0:
            print(f"{number:,} of {len(rated):,} turns read", file=sys.stderr)
    _report(rows, [one for one, _, _ in rated], np.array([fold for _, _, fold in rated]))
    classifier = _fit(turns, every)
    judge = fitted_judge(rows, [one for one, _, _ in rated])
    save_with(arguments, {JUDGE: judge.to_bytes(), DIALOGUE_ACTS: classifier.to_bytes()})


def _fit(turns: Sequence[tuple[str, str]], rated: Sequence[Rated]) -> ActClassifier:
    both = [*turns, *((one.act, one.context[-1]) for one in rated)]
    return fit_acts([turn for _, turn in both], [act for act, _ in both])


def _held_out_acts(
    turns: Sequence[tuple[str, str]], rated: Sequence[Rated], folds: np.ndarray
) -> list[np.ndarray]:
    """Return the probabilities of the acts [A] of each rated turn by a classifier that has not seen its talk."""
    found: list[np.ndarray] = [np.zeros(len(ACTS))] * len(rated)
    for fold in np.unique(folds):
        classify = _fit(turns, [one for one, other in zip(rated, folds, strict=True) if other != fold])
        for row in np.flatnonzero(folds == fold).tolist():
            found[row] = classify(rated[row].context[-1])
    right = sum(ACTS[int(acts.argmax())] == one.act for acts, one in zip(found, rated, strict=True))
    print(f"dialogue acts: {right / len(rated):.3f} right of {len(rated):,} turns held out")
    return found


def _measured(predictor: EmpatheticPredictor, rated: Rated, acts: np.ndarray) -> np.ndarray:
    """Return the judge's inputs for the rated replies to a turn [N, FEATURES + 6 D]."""
    (context,) = predictor.understand(predictor.read([rated.context]))
    prepared = {one.text: one for one in predictor.prepared(context, acts, only=rated.replies)}
    others = {
        text: origin
        for text, origin in zip(rated.replies, rated.origins, strict=True)
        if text not in prepared
    }
    tokens = [predictor.language.tokens_of(text) for text in others]
    scores = log_probs(predictor.encoder, tokens, context)
    for (text, origin), score, words in zip(others.items(), scores, tokens, strict=True):
        prepared[text] = ReplyPrediction(text, float(score), words, origin)
    return measured(predictor.encoder, context, acts, [prepared[text] for text in rated.replies])


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
    parser = judge_parser(__doc__, "rated replies, one turn of a conversation a line")
    parser.add_argument("--turns", required=True, metavar="FILE", help="labelled turns, one a line")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
