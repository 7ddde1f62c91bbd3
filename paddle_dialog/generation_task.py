"""What the library needs of a task whose models write text."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from paddle_dialog.objective import Objective, Perplexity
from paddle_dialog.task import Task

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.bundle.trained import TrainedModel
    from paddle_dialog.config.schema import GenerationConfig
    from paddle_dialog.data.training_data import TrainingData
    from paddle_dialog.display import Display
    from paddle_dialog.predictor import GenerationPredictor


class GenerationTask(Task):
    """A task whose models write text token by token, and are judged by their perplexity unless it says otherwise.

    A batch has the `mask` [B, T] of real target tokens, and the criterion keeps `token_nll` [B, T].
    """

    config_class: ClassVar[type[GenerationConfig]]
    objective: ClassVar[Objective] = Perplexity()
    unit = "tokens"
    vocabulary_names: ClassVar[tuple[str, ...]] = ("text",)

    def count_units(self, batch: Any) -> int:
        """Return the number of real target tokens."""
        return int(batch.mask.sum())

    def build_criterion(self, config: Any) -> nn.Layer:
        """Return masked cross-entropy per token of logits [B, T, V], labels [B, T] and the mask."""
        from paddle_dialog.training.losses import SequenceCrossEntropy

        return SequenceCrossEntropy(config.training.label_smoothing)

    @abstractmethod
    def display(self, config: Any, network: nn.Layer, data: TrainingData, count: int) -> Display:
        """Decode the first `count` dev (else training) examples for the log and VisualDL."""

    @abstractmethod
    def predictor(self, config: Any, model: TrainedModel) -> GenerationPredictor:
        """Return the predictor of a trained model."""
