"""Ordering examples by length, and padding a batch."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paddle_dialog.text.vocabulary import Vocabulary

Int64Array = npt.NDArray[np.int64]


def order_by_length(keys: npt.NDArray[np.integer], step_size: int) -> Int64Array:
    """Return the positions of a pool's examples in the order in which they are cut into steps.

    Args:
        keys: lengths of the examples, [N, 1] or [N, 2], as `LengthBucketSampler` describes them.
        step_size: examples of a step.
    """
    by_last = np.argsort(keys[:, -1], kind="stable")
    if keys.shape[1] == 1:
        return by_last
    steps = -(-len(by_last) // step_size)
    size = math.isqrt(steps) * step_size
    parts = [by_last[start : start + size] for start in range(0, len(by_last), size)]
    # lexsort is stable and takes its most significant key last.
    return np.concatenate([part[np.lexsort(keys[part].T[::-1])] for part in parts])


def pad_batch(
    sequences: Sequence[Sequence[int]] | Sequence[npt.NDArray[np.integer]], pad_id: int
) -> tuple[Int64Array, Int64Array]:
    """Put sequences of token ids into one array, padded on the right.

    Args:
        sequences: B sequences of ids; they may be empty.
        pad_id: id that fills the rest of each row.

    Returns:
        ids [B, T] and lengths [B], with T the longest length but at least 1.

    Raises:
        ValueError: there is no sequence.
    """
    if len(sequences) == 0:
        raise ValueError("a batch needs at least one sequence")
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))  # [B]
    ids = np.full((len(sequences), max(1, int(lengths.max()))), pad_id, np.int64)  # [B, T]
    for row, sequence, length in zip(ids, sequences, lengths, strict=True):
        row[:length] = np.asarray(sequence)
    return ids, lengths


def target_arrays(
    targets: Sequence[npt.NDArray[np.integer]],
) -> tuple[Int64Array, Int64Array, npt.NDArray[np.float32]]:
    """Return what a decoder reads and what it is to write.

    Args:
        targets: B sequences of ids, without begin and end; they may be empty.

    Returns:
        input ids [B, T], begin token first; output ids [B, T], end token last; the output's mask float32 [B, T].
    """
    begin, end = [Vocabulary.bos_id], [Vocabulary.eos_id]
    given, lengths = pad_batch([np.concatenate([begin, target]) for target in targets], Vocabulary.pad_id)
    wanted, _ = pad_batch([np.concatenate([target, end]) for target in targets], Vocabulary.pad_id)
    return given, wanted, (np.arange(wanted.shape[1]) < lengths[:, None]).astype(np.float32)
