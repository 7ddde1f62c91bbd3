"""Training the ranker: a task of its own, whose weights the empathetic task uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.task import Display, EncodedData, Predictor, Task, TrainingData
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data import read_dialogues
from tasks.empathetic.ranking.config import RankerConfig

if TYPE_CHECKING:
    from paddle import nn

VOCABULARY = "text"


class RankerTask(Task):
    """Given a context and replies, says which one a person gave."""

    name = "empathetic_ranker"
    config_class = RankerConfig
    starts_from = "empathetic"

    def prepare_data(
        self, config: RankerConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        """Reads dialogues and draws wrong replies; the vocabulary is that of the generator it starts from."""
        from tasks.empathetic.ranking.dataset import ChoiceDataset, collate, read_generated

        if vocabularies is None:
            raise UserError(
                "training.start_from: a ranker starts from a generator of the empathetic task; name its folder"
            )
        vocabulary = vocabularies[VOCABULARY]
        settings = config.data
        generated = {} if config.candidates.file is None else read_generated(Path(config.candidates.file))
        train = ChoiceDataset(read_dialogues(settings.train), config, vocabulary, generated)
        notes = [f"training data {settings.train}: {len(train):,} choices among {config.candidates.count}"]
        dev = None
        if settings.dev is not None:
            dataset = ChoiceDataset(read_dialogues(settings.dev), config, vocabulary, generated)
            dev = EncodedData(dataset, dataset.lengths)
            notes.append(f"dev data {settings.dev}: {len(dataset):,} choices")
        return TrainingData(EncodedData(train, train.lengths), dev, {VOCABULARY: vocabulary}, collate, notes)

    def vocabulary_sizes(self, size: int) -> Mapping[str, int]:
        """One vocabulary of ``size`` tokens."""
        return {VOCABULARY: size}

    def build_network(self, config: RankerConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        """The ranker, its embeddings frozen."""
        from tasks.empathetic.ranking.network import ReplyRanker

        network = ReplyRanker(config, vocabulary_sizes[VOCABULARY])
        network.embedding.weight.stop_gradient = True
        return network

    def starting_weights(
        self, own: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """The generator's embeddings and stack; the output is learned anew."""
        return {name: given.get(name, values) for name, values in own.items()}

    def build_criterion(self, config: RankerConfig) -> nn.Layer:
        """The choice of the true reply."""
        from tasks.empathetic.ranking.network import ChoiceLoss

        return ChoiceLoss()

    def display(self, config: RankerConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
        """Nothing beside the figures."""
        return Display([])

    def predictor(self, config: Any, network: nn.Layer, vocabularies: Mapping[str, Vocabulary]) -> Predictor:
        """None: the ranker answers only inside the empathetic task."""
        raise UserError("a ranker answers nothing by itself; the empathetic task uses it (replies.ranker)")


TASK = RankerTask()
