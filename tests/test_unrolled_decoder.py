"""The decoder over whole targets against its cell step by step: values and every gradient."""

from typing import Any, Literal

import numpy as np
import paddle
import pytest
from paddle import Tensor, nn

from paddle_dialog.layers.dropout import Dropout
from paddle_dialog.layers.input_feeding import InputFeedingDecoder
from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.recurrent import AttentionCell

BATCH, SOURCE, TARGET, WIDTH, HIDDEN, VOCABULARY = 3, 5, 4, 5, 6, 11


def random_tensor(*shape: int, seed: int) -> Tensor:
    values = np.random.default_rng(seed).normal(0.0, 0.5, shape).astype("float32")
    return paddle.to_tensor(values, stop_gradient=False)


def by_steps(cell: AttentionCell, embedded: Tensor, states: Any, memory: Any) -> tuple[Tensor, Tensor]:
    """Return outputs [B, T, H] and attention [B, T, S], one step at a time."""
    outputs, weights = [], []
    for position in range(embedded.shape[1]):
        output, attention, states = cell(embedded[:, position], states, memory)
        outputs.append(output)
        weights.append(attention)
    return paddle.stack(outputs, axis=1), paddle.stack(weights, axis=1)


def gradients_and_output(
    cell: AttentionCell, whole: bool, kind: str, copies: bool = False
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return outputs and all gradients of a weighted sum of them and the attention, whole or by autograd."""
    embedded, encoded = (random_tensor(BATCH, n, WIDTH, seed=n) for n in (TARGET, SOURCE))
    tensors = [random_tensor(BATCH, HIDDEN, seed=20 + index) for index in range(2 * len(cell.cells))]
    pairs = list(zip(tensors[::2], tensors[1::2], strict=True))
    states = pairs if kind == "lstm" else tensors[::2]
    leaves = [embedded, encoded, *(tensors if kind == "lstm" else tensors[::2])]
    memory = cell.prepare_memory(encoded, length_mask(paddle.to_tensor([5, 2, 3]), SOURCE))
    initial = cell.initial_states(states)
    outputs, attention = (
        cell.unroll(embedded, initial, memory) if whole else by_steps(cell, embedded, initial, memory)
    )
    loss = (outputs * random_tensor(BATCH, TARGET, HIDDEN, seed=9)).sum()
    if copies:
        loss = loss + (attention * random_tensor(BATCH, TARGET, SOURCE, seed=8)).sum()
    loss.backward()
    found = [tensor.grad.numpy() for tensor in [*leaves, *cell.parameters()]]
    cell.clear_gradients()
    return outputs.numpy(), found


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "score", "feeding"),
    [
        ("lstm", "dot", True),
        ("lstm", "scaled_dot", True),
        ("lstm", "bilinear", True),
        ("lstm", "additive", True),
        ("gru", "dot", True),
        ("lstm", "scaled_dot", False),
        ("gru", "additive", False),
    ],
)
def test_whole_targets_have_the_values_and_gradients_of_single_steps(
    kind: Literal["lstm", "gru"], score: Any, feeding: bool, layers: int, copies: bool
) -> None:
    paddle.seed(layers)
    cell = AttentionCell(WIDTH, HIDDEN, WIDTH, layers, kind, score, 0.0, feeding)
    outputs, found = gradients_and_output(cell, True, kind, copies)
    expected, gradients = gradients_and_output(cell, False, kind, copies)
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    assert len(found) == len(gradients)
    for ours, theirs in zip(found, gradients, strict=True):
        assert np.abs(theirs).max() > 0.0 or score == "additive"
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_fused_decoder_serves_input_feeding_lstm_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    original = InputFeedingDecoder.apply
    monkeypatch.setattr(InputFeedingDecoder, "apply", lambda *args: calls.append(1) or original(*args))
    gradients_and_output(AttentionCell(WIDTH, HIDDEN, WIDTH, 2), True, "lstm")
    gradients_and_output(AttentionCell(WIDTH, HIDDEN, WIDTH, 2, "gru"), True, "gru")
    assert calls == [1]


def test_dropout_of_whole_targets_is_that_of_single_steps_with_the_same_masks() -> None:
    cell = AttentionCell(WIDTH, HIDDEN, WIDTH, 2, dropout=0.5)
    drawn: list[Tensor] = []

    class Recorded(Dropout):
        def forward(self, x: Tensor) -> Tensor:
            drawn.append(super().forward(x))  # [T, L, B, H]: x is ones
            return drawn[-1]

    class Replayed(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.masks = iter([mask for step in drawn[0].unbind(0) for mask in step.unbind(0)])

        def forward(self, x: Tensor) -> Tensor:
            return x * next(self.masks)

    paddle.seed(5)
    cell.dropout = Recorded(0.5)
    outputs, found = gradients_and_output(cell, True, "lstm")
    assert set(np.unique(drawn[0].numpy())) == {0.0, 2.0}
    cell.dropout = Replayed()
    expected, gradients = gradients_and_output(cell, False, "lstm")
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    for ours, theirs in zip(found, gradients, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    cell.eval()
    assert not np.allclose(gradients_and_output(cell, True, "lstm")[0], outputs)


def test_frozen_weights_stay_without_a_gradient() -> None:
    cell = AttentionCell(WIDTH, HIDDEN, WIDTH, 2)
    frozen = [*cell.cells[0].parameters(), *cell.cells[1].parameters()]
    for parameter in frozen:
        parameter.stop_gradient = True
    states = [(paddle.zeros([BATCH, HIDDEN]), paddle.zeros([BATCH, HIDDEN])) for _ in range(2)]
    encoded = random_tensor(BATCH, SOURCE, WIDTH, seed=1)
    memory = cell.prepare_memory(encoded, length_mask(paddle.to_tensor([5, 2, 3]), SOURCE))
    outputs, _ = cell.unroll(random_tensor(BATCH, TARGET, WIDTH, seed=2), cell.initial_states(states), memory)
    outputs.sum().backward()
    assert all(parameter.grad is None for parameter in frozen)
    assert np.abs(cell.output_projection.weight.grad.numpy()).max() > 0.0
