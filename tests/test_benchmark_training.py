"""The training benchmark takes the steps of a run."""

import paddle
import pytest

from paddle_dialog.benchmark import WARM_UP_STEPS, measure_training
from paddle_dialog.recipes import load_config
from paddle_dialog.training.training_model import TrainingModel


def test_the_steps_that_are_timed_are_those_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []

    class Recording(TrainingModel):
        def train_batch(self, *arguments: object) -> paddle.Tensor:
            steps.append(arguments[0][0].batches[0])
            return super().train_batch(*arguments)

    monkeypatch.setattr("paddle_dialog.training.training_model.TrainingModel", Recording)
    small = ("model.embedding_size=8", "model.hidden_size=8", "data.batch_size=4", "data.bucket_batches=20")
    speed = measure_training(*load_config("configs/reference/couplet_lstm.yaml", list(small)), 3)["training"]
    assert speed["steps"] == 3 and len(steps) == 3 + WARM_UP_STEPS
    assert all(len(batch.source) == 4 for batch in steps)
