"""Weights as arrays by name: of a network and into it, and grown from those of a smaller network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle import Tensor, nn

_LAYER = re.compile(r"(.*\.layers)\.(\d+)\.")
# The last matrix of each residual branch of a Transformer's layer; where it is zero, the layer passes its input on.
_BRANCH_END = re.compile(r"(attention\.output|feed_forward\.contract)\.(weight|bias)$")
_PER_TOKEN = re.compile(r"(embedding\.table\.weight|^output\.(weight|bias))$")  # an entry for each token


def read_weights(network: nn.Layer) -> dict[str, np.ndarray]:
    """Return a network's parameters and persistent buffers as arrays, each under the first of its names only.

    A network's `weights_elsewhere` are left out: names of frozen weights that another folder has.
    """
    state, left_out = network.state_dict(), _elsewhere(network)
    return {
        name: state[name].numpy()
        for name, first in _first_names(state).items()
        if name == first and name not in left_out
    }


def check_arrays(
    arrays: Mapping[str, np.ndarray], where: Path, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> None:
    """Check arrays that were read from a file: their types, and that none is infinite or not a number.

    Args:
        where: the file.
        shapes: that the file must hold by name, no more and no less, all of floats; None takes any.
    """
    if shapes is not None and arrays.keys() != shapes.keys():
        odd = min(arrays.keys() ^ shapes.keys())
        raise UserError(f"{where}: is damaged: {odd} is {'unknown' if odd in arrays else 'missing'}")
    for name, values in arrays.items():
        if shapes is not None and values.shape != shapes[name]:
            raise UserError(
                f"{where}: is damaged: {name} has shape {list(values.shape)} and not {list(shapes[name])}"
            )
        if values.dtype.kind not in ("fiub" if shapes is None else "f") or values.dtype.itemsize > 8:
            raise UserError(f"{where}: {name} has type {values.dtype}; weights are numbers, such as float32")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise UserError(f"{where}: {name} has numbers that are not finite; restore or retrain it")


def set_weights(network: nn.Layer, weights: Mapping[str, np.ndarray], where: str | Path) -> None:
    """Copy weights into a network, casting to its precision.

    A parameter that several layers share may have any one of its names, or all.
    """
    state = network.state_dict()
    first_names = _first_names(state)
    # The name in the file for each first name.
    sources = {first_names[name]: name for name in reversed(state) if name in weights}
    missing = sorted(set(first_names.values()) - sources.keys() - _elsewhere(network))
    foreign = sorted(weights.keys() - state.keys())
    if missing or foreign:
        odd = f"{missing[0]} is missing" if missing else f"{foreign[0]} is unknown"
        raise UserError(
            f"{where}: these weights belong to another model ({odd}); take the model section of the config.yaml "
            "beside them"
        )
    converted = {}
    for name, tensor in state.items():
        if first_names[name] not in sources:
            converted[name] = tensor
            continue
        values = weights[sources[first_names[name]]]
        if tuple(tensor.shape) != values.shape:
            raise UserError(
                f"{where}: {name} has shape {list(values.shape)}, but the config's model needs "
                f"{list(tensor.shape)}; the weights belong to another config or vocabulary"
            )
        converted[name] = values.astype(str(tensor.dtype).removeprefix("paddle."))
    network.set_state_dict(converted)


def _elsewhere(network: nn.Layer) -> frozenset[str]:
    return getattr(network, "weights_elsewhere", frozenset())


def _first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Map every name of a state dict to the first name of the same tensor.

    Paddle lists a parameter once for each layer that holds it: `nn.LSTM` under two names, and so a cell
    inside `nn.RNN`.
    """
    first: dict[int, str] = {}
    return {name: first.setdefault(id(tensor), name) for name, tensor in state.items()}


def grow_weights(
    initial: Mapping[str, np.ndarray], smaller: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the first weights of a network that computes at first what a smaller one does.

    Further tokens keep their initial values in the tables and the output layer. A further pre-norm layer starts as
    the identity: the last matrix of each of its branches is zero (Chen, Goodfellow & Shlens 2016, "Net2Net",
    section 3).
    """
    depths: dict[str, int] = {}
    for name in smaller:
        match = _LAYER.match(name)
        if match:
            depths[match[1]] = max(depths.get(match[1], 0), int(match[2]) + 1)
    weights = dict(smaller)
    for name, first in initial.items():
        there = smaller.get(name)
        match = _LAYER.match(name)
        if there is None and match and int(match[2]) >= depths.get(match[1], int(match[2]) + 1):
            weights[name] = np.zeros_like(first) if _BRANCH_END.search(name) else first
        elif there is not None and _PER_TOKEN.search(name):
            weights[name] = _with_tokens_of(first, there)
    return weights


def _with_tokens_of(initial: np.ndarray, smaller: np.ndarray) -> np.ndarray:
    """Return a table [V, D], a matrix [D, V] or a vector [V] with the smaller one's tokens, and further ones."""
    axes = [axis for axis in range(initial.ndim) if smaller.shape[axis] < initial.shape[axis]]
    if smaller.ndim != initial.ndim or len(axes) != 1:
        return smaller
    _, further = np.split(initial, [smaller.shape[axes[0]]], axes[0])
    return np.concatenate([smaller.astype(initial.dtype), further], axes[0])
