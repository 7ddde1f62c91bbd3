"""The recurrent layers against Paddle's cells unrolled by hand and against formulas written in numpy."""

from typing import Any, Literal

import numpy as np
import paddle
import pytest
from paddle import Tensor, nn

from paddle_dialog.layers.masks import length_mask
from paddle_dialog.layers.recurrent import AttentionCell, RecurrentEncoder, StateBridge

BATCH, SOURCE, TARGET = 3, 5, 4
LENGTHS = [5, 2, 3]
EMBEDDED, HIDDEN, LAYERS, MEMORY = 4, 6, 2, 7
Score = Literal["additive", "dot", "scaled_dot", "bilinear"]
DIRECTIONS = pytest.mark.parametrize("bidirectional", [False, True])
SCORES = pytest.mark.parametrize("score", ["additive", "dot", "scaled_dot", "bilinear"])


def randomise(layer: nn.Layer, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _, parameter in sorted(layer.named_parameters()):
        parameter.set_value(paddle.to_tensor(rng.normal(0.0, 0.4, parameter.shape).astype("float32")))


def vectors(*shape: int, seed: int) -> Tensor:
    return paddle.to_tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"))


def real_positions() -> Tensor:
    return length_mask(paddle.to_tensor(LENGTHS), SOURCE)


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), atol=tolerance)


def make_encoder(bidirectional: bool) -> RecurrentEncoder:
    encoder = RecurrentEncoder(EMBEDDED, HIDDEN, LAYERS, bidirectional)
    randomise(encoder, 1)
    encoder.eval()
    return encoder


def copied_cell(encoder: RecurrentEncoder, input_size: int, suffix: str) -> nn.Layer:
    """Return a cell of Paddle's with the weights of one layer and direction of the encoder."""
    copy = nn.LSTMCell(input_size, HIDDEN)
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(copy, name).set_value(getattr(encoder.rnn, f"{name}_{suffix}"))
    return copy


def unroll(cell: nn.Layer, inputs: Tensor, backwards: bool) -> tuple[Tensor, Any]:
    """Run a cell over [1, S, E] from its zero state; outputs [1, S, H] in reading order of the text."""
    state: Any = None
    outputs: list[Tensor] = []
    for position in reversed(range(inputs.shape[1])) if backwards else range(inputs.shape[1]):
        out, state = cell(inputs[:, position], state)  # [1, H]
        outputs.append(out)
    return paddle.stack(outputs[::-1] if backwards else outputs, axis=1), state


@DIRECTIONS
def test_encoder_equals_cells_unrolled_over_each_row_without_padding(bidirectional: bool) -> None:
    encoder = make_encoder(bidirectional)
    inputs = vectors(BATCH, SOURCE, EMBEDDED, seed=2)
    outputs, states = encoder(inputs, paddle.to_tensor(LENGTHS))
    assert outputs.shape == [BATCH, SOURCE, encoder.output_size]
    assert encoder.output_size == HIDDEN * (2 if bidirectional else 1)
    suffixes = ("", "_reverse") if bidirectional else ("",)
    for row, length in enumerate(LENGTHS):
        x = inputs[row : row + 1, :length]  # [1, length, E]
        for layer in range(LAYERS):
            runs = [
                unroll(copied_cell(encoder, x.shape[-1], f"l{layer}{suffix}"), x, suffix == "_reverse")
                for suffix in suffixes
            ]
            x = paddle.concat([out for out, _ in runs], axis=-1)  # [1, length, D*H]
            finals = zip(*(state for _, state in runs), strict=True)
            for actual, expected in zip(states[layer], finals, strict=True):
                assert_close(actual[row], paddle.concat(expected, axis=-1)[0])
        assert_close(outputs[row, :length], x[0])


def test_encoder_drops_between_layers_only() -> None:
    single = RecurrentEncoder(EMBEDDED, HIDDEN, 1, dropout=0.5)
    inputs, lengths = vectors(BATCH, SOURCE, EMBEDDED, seed=5), paddle.to_tensor(LENGTHS)
    single.train()
    assert_close(single(inputs, lengths)[0], single(inputs, lengths)[0], 0.0)
    double = RecurrentEncoder(EMBEDDED, HIDDEN, 2, dropout=0.5)
    double.train()
    paddle.seed(1)
    assert np.abs((double(inputs, lengths)[0] - double(inputs, lengths)[0]).numpy()).max() > 0.01


def test_bridge_maps_every_state_by_its_own_tanh_layer() -> None:
    bridge = StateBridge(MEMORY, HIDDEN, LAYERS)
    randomise(bridge, 8)
    raw = [
        tuple(vectors(BATCH, MEMORY, seed=10 * layer + part) for part in (0, 1)) for layer in range(LAYERS)
    ]
    pairs = zip(sum(raw, ()), sum(bridge(raw), ()), bridge.projections, strict=True)
    for before, actual, projection in pairs:
        weight, bias = projection.weight.numpy(), projection.bias.numpy()
        assert_close(actual, np.tanh(before.numpy() @ weight + bias))
    assert StateBridge(MEMORY, MEMORY, LAYERS)(raw) is raw  # widths that agree


def make_cell(score: Score, input_feeding: bool = True, dropout: float = 0.0) -> AttentionCell:
    made = AttentionCell(EMBEDDED, HIDDEN, MEMORY, LAYERS, score, dropout, input_feeding)
    randomise(made, 20)
    made.eval()
    return made


def first_states() -> list[Any]:
    return [(vectors(BATCH, HIDDEN, seed=30 + n), vectors(BATCH, HIDDEN, seed=40 + n)) for n in range(LAYERS)]


@SCORES
def test_scores_equal_the_formulas(score: Score) -> None:
    layer = make_cell(score).attention.score
    query, values = vectors(BATCH, HIDDEN, seed=50), vectors(BATCH, SOURCE, HIDDEN, seed=51)
    found = layer(query, layer.prepare(values)).numpy()
    w = {name: parameter.numpy() for name, parameter in layer.named_parameters()}
    for row, place in np.ndindex(BATCH, SOURCE):
        q, k = query.numpy()[row], values.numpy()[row, place]
        if score == "additive":
            hidden = np.tanh(k @ w["key_proj.weight"] + q @ w["query_proj.weight"])
            expected = (hidden @ w["score_proj.weight"])[0]
        elif score == "bilinear":
            expected = q @ (k @ w["key_proj.weight"])
        else:
            expected = q @ k / (np.sqrt(HIDDEN) if score == "scaled_dot" else 1.0)
        assert_close(found[row, place], expected)


def test_dropout_acts_on_cells_in_training_only() -> None:
    layer = make_cell("dot", dropout=0.5)
    memory = layer.prepare_memory(vectors(BATCH, SOURCE, MEMORY, seed=80), real_positions())
    initial = layer.initial_states(first_states())
    x = vectors(BATCH, EMBEDDED, seed=81)
    assert_close(layer(x, initial, memory)[0], layer(x, initial, memory)[0], 0.0)
    layer.train()
    paddle.seed(3)
    assert np.abs((layer(x, initial, memory)[0] - layer(x, initial, memory)[0]).numpy()).max() > 0.01
