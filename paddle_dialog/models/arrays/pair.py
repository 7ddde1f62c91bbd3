"""What an encoder and a decoder offer over arrays, see ``models.pair`` for the networks."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from paddle_dialog.models.arrays.row_inputs import RowInputs

State = TypeVar("State", bound="DecoderState")


class DecoderState(Protocol):
    """What is seen of B sources and of the targets so far, whose N rows each belong to a source."""

    @property
    def rows(self) -> RowInputs:
        """Which source each row belongs to."""

    def reorder(self: State, index: np.ndarray) -> tuple[State, np.ndarray | None]:
        """The state of the rows ``index`` [M], and the sources that are left [B'], None where all are."""

    def reorder_within(self: State, index: np.ndarray) -> State:
        """``reorder`` for rows that stay with their source: what belongs to the source is not copied."""


class NumpyEncoder(Protocol):
    """Reads embedded sources."""

    @property
    def output_size(self) -> int:
        """Width H of the outputs."""

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, Any]:
        """Outputs [B, S, H] of sources [B, S, E] of the given lengths [B], and what else the decoder begins with."""


class NumpyDecoder(Protocol):
    """Writes targets position by position."""

    def inputs(self, embedded: np.ndarray) -> np.ndarray:
        """What a step makes first of embedded tokens [..., E], whatever came before them: [..., K]."""

    def prepare(self, outputs: np.ndarray, final: Any, lengths: np.ndarray) -> Any:
        """The ``DecoderState`` before the first position of what the encoder returned; a row for each source."""

    def step(self, inputs: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """One more position of every row.

        Args:
            inputs: of its tokens [N, K].
            state: from ``prepare`` or the step before; of no use afterwards, as a step may write into its arrays.

        Returns:
            Hidden [N, width], attention over the source [B, R, S], where R is the most rows of a source, and the new
            state.
        """
