"""All metrics of the poem task on one file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import token_losses, token_perplexity
from paddle_dialog.tasks.poem.data import limit_length, read_texts
from paddle_dialog.tasks.poem.dataset import Rows, collate, single_rows
from paddle_dialog.tasks.poem.forms import FORMS
from paddle_dialog.tasks.poem.prediction import PoemPredictor
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import SequenceCrossEntropy

SAMPLES = 10  # poems of each form that are drawn and checked


def evaluate(predictor: PoemPredictor, source: str, predictions: Path | None) -> Record:
    """Measure a model on one source.

    Args:
        source: as for `read_texts`.
        predictions: where the poems that are drawn for the form's rates are written, one JSON object a line.

    Returns:
        The metrics by name, those of `likelihood_metrics` among them; `form` holds the rates of the poems drawn.
    """
    read = read_texts(source, predictor.config.data.running_text)
    titles = list[str]()
    if not isinstance(read, str) and predictor.knows_forms:
        poems = limit_length(read, predictor.config.data.max_length)[0]
        titles = [poem.title for poem in poems[:SAMPLES]]
    if predictions is not None:
        if not titles:
            raise UserError(
                "--predictions: only poems, by weights that know their forms, are written for each title"
            )
        check_writable(predictions)
    result = likelihood_metrics(predictor, source)
    if titles:
        answers = [predictor.predict(titles, 1, form=form, texts_are="title") for form in FORMS]
        drawn = [best.as_dict() for found in answers for (best,) in found]
        if predictions is not None:
            write_records(predictions, drawn)
        rules = ("lengths", "tones", "rhyme")
        result["form"] = {rule: float(np.mean([record["form"][rule] for record in drawn])) for rule in rules}
    return {**result, "decoding": predictor.decoding_summary()}


def likelihood_metrics(predictor: PoemPredictor, source: str) -> Record:
    """Measure how well a model predicts the texts of one source.

    Returns:
        The metrics by name. `perplexity` is exp of the mean over all characters of the poems' bodies and their
        ends, without titles before them; `perplexity_titled` sees form and title first. `skipped` poems were too
        long.
    """
    settings = predictor.config.data
    read = read_texts(source, settings.running_text)
    texts = read if isinstance(read, str) else limit_length(read, settings.max_length)[0]
    rows = single_rows(texts, predictor.vocabulary, settings.window)
    nll, count, unknown = _likelihood(predictor, rows)
    result: Record = {
        "n": len(rows),
        "skipped": len(read) - len(texts),
        "perplexity": token_perplexity(nll, count),
        "bits_per_character": nll / count / math.log(2.0),
        "unknown_rate": unknown / count,
    }
    if not isinstance(texts, str) and predictor.knows_forms:
        titled, *_ = _likelihood(
            predictor, single_rows(texts, predictor.vocabulary, settings.window, titled=True)
        )
        result["perplexity_titled"] = token_perplexity(titled, count)
    return result


def _likelihood(predictor: PoemPredictor, rows: Rows) -> tuple[float, int, int]:
    """Return the negative log-likelihood of the characters that count, their number, and that of unknown ones."""
    nll, count, unknown = 0.0, 0, 0
    size = predictor.config.data.batch_size
    for losses in token_losses(predictor.network, SequenceCrossEntropy(), rows, rows.lengths, collate, size):
        label, mask = losses.batch.label, losses.batch.mask
        nll += float(losses.nll.sum())
        count += int(mask.sum())
        unknown += int(((label == Vocabulary.unk_id) * mask).sum())
    return nll, count, unknown
