"""Encoding of replies for the ranker."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.encoding import DialogueEncoder


def reply_ids(encoder: DialogueEncoder, tokens: Sequence[str], longest: int) -> np.ndarray:
    """Return the ids of a reply with begin and end token, int64 [T].

    Args:
        encoder: of the ranker; a word outside its vocabulary is unknown, even if the context has it.
        tokens: of the reply.
        longest: greatest number of tokens read.
    """
    words = encoder.numbers(tokens[:longest])
    return np.concatenate([[Vocabulary.bos_id], encoder.target(words, {}), [Vocabulary.eos_id]])
