"""The input-feeding LSTM decoder over a whole target, with its gradient derived by hand.

Autograd over a loop computes a gradient of every weight in every step and adds them up, and launches about twice as
many operators as needed. Here a backward step only computes what the step before it needs; each weight's
gradient is one product over all steps after the loop. The equations are those of `AttentionCell` (LSTM: Hochreiter
& Schmidhuber 1997; input feeding: Luong et al. 2015, section 3.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import paddle
import paddle.nn.functional as F
from paddle import Tensor
from paddle.autograd import PyLayer

from paddle_dialog.layers.linear import column_sums


class GateTrace(NamedTuple):
    """What the gradient of one LSTM step needs, each [B, H]."""

    input: Tensor
    forget: Tensor
    candidate: Tensor
    output: Tensor
    previous_cell: Tensor
    squashed_cell: Tensor


def lstm_step(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, GateTrace]:
    """Return hidden and cell state [B, H] from the gates' sums [B, 4H], in Paddle's order, and the last cell."""
    input_sum, forget_sum, candidate_sum, output_sum = gates.chunk(4, axis=-1)  # [B, H] each
    trace = GateTrace(
        F.sigmoid(input_sum), F.sigmoid(forget_sum), F.tanh(candidate_sum), F.sigmoid(output_sum), cell, cell
    )
    new_cell = trace.forget * cell + trace.input * trace.candidate  # [B, H]
    squashed = F.tanh(new_cell)
    return trace.output * squashed, new_cell, trace._replace(squashed_cell=squashed)


def lstm_step_gradient(trace: GateTrace, d_hidden: Tensor, d_cell: Tensor) -> tuple[Tensor, Tensor]:
    """Return gradients of the gates' sums [B, 4H] and of the cell state before [B, H]."""
    i, f, g, o, previous, squashed = trace
    d_cell = d_cell + d_hidden * o * (1.0 - squashed * squashed)
    d_gates = paddle.concat(
        [
            d_cell * g * i * (1.0 - i),
            d_cell * previous * f * (1.0 - f),
            d_cell * i * (1.0 - g * g),
            d_hidden * squashed * o * (1.0 - o),
        ],
        axis=-1,
    )  # [B, 4H]
    return d_gates, d_cell * f


