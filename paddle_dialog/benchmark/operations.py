"""The matrix products that a model needs for the real tokens of a batch, without padding.

Only products are counted; the rest of a step (norms, softmax, dropout, the optimiser) is overhead.
An embedding is a lookup, not a product. Attention is counted over all pairs of real positions, the masked ones
of the target's self-attention included, as is usual (Chowdhery et al. 2022, appendix B).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paddle_dialog.config.models import LstmAttentionConfig, TransformerConfig

PASSES = 3  # forward, and backward the gradients of both factors: as many operations each


@dataclass(frozen=True)
class Product:
    """Products of one shape in a forward pass.

    Args:
        rows, inner, columns: [rows, inner] by [inner, columns]; for attention those of an average sequence.
        times: how many there are, a fraction where they are of different sizes.
    """

    rows: int
    inner: int
    columns: int
    times: float = 1.0

    @property
    def operations(self) -> float:
        """Multiplications and additions, of the forward pass alone."""
        return 2.0 * self.rows * self.inner * self.columns * self.times


@dataclass(frozen=True)
class Lengths:
    """Real tokens of each sequence of a batch.

    Args:
        source: [B].
        target: [B], the end token included.
    """

    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of_batch(cls, batch: Sequence[np.ndarray]) -> Lengths:
        """Read lengths from a training batch: its second array holds source lengths [B], its last the mask [B, T]."""
        return cls(batch[1], batch[-1].sum(axis=1).astype(np.int64))

    @property
    def sources(self) -> int:
        """Total number of source tokens."""
        return int(self.source.sum())

    @property
    def targets(self) -> int:
        """Total number of target tokens."""
        return int(self.target.sum())


def model_products(
    config: LstmAttentionConfig | TransformerConfig, vocab_size: int, lengths: Lengths
) -> list[Product]:
    """Return the products of a family's encoder, decoder and output layer.

    Args:
        config: sizes and switches.
        vocab_size: V.
        lengths: of the batch.
    """
    body = _transformer(config, lengths) if isinstance(config, TransformerConfig) else _lstm(config, lengths)
    return [*body, Product(lengths.targets, config.width, vocab_size)]


def _transformer(config: TransformerConfig, lengths: Lengths) -> list[Product]:
    width, inner = config.width, config.inner_width
    sources, targets = lengths.sources, lengths.targets
    depth = width // config.num_heads

    def attention(queries: np.ndarray, keys: np.ndarray, layers: int) -> Product:
        """Return score and average of all heads, which take the same number of operations."""
        return pairs(queries, keys, depth, 2 * config.num_heads * layers)

    def feed_forward(rows: int, layers: int) -> list[Product]:
        return [Product(rows, width, inner, layers), Product(rows, inner, width, layers)]

    encoders, decoders = config.encoder_layers, config.decoder_layers
    products = [
        Product(sources, width, 3 * width, encoders),
        attention(lengths.source, lengths.source, encoders),
        Product(sources, width, width, encoders),
        *feed_forward(sources, encoders),
        Product(targets, width, 3 * width, decoders),
        attention(lengths.target, lengths.target, decoders),
        Product(sources, width, 2 * width, decoders),  # keys and values of the source
        attention(lengths.target, lengths.source, decoders),
        Product(targets, width, width, 3 * decoders),  # queries of the source, and both output maps
        *feed_forward(targets, decoders),
    ]
    if config.aligned_input:
        products.append(Product(sources, width, width))
    return products


def _lstm(config: LstmAttentionConfig, lengths: Lengths) -> list[Product]:
    hidden, layers = config.hidden_size, config.num_layers
    gates = hidden * (4 if config.cell == "lstm" else 3)
    directions = 2 if config.bidirectional else 1
    memory = directions * hidden
    sources, targets = lengths.sources, lengths.targets
    batch, source_steps, target_steps = len(lengths.source), lengths.source.max(), lengths.target.max()
    row_source, row_target = round(sources / source_steps), round(targets / target_steps)  # of one time step

    def by_step(inner: int, columns: int, times: float = 1.0) -> Product:
        """Return a product of each step of the decoder, whose input depends on the step before."""
        return Product(row_target, inner, columns, times * targets / row_target)

    products = [
        Product(sources, config.embedding_size, gates, directions),
        Product(sources, memory, gates, directions * (layers - 1)),
        Product(row_source, hidden, gates, directions * layers * sources / row_source),
        Product(sources, memory, hidden),  # what is attended to
        Product(targets, config.embedding_size, gates),
        pairs(lengths.target, lengths.source, hidden, 2),
    ]
    if memory != hidden:
        products.append(Product(batch, memory, hidden, layers * (2 if config.cell == "lstm" else 1)))
    if config.input_feeding:
        products += [by_step(2 * hidden, gates, layers), by_step(2 * hidden, hidden)]
    else:
        products += [by_step(hidden, gates, layers), Product(targets, hidden, gates, layers - 1)]
        products.append(Product(targets, 2 * hidden, hidden))
    if config.score in ("additive", "bilinear"):
        products.append(Product(sources, hidden, hidden))
    if config.score == "additive":  # v times a tanh of each pair replaces the dot product
        products.append(Product(targets, hidden, hidden))
    return [product for product in products if product.times]


def pairs(queries: np.ndarray, keys: np.ndarray, inner: int, times: int) -> Product:
    """Return products over all pairs of a query and a key of the same sequence."""
    rows, columns = round(queries.mean()), round(keys.mean())
    return Product(rows, inner, columns, times * float((queries * keys).sum()) / (rows * columns))
