"""The settings of each model family, chosen by `model.name`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from paddle_dialog.config.fields import Problem, at_least, rate, setting


@dataclass(frozen=True)
class NetworkConfig:
    """The keys that all model families have; `name` chooses the family."""

    name: str = ""
    dropout: float = rate(0.1, "share of activations dropped in training")
    share_embeddings: bool = setting(True, "encoder and decoder share one embedding table")
    tie_output: bool = setting(True, "the output layer uses the decoder's embedding table")


class OneWidth:
    """A Transformer whose embeddings and layers have one width; its settings declare the three keys."""

    width: int
    num_heads: int
    bias: bool

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings, which is that of all layers."""
        return self.width

    @property
    def output_bias(self) -> bool:
        """Whether the output layer has a bias."""
        return self.bias

    def problems(self) -> Iterator[Problem]:
        """Yield settings that contradict each other."""
        if self.width % self.num_heads:
            yield "num_heads", f"must divide width ({self.width}), and {self.num_heads} does not"


@dataclass(frozen=True)
class LstmAttentionConfig(NetworkConfig):
    """LSTM encoder-decoder with attention."""

    scale_embeddings: ClassVar[bool] = False
    output_bias: ClassVar[bool] = True

    name: Literal["lstm_attention"] = "lstm_attention"
    embedding_size: int = at_least(1, 256, "size of the token embeddings")
    hidden_size: int = at_least(1, 256, "size of the recurrent state")
    num_layers: int = at_least(1, 2, "layers of encoder and decoder each", maximum=256)
    bidirectional: bool = setting(False, "the encoder reads the source in both directions")
    score: Literal["dot", "scaled_dot", "additive", "bilinear"] = setting(
        "dot", "how attention compares the decoder's state with an encoder output"
    )
    input_feeding: bool = setting(True, "the last attention output is part of the decoder's next input")
    dropout: float = rate(0.2)
    share_embeddings: bool = False
    tie_output: bool = False

    @property
    def width(self) -> int:
        """Width of the decoder's output, as the Transformer's `width`."""
        return self.hidden_size

    def problems(self) -> Iterator[Problem]:
        """Yield settings that contradict each other."""
        if self.tie_output and self.embedding_size != self.hidden_size:
            yield (
                "tie_output",
                f"needs embedding_size ({self.embedding_size}) equal to hidden_size ({self.hidden_size})",
            )


@dataclass(frozen=True)
class TransformerConfig(OneWidth, NetworkConfig):
    """Transformer encoder-decoder."""

    scale_embeddings: ClassVar[bool] = True
    projects_input: ClassVar[bool] = False
    feed_forward: ClassVar[None] = None
    key_depth: ClassVar[None] = None
    value_depth: ClassVar[None] = None

    name: Literal["transformer"] = "transformer"
    width: int = at_least(1, 256, "size of embeddings and layers")
    num_heads: int = at_least(1, 4, "attention heads; must divide width")
    inner_width: int = at_least(1, 1024, "size of the feed-forward layers' hidden layer")
    encoder_layers: int = at_least(1, 3, "layers of the encoder", maximum=256)
    decoder_layers: int = at_least(1, 3, "layers of the decoder", maximum=256)
    bias: bool = setting(True, "linear layers and layer norms have a bias")
    max_positions: int = at_least(1, 128, "longest sequence in tokens, end token included")
    aligned_input: bool = setting(
        False,
        "the decoder's input at a position also holds the encoder's output there, for texts that correspond token by "
        "token",
    )


