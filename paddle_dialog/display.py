"""What a task shows of a model in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


@dataclass
class Display:
    """What a task shows of a model at work.

    Args:
        texts: readable examples, e.g. source, hypothesis and reference in one line.
        heat_maps: weights [T, S] of the first example by their names, e.g. `attention`.
        rows: the T target tokens.
        columns: the S source tokens.
        scalars: what else is measured on the dev set, by name, e.g. `accuracy`.
    """

    texts: Sequence[str] = ()
    heat_maps: Mapping[str, np.ndarray] = field(default_factory=dict)
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    scalars: Mapping[str, float] = field(default_factory=dict)
