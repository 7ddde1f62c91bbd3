"""The matrix products of EmoPrepend, see `paddle_dialog.benchmark.operations`."""

from __future__ import annotations

from paddle_dialog.benchmark.operations import Lengths, Product, model_products, pairs
from paddle_dialog.config.models import (
    CausalTransformerConfig,
    ConvolutionalTransformerConfig,
    LstmAttentionConfig,
)
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.emotion.labels import EMOTIONS_OF


def emo_prepend_products(
    config: EmpatheticConfig, vocab_size: int, lengths: Lengths, learned: int = 0
) -> list[Product]:
    """Return the products of family, output layer and heads; none for the family with convolutions.

    The n-gram classifier, which is not trained, is left out.

    Args:
        config: of the model.
        vocab_size: V.
        lengths: of the batch.
        learned: words of the contexts that are learned like the reply's.
    """
    model = config.model
    if isinstance(model, ConvolutionalTransformerConfig):
        return []
    if isinstance(model, CausalTransformerConfig):
        products = [*_causal(config, model, lengths), Product(lengths.targets, model.width, vocab_size)]
    else:
        products = model_products(model, vocab_size, lengths)
    read = embedded = model.width  # widths of the encoder's outputs and of the embeddings
    if isinstance(model, LstmAttentionConfig):
        read, embedded = model.width * (2 if model.bidirectional else 1), model.embedding_size
    batch, emotions = len(lengths.source), len(EMOTIONS_OF[config.language])
    products.append(Product(batch, read, emotions))
    if learned:
        products.append(Product(learned, model.width, vocab_size))
    if config.emotion.head == "attention":
        products.append(Product(lengths.sources, read, 1, 2))  # scores and average
    if config.emotion.prepend != "none":
        products.append(Product(batch, emotions, embedded))
    if config.generator.pointer:
        products.append(Product(lengths.targets, model.width, 1))
    return products


def _causal(config: EmpatheticConfig, model: CausalTransformerConfig, lengths: Lengths) -> list[Product]:
    """Return one stack over contexts and replies, and again over the replies if selection is learned."""
    width, inner, layers = model.width, model.inner_width, model.num_layers
    source, target = lengths.source, lengths.target
    batch, sources, targets = len(source), lengths.sources, lengths.targets
    depth, times = width // model.num_heads, 2 * model.num_heads * layers  # scores and averages

    def stack(rows: int) -> list[Product]:
        maps = [(3 * width, 1), (width, 1), (inner, 2)]  # the last back and forth
        return [Product(rows, width, columns, layers * each) for columns, each in maps]

    products = [*stack(sources), pairs(source, source, depth, times)]
    products += [*stack(targets), pairs(target, source + target, depth, times)]
    if config.generator.pointer:
        products += [Product(sources, width, model.copy_depth), Product(targets, width, model.copy_depth)]
        products.append(pairs(target, source, model.copy_depth, 1))
    size = config.selection.size
    if size:
        products += [*stack(targets), pairs(target, target, depth, times)]
        products += [Product(sources, width, 1, 2), Product(targets, width, 1, 2)]  # pooling
        products += [Product(batch, 2 * width, size, 2), Product(batch, size, batch)]
    return products
