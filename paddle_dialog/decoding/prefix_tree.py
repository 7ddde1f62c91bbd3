"""The log-probability of many texts of one input; texts that begin alike share the steps of their common prefix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.arrays import evaluation_mode, to_model
from paddle_dialog.decoding.interface import StepModel, TextScorer
from paddle_dialog.decoding.scores import ScoreTable


def one_input_log_probs(
    model: StepModel, source: np.ndarray, texts: Sequence[Sequence[int]], bos_id: int = 2, eos_id: int = 3
) -> np.ndarray:
    """Return the teacher-forced log-probability of each text, its end token included.

    Args:
        model: offers `StepModel`; one that offers `TextScorer` too is asked for all texts at once.
        source: ids of the only input, [S] int64, or [S, k] where a model reads k numbers at each position.
        texts: M texts, ids without start and end token.
        bos_id: start token.
        eos_id: end token.

    Returns:
        log p(text, end | input), float64 [M].
    """
    table = ScoreTable()
    normalised = bool(getattr(model, "returns_log_probabilities", False))
    lengths = np.array([len(text) for text in texts], dtype=np.int64)  # [M]
    written = np.full((len(texts), int(lengths.max(initial=0)) + 1), eos_id, dtype=np.int64)  # [M, T + 1]
    for line, text in zip(written, texts, strict=True):
        line[: len(text)] = text
    totals = np.zeros(len(texts))  # [M]
    growing, nodes = np.arange(len(texts)), np.zeros(len(texts), dtype=np.int64)  # texts, and the row of each
    tokens = np.array([bos_id])  # [N] of the rows
    with evaluation_mode(model):
        state = model.encode(to_model(model, source[None]), to_model(model, np.array([len(source)])))
        if isinstance(model, TextScorer):
            return model.text_log_probs(state, texts)
        for step in range(written.shape[1] if len(texts) else 0):
            scores, state = model.step(to_model(model, tokens), state)
            table.load(scores, normalised)
            totals[growing] += table.log_probs(nodes, written[growing, step])
            goes_on = lengths[growing] > step
            growing, nodes = growing[goes_on], nodes[goes_on]
            if not len(growing):
                break
            width = table.values.shape[1]
            grown, nodes = np.unique(nodes * width + written[growing, step], return_inverse=True)
            tokens = grown % width
            state = model.reorder(state, to_model(model, grown // width))
    return totals
