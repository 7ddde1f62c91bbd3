"""The empathetic task: a conversation to the listener's next turn, and the speaker's emotion.

Importing Paddle takes seconds and answering does not need it, so modules that need it are imported late.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.batching import TrainingData
from paddle_dialog.data.files import Record
from paddle_dialog.judge import JUDGE
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.dialogue import read_dialogues
from paddle_dialog.tasks.empathetic.data.emotions import EmotionLexicon
from paddle_dialog.tasks.empathetic.data.encoding import HINTS, VOCABULARY, make_encoder
from paddle_dialog.tasks.empathetic.data.language import PIECES, language_of_model
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import judge_of_bundle
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.bundle.folder import Bundle
    from paddle_dialog.figures import FigureFolder
    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.empathetic.api import ReplyEndpoint

logger = logging.getLogger("paddle_dialog")


class EmpatheticTask(GenerationTask):
    """Predicts the emotion of a conversation's speaker and writes the listener's next turn."""

    name = "empathetic"
    config_class = EmpatheticConfig
    path_keys = ("data.more", "data.pieces", "care.answers")
    file_names = (HINTS, JUDGE, PIECES)

    def prepare_data(
        self, config: EmpatheticConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        """Read and encode the dialogues; vocabulary and pieces come from the training text alone."""
        from paddle_dialog.tasks.empathetic.data.examples import training_data

        return training_data(config, vocabularies, None)

    def prepare_data_like(self, config: EmpatheticConfig, earlier: Bundle) -> TrainingData:
        from paddle_dialog.tasks.empathetic.data.examples import training_data

        return training_data(config, earlier.vocabularies, earlier.extra.get(PIECES))

    def bundle_files(
        self, config: EmpatheticConfig, vocabularies: Mapping[str, Vocabulary], known: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        """Return the files known, and the marks of the words that are hints."""
        files = super().bundle_files(config, vocabularies, known)
        if config.emotion.hints and HINTS not in files:
            lexicon = EmotionLexicon.load(config.emotion.lexicon)
            files[HINTS] = lexicon.to_marks(vocabularies[VOCABULARY])
        return files

    def build_network(self, config: EmpatheticConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        if isinstance(config.model, PretrainedConfig):
            from paddle_dialog.tasks.empathetic.network.pretrained_emo_prepend import PretrainedEmoPrepend

            return PretrainedEmoPrepend(config, vocabulary_sizes[VOCABULARY])
        from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend

        return EmoPrepend(config, vocabulary_sizes[VOCABULARY])

    def build_criterion(self, config: EmpatheticConfig) -> nn.Layer:
        from paddle_dialog.tasks.empathetic.network.emo_prepend import EmpatheticLoss

        return EmpatheticLoss(
            config.training.label_smoothing,
            config.emotion.weight,
            config.generator.context_weight,
            getattr(config.model, "sampled_words", 0) > 0,
        )

    def fitted_weights(self, config: EmpatheticConfig, data: TrainingData) -> Mapping[str, np.ndarray]:
        emotion = config.emotion
        if not emotion.ngram_buckets:
            return {}
        from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, fit_emotions

        logger.info("fitting the emotions' n-gram classifier")
        assert isinstance(data.train.dataset, DialogueDataset)
        dataset, neutral = data.train.dataset, []
        if emotion.small_talk:
            neutral = [d.context for d in read_dialogues("small_talk", config.language) if d.emotion is None]
        fitted = fit_emotions(dataset.encoder, dataset.dialogues, emotion, neutral)
        return {f"emotion_head.ngram_{name}": values for name, values in fitted.items()}

    def display(self, config: EmpatheticConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
        from paddle_dialog.tasks.empathetic.evaluation import display

        return display(config, network, data, count)

    def predictor(self, config: EmpatheticConfig, model: TrainedModel) -> EmpatheticPredictor:
        files = model.files  # of hints, pieces and judge
        language = language_of_model(config, files.get(PIECES))
        encoder = make_encoder(config, model.vocabularies[VOCABULARY], files.get(HINTS), language)
        return EmpatheticPredictor(config, model, encoder, judge_of_bundle(config, files))

    def evaluate(self, predictor: EmpatheticPredictor, source: str, predictions: Path | None) -> Record:
        from paddle_dialog.tasks.empathetic.evaluation import evaluate

        return evaluate(predictor, source, predictions)

    def measure_likelihood(self, predictor: EmpatheticPredictor, source: str) -> Record:
        from paddle_dialog.tasks.empathetic.evaluation import likelihood_metrics

        return likelihood_metrics(predictor, source)

    def draw_figures(self, predictor: EmpatheticPredictor, source: str, folder: FigureFolder) -> None:
        from paddle_dialog.tasks.empathetic.evaluation import write_figures

        write_figures(predictor, source, folder)

    def example_inputs(self, config: EmpatheticConfig, source: str, count: int) -> list[str]:
        return [json.dumps({"context": d.context}) for d in read_dialogues(source, config.language)[:count]]

    def endpoints(self, limits: LimitsConfig) -> list[ReplyEndpoint]:
        from paddle_dialog.tasks.empathetic.api import ReplyEndpoint

        return [ReplyEndpoint(limits)]


TASK = EmpatheticTask()
