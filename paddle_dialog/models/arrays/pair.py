"""Interfaces of encoders and decoders over arrays; see `models.pair` for the networks."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from paddle_dialog.models.arrays.row_inputs import RowInputs

State = TypeVar("State", bound="DecoderState")


class DecoderState(Protocol):
    """The state of B sources and of N targets so far, each of which belongs to a source."""

    @property
    def rows(self) -> RowInputs:
        """Which source each row belongs to."""

    def reorder(self: State, index: np.ndarray) -> tuple[State, np.ndarray | None]:
        """Return the state of the rows `index` [M], and the sources that are left [B'], None where all are."""

    def reorder_within(self: State, index: np.ndarray) -> State:
        """Reorder rows that stay with their source; what belongs to the source is not copied."""


class NumpyEncoder(Protocol):
    """Reads embedded sources."""

    @property
    def output_size(self) -> int:
        """Width H of the outputs."""

    def read(self, embedded: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, Any]:
        """Read sources [B, S, E] of lengths [B]; return outputs [B, S, H] and the decoder's further input."""


class NumpyDecoder(Protocol):
    """Writes targets position by position."""

    def inputs(self, embedded: np.ndarray) -> np.ndarray:
        """Compute the part of a step that depends only on the embedded tokens [..., E]: [..., K]."""

    def prepare(self, outputs: np.ndarray, final: Any, lengths: np.ndarray) -> Any:
        """Make the `DecoderState` before the first position from the encoder's output, with a row for each source."""

    def step(self, inputs: np.ndarray, state: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """Decode one more position of every row.

        Args:
            inputs: of its tokens [N, K].
            state: from `prepare` or the step before; must not be used afterwards, as a step may write into its
                arrays.

        Returns:
            Hidden [N, width], attention over the source [B, R, S], where R is the most rows of a source, and the new
            state.
        """


@runtime_checkable
class NumpyTargetReader(Protocol):
    """A decoder that reads whole targets at once, which costs less than reading them position by position."""

    def read_targets(self, inputs: np.ndarray, source: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Decode all positions of whole targets.

        Args:
            inputs: of the tokens of M targets, the begin token first, without padding [M, T, K].
            source: outputs of the encoder for B sources, without padding [B, S, H].
            owners: the source of each target [M].

        Returns:
            Hidden [M, T, width].
        """
