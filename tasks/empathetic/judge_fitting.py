"""Fit a judge of replies, and the weights beside it, to blind ratings, and write the bundle with it.

python -m tasks.empathetic.judge_fitting -c CONFIG --weights BUNDLE --ratings FILE --output DIR

Each line of the ratings is `{"context": [turn, …], "replies": [{"text": …, "sensible": 0 or 1, "specific": 0 or 1,
"empathy": 1 to 5}, …], "weight": 1}`; means of several raters may lie between, and the weight may be left out. The
weights of the sum are printed as they stand in a config's `decoding.rerank`. docs/replies.md says how to rate.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from paddle_dialog.command_line import load_model, run_tool
from paddle_dialog.data.records import Record, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge, fit_order, judge_parser, save_with_judge
from tasks.empathetic.answer import ReplyPrediction
from tasks.empathetic.prediction import EmpatheticPredictor
from tasks.empathetic.reading import ReadContext, log_probs
from tasks.empathetic.rerank import AGAINST, judged_states

FITTED = (
    "model", "context_words", "person", "own", "own_words", "reflected", "emotion", "overlap_last", "overlap_earlier",
    "echo", "repetition",
)  # fmt: skip
MOST_REFLECTIONS = 500  # all that there are to a turn, of which some were rated
PENALTY = 1000.0  # chosen by cross-validation over contexts (docs/experiments/README.md)
WORTH = (0.5, 0.5, 0.5)  # of what is sensible, what is specific, and of the best empathy over the worst


class Rated(NamedTuple):
    """A context, replies to it, what they are worth [N], and how much they count."""

    context: list[str]
    replies: list[str]
    values: np.ndarray
    weight: float


def read_ratings(path: str, worth: Sequence[float] = WORTH) -> Iterator[Rated]:
    """Iterate over the rated replies of each context.

    Args:
        path: of the ratings.
        worth: of the three ratings in the value of a reply, empathy scaled to 0 to 1.

    Raises:
        UserError: the file cannot be read, or a line is not as it should be.
    """

    def rated(record: Record) -> Rated:
        replies = record["replies"]
        ratings = np.array(
            [[float(r["sensible"]), float(r["specific"]), (float(r["empathy"]) - 1) / 4] for r in replies]
        )  # [N, 3]
        return Rated(
            [str(turn) for turn in record["context"]],
            [str(r["text"]) for r in replies],
            ratings @ np.array(worth),
            float(record.get("weight", 1)),
        )

    return read_records(
        path, rated, '{"context": […], "replies": [{"text", "sensible", "specific", "empathy"}, …]}'
    )


def measured(
    predictor: EmpatheticPredictor, turns: list[str], texts: Sequence[str], rows: Mapping[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the features [N, F] that `FITTED` names and the `judged_states` of replies to a context.

    Args:
        predictor: the model with its store.
        turns: of the context.
        texts: the replies.
        rows: of the store, by text; a reply that is not in it counts as the generator's.
    """
    (context,) = predictor.understand(predictor.read([turns]))
    found = _candidates(predictor, context, texts, rows)
    known = predictor.reranker.features
    features = [known[name]([context], [found]) for name in FITTED]
    return np.stack(features, axis=1), judged_states(predictor.encoder, found, context)


def _candidates(
    predictor: EmpatheticPredictor, context: ReadContext, texts: Sequence[str], rows: Mapping[str, int]
) -> list[ReplyPrediction]:
    """Return the replies as candidates; the store is compared with the context once for all of its own."""
    stored = [text for text in texts if text in rows]
    known = predictor.stored(context, 0, [rows[text] for text in stored]) if stored else []
    found = dict(zip(stored, known, strict=True))
    reflected = {one.text: one for one in predictor.reflected(context, MOST_REFLECTIONS)}
    found |= {text: reflected[text] for text in texts if text in reflected and text not in found}
    others = {text: predictor.language.tokens_of(text) for text in texts if text not in found}
    scores = log_probs(predictor.encoder, [*others.values()], context)
    for (text, tokens), score in zip(others.items(), scores, strict=True):
        found[text] = ReplyPrediction(text, float(score), tokens)
    return [found[text] for text in texts]


def main(arguments: argparse.Namespace) -> None:
    """Fit the judge, print the weights beside it and write the bundle."""
    predictor = load_model(arguments)[1].predictor
    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(f"{arguments.config}: is of another task; name an empathetic config")
    texts = () if predictor.store is None else predictor.store.texts
    rows = {text: row for row, text in enumerate(texts)}
    rated = list(read_ratings(arguments.ratings, arguments.worth))
    if not rated:
        raise UserError(f"{arguments.ratings}: no ratings in this file")
    scores: list[np.ndarray] = []
    states: list[np.ndarray] = []
    for number, one in enumerate(rated, start=1):
        own_scores, own_states = measured(predictor, one.context, one.replies, rows)
        scores.append(own_scores)
        states.append(own_states)
        if number % 100 == 0:
            print(f"{number:,} contexts", file=sys.stderr)
    sizes = [len(one.values) for one in rated]
    weights = fit_order(
        np.concatenate([np.concatenate(scores), np.concatenate(states)], axis=1),
        np.concatenate([one.values for one in rated]),
        np.repeat(np.arange(len(rated)), sizes),
        len(FITTED),
        PENALTY,
        np.repeat([one.weight for one in rated], sizes),
    )
    print("judge: 1.0")
    for name, weight in zip(FITTED, weights[: len(FITTED)], strict=True):
        print(f"{name}: {-weight if name in AGAINST else weight:.3f}")
    save_with_judge(arguments, Judge(weights[len(FITTED) :]))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = judge_parser(__doc__, "rated replies, one context a line")
    parser.add_argument(
        "--worth",
        nargs=3,
        type=float,
        default=WORTH,
        metavar=("SENSIBLE", "SPECIFIC", "EMPATHY"),
        help="of each rating in the value of a reply, empathy scaled to 0 to 1 (0.5 each)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
