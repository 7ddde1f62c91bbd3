"""Fit the judge of composed couplets to ratings, and write the bundle with it.

PYTHONPATH=. python tools/weights/couplet/judge_fitting.py -c CONFIG --weights BUNDLE --ratings FILE --output DIR

Of the ratings those of couplets that were composed count (docs/couplets.md says how they stand in a file). The judge
reads the decoder's mean state over the 上联 after its 下联, beside the order that composing has without it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from paddle_dialog.command_line import load_named_model, run_tool
from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.couplet.composing.composer import ComposingPredictor
from paddle_dialog.tasks.couplet.composing.proposals import Scores, quality
from paddle_dialog.tasks.couplet.preferences import RatedAnswer, read_ratings
from paddle_dialog.tasks.couplet.prompts import encode_sources
from paddle_dialog.text.characters import is_hanzi
from tools.weights.judges import fit_order, judge_parser, save_with

PENALTY = 1000.0  # chosen by cross-validation over requests (docs/experiments/README.md)


def measured(predictor: ComposingPredictor, answers: Sequence[RatedAnswer]) -> np.ndarray:
    """Return the worth of N composed couplets without a judge, and the states that it reads, [N, 1 + D]."""
    vocabulary, model = predictor.vocabulary, predictor.step_model
    texts = [text for answer in answers for text in answer.texts(vocabulary)]  # 下联, 上联, 下联, …
    source, lengths = encode_sources([np.asarray(asked) for asked, _ in texts])
    log_probs = text_log_probs(model, source, lengths, [text for _, text in texts])
    seconds, firsts = log_probs.reshape(-1, 2).T  # [N] each
    reverse, states = predictor.reverse.read([a.first for a in answers], [a.second for a in answers])
    worth = []
    for answer, first, second, own in zip(answers, firsts, seconds, reverse, strict=True):
        free = sum(map(is_hanzi, answer.first)) - sum(map(is_hanzi, answer.template or "")) + 1
        scores = Scores(first / free, second / (len(answer.second) + 1), float(own))
        worth.append(quality((answer.first, answer.second), scores, (), (), False))
    return np.concatenate([np.array(worth)[:, None], states], axis=1)


def composed(path: str) -> Iterator[list[RatedAnswer]]:
    """Iterate over the requests of a file of ratings to which couplets were composed."""
    for answers in read_ratings(path):
        own = [answer for answer in answers if answer.template is not None]
        if len(own) > 1:
            yield own


def main(arguments: argparse.Namespace) -> None:
    """Fit the judge and write the bundle."""
    predictor = load_named_model(arguments)[1].predictor
    if not isinstance(predictor, ComposingPredictor) or not predictor.composes:
        raise UserError(f"{arguments.weights}: these weights compose nothing; take pretrained/couplet")
    if not isinstance(predictor.step_model, TextReader):
        raise UserError(f"{arguments.weights}: only Transformers show the states that a judge reads")
    requests = list(composed(arguments.ratings))
    if not requests:
        raise UserError(f"{arguments.ratings}: no ratings of composed couplets in this file")
    rows = [measured(predictor, answers) for answers in requests]
    values = np.array([answer.rating for answers in requests for answer in answers])
    numbers = np.repeat(np.arange(len(requests)), [len(own) for own in rows])
    weights = fit_order(np.concatenate(rows), values, numbers, 1, PENALTY)
    if weights[0] <= 0:
        raise UserError(
            f"{arguments.ratings}: these ratings go against the order that composing has; give more"
        )
    print(f"{len(values):,} couplets to {len(requests):,} requests")
    judge = Judge(weights[1:] / weights[0])  # in the unit of that order
    save_with(arguments, {JUDGE: judge.to_bytes()})


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    return judge_parser(__doc__, "rated answers")


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
