"""Training examples made from others: conversations that change their subject, as chats do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tasks.empathetic.data.dialogue import Dialogue


def changed_subjects(dialogues: Sequence[Dialogue], rate: float, seed: int) -> list[Dialogue]:
    """Make examples that follow the end of another conversation, so that the model learns to heed the newest turns.

    Args:
        dialogues: annotated or not.
        rate: how many are made, as a share of `dialogues` in 0–1; fewer where a conversation would follow itself.
        seed: of the draws.

    Returns:
        Examples with the emotion and the target of the later conversation. Their contexts are not learned again. None
        follows an example that has no reply.
    """
    rng = np.random.default_rng(seed)
    count = round(rate * len(dialogues))
    before = rng.choice(len(dialogues), count, replace=False)
    after = rng.choice(len(dialogues), count, replace=False)
    made = []
    for first, then in zip(before, after, strict=True):
        earlier, later = dialogues[first], dialogues[then]
        if not earlier.target or earlier.context[0] == later.context[0]:  # of one conversation
            continue
        context = [*earlier.context, earlier.target, *later.context]
        made.append(Dialogue(context, later.target, later.emotion, new_turns=0))
    return made
