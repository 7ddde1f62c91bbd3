"""The couplet task: 上联 to 下联.

Importing Paddle takes seconds and answering does not need it, so modules that need it are imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.batching import EncodedData, EpochBatches, TrainingData
from paddle_dialog.data.files import Record
from paddle_dialog.judge import JUDGE
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.couplet.composing.prediction import ComposingPredictor
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.couplets import read_couplets
from paddle_dialog.tasks.couplet.direction import VOCABULARY, prompt
from paddle_dialog.tasks.couplet.known import COUPLET_INDEX, index_bytes
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import argparse

    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.serving.endpoint import Endpoint


class CoupletTask(GenerationTask):
    """Writes the second line of a couplet, given the first."""

    name = "couplet"
    config_class = CoupletConfig
    path_keys = ("data.verse", "preferences.ratings")
    file_names = (COUPLET_INDEX, JUDGE)

    def prepare_data(
        self, config: CoupletConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        """Read, limit and encode the couplets; the vocabulary is built from the training pairs alone."""
        from paddle_dialog.tasks.couplet.training_data import training_data

        return training_data(self, config, vocabularies)

    def training_batches(
        self, config: CoupletConfig, examples: EncodedData, processes: int = 1, rank: int = 0
    ) -> EpochBatches:
        """Return the order of the training examples; those of rated answers come with ordinary ones."""
        from paddle_dialog.tasks.couplet.preferences import INPUTS, RatedBatches, RatedDataset

        dataset = examples.dataset
        if not isinstance(dataset, RatedDataset):
            return super().training_batches(config, examples, processes, rank)
        return RatedBatches(dataset, config.data.batch_size, INPUTS, config.seed, processes, rank)

    def build_criterion(self, config: CoupletConfig) -> nn.Layer:
        from paddle_dialog.tasks.couplet.preferences import PreferenceLoss
        from paddle_dialog.training.losses import SequenceCrossEntropy

        own, settings = super().build_criterion(config), config.preferences
        if settings.ratings is None:
            return own
        return PreferenceLoss(SequenceCrossEntropy(config.training.label_smoothing), settings.least_gap)

    def build_network(self, config: CoupletConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        if isinstance(config.model, PretrainedConfig):
            from paddle_dialog.models.pretrained import PretrainedSeq2Seq
            from paddle_dialog.tasks.couplet.training_data import pretrained_vocabulary

            return PretrainedSeq2Seq(
                config.model, vocabulary_sizes[VOCABULARY], pretrained_vocabulary(config), prompt
            )
        from paddle_dialog.models.seq2seq import Seq2Seq

        return Seq2Seq(config.model, vocabulary_sizes[VOCABULARY])

    def display(self, config: CoupletConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
        examples = data.dev if data.dev is not None else data.train
        vocabulary = data.vocabularies[VOCABULARY]
        pairs = [examples.dataset[index] for index in range(min(count, len(examples.dataset)))]
        if not pairs:
            return Display([])
        firsts = [vocabulary.decode(first) for first, _ in pairs]
        seconds = [vocabulary.decode(second) for _, second in pairs]
        predictor = CoupletPredictor(config, TrainedModel.of_network(network, data.vocabularies))
        answers = predictor.greedy([first for first, _ in pairs])
        texts = [
            f"{''.join(first)} → {answer} (reference {''.join(second)})"
            for first, answer, second in zip(firsts, answers, seconds, strict=True)
        ]
        return Display(texts)

    def predictor(self, config: CoupletConfig, model: TrainedModel) -> ComposingPredictor:
        return ComposingPredictor(config, model)

    def files_of_data(
        self, config: CoupletConfig, model: TrainedModel, sources: Sequence[str]
    ) -> dict[str, bytes]:
        couplets = (couplet for source in sources for couplet in read_couplets(source))
        return {COUPLET_INDEX: index_bytes(couplets)}

    def evaluate(self, predictor: CoupletPredictor, source: str, predictions: Path | None) -> Record:
        from paddle_dialog.tasks.couplet.evaluation import evaluate

        return evaluate(predictor, source, predictions)

    def measure_likelihood(self, predictor: CoupletPredictor, source: str) -> Record:
        from paddle_dialog.tasks.couplet.evaluation import likelihood_metrics

        return likelihood_metrics(predictor, source)

    def example_inputs(self, config: CoupletConfig, source: str, count: int) -> list[str]:
        return [couplet.first for couplet in read_couplets(source)[:count]]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        told = "characters of the 下联, ？ where any may stand, e.g. ？？？？花更红"
        parser.add_argument("--template", metavar="TEXT", help=told)
        parser.add_argument(
            "--second",
            action="store_true",
            help="the inputs are 下联; write their 上联, under the same rules",
        )
        parser.add_argument(
            "--known",
            action="store_true",
            help="show for each candidate the couplet of the training corpus nearest to it",
        )

    def endpoints(self, limits: LimitsConfig) -> list[Endpoint[Any]]:
        from paddle_dialog.tasks.couplet.api import ENDPOINTS  # only a server needs them

        return [endpoint(limits) for endpoint in ENDPOINTS]


TASK = CoupletTask()
