"""The settings of each model family, chosen by `model.name`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from paddle_dialog.config.typed import Problem, at_least, rate, setting


@dataclass(frozen=True)
class NetworkConfig:
    """The keys that all model families have; `name` chooses the family."""

    name: str = ""
    dropout: float = rate(0.1, "share of activations dropped in training")
    share_embeddings: bool = setting(True, "encoder and decoder share one embedding table")
    tie_output: bool = setting(True, "the output layer uses the decoder's embedding table")
    vectors: str | None = setting(
        None,
        "word vectors that a new run's embeddings begin with: a text file of GloVe, word2vec or fastText",
    )
    freeze_vectors: bool = setting(False, "the embeddings stay as they begin")
    sampled_words: int = at_least(
        0, 0, "words that training draws to estimate the softmax of a large vocabulary; 0 computes all of it"
    )


@dataclass(frozen=True)
class OneWidth:
    """The keys of a Transformer, whose embeddings and layers have one width."""

    name: str = ""
    width: int = at_least(1, 256, "size of embeddings and layers")
    num_heads: int = at_least(1, 4, "attention heads; must divide width")
    inner_width: int = at_least(1, 1024, "size of the feed-forward layers' hidden layer")

    @property
    def embedding_size(self) -> int:
        """Width of the embeddings, which is that of all layers."""
        return self.width

    def problems(self) -> Iterator[Problem]:
        if self.width % self.num_heads:
            yield "num_heads", f"must divide width ({self.width}), and {self.num_heads} does not"


@dataclass(frozen=True)
class LstmAttentionConfig(NetworkConfig):
    """LSTM or GRU encoder-decoder with attention."""

    scale_embeddings: ClassVar[bool] = False
    output_bias: ClassVar[bool] = True

    name: Literal["lstm_attention"] = "lstm_attention"
    cell: Literal["lstm", "gru"] = setting("lstm", "the kind of recurrent layer")
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

    @property
    def encoder_size(self) -> int:
        """Width of the encoder's outputs."""
        return self.hidden_size * (2 if self.bidirectional else 1)

    @property
    def state_parts(self) -> int:
        """States of a layer: hidden and cell of an LSTM, hidden of a GRU."""
        return 2 if self.cell == "lstm" else 1

    def problems(self) -> Iterator[Problem]:
        if self.tie_output and self.embedding_size != self.hidden_size:
            yield (
                "tie_output",
                f"needs embedding_size ({self.embedding_size}) equal to hidden_size ({self.hidden_size})",
            )


@dataclass(frozen=True)
class TransformerConfig(OneWidth, NetworkConfig):
    """Transformer encoder-decoder."""

    name: Literal["transformer"] = "transformer"
    encoder_layers: int = at_least(1, 3, "layers of the encoder", maximum=256)
    decoder_layers: int = at_least(1, 3, "layers of the decoder", maximum=256)
    bias: bool = setting(True, "linear layers and layer norms have a bias")
    max_positions: int = at_least(1, 128, "longest sequence in tokens, end token included")
    aligned_input: bool = setting(
        False,
        "the decoder's input at a position also holds the encoder's output there, for texts that correspond token by "
        "token",
    )
    feed_forward: Literal["ll", "cc", "cl", "lc"] = setting(
        "ll", "the two maps of a feed-forward layer, each linear (l) or a convolution (c)"
    )
    key_size: int | None = at_least(1, None, "size of queries and keys of all heads together; null is width")
    value_size: int | None = at_least(1, None, "size of values of all heads together; null is width")
    project_embeddings: bool = setting(
        False,
        "embeddings pass a linear map before the layers, and are not multiplied by the root of their size",
    )

    @property
    def scale_embeddings(self) -> bool:
        """Whether embeddings are multiplied by the root of their size."""
        return not self.project_embeddings

    @property
    def output_bias(self) -> bool:
        """Whether the output layer has a bias; one with a weight of its own always has."""
        return self.bias or not self.tie_output

    def problems(self) -> Iterator[Problem]:
        if self.key_size is None or self.value_size is None:
            yield from super().problems()
        for key in ("key_size", "value_size"):
            if (size := getattr(self, key)) is not None and size % self.num_heads:
                yield key, f"must be a multiple of num_heads ({self.num_heads}), and is {size}"


@dataclass(frozen=True)
class CausalTransformerConfig(OneWidth, NetworkConfig):
    """One causal Transformer that reads the source and then the target."""

    scale_embeddings: ClassVar[bool] = True

    name: Literal["causal_transformer"] = "causal_transformer"
    num_layers: int = at_least(1, 4, "number of layers", maximum=256)
    bias: bool = setting(False, "linear layers and layer norms have a bias")
    copy_size: int = at_least(1, 64, "size of the attention head that chooses the word to copy")
    max_positions: int = at_least(1, 320, "longest source and target together, in tokens")

    @property
    def output_bias(self) -> bool:
        """Whether the output layer has a bias; one with a weight of its own always has."""
        return self.bias or not self.tie_output


@dataclass(frozen=True)
class CausalLmConfig(OneWidth):
    """A causal Transformer that predicts each next token of a text."""

    name: Literal["causal_lm"] = "causal_lm"
    num_layers: int = at_least(1, 4, "number of layers", maximum=256)
    bias: bool = setting(False, "linear layers have a bias")
    max_positions: int = at_least(2, 256, "longest text in tokens, title and form included")
    dropout: float = rate(0.0, "share of activations dropped in training")


@dataclass(frozen=True)
class RecurrentLmConfig:
    """Stacked LSTM or GRU layers that predict each next token and carry their state from window to window."""

    max_positions: ClassVar[float] = math.inf  # a state has no position

    name: Literal["recurrent_lm"] = "recurrent_lm"
    cell: Literal["lstm", "gru"] = setting("lstm", "the kind of recurrent layer")
    width: int = at_least(1, 256, "size of embeddings and states")
    num_layers: int = at_least(1, 2, "number of layers", maximum=256)
    dropout: float = rate(0.0, "share of activations dropped in training")


@dataclass(frozen=True)
class LoraConfig:
    """Small matrices that are trained with the frozen ones of a pre-trained model (Hu et al. 2021, "LoRA")."""

    rank: int = at_least(1, 8, "the inner size of the two small matrices of each frozen one")
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
        if self.dtype == "bfloat16" and self.lora is None:
            yield (
                "dtype",
                "bfloat16 is of frozen weights; name model.lora, or take float32 with training.amp: O1",
            )


def with_pretrained_path(config: Any, bundle: Path, recipe: Any = None) -> Any:
    """Return a bundle's settings with the folder of its pre-trained model: the recipe's, its own without LoRA."""
    path = config.model.pretrained
    if config.model.lora is None:
        path = str(bundle)
    elif recipe is not None and isinstance(recipe.model, PretrainedConfig):
        path = recipe.model.pretrained
    return dataclasses.replace(config, model=dataclasses.replace(config.model, pretrained=path))


ModelConfig = LstmAttentionConfig | TransformerConfig
CausalConfig = CausalTransformerConfig | CausalLmConfig
LanguageModelConfig = CausalLmConfig | RecurrentLmConfig
FamilyConfig = LstmAttentionConfig | TransformerConfig | CausalTransformerConfig
