"""Write the features of all candidates of some contexts as JSON lines, to choose the weights of `decoding.rerank`.

python -m tasks.empathetic.fitting.feature_dump -c configs/empathetic.yaml --input dev.jsonl --output features.jsonl

Each input line is `{"context": [turn, …]}`, with `"target"` if the true reply is known, which is then a candidate
too. Each output line has the `context` and its `candidates`, each with `text`, `origin` and `features`, values by
name; origin is `person`, `model` or, of the true reply, `true`. The sum that orders the candidates is that of weight
times value over the features, where those of `rerank.AGAINST` are subtracted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from paddle_dialog.command_line import base_parser, load_model, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.data.records import Record
from paddle_dialog.errors import UserError
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.data.dialogue import parse_context
from tasks.empathetic.reading.context import ReadContext
from tasks.empathetic.reading.vectors import log_probs
from tasks.empathetic.selection.candidate import ReplyPrediction
from tasks.empathetic.selection.rerank import distinct


def features(predictor: EmpatheticPredictor, turns: list[str], target: str | None = None) -> Record:
    """Return the candidates of a context with all their features.

    Args:
        predictor: the model with its settings.
        turns: of the conversation.
        target: the true reply, which becomes the last candidate if given.

    Raises:
        UserError: see `EmpatheticPredictor.answer`.
    """
    (context,) = predictor.understand(predictor.read([turns]))
    settings = predictor.config.decoding
    options = predictor.search_options(settings, settings.n_best)
    found = distinct(predictor.candidates([context], options)[0])
    origins: list[str] = [candidate.origin for candidate in found]
    if target is not None:
        found.append(_true(predictor, context, target))
        origins.append("true")
    values = {
        name: feature([context], [found]).tolist()
        for name, feature in predictor.reranker.features.items()
        if name in predictor.reranker.known
    }
    return {
        "context": turns,
        "candidates": [
            {
                "text": candidate.text,
                "origin": origin,
                "features": {name: round(values[name][place], 5) for name in values},
            }
            for place, (candidate, origin) in enumerate(zip(found, origins, strict=True))
        ],
    }


def _true(predictor: EmpatheticPredictor, context: ReadContext, target: str) -> ReplyPrediction:
    tokens = predictor.language.tokens_of(target)
    (score,) = log_probs(predictor.model, predictor.encoder, [tokens], context.packed)
    return ReplyPrediction(target, float(score), tokens)


def main(arguments: argparse.Namespace) -> None:
    """Write the features of every context of a file."""
    predictor = load_model(arguments)[1].predictor
    if not isinstance(predictor, EmpatheticPredictor):
        raise UserError(f"{arguments.config}: is of another task; name an empathetic config")
    try:
        with Path(arguments.output).open("w", encoding="utf-8") as file:
            for number, (turns, target) in enumerate(_contexts(arguments.input), start=1):
                file.write(json.dumps(features(predictor, turns, target), ensure_ascii=False) + "\n")
                if number % 100 == 0:
                    print(f"{number:,} contexts", file=sys.stderr)
    except OSError as error:
        raise UserError(f"{arguments.output}: cannot be written ({error.strerror})") from error


def _contexts(name: str) -> Iterator[tuple[list[str], str | None]]:
    for number, line in read_lines(name):
        if line.strip():
            try:
                turns = parse_context(line)
                target = json.loads(line).get("target") if line.lstrip().startswith("{") else None
            except ValueError as error:
                raise UserError(f"{name}:{number}: {error}") from error
            yield turns, target


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--weights", metavar="DIR", help="a bundle")
    parser.add_argument("--input", required=True, metavar="FILE", help="contexts, one JSON object a line")
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the features, one JSON object a line"
    )
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
