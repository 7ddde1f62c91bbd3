"""Weights of a larger network that begins as a smaller one: more layers, more rows of a vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

_LAYER = re.compile(r"(.*\.layers)\.(\d+)\.")
# The last matrix of each residual branch of a Transformer's layer; where it is zero, the layer passes its input on.
_BRANCH_END = re.compile(r"(attention\.output|feed_forward\.contract)\.(weight|bias)$")
_PER_TOKEN = re.compile(r"(embedding\.table\.weight|^output\.(weight|bias))$")  # an entry for each token


def grown(own: Mapping[str, np.ndarray], given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return a network's first weights, taken from a smaller network as far as that one goes.

    Tokens beyond those given keep their own first values in the tables and the output layer. A pre-norm layer beyond
    the given stack starts as the identity, the last matrix of each of its branches being zero, so that the larger
    network computes at first what the smaller one does (Chen, Goodfellow & Shlens 2016, "Net2Net", section 3).

    Args:
        own: first weights of the larger network by name.
        given: weights of the smaller one; all are kept.
    """
    depths: dict[str, int] = {}
    for name in given:
        match = _LAYER.match(name)
        if match:
            depths[match[1]] = max(depths.get(match[1], 0), int(match[2]) + 1)
    weights = dict(given)
    for name, first in own.items():
        there = given.get(name)
        match = _LAYER.match(name)
        if there is None and match and int(match[2]) >= depths.get(match[1], int(match[2]) + 1):
            weights[name] = np.zeros_like(first) if _BRANCH_END.search(name) else first
        elif there is not None and _PER_TOKEN.search(name):
            weights[name] = _with_tokens_of(first, there)
    return weights


def _with_tokens_of(own: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return a table [V, D], a matrix [D, V] or a vector [V] with the given tokens' values, as far as they go."""
    smaller = [axis for axis in range(own.ndim) if given.shape[axis] < own.shape[axis]]
    if given.ndim != own.ndim or len(smaller) != 1:
        return given
    (axis,) = smaller
    _, further = np.split(own, [given.shape[axis]], axis)
    return np.concatenate([given.astype(own.dtype), further], axis)
