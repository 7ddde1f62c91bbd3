"""The log-probability of given texts: for re-ranking with another model, and to check the search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.decoding.arrays import evaluation_mode, to_array, to_model
from paddle_dialog.decoding.interface import Array, StepModel
from paddle_dialog.decoding.scores import ScoreTable


def text_log_probs(
    model: StepModel,
    source: Array,
    lengths: Array,
    texts: Sequence[Sequence[int]],
    bos_id: int = 2,
    eos_id: int = 3,
) -> list[float]:
    """Return the teacher-forced log-probability of one text for each input, its end token included.

    Args:
        model: offers `StepModel`.
        source: ids, [B, S] int64, an array or a tensor.
        lengths: [B] int64.
        texts: ids without start and end token, one text for each input.
        bos_id: start token.
        eos_id: end token.

    Returns:
        log p(text, end | input), one number for each input.
    """
    table = ScoreTable()
    normalised = bool(getattr(model, "returns_log_probabilities", False))
    totals = np.zeros(len(texts))  # [B]
    written = np.full((len(texts), max(map(len, texts), default=0) + 2), eos_id, dtype=np.int64)  # [B, T + 2]
    for row, text in enumerate(texts):
        written[row, : len(text) + 1] = [bos_id, *text]
    counted = np.array([len(text) + 1 for text in texts])  # [B]
    with evaluation_mode(model):
        state = model.encode(to_model(model, to_array(source)), to_model(model, to_array(lengths)))
        for step in range(written.shape[1] - 1):
            scores, state = model.step(to_model(model, written[:, step].copy()), state)
            table.load(scores, normalised)
            open_rows = np.flatnonzero(step < counted)
            totals[open_rows] += table.log_probs(open_rows, written[open_rows, step + 1])
    return totals.tolist()
