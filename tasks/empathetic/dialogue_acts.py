"""The dialogue act of a turn: what its speaker wants with it (Stolcke et al. 2000, "Dialogue Act Modeling").

What answers bad news does not answer a question, a complaint or a farewell. A linear classifier over n-grams tells
how probable each act is.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from math import log2
from typing import Literal, get_args

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.folder import file_errors
from paddle_dialog.errors import UserError

Act = Literal[
    "statement", "question", "advice", "request", "joke", "correction", "complaint", "thanks", "greeting", "farewell",
    "acknowledgement", "refusal",
]  # fmt: skip
ACTS: tuple[Act, ...] = get_args(Act)
STATEMENT = ACTS.index("statement")  # news and feelings; `question` is one about the listener
DIALOGUE_ACTS = "dialogue_acts.safetensors"  # in a bundle
BUCKETS = 1 << 14
OPENING = 3  # words of the first sentence that are features of their own
HELD_OUT = 5  # one in this many turns is held out to fit the scale
PENALTY = 10.0  # C of the logistic regressions, chosen by cross-validation over conversations
LONGEST = 6  # classes of length, by powers of two

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[\u3400-\u9fff]|[?？!！.。]+|[^\s\w]")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")
_TABLE = "table"


class ActClassifier:
    """Tells the probabilities of the acts of a turn.

    Args:
        table: logits of the acts for each n-gram, float32 [BUCKETS, A].
    """

    def __init__(self, table: np.ndarray) -> None:
        self._table = table

    def __call__(self, turn: str) -> np.ndarray:
        """Return the probabilities of `ACTS` for a turn, float64 [A]."""
        buckets, weights = act_features(turn)
        logits = weights @ self._table[buckets]  # [A]
        shares = np.exp(logits - logits.max())
        probabilities: np.ndarray = shares / shares.sum()
        return probabilities

    def to_bytes(self) -> bytes:
        """Return the file of a bundle."""
        return save({_TABLE: self._table.astype(np.float16)})

    @classmethod
    def from_bytes(cls, content: bytes, where: str = DIALOGUE_ACTS) -> ActClassifier:
        """Read what `to_bytes` made.

        Raises:
            UserError: the content is something else; it names `where`.
        """
        with file_errors(where, "classifier of dialogue acts", "fit it anew"):
            table = load(content)[_TABLE].astype(np.float32)
        if table.shape != (BUCKETS, len(ACTS)):
            raise UserError(
                f"{where}: has {table.shape} weights, and {BUCKETS, len(ACTS)} are needed; fit it anew"
            )
        return cls(table)


def act_features(turn: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the buckets of the n-grams of a turn and their weights, a vector of unit length.

    The n-grams are of one to three words, in Chinese of characters; the last sentence and the first words count once
    more, since a turn asks or complains there.
    """
    text = turn.lower().replace("’", "'")
    words = ["<s>", *_WORD.findall(text), "</s>"]
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence] or [""]
    grams = [
        *words[1:-1],
        *("_".join(pair) for pair in pairwise(words)),
        *("_".join(words[place : place + 3]) for place in range(len(words) - 2)),
        *(f"last:{word}" for word in _WORD.findall(sentences[-1])),
        *(f"first:{word}" for word in _WORD.findall(sentences[0])[:OPENING]),
        f"length:{min(LONGEST, int(log2(len(words) - 1)))}",
    ]
    hashes = [zlib.crc32(gram.encode()) % BUCKETS for gram in grams]
    buckets, counts = np.unique(hashes, return_counts=True)
    weights = 1 + np.log(counts)
    return buckets, weights / np.linalg.norm(weights)


def fit_acts(turns: Sequence[str], acts: Sequence[str]) -> ActClassifier:
    """Fit the classifier to labelled turns.

    Args:
        turns: N of them.
        acts: of each, among `ACTS`.
    """
    from paddle_dialog.linear_classifier import (  # SciPy is slow to import
        LinearSettings,
        fit_classifier,
        sparse_rows,
    )

    rows = [act_features(turn) for turn in turns]
    features = sparse_rows([buckets for buckets, _ in rows], [weights for _, weights in rows], BUCKETS)
    labels = np.array([ACTS.index(act) for act in acts])  # [N]
    held_out = np.array([zlib.crc32(turn.encode()) % HELD_OUT == 0 for turn in turns])
    settings = LinearSettings(PENALTY, "log", ratio_power=0.0)
    return ActClassifier(fit_classifier(features, labels, held_out, len(ACTS), settings))
