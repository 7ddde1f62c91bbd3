"""Steps, draws and counts of training and measuring, by hand."""

import dataclasses
from pathlib import Path

import numpy as np
import paddle
import pytest
from paddle import nn
from test_averaging import save

from paddle_dialog.bundle.averaging import averaged
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.data.batching import StreamedBatches, StreamedData
from paddle_dialog.errors import UserError
from paddle_dialog.metrics.classification import calibration_error
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.optimizer import build_optimizer, orthogonalised
from tasks.translation.data import Pair, limit_length


def test_a_matrix_with_more_rows_than_columns_steps_by_its_rows() -> None:
    layer = nn.Linear(8, 2, bias_attr=False)
    config = TrainingConfig(
        optimizer="muon", learning_rate=0.01, weight_decay=0.3, beta1=0.98, clip_norm=None
    )
    optimizer, _ = build_optimizer(config, layer, 9, 4)
    expected, mean = layer.weight.numpy(), np.zeros((8, 2), np.float32)
    for seed in (1, 2, 3):
        gradient = np.random.default_rng(seed).normal(size=(8, 2)).astype(np.float32)
        layer.weight.grad = paddle.to_tensor(gradient)
        mean = 0.98 * mean + 0.02 * gradient  # beta1, which is above the least momentum of 0.95
        update = orthogonalised(paddle.to_tensor(0.98 * mean + 0.02 * gradient)).numpy()
        expected = expected * (1 - 0.01 * 0.3) - 0.01 * 0.2 * np.sqrt(8) * update
        optimizer.step()
    np.testing.assert_allclose(layer.weight.numpy(), expected, atol=1e-6)


def test_each_block_of_a_stream_has_an_order_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("x\n" * 40, encoding="utf-8")
    data = StreamedData(path, lambda number, line: number - 1, lambda example: [1])
    first, second = StreamedBatches(data, batch_size=20, bucket_batches=1)
    assert [number % 20 for number in first] != [number % 20 for number in second]


def test_models_of_other_words_are_not_averaged(tmp_path: Path) -> None:
    one = load_bundle(save(tmp_path / "one", 1))
    tokens = one.vocabularies["text"].tokens
    words = {"text": Vocabulary([*tokens[:4], *reversed(tokens[4:])])}
    with pytest.raises(UserError, match="differ"):
        averaged(one, dataclasses.replace(one, vocabularies=words), 0.5)


def test_a_confidence_at_the_edge_belongs_to_the_bin_below() -> None:
    # 1.0 and 0.95 are of the last bin: one of the two is right.
    found = calibration_error(np.array([[0.0, 1.0], [0.05, 0.95]]), np.array([0, 1]))
    assert found == pytest.approx(0.95 / 2)


def test_truncating_shortens_targets_too() -> None:
    assert limit_length([Pair("ab", "bcd")], 2, "truncate")[0] == [("ab", "bc")]
