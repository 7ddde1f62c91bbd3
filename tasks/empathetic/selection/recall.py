"""Recall of the true reply of a context among others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CANDIDATES = 100


def recall_at_1(
    contexts: np.ndarray,
    replies: np.ndarray,
    texts: Sequence[object],
    seed: int,
    candidates: int = CANDIDATES,
) -> float | None:
    """Return the share of contexts whose own reply has a higher cosine than all of some other contexts' replies.

    This is recall@1 of 100 (Lowe et al. 2015, "The Ubuntu Dialogue Corpus", section 4.4; Rashkin et al. 2019 call it
    P@1,100).

    Args:
        contexts: unit vectors [N, K].
        replies: unit vectors of the true replies [N, K].
        texts: of the replies; one equal to the true one is not a wrong candidate.
        seed: of the draws of the wrong candidates.
        candidates: the true reply and the wrong ones.

    Returns:
        In 0–1; None where there are too few other replies.
    """
    numbers: dict[object, int] = {}
    names = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)  # [N]
    if len(names) - np.bincount(names).max(initial=0) < candidates - 1:
        return None
    rng = np.random.default_rng(seed)
    found = 0
    for row in range(len(contexts)):
        others = np.flatnonzero(names != names[row])
        wrong = rng.choice(others, candidates - 1, replace=False)
        found += bool(contexts[row] @ replies[row] > (replies[wrong] @ contexts[row]).max())
    return found / len(contexts)
