"""Word vectors that others trained, read from a text file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary


def read_vectors(path: str | Path, vocabulary: Vocabulary, size: int) -> tuple[np.ndarray, int]:
    """Read the vectors of a vocabulary's tokens, a line at a time.

    GloVe's form is a token and its numbers a line, separated by spaces; word2vec and fastText begin with a line of
    two numbers. Tokens without a vector are drawn from a normal distribution with mean and deviation of those found.

    Args:
        path: a text file, also `.gz` or `.xz`. If a token occurs twice, its first line counts.
        vocabulary: of V tokens; other lines are skipped.
        size: D.

    Returns:
        float32 [V, D], a row for each token id, and the number of tokens that were found.

    Raises:
        UserError: the file cannot be read, has vectors of another size, or has none of the tokens.
    """
    found: dict[int, np.ndarray] = {}
    for number, line in read_lines(Path(path)):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            fields += ["0"] * int(fields[1])  # word2vec's first line, as long as the others
            fields[:2] = [""]
        if len(fields) != size + 1:
            raise UserError(
                f"{path}:{number}: {len(fields) - 1} numbers after the token, and the model's embeddings have {size}"
            )
        if fields[0] in vocabulary:
            found.setdefault(vocabulary.id(fields[0]), _parse(fields[1:], f"{path}:{number}"))
    if not found:
        raise UserError(
            f"model.vectors: {path} has none of the vocabulary's tokens; give vectors of its language"
        )
    known = np.stack(list(found.values()))  # [found, D]
    rows = (
        np.random.default_rng(0).normal(known.mean(), known.std(), (len(vocabulary), size)).astype(np.float32)
    )
    rows[list(found)] = known
    return rows, len(found)


def _parse(numbers: Sequence[str], where: str) -> np.ndarray:
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        raise UserError(f"{where}: not a vector: what follows the token must be numbers") from None
    if not np.isfinite(vector).all():
        raise UserError(f"{where}: a number of the vector is not finite")
    return vector