class InputFeedingDecoder(PyLayer):
    """All steps of stacked LSTM cells, dot-product attention and input feeding as one operator."""

    @staticmethod
    def forward(
        ctx: Any,
        gates: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        output_weight: Tensor,
        output_bias: Tensor,
        dropout: Tensor,
        *layers: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Run the decoder from a zero input feed.

        Args:
            ctx: Paddle's, holds what the gradient needs.
            gates: the embedded target's share of the first layer's gate sums, biases included [T, B, 4H].
            keys: what a query's dot product is taken with [B, S, H].
            values: what is averaged [B, S, H].
            mask: additive [B, 1, S]; has no gradient.
            output_weight: maps context beside top state to the output [2H, H].
            output_bias: [H].
            dropout: factors on the output of every cell [T, L, B, H], or of size 0 for none; have no gradient.
            layers: the weights of (input feed or layer below, own hidden state) of all L layers [4H, 2H], the
                biases of all but the first [4H], all initial hidden states [B, H], all initial cell states.

        Returns:
            The outputs [T, B, H] and the attention weights [B, T, S].
        """
        number = (len(layers) + 1) // 4
        weights, biases = layers[:number], layers[number : 2 * number - 1]
        hidden, cells = list(layers[2 * number - 1 : 3 * number - 1]), list(layers[3 * number - 1 :])
        factors = [step.unbind(0) for step in dropout.unbind(0)] if dropout.size else None
        inputs: list[list[Tensor]] = [[] for _ in range(number)]
        traces: list[list[GateTrace]] = [[] for _ in range(number)]
        attention: list[Tensor] = []
        attended: list[Tensor] = []
        outputs: list[Tensor] = []
        feed = paddle.zeros_like(hidden[0])
        for time, first_gates in enumerate(gates.unbind(0)):
            x = feed
            for layer in range(number):
                x = paddle.concat([x, hidden[layer]], axis=-1)  # [B, 2H]
                inputs[layer].append(x)
                sums = paddle.matmul(x, weights[layer], transpose_y=True)  # [B, 4H]
                sums = sums + (first_gates if layer == 0 else biases[layer - 1])
                hidden[layer], cells[layer], trace = lstm_step(sums, cells[layer])
                traces[layer].append(trace)
                x = hidden[layer] if factors is None else hidden[layer] * factors[time][layer]  # [B, H]
            scores = paddle.matmul(x.unsqueeze(1), keys, transpose_y=True) + mask  # [B, 1, S]
            attention.append(F.softmax(scores))
            context = paddle.matmul(attention[-1], values).squeeze(1)  # [B, H]
            attended.append(paddle.concat([context, x], axis=-1))  # [B, 2H]
            feed = paddle.matmul(attended[-1], output_weight) + output_bias  # [B, H]
            outputs.append(feed)
        arguments = (gates, keys, values, mask, output_weight, output_bias, dropout, *layers)
        ctx.wanted = [not argument.stop_gradient for argument in arguments]
        ctx.tensors = (keys, values, output_weight, weights)
        ctx.records = (factors, inputs, traces, attention, attended)
        ctx.set_materialize_grads(False)  # mostly nobody asks for the attention's
        return paddle.stack(outputs, axis=0), paddle.concat(attention, axis=1)

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, d_attention: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return gradients of all arguments of `forward`, in their order."""
        keys, values, output_weight, weights = ctx.tensors
        factors, inputs, traces, attention, attended = ctx.records
        zeros = paddle.zeros_like(d_outputs[0])  # [B, H]
        d_hidden, d_cells = [zeros] * len(weights), [zeros] * len(weights)
        d_feed = zeros
        # For each step, the last first:
        d_sums: list[list[Tensor]] = [[] for _ in weights]
        d_outs, d_contexts, d_scores = [], [], []
        for time in reversed(range(len(attended))):
            d_outs.append(d_outputs[time] + d_feed)
            d_attended = paddle.matmul(d_outs[-1], output_weight, transpose_y=True)  # [B, 2H]
            d_context, d_x = d_attended.chunk(2, axis=-1)  # [B, H] each
            d_contexts.append(d_context)
            share = attention[time]
            d_share = paddle.matmul(d_context.unsqueeze(1), values, transpose_y=True)  # [B, 1, S]
            if d_attention is not None:
                d_share = d_share + d_attention[:, time : time + 1]
            d_scores.append(share * (d_share - (share * d_share).sum(-1, keepdim=True)))
            d_x = d_x + paddle.matmul(d_scores[-1], keys).squeeze(1)
            for layer in reversed(range(len(weights))):
                d_x = d_x if factors is None else d_x * factors[time][layer]
                d_x = d_x + d_hidden[layer]
                d_sum, d_cells[layer] = lstm_step_gradient(traces[layer][time], d_x, d_cells[layer])
                d_sums[layer].append(d_sum)
                d_x, d_hidden[layer] = paddle.matmul(d_sum, weights[layer]).chunk(2, axis=-1)  # [B, H] each
            d_feed = d_x
        queries = [x.chunk(2, axis=-1)[1] for x in attended]
        d_keys = _over_steps(_in_rows(d_scores[::-1]), _in_rows(queries))
        d_values = _over_steps(_in_rows(attention), _in_rows(d_contexts[::-1]))
        d_out = paddle.concat(d_outs[::-1])  # [TB, H]
        d_output_weight = _over_steps(paddle.concat(attended), d_out)
        summed = [paddle.concat(sums[::-1]) for sums in d_sums]  # [TB, 4H] each
        d_weights = [_over_steps(d_sum, paddle.concat(x)) for d_sum, x in zip(summed, inputs, strict=True)]
        d_biases = [column_sums(d_sum) for d_sum in summed[1:]]
        d_gates = paddle.stack(d_sums[0][::-1])  # [T, B, 4H]
        of_layers = (*d_weights, *d_biases, *d_hidden, *d_cells)
        found = (d_gates, d_keys, d_values, None, d_output_weight, column_sums(d_out), None, *of_layers)
        # Paddle rejects a gradient that was not asked for, such as that of a frozen weight.
        return tuple(value if wanted else None for value, wanted in zip(found, ctx.wanted, strict=True))


def _in_rows(steps: list[Tensor]) -> Tensor:
    """Stack the [B, D] or [B, 1, D] of all steps as [B, T, D]."""
    return paddle.stack(steps, axis=1) if steps[0].ndim == 2 else paddle.concat(steps, axis=1)


def _over_steps(left: Tensor, right: Tensor) -> Tensor:
    """Return leftᵀ · right over the last two axes: one product, where a loop would need one for each step."""
    return paddle.matmul(left, right, transpose_x=True)
