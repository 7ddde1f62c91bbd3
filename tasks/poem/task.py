"""The poem task: a character language model of classical verse, or of any text."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import RecurrentLmConfig
from paddle_dialog.data.batching import ContiguousBatches, EncodedData, EpochBatches, TrainingData
from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import token_losses, token_perplexity
from paddle_dialog.models.families import build_lm
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.poem.data import (
    InputKind,
    PoemConfig,
    Poems,
    RunningText,
    Stream,
    Windows,
    collate,
    read_texts,
)
from paddle_dialog.tasks.poem.forms import FORMS, FormChoice
from paddle_dialog.tasks.poem.prediction import PoemPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.poem.api import PoemEndpoint


VOCABULARY = "text"
SAMPLES = 10  # poems of each form that are drawn and checked


class PoemTask(GenerationTask):
    """Writes verse, or any text, character by character."""

    name = "poem"
    config_class = PoemConfig

    def prepare_data(self, config: PoemConfig, vocabularies: Mapping[str, Vocabulary] | None) -> TrainingData:
        """Read and encode the texts; the vocabulary is built from the training text alone."""
        settings, dev = config.data, None
        texts = read_texts(settings.train, settings)
        known = (vocabularies or {}).get(VOCABULARY)
        vocabulary = Vocabulary.of_data(settings, texts.sequences(), known, texts.reserved)
        windows = Windows(texts.epochs(config, vocabulary), settings.window)
        notes = [
            f"training data {settings.train}: {texts.note}; {len(windows):,} windows of {settings.window}",
            f"vocabulary: {len(vocabulary):,} tokens, the special ones included",
        ]
        train = EncodedData(windows, np.full(len(windows), settings.window))
        if settings.dev is not None:
            texts = read_texts(settings.dev, settings)
            notes.append(f"dev data {settings.dev}: {texts.note}")
            rows = texts.rows(vocabulary, settings.window)
            dev = EncodedData(rows, np.array([len(row) for row in rows]))
        return TrainingData(train, dev, {VOCABULARY: vocabulary}, collate, notes)

    def build_network(self, config: PoemConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        """Return the language model of the family that the config names."""
        return build_lm(config.model, vocabulary_sizes[VOCABULARY], config.data.batch_size)

    def training_batches(
        self, config: PoemConfig, examples: EncodedData, processes: int = 1, rank: int = 0
    ) -> EpochBatches:
        """Return the windows shuffled, or in the order of the text where a state is carried over them."""
        if isinstance(config.model, RecurrentLmConfig):
            return ContiguousBatches(len(examples.lengths), config.data.batch_size, processes, rank)
        return super().training_batches(config, examples, processes, rank)

    def display(self, config: PoemConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
        if not count:
            return Display()
        drawn = replace(config, decoding=replace(config.decoding, strategy="sample"))
        predictor = PoemPredictor(drawn, TrainedModel.of_network(network, data.vocabularies))
        (poems,) = predictor.predict([""], count, form="any", texts_are="begin")
        return Display([poem.text for poem in poems])

    def predictor(self, config: PoemConfig, model: TrainedModel) -> PoemPredictor:
        return PoemPredictor(config, model)

    def evaluate(self, predictor: PoemPredictor, source: str, predictions: Path | None) -> Record:
        """Measure a model on one source; `form` holds the rates of poems that are drawn, see `SAMPLES`."""
        texts, titles = read_texts(source, predictor.config.data), list[str]()
        if isinstance(texts, Poems) and predictor.knows_forms:
            titles = [poem.title for poem in texts.poems[:SAMPLES]]
        if predictions is not None:
            if not titles:
                raise UserError(
                    "--predictions: only poems, by weights that know their forms, are written for each title"
                )
            check_writable(predictions)
        result = self.measure_likelihood(predictor, source)
        if titles:
            answers = [predictor.predict(titles, 1, form=form, texts_are="title") for form in FORMS]
            drawn = [best.as_dict() for found in answers for (best,) in found]
            if predictions is not None:
                write_records(predictions, drawn)
            rules = ("lengths", "tones", "rhyme")
            result["form"] = {
                rule: float(np.mean([record["form"][rule] for record in drawn])) for rule in rules
            }
        return {**result, "decoding": predictor.decoding_summary()}

    def measure_likelihood(self, predictor: PoemPredictor, source: str) -> Record:
        """Measure how well a model predicts the texts of one source.

        Returns:
            The metrics by name. `perplexity` is exp of the mean over all characters of the poems' bodies and their
            ends, without titles before them; `perplexity_titled` sees form and title first. `skipped` poems were too
            long.
        """
        window = predictor.config.data.window
        texts = read_texts(source, predictor.config.data)
        rows = texts.rows(predictor.vocabulary, window)
        nll, count, unknown = _likelihood(predictor, rows)
        result: Record = {
            "n": len(rows),
            "skipped": texts.skipped,
            "perplexity": token_perplexity(nll, count),
            "bits_per_character": nll / count / math.log(2.0),
            "unknown_rate": unknown / count,
        }
        if isinstance(texts, Poems) and predictor.knows_forms:
            titled, *_ = _likelihood(predictor, texts.rows(predictor.vocabulary, window, titled=True))
            result["perplexity_titled"] = token_perplexity(titled, count)
        return result

    def example_inputs(self, config: PoemConfig, source: str, count: int) -> list[str]:
        texts = read_texts(source, config.data)
        if isinstance(texts, RunningText):
            return texts.text.splitlines()[:count]
        titled = config.verse.input == "title"
        return [poem.title if titled else poem.body.partition("。")[0] for poem in texts.poems[:count]]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--form",
            choices=get_args(FormChoice),
            help="write a poem of this form, held to its rules, or of any",
        )
        help_ = "what a text is: how the poem begins, the first character of each line (藏头), or its title"
        parser.add_argument("--texts-are", choices=get_args(InputKind), help=help_)
        parser.add_argument("--title", metavar="TEXT", help="a title that all poems are written to")

    def endpoints(self, limits: LimitsConfig) -> list[PoemEndpoint]:
        from paddle_dialog.tasks.poem.api import PoemEndpoint  # only a server needs it

        return [PoemEndpoint(limits)]


def _likelihood(predictor: PoemPredictor, rows: Sequence[Stream]) -> tuple[float, int, int]:
    """Return the negative log-likelihood of the characters that count, their number, and that of unknown ones."""
    nll, count, unknown = 0.0, 0, 0
    from paddle_dialog.training.losses import SequenceCrossEntropy

    criterion, lengths = SequenceCrossEntropy(), np.array([len(row) for row in rows])
    size = predictor.config.data.batch_size
    for losses in token_losses(predictor.network, criterion, rows, lengths, collate, size):
        label, mask = losses.batch.label, losses.batch.mask
        nll += float(losses.nll.sum())
        count += int(mask.sum())
        unknown += int(((label == Vocabulary.unk_id) * mask).sum())
    return nll, count, unknown


TASK = PoemTask()
