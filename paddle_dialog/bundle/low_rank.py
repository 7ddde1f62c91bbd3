"""Weights that were trained on from others, stored as a change of low rank: a few hundredths of the size.

What training changes in a matrix is near a product of two thin ones (Hu et al. 2021, "LoRA"); here it is found after
training, by the singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from safetensors.numpy import load, save

from paddle_dialog.bundle.task_files import reading

LEFT, RIGHT, WHOLE = ".left", ".right", ".whole"  # suffixes of the names of what is added to a parameter


def change_to_bytes(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray], rank: int) -> bytes:
    """Pack what training changed into a safetensors file, in half precision.

    Args:
        before: weights by structured name.
        after: of the same names and shapes.
        rank: of the change of a matrix that is kept; that of a vector is kept whole.

    Raises:
        ValueError: names or shapes differ.
    """
    if {name: values.shape for name, values in before.items()} != {n: v.shape for n, v in after.items()}:
        raise ValueError("these weights belong to two different models")
    tensors: dict[str, np.ndarray] = {}
    for name, values in before.items():
        change = after[name].astype(np.float32) - values.astype(np.float32)
        if change.ndim != 2:
            tensors[name + WHOLE] = change.astype(np.float16)
            continue
        left, sizes, right = np.linalg.svd(change, full_matrices=False)
        root = np.sqrt(sizes[:rank])
        tensors[name + LEFT] = (left[:, :rank] * root).astype(np.float16)  # [M, R]
        tensors[name + RIGHT] = (root[:, None] * right[:rank]).astype(np.float16)  # [R, N]
    return save({name: np.ascontiguousarray(values) for name, values in tensors.items()})


def changed(before: Mapping[str, np.ndarray], content: bytes, where: str) -> dict[str, np.ndarray]:
    """Return the weights that `change_to_bytes` was given as `after`, as far as its rank goes.

    Args:
        before: the same weights as there.
        content: of the file.
        where: the file, for messages.

    Raises:
        UserError: the content is something else, or of another model.
    """
    with reading(where, "change of these weights", "make it anew"):
        tensors, after = load(content), dict[str, np.ndarray]()
        for name, values in before.items():
            if values.ndim == 2:
                change = tensors.pop(name + LEFT).astype(np.float32) @ tensors.pop(name + RIGHT)
            else:
                change = tensors.pop(name + WHOLE).astype(np.float32)
            if change.shape != values.shape:
                raise ValueError(f"{name} has shape {list(change.shape)}, not {list(values.shape)}")
            after[name] = values.astype(np.float32) + change
        if tensors:
            raise ValueError(f"{min(tensors)} is unknown")
    return after
