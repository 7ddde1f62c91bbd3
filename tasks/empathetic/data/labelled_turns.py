"""Conversations with an emotion for each line, as in CPED: what its speaker feels is learned of each turn alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tasks.empathetic.data.dialogue import Dialogue, known_emotion

LONGEST_TURN = 60  # characters after which the lines of one speaker begin another turn


def labelled_turns(
    turns: Sequence[str], labels: Sequence[str], speakers: Sequence[object], emotions: Sequence[str]
) -> Iterator[Dialogue]:
    """Iterate over the turns of a conversation as examples of their emotion, without a reply.

    Lines that one speaker says one after the other with the same emotion are one turn, joined by commas.

    Args:
        turns: the lines.
        labels: the emotion of each.
        speakers: who says each.
        emotions: the labels that are known.

    Raises:
        ValueError: a label is unknown, or the numbers differ.
    """
    if not len(turns) == len(labels) == len(speakers):
        raise ValueError(
            f"{len(turns)} turns have {len(labels)} emotions and {len(speakers)} speakers; give one of each a turn"
        )
    known = [known_emotion(label, emotions) for label in labels]
    for (_, emotion), group in groupby(zip(turns, speakers, known, strict=True), lambda line: line[1:]):
        said = ""
        for line, *_ in group:
            if len(said) >= LONGEST_TURN:
                yield Dialogue([f"{said}。"], "", emotion)
                said = ""
            said = f"{said}，{line}" if said else line
        yield Dialogue([f"{said}。"], "", emotion)
