"""Names that weights had in earlier versions, so that their bundles and checkpoints can be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

Value = TypeVar("Value")

OlderNames = Mapping[str, Sequence[str]]  # prefix of an old name → prefixes of the names that take its value

SEQ2SEQ_NAMES: OlderNames = {
    "positions.": ("encoder.positions.", "decoder.positions."),
    "encoder.layers.": ("encoder.stack.layers.",),
    "encoder.final_norm.": ("encoder.stack.final_norm.",),
    "encoder.rnn.": ("encoder.stack.rnn.",),
    "decoder.layers.": ("decoder.stack.layers.",),
    "decoder.final_norm.": ("decoder.stack.final_norm.",),
    "aligned_projection.": ("decoder.aligned_projection.",),
    "bridge.": ("decoder.bridge.",),
    "cell.": ("decoder.cell.",),
}


def with_present_names(values: Mapping[str, Value], older: OlderNames) -> dict[str, Value]:
    """Rename values by the names of weights to the present name or names of each."""
    present: dict[str, Value] = {}
    for name, value in values.items():
        begins = [old for old in older if name.startswith(old)]
        for old in begins:
            present.update({f"{new}{name.removeprefix(old)}": value for new in older[old]})
        if not begins:
            present[name] = value
    return present
