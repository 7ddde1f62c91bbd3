"""The poem task: a character language model of classical verse, or of any text."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import RecurrentLmConfig
from paddle_dialog.data.batching import ContiguousBatches, EncodedData, EpochBatches, TrainingData
from paddle_dialog.data.files import Record
from paddle_dialog.models.families import build_lm
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.poem.config import MAX_TITLE, InputKind, PoemConfig, PoemDataConfig
from paddle_dialog.tasks.poem.data import FORM_TOKENS, NEWLINE, Poem, characters, limit_length, read_texts
from paddle_dialog.tasks.poem.forms import FormChoice
from paddle_dialog.tasks.poem.prediction import PoemPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.poem.api import PoemEndpoint

VOCABULARY = "text"


class PoemTask(GenerationTask):
    """Writes verse, or any text, character by character."""

    name = "poem"
    config_class = PoemConfig

    def prepare_data(self, config: PoemConfig, vocabularies: Mapping[str, Vocabulary] | None) -> TrainingData:
        """Read and encode the texts; the vocabulary is built from the training text alone."""
        from paddle_dialog.tasks.poem.dataset import Windows, collate, single_rows

        settings = config.data
        texts, report = _read(settings.train, settings)
        vocabulary = _vocabulary(settings, texts, (vocabularies or {}).get(VOCABULARY))
        windows = Windows(_lay_out(config, texts, vocabulary), settings.window)
        notes = [
            f"training data {settings.train}: {report}; {len(windows):,} windows of {settings.window}",
            f"vocabulary: {len(vocabulary):,} tokens, the special ones included",
        ]
        train = EncodedData(windows, np.full(len(windows), settings.window))
        dev = None
        if settings.dev is not None:
            texts, report = _read(settings.dev, settings)
            notes.append(f"dev data {settings.dev}: {report}")
            single = single_rows(texts, vocabulary, settings.window)
            dev = EncodedData(single, single.lengths)
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
        return Display(
            [
                prediction.text
                for prediction in predictor.predict([""], count, form="any", texts_are="begin")[0]
            ]
        )

    def predictor(self, config: PoemConfig, model: TrainedModel) -> PoemPredictor:
        return PoemPredictor(config, model)

    def evaluate(self, predictor: PoemPredictor, source: str, predictions: Path | None) -> Record:
        from paddle_dialog.tasks.poem.evaluation import evaluate

        return evaluate(predictor, source, predictions)

    def measure_likelihood(self, predictor: PoemPredictor, source: str) -> Record:
        from paddle_dialog.tasks.poem.evaluation import likelihood_metrics

        return likelihood_metrics(predictor, source)

    def example_inputs(self, config: PoemConfig, source: str, count: int) -> list[str]:
        texts = read_texts(source, config.data.running_text)
        if isinstance(texts, str):
            return texts.splitlines()[:count]
        titled = config.verse.input == "title"
        return [poem.title if titled else poem.body.partition("。")[0] for poem in texts[:count]]

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


def _lay_out(config: PoemConfig, texts: list[Poem] | str, vocabulary: Vocabulary) -> Any:
    """Return what makes the training stream of an epoch."""
    from paddle_dialog.tasks.poem.dataset import EncodedPoem, cut_text, encode_text, stream_poems, stream_text

    if not isinstance(texts, str):
        return partial(stream_poems, [EncodedPoem(poem, vocabulary) for poem in texts], config.seed)
    if isinstance(config.model, RecurrentLmConfig):
        whole = stream_text(encode_text(texts, vocabulary))
        return lambda epoch: whole
    return partial(cut_text, encode_text(texts, vocabulary), config.data.window, config.seed)


def _read(source: str, settings: PoemDataConfig) -> tuple[list[Poem] | str, str]:
    """Return the texts of a source, and what they are in a few words."""
    texts = read_texts(source, settings.running_text)
    if isinstance(texts, str):
        return texts, f"a text of {len(texts):,} characters"
    return limit_length(texts, settings.max_length)


def _vocabulary(settings: PoemDataConfig, texts: list[Poem] | str, known: Vocabulary | None) -> Vocabulary:
    if isinstance(texts, str):
        return Vocabulary.of_data(settings, [characters(texts)], known, [NEWLINE])
    parts = (text for poem in texts for text in (poem.title[:MAX_TITLE], poem.body))
    return Vocabulary.of_data(settings, parts, known, [NEWLINE, *FORM_TOKENS.values()])


TASK = PoemTask()
