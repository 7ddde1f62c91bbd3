"""The log-probability of given texts; those of one input share the computation of their common prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paddle_dialog.decoding.interface import StepModel, TextReader
from paddle_dialog.decoding.scores import ScoreTable
from paddle_dialog.text.vocabulary import Vocabulary


def text_log_probs(
    model: StepModel,
    source: np.ndarray,
    lengths: np.ndarray,
    texts: Sequence[Sequence[int]],
    inputs: Sequence[int] | None = None,
    state: Any = None,
) -> np.ndarray:
    """Return the teacher-forced log-probability of each text, its end token included.

    Args:
        model: implements `StepModel`; one that offers `TextReader` too is asked for all texts at once.
        source: ids, [B, S] int64, or [B, S, k] where a model reads k numbers at each position.
        lengths: [B] int64.
        texts: M texts, ids without start and end token.
        inputs: the row of the source that each text belongs to; by default there is one text for each row.
        state: what `model.encode` returns for these inputs, where they are read already.

    Returns:
        log p(text, end | input), float64 [M].
    """
    # The row of the state that each text belongs to [M]; texts that begin alike share one.
    rows = np.arange(len(texts)) if inputs is None else np.asarray(inputs, dtype=np.int64)
    if isinstance(model, TextReader):
        return model.state_log_probs(model.text_states(source, lengths, texts, rows), texts)
    if state is None:
        state = model.encode(source, lengths)
    tokens = np.full(len(source), Vocabulary.bos_id, dtype=np.int64)  # of each row of the state
    table, normalised = ScoreTable(), bool(getattr(model, "returns_log_probabilities", False))
    sizes = np.array([len(text) for text in texts], dtype=np.int64)  # [M]
    written = np.full(
        (len(texts), int(sizes.max(initial=0)) + 1), Vocabulary.eos_id, dtype=np.int64
    )  # [M, T + 1]
    for line, text in zip(written, texts, strict=True):
        line[: len(text)] = text
    totals = np.zeros(len(texts))  # [M]
    # Texts that have not ended; `rows` are those of their prefixes in the state.
    growing = np.arange(len(texts))
    for step in range(written.shape[1] if len(texts) else 0):
        scores, state = model.step(tokens, state)
        table.load(scores, normalised)
        totals[growing] += table.log_probs(rows, written[growing, step])
        on = sizes[growing] > step
        growing, rows = growing[on], rows[on]
        if not len(growing):
            break
        width = table.values.shape[1]
        grown, rows = np.unique(rows * width + written[growing, step], return_inverse=True)
        tokens = grown % width
        state = model.reorder(state, grown // width)
    return totals
