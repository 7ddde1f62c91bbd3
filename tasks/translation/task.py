"""The translation task: a sentence to its counterpart in another language, or in another age of the same one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.batching import EncodedData, TrainingData
from paddle_dialog.data.files import Record
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.translation.config import TranslationConfig
from paddle_dialog.tasks.translation.data import Pair, PairDataset, collate, join, limit_length, read_pairs
from paddle_dialog.tasks.translation.prediction import TranslationPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.translation.api import TranslationEndpoint

VOCABULARY = "text"  # one vocabulary for both sides


class TranslationTask(GenerationTask):
    """Translates sentences."""

    name = "translation"
    config_class = TranslationConfig

    def prepare_data(
        self, config: TranslationConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        settings = config.data
        notes: list[str] = []

        def pairs_of(source: str, name: str) -> list[Pair]:
            read = read_pairs(source, settings.tokens, settings.reverse)
            pairs, report = limit_length(read, settings.max_length)
            notes.append(f"{name} data {source}: {report}")
            return pairs

        train = pairs_of(settings.train, "training")
        sides = (side for pair in train for side in pair)
        vocabulary = Vocabulary.of_data(settings, sides, (vocabularies or {}).get(VOCABULARY))
        notes.append(f"vocabulary: {len(vocabulary):,} tokens, the four special ones included")
        dev = None if settings.dev is None else _encoded(pairs_of(settings.dev, "dev"), vocabulary)
        return TrainingData(_encoded(train, vocabulary), dev, {VOCABULARY: vocabulary}, collate, notes)

    def build_network(self, config: TranslationConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        from paddle_dialog.models.seq2seq import PointerSeq2Seq

        return PointerSeq2Seq(config.model, vocabulary_sizes[VOCABULARY])

    def build_criterion(self, config: TranslationConfig) -> nn.Layer:
        from paddle_dialog.training.losses import PointerCrossEntropy

        return PointerCrossEntropy()

    def display(
        self, config: TranslationConfig, network: nn.Layer, data: TrainingData, count: int
    ) -> Display:
        examples = data.dev if data.dev is not None else data.train
        assert isinstance(examples.dataset, PairDataset)
        pairs = examples.dataset.pairs[:count]
        predictor = TranslationPredictor(config, TrainedModel.of_network(network, data.vocabularies))
        answers = predictor.greedy([pair.source for pair in pairs])
        return Display(
            [
                f"{predictor.text(pair.source)} → {answer} (reference {predictor.text(pair.target)})"
                for pair, answer in zip(pairs, answers, strict=True)
            ]
        )

    def predictor(self, config: TranslationConfig, model: TrainedModel) -> TranslationPredictor:
        return TranslationPredictor(config, model)

    def evaluate(self, predictor: TranslationPredictor, source: str, predictions: Path | None) -> Record:
        from paddle_dialog.tasks.translation.evaluation import evaluate

        return evaluate(predictor, source, predictions)

    def measure_likelihood(self, predictor: TranslationPredictor, source: str) -> Record:
        from paddle_dialog.tasks.translation.evaluation import likelihood_metrics

        return likelihood_metrics(predictor, source)

    def example_inputs(self, config: TranslationConfig, source: str, count: int) -> list[str]:
        unit = config.data.tokens
        return [join(pair.source, unit) for pair in read_pairs(source, unit, config.data.reverse)[:count]]

    def endpoints(self, limits: LimitsConfig) -> list[TranslationEndpoint]:
        from paddle_dialog.tasks.translation.api import TranslationEndpoint  # only a server needs it

        return [TranslationEndpoint(limits)]


def _encoded(pairs: list[Pair], vocabulary: Vocabulary) -> EncodedData:
    dataset = PairDataset(pairs, vocabulary)
    return EncodedData(dataset, dataset.lengths)


TASK = TranslationTask()
