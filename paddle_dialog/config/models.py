"""The settings of each model family, chosen by ``model.name``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from paddle_dialog.config.fields import Problem, at_least, rate


@dataclass
class LstmAttentionConfig:
    """LSTM (or GRU) encoder-decoder with attention."""

    name: Literal["lstm_attention"] = "lstm_attention"
    embedding_size: int = at_least(1, 256)
    hidden_size: int = at_least(1, 256)
    num_layers: int = at_least(1, 2)
    cell: Literal["lstm", "gru"] = "lstm"
    bidirectional: bool = False
    score: Literal["dot", "scaled_dot", "additive", "bilinear"] = "dot"
    input_feeding: bool = True
    dropout: float = rate(0.2)
    share_embeddings: bool = False
    tie_output: bool = False
    pretrained_vectors: str | None = None
    train_vectors: bool = True

    @property
    def width(self) -> int:
        """Width of the decoder's output, as the Transformer's ``width``."""
        return self.hidden_size

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.tie_output and self.embedding_size != self.hidden_size:
            yield (
                "tie_output",
                f"needs embedding_size ({self.embedding_size}) equal to hidden_size ({self.hidden_size})",
            )


@dataclass
class TransformerConfig:
    """Transformer encoder-decoder."""

    name: Literal["transformer"] = "transformer"
    width: int = at_least(1, 256)
    num_heads: int = at_least(1, 4)
    inner_width: int = at_least(1, 1024)
    encoder_layers: int = at_least(1, 3)
    decoder_layers: int = at_least(1, 3)
    norm: Literal["pre", "post"] = "pre"
    activation: Literal["relu", "gelu"] = "relu"
    bias: bool = True
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    max_positions: int = at_least(1, 128)
    dropout: float = rate(0.1)
    share_embeddings: bool = True
    tie_output: bool = True
    aligned_input: bool = False
    pretrained_vectors: str | None = None
    train_vectors: bool = True

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.width % self.num_heads:
            yield "num_heads", f"must divide width ({self.width}), and {self.num_heads} does not"


@dataclass
class ConvolutionalTransformerConfig:
    """Transformer with convolutions for feed-forward and key and value depths of its own."""

    name: Literal["convolutional_transformer"] = "convolutional_transformer"
    embedding_size: int = at_least(1, 100)
    width: int = at_least(1, 100)
    num_layers: int = at_least(1, 6)
    num_heads: int = at_least(1, 1)
    key_depth: int = at_least(1, 40)
    value_depth: int = at_least(1, 40)
    inner_width: int = at_least(1, 50)
    feed_forward: Literal["cc", "ll", "cl", "lc"] = "cc"
    max_positions: int = at_least(1, 256)
    dropout: float = rate(0.1)
    share_embeddings: bool = True
    tie_output: bool = False
    pretrained_vectors: str | None = None
    train_vectors: bool = True

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        for key in ("key_depth", "value_depth"):
            if getattr(self, key) % self.num_heads:
                yield key, f"must be a multiple of num_heads ({self.num_heads}), and is {getattr(self, key)}"
        if self.tie_output and self.embedding_size != self.width:
            yield "tie_output", f"needs embedding_size ({self.embedding_size}) equal to width ({self.width})"


@dataclass
class CausalTransformerConfig:
    """One causal Transformer that reads the context and goes on with the reply.

    Attributes:
        copy_depth: of the head that chooses the word to copy.
        max_positions: longest context and reply together.
    """

    name: Literal["causal_transformer"] = "causal_transformer"
    width: int = at_least(1, 256)
    num_heads: int = at_least(1, 4)
    inner_width: int = at_least(1, 1024)
    num_layers: int = at_least(1, 4)
    activation: Literal["relu", "gelu"] = "relu"
    bias: bool = False
    copy_depth: int = at_least(1, 64)
    max_positions: int = at_least(1, 320)
    dropout: float = rate(0.1)
    share_embeddings: bool = True
    tie_output: bool = True
    pretrained_vectors: str | None = None
    train_vectors: bool = True

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.width % self.num_heads:
            yield "num_heads", f"must divide width ({self.width}), and {self.num_heads} does not"


ModelConfig = LstmAttentionConfig | TransformerConfig

FamilyConfig = (
    LstmAttentionConfig | TransformerConfig | ConvolutionalTransformerConfig | CausalTransformerConfig
)
