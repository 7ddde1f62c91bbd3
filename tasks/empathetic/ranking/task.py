"""The task of training the ranker, whose weights the empathetic task uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.data.training_data import EncodedData, TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.objective import Perplexity
from paddle_dialog.predictor import Predictor
from paddle_dialog.task import Task
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.sources import read_configured
from tasks.empathetic.data.vocabulary import VOCABULARY
from tasks.empathetic.ranking.config import RankerConfig

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.bundle.trained import TrainedModel

OUTPUT = "output.weight"  # the only weight that a generator does not have


class RankerTask(Task):
    """Tells which of several replies to a context a person gave."""

    name = "empathetic.ranking"
    config_class = RankerConfig
    objective = Perplexity()  # of the choice among replies
    vocabulary_names = (VOCABULARY,)
    starts_from = "empathetic"
    path_keys = ("data.more", "candidates.file")

    def prepare_data(
        self, config: RankerConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        """Read dialogues and draw wrong replies; the vocabulary is that of the generator it starts from."""
        from tasks.empathetic.ranking.dataset import ChoiceDataset, collate, read_generated

        if vocabularies is None:
            raise UserError(
                "training.start_from: a ranker starts from a generator of the empathetic task; name its folder"
            )
        vocabulary, settings = vocabularies[VOCABULARY], config.data
        generated = {} if config.candidates.file is None else read_generated(Path(config.candidates.file))
        notes: list[str] = []

        def choices(source: str, what: str) -> EncodedData:
            dataset = ChoiceDataset(read_configured(config, source), config, vocabulary, generated)
            note = f"{what} data {source}: {len(dataset):,} choices among {config.candidates.count} replies"
            if config.candidates.generated:
                note += f"; {config.candidates.file} has wrong ones for {dataset.answered:,} of them"
            notes.append(note)
            return EncodedData(dataset, dataset.lengths)

        train = choices(settings.train, "training")
        dev = None if settings.dev is None else choices(settings.dev, "dev")
        return TrainingData(train, dev, {VOCABULARY: vocabulary}, collate, notes)

    def build_network(self, config: RankerConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        """Build the ranker with frozen embeddings."""
        from tasks.empathetic.ranking.network import ReplyRanker

        network = ReplyRanker(config, vocabulary_sizes[VOCABULARY])
        network.embedding.weight.stop_gradient = True
        return network

    def starting_weights(
        self, own: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]
    ) -> Mapping[str, np.ndarray]:
        """Take the generator's embeddings and stack; the output is learned anew."""
        missing = sorted(own.keys() - given.keys() - {OUTPUT})
        if missing:
            raise UserError(
                f"training.start_from: these weights have no {missing[0]}; a ranker starts from a generator with the "
                "same model section"
            )
        return {name: given.get(name, values) for name, values in own.items()}

    def build_criterion(self, config: RankerConfig) -> nn.Layer:
        """Return the loss of choosing the true reply."""
        from tasks.empathetic.ranking.network import ChoiceLoss

        return ChoiceLoss()

    def predictor(self, config: RankerConfig, model: TrainedModel) -> Predictor:
        """Refuse: the ranker answers only inside the empathetic task."""
        raise UserError(
            "a ranker answers nothing by itself; it orders replies of the empathetic task, in whose bundle it ships"
        )


TASK = RankerTask()
