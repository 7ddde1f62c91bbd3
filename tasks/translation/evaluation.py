"""All metrics of a translator on one file of pairs, and what it looks at."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import paddle

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.errors import UserError
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.figures.heat_map import draw_heat_map
from paddle_dialog.metrics.bleu import corpus_bleu, corpus_chrf
from paddle_dialog.metrics.perplexity import token_perplexity
from paddle_dialog.training.losses import PointerCrossEntropy
from tasks.translation.data import Pair, collate, limit_length, read_pairs
from tasks.translation.dataset import PairDataset

if TYPE_CHECKING:
    from tasks.translation.prediction import TranslationPredictor

MAPPED_EXAMPLES = 4


def evaluate(predictor: TranslationPredictor, source: str, predictions: Path | None) -> dict[str, Any]:
    """Measure a model on one source of pairs.

    Args:
        predictor: the model with its decoding settings.
        source: as for `read_pairs`.
        predictions: where the hypotheses are written, one JSON record a line with its `reference`.

    Returns:
        The metrics by name; `copying` holds those of the source given back as its own translation.

    Raises:
        UserError: the source cannot be used, or the hypotheses cannot be written; the latter before any work.
    """
    if predictions is not None:
        _write(predictions, [])
    pairs, report = _fitting_pairs(predictor, source)
    records = list(predictor.predict_records([predictor.text(pair.source) for pair in pairs]))
    if predictions is not None:
        references = (predictor.text(pair.target) for pair in pairs)
        _write(predictions, [r | {"reference": t} for r, t in zip(records, references, strict=True)])
    unit = predictor.config.data.tokens

    def scores(hypotheses: Sequence[Sequence[str]]) -> dict[str, float]:
        references = [pair.target for pair in pairs]
        texts = ([predictor.text(tokens) for tokens in side] for side in (hypotheses, references))
        return {"bleu": corpus_bleu(hypotheses, references), "chrf": corpus_chrf(*texts)}

    texts = [record["predictions"][0]["text"] for record in records]
    return {
        "n": len(pairs),
        "pairs": report,
        "perplexity": measure_perplexity(predictor, pairs),
        **scores(texts if unit == "characters" else [text.split() for text in texts]),
        "copying": scores([pair.source for pair in pairs]),
        "decoding": predictor.decoding_summary(),
    }


def measure_perplexity(predictor: TranslationPredictor, pairs: Sequence[Pair]) -> float:
    """Return perplexity per token of the true translations, end tokens included."""
    dataset = PairDataset(list(pairs), predictor.vocabulary)
    criterion, total, tokens = PointerCrossEntropy(), 0.0, 0
    for batch in LengthBucketSampler(dataset.lengths, predictor.config.data.batch_size, shuffle=False):
        arrays = [paddle.to_tensor(array) for array in collate([dataset[index] for index in batch])]
        with paddle.no_grad():
            criterion(*predictor.network(*arrays[:3]), *arrays[3:])
        total += float(criterion.token_nll.astype("float64").sum())
        tokens += int(arrays[4].sum())
    return token_perplexity(total, tokens)


def draw_attention(predictor: TranslationPredictor, source: str, folder: FigureFolder) -> None:
    """Draw where the model looks in the first sources while it reads their true translations."""
    pairs, _ = _fitting_pairs(predictor, source)
    for number, pair in enumerate(pairs[:MAPPED_EXAMPLES], start=1):
        weights = predictor.attention(pair.source, pair.target)  # [T, S]
        folder.add(
            f"attention_{number}", draw_heat_map(weights, [*pair.target, "<eos>"], [*pair.source, "<eos>"])
        )


def _fitting_pairs(predictor: TranslationPredictor, source: str) -> tuple[list[Pair], str]:
    settings = predictor.config.data
    return limit_length(read_pairs(source, settings.tokens, settings.reverse), settings.max_length, "skip")


def _write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    except OSError as error:
        raise UserError(f"{path}: cannot write the predictions ({error.strerror})") from error