@dataclass(frozen=True)
class ConvolutionalTransformerConfig(NetworkConfig):
    """Transformer with convolutions in its feed-forward layers and depths of keys and values of their own."""

    scale_embeddings: ClassVar[bool] = False
    output_bias: ClassVar[bool] = True
    projects_input: ClassVar[bool] = True
    aligned_input: ClassVar[bool] = False
    bias: ClassVar[bool] = False  # of attention

    name: Literal["convolutional_transformer"] = "convolutional_transformer"
    embedding_size: int = at_least(1, 100, "size of the token embeddings")
    width: int = at_least(1, 100, "size of the layers")
    num_layers: int = at_least(1, 6, "layers of encoder and decoder each", maximum=256)
    num_heads: int = at_least(1, 1, "attention heads")
    key_depth: int = at_least(1, 40, "size of queries and keys, all heads together; a multiple of num_heads")
    value_depth: int = at_least(1, 40, "size of values, all heads together; a multiple of num_heads")
    inner_width: int = at_least(1, 50, "size of the feed-forward layers' hidden layer")
    feed_forward: Literal["cc", "ll", "cl", "lc"] = setting(
        "cc", "the two maps of a feed-forward layer, each a convolution (c) or linear (l)"
    )
    max_positions: int = at_least(1, 256, "longest sequence in tokens, end token included")
    tie_output: bool = False

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder."""
        return self.num_layers

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""
        return self.num_layers

    def problems(self) -> Iterator[Problem]:
        """Yield settings that contradict each other."""
        for key in ("key_depth", "value_depth"):
            if getattr(self, key) % self.num_heads:
                yield key, f"must be a multiple of num_heads ({self.num_heads}), and is {getattr(self, key)}"
        if self.tie_output and self.embedding_size != self.width:
            yield "tie_output", f"needs embedding_size ({self.embedding_size}) equal to width ({self.width})"


@dataclass(frozen=True)
class CausalTransformerConfig(OneWidth, NetworkConfig):
    """One causal Transformer that reads the source and goes on with the target."""

    scale_embeddings: ClassVar[bool] = True

    name: Literal["causal_transformer"] = "causal_transformer"
    width: int = at_least(1, 256, "size of embeddings and layers")
    num_heads: int = at_least(1, 4, "attention heads; must divide width")
    inner_width: int = at_least(1, 1024, "size of the feed-forward layers' hidden layer")
    num_layers: int = at_least(1, 4, "number of layers", maximum=256)
    bias: bool = setting(False, "linear layers and layer norms have a bias")
    copy_depth: int = at_least(1, 64, "size of the attention head that chooses the word to copy")
    max_positions: int = at_least(1, 320, "longest source and target together, in tokens")


@dataclass(frozen=True)
class CausalLmConfig(OneWidth):
    """A causal Transformer that predicts each next token of a text."""

    name: Literal["causal_lm"] = "causal_lm"
    width: int = at_least(1, 256, "size of embeddings and layers")
    num_heads: int = at_least(1, 4, "attention heads; must divide width")
    inner_width: int = at_least(1, 1024, "size of the feed-forward layers' hidden layer")
    num_layers: int = at_least(1, 4, "number of layers", maximum=256)
    bias: bool = setting(False, "linear layers have a bias")
    max_positions: int = at_least(2, 256, "longest text in tokens, what stands before it included")
    dropout: float = rate(0.0, "share of activations dropped in training")


def total_memory() -> int | None:
    """Return the bytes of this machine's memory; None where the system does not say."""
    names = getattr(os, "sysconf_names", {})
    known = "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if known else None


def memory_problem(model: Any, tokens: int = 0, copies: int = 1, positions: int = 0) -> str | None:
    """Return a sentence where this machine's memory cannot hold a network, known before it is built.

    It is counted low: matrices of layers, positions and embeddings, and what layers keep for their gradients, 4 bytes
    a number; of a model that a task brings itself only what is named as here.

    Args:
        tokens: of its vocabularies.
        copies: arrays as large as the weights: 1 to answer; 4 to train, for gradients and moments.
        positions: of the texts of a batch that is trained on.
    """
    if isinstance(model, PretrainedConfig):
        return None  # its size stands in its own files

    def size(name: str, default: int = 0) -> int:
        return getattr(model, name, None) or default

    width, layers = size("width"), size("encoder_layers") + size("decoder_layers") or size("num_layers")
    across = 2 * (size("key_depth", width) + size("value_depth", width) + size("inner_width"))
    rows = layers * across + size("max_positions")
    weights = 4 * copies * (rows * width + tokens * size("embedding_size", width))
    batch = 4 * positions * layers * (10 * width + 2 * size("inner_width"))
    there = total_memory()
    if there is None or weights + batch <= there:
        return None
    of, remedy = (
        ("weights", "fewer or narrower layers") if weights > batch else ("batch", "a smaller data.batch_size")
    )
    return (
        f"its {of} would take at least {max(weights, batch) / 2**30:,.0f} GiB of memory, and this machine has "
        f"{there / 2**30:,.0f}; take {remedy}"
    )


@dataclass(frozen=True)
class LoraConfig:
    """Small matrices that are trained beside the frozen ones of a pre-trained model (Hu et al. 2021, "LoRA")."""

    rank: int = at_least(1, 8, "the inner size of the two small matrices beside each frozen one")
    alpha: float = setting(16.0, "their product counts alpha / rank", above=0.0)
    dropout: float = rate(0.0, "share of their inputs dropped in training")


@dataclass(frozen=True)
class PretrainedConfig:
    """A causal language model that others trained, read by PaddleFormers; see docs/pretrained.md."""

    width: ClassVar[int] = 1  # so that `noam` is the rate that is given

    pretrained: str = setting(
        "baidu/ERNIE-4.5-0.3B-PT",
        "a folder with config.json, *.safetensors and the tokenizer, or a name on a hub",
    )
    name: Literal["pretrained"] = "pretrained"
    lora: LoraConfig | None = setting(None, "null trains all weights")  # noqa: RUF009
    dtype: Literal["float32", "bfloat16"] = setting(
        "float32", "what a GPU holds the frozen weights in, and computes in; a CPU takes float32"
    )
    sha256: str | None = setting(
        None, "of the files of the frozen model; a run writes it into its bundles, which refuse another one"
    )

    def problems(self) -> Iterator[Problem]:
        """Yield settings that contradict each other."""
        if self.dtype == "bfloat16" and self.lora is None:
            yield (
                "dtype",
                "bfloat16 is of frozen weights; name model.lora, or take float32 with training.amp: O1",
            )


ModelConfig = LstmAttentionConfig | TransformerConfig
EncoderDecoderConfig = TransformerConfig | ConvolutionalTransformerConfig
CausalConfig = CausalTransformerConfig | CausalLmConfig
AttentionConfig = EncoderDecoderConfig | CausalConfig

FamilyConfig = (
    LstmAttentionConfig | TransformerConfig | ConvolutionalTransformerConfig | CausalTransformerConfig
)
