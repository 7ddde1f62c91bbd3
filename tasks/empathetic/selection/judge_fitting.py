"""Fit a judge of replies, and the weights beside it, to blind ratings, and write the bundle with it.

python -m tasks.empathetic.selection.judge_fitting -c CONFIG --weights BUNDLE --ratings FILE --output DIR

Each line of the ratings is `{"context": [turn, …], "replies": [{"text": …, "sensible": 0 or 1, "specific": 0 or 1,
"empathy": 1 to 5}, …]}`; means of several raters may lie between. The weights are printed as they stand in a
config's `decoding.rerank`. docs/replies.md says how to rate.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from paddle_dialog.command_line import load_model, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge, fit_order
from paddle_dialog.judge_command import judge_parser, save_with_judge
from tasks.empathetic.answering.answer import ReplyPrediction
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.answering.reading import ReadContext
from tasks.empathetic.selection.judged import judged_states
from tasks.empathetic.selection.rerank import AGAINST
from tasks.empathetic.selection.vectors import log_probs

FITTED = (
    "model", "selection", "context_words", "context_vectors", "person", "own", "own_words", "reflected", "emotion",
    "overlap_last", "overlap_earlier", "echo", "repetition",
)  # fmt: skip
MOST_REFLECTIONS = 500  # all that there are to a turn, of which some were rated
PENALTY = 300.0  # chosen by cross-validation over contexts (docs/experiments.md)
Rated = tuple[list[str], list[str], np.ndarray]  # context, replies, values [N]


def read_ratings(path: str) -> Iterator[Rated]:
    """Iterate over the rated replies of each context; the value of one is SSA + empathy scaled to 0 to 0.5.

    Raises:
        UserError: the file cannot be read, or a line is not as it should be.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            replies = record["replies"]
            values = [
                (float(reply["sensible"]) + float(reply["specific"])) / 2 + (float(reply["empathy"]) - 1) / 8
                for reply in replies
            ]
            yield (
                [str(turn) for turn in record["context"]],
                [str(r["text"]) for r in replies],
                np.array(values),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f'{path}:{number}: {error!r}; a line must be {{"context": […], "replies": [{{"text", "sensible", '
                '"specific", "empathy"}, …]}'
            ) from error


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
    features = [known[name]([context], [found]) for name in _fitted(predictor)]
    return np.stack(features, axis=1), judged_states(predictor.model, predictor.encoder, found, context)


def _fitted(predictor: EmpatheticPredictor) -> list[str]:
    return [name for name in FITTED if name in predictor.reranker.known]


def _candidates(
    predictor: EmpatheticPredictor, context: ReadContext, texts: Sequence[str], rows: Mapping[str, int]
) -> list[ReplyPrediction]:
    """Return the replies as candidates; the store is compared with the context once for all of its own."""
    stored = [text for text in texts if text in rows]
    found: dict[str, ReplyPrediction] = {}
    if stored and predictor.finder is not None:
        found = dict(
            zip(stored, predictor.finder.given(context, [rows[text] for text in stored]), strict=True)
        )
    reflected = {one.text: one for one in predictor.reflected(context, MOST_REFLECTIONS)}
    found |= {text: reflected[text] for text in texts if text in reflected and text not in found}
    others = {text: predictor.language.tokens_of(text) for text in texts if text not in found}
    scores = log_probs(predictor.model, predictor.encoder, [*others.values()], context.packed)
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
    found, values = [], []
    for number, (turns, replies, own) in enumerate(read_ratings(arguments.ratings), start=1):
        found.append(np.concatenate(measured(predictor, turns, replies, rows), axis=1))
        values.append(own)
        if number % 100 == 0:
            print(f"{number:,} contexts", file=sys.stderr)
    if not values:
        raise UserError(f"{arguments.ratings}: no ratings in this file")
    contexts = np.repeat(np.arange(len(values)), [len(own) for own in values])
    names = _fitted(predictor)
    weights = fit_order(np.concatenate(found), np.concatenate(values), contexts, len(names), PENALTY)
    print("judge: 1.0")
    for name, weight in zip(names, weights, strict=False):
        print(f"{name}: {-weight if name in AGAINST else weight:.3f}")
    save_with_judge(arguments, Judge(weights[len(names) :]))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    return judge_parser(__doc__, "rated replies, one context a line")


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
