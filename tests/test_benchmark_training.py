"""The training benchmark: who gets which batches, what is counted, and the plain Transformer it compares with."""

import time

import numpy as np
import paddle
import pytest

from paddle_dialog.benchmark.plain_transformer import PlainTransformer
from paddle_dialog.benchmark.training import (
    WARM_UP_STEPS,
    TimedTraining,
    build_yardstick,
    measure_training,
    timed_batches,
)
from paddle_dialog.config.models import TransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.training.progress import Progress
from paddle_dialog.training.training_model import TrainingModel

SMALL_LSTM = ["model.embedding_size=8", "model.hidden_size=8", "data.batch_size=4", "data.bucket_batches=20"]
SMALL_TRANSFORMER = [
    *("model.width=8", "model.num_heads=2", "model.inner_width=8", "model.encoder_layers=1"),
    *("model.decoder_layers=1", "data.batch_size=4", "data.bucket_batches=20"),
]
LSTM, TRANSFORMER = "configs/reference/couplet_lstm.yaml", "configs/couplet.yaml"


def padding(batches: list[list[np.ndarray]]) -> float:
    return 1.0 - sum(b[-1].sum() for b in batches) / sum(b[-1].size for b in batches)


def test_the_book_gets_our_batches_and_random_ones_with_more_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, list[list[np.ndarray]]] = {}
    original = TimedTraining.step

    def recorded(self: TimedTraining, batch: list[np.ndarray], reading: float) -> float:
        seen.setdefault(id(self), []).append(batch)
        return original(self, batch, reading)

    monkeypatch.setattr(TimedTraining, "step", recorded)
    task, config = load_config(LSTM, SMALL_LSTM)
    result = measure_training(task, config, 6, "book", cpu_time=True)
    ours, book, random = seen.values()
    assert [len(ours), len(book), len(random)] == [6 + WARM_UP_STEPS] * 3
    assert all(mine is its for mine, its in zip(ours, book, strict=True))
    assert padding(random) > padding(ours)
    assert list(result) == [
        *("training", "book", "book_random_batches", "limit", "times_book", "times_book_random_batches")
    ]
    speed = result["training"]
    shares = [speed[name] for name in ("data", "forward", "backward", "optimizer")]
    assert sum(shares) == pytest.approx(1.0, abs=1e-3)
    rates = [result[name]["tokens_per_second"] for name in ("training", "book")]
    assert result["times_book"] == pytest.approx(rates[0] / rates[1], rel=1e-2)


def test_the_step_that_is_timed_is_that_of_a_run() -> None:
    """To the bit: the same batches, seed and weights, through the benchmark's model and through a run's."""
    weights = []
    for kind in (TimedTraining, TrainingModel):
        task, config = load_config(LSTM, [*SMALL_LSTM, "model.dropout=0.3"])
        paddle.seed(1)
        data = task.prepare_data(config, None)
        network = task.build_network(config, {"text": len(data.vocabularies["text"])})
        criterion = task.build_criterion(config)
        if kind is TimedTraining:
            timed = TimedTraining(task, network, criterion, config)
        else:
            model = TrainingModel(task, config, network, 10_000, Progress())
        for batch, reading in timed_batches(task, data, config, 1, time.perf_counter):
            if kind is TimedTraining:
                timed.step(batch, reading)
            else:
                tensors = [paddle.to_tensor(array) for array in batch]
                model.train_batch(tensors[:3], [*tensors[3:], 1.0, True])
        weights.append([parameter.numpy() for parameter in network.parameters()])
    for ours, theirs in zip(*weights, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_plain_transformer_is_trained_on_our_batches() -> None:
    task, config = load_config(TRANSFORMER, SMALL_TRANSFORMER)
    result = measure_training(task, config, 1, "transformer", cpu_time=True)
    assert list(result) == ["training", "transformer", "limit", "times_transformer"]


def test_a_yardstick_of_another_family_or_of_an_unknown_name_is_refused() -> None:
    task, lstm = load_config(LSTM, SMALL_LSTM)
    _, transformer = load_config(TRANSFORMER, SMALL_TRANSFORMER)
    with pytest.raises(UserError, match=r"model\.name is transformer"):
        build_yardstick("transformer", task, lstm, {"text": 10})
    with pytest.raises(UserError, match=r"model\.name is lstm_attention"):
        build_yardstick("book", task, transformer, {"text": 10})
    with pytest.raises(
        UserError, match="unknown to the task 'couplet'; there are transformer, reference, book"
    ):
        build_yardstick("bok", task, lstm, {"text": 10})


def test_the_plain_transformer_sees_neither_padding_nor_the_future() -> None:
    paddle.seed(0)
    config = TransformerConfig(width=8, num_heads=2, inner_width=8, dropout=0.0)
    network = PlainTransformer(config, 10)
    source, target, lengths = (
        paddle.to_tensor([[4, 5, 6]]),
        paddle.to_tensor([[2, 5, 6]]),
        paddle.to_tensor([2]),
    )
    logits = network(source, lengths, target).numpy()
    other_padding = network(paddle.to_tensor([[4, 5, 9]]), lengths, target).numpy()
    other_future = network(source, lengths, paddle.to_tensor([[2, 5, 9]])).numpy()
    np.testing.assert_allclose(other_padding, logits, atol=1e-6)
    np.testing.assert_allclose(other_future[:, :2], logits[:, :2], atol=1e-6)
    assert np.abs(other_future[:, 2] - logits[:, 2]).max() > 1e-3
