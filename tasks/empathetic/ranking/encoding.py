"""Replies as the ranker reads them, in training and in use."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.encoding import DialogueEncoder


def reply_ids(encoder: DialogueEncoder, tokens: Sequence[str], longest: int) -> np.ndarray:
    """Ids of a reply with begin and end token, int64 [T].

    Args:
        encoder: of the ranker; a word outside its vocabulary is unknown, one of the context too.
        tokens: of the reply.
        longest: how many of them are read.
    """
    words = encoder.numbers(tokens[:longest])
    return np.concatenate([[Vocabulary.bos_id], encoder.target(words, {}), [Vocabulary.eos_id]])
