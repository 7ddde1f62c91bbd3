"""Fit a judge of 下联, and the weights beside it, to blind ratings, and write the bundle with it.

python -m tasks.couplet.judge_fitting -c CONFIG --weights BUNDLE --ratings FILE --output DIR

Each line of the ratings is `{"first": 上联, "seconds": [{"text": 下联, "fluency": 1 to 5, "match": 1 to 5, "meaning":
1 to 5}, …]}`; means of several raters may lie between. The weights are printed as they stand in a config's `rerank`.
docs/couplets.md says how to rate.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.command_line import base_parser, load_model, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge, fit_order
from paddle_dialog.shipped import find_model
from paddle_dialog.text.characters import normalise_line
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.direction import TO_SECOND
from tasks.couplet.prediction import CoupletPredictor

PENALTY = 300.0  # chosen by cross-validation over lines (docs/experiments.md)


class Rated(NamedTuple):
    """Rated 下联 of one 上联."""

    first: str
    seconds: list[str]
    values: np.ndarray  # sums of the three ratings [N]


def read_ratings(path: str) -> Iterator[Rated]:
    """Iterate over the rated 下联 of each 上联; those of another length than theirs are left out.

    Raises:
        UserError: the file cannot be read, or a line is not as it should be.
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            first = normalise_line(record["first"])
            values = {
                normalise_line(second["text"]): float(second["fluency"] + second["match"] + second["meaning"])
                for second in record["seconds"]
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError(
                f'{path}:{number}: {error!r}; a line must be {{"first": …, "seconds": [{{"text", "fluency", "match", '
                '"meaning"}, …]}'
            ) from error
        values = {text: value for text, value in values.items() if len(text) == len(first)}
        yield Rated(first, [*values], np.array([*values.values()]))


def measured(predictor: CoupletPredictor, rated: Rated) -> np.ndarray:
    """Return of each 下联 log p(下 | 上) and log p(上 | 下) per token and the states a judge reads, [N, 2 + D]."""
    vocabulary = predictor.vocabulary
    source, lengths = encode_sources([np.asarray(TO_SECOND.source(vocabulary, rated.first))])
    texts = [vocabulary.encode(text) for text in rated.seconds]
    totals = text_log_probs(predictor.step_model, source, lengths, texts, inputs=[0] * len(texts))
    scores = totals / [len(text) + 1 for text in texts]
    (read,) = predictor.reverse_models[TO_SECOND].read([rated.first], [rated.seconds], judged=True)
    return np.concatenate([np.stack([scores, read.scores], axis=1), read.states], axis=1)


def main(arguments: argparse.Namespace) -> None:
    """Fit the judge, print the weights beside it and write the bundle."""
    predictor = load_model(arguments)[1].predictor
    if not isinstance(predictor, CoupletPredictor) or not predictor.reverse_models:
        raise UserError(f"{arguments.config}: name a couplet config whose rerank.reverse is not 0")
    ratings = [rated for rated in read_ratings(arguments.ratings) if rated.seconds]
    if not ratings:
        raise UserError(f"{arguments.ratings}: no ratings in this file")
    rows = np.concatenate([measured(predictor, rated) for rated in ratings])  # [N, 2 + D]
    values = np.concatenate([rated.values for rated in ratings])
    lines = np.repeat(np.arange(len(ratings)), [len(rated.seconds) for rated in ratings])
    weights = fit_order(rows, values, lines, 2, PENALTY)
    print(f"judge: 1.0\nmodel: {weights[0]:.3f}\nreverse: {weights[1]:.3f}")
    bundle = load_bundle(find_model(arguments.weights))
    judge = Judge(weights[2:]).to_bytes()
    save_bundle(dataclasses.replace(bundle, extra={**bundle.extra, JUDGE: judge}), Path(arguments.output))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--weights", required=True, metavar="DIR", help="a bundle")
    parser.add_argument("--ratings", required=True, metavar="FILE", help="rated 下联, one 上联 a line")
    parser.add_argument("--output", required=True, metavar="DIR", help="the bundle to write")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
