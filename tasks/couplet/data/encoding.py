"""Encoding of lines for the networks."""

from __future__ import annotations

import numpy as np

from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.text.vocabulary import Vocabulary

VOCABULARY = "text"  # one for both lines
Example = tuple[np.ndarray, np.ndarray]  # ids of 上联 and of 下联, without begin and end


def encode_sources(lines: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Append the end token to each line of ids and pad them: ids [B, S] and lengths [B]."""
    return pad_batch([np.concatenate([line, [Vocabulary.eos_id]]) for line in lines], Vocabulary.pad_id)
