"""The matrix products of EmoPrepend, see ``paddle_dialog.benchmark.operations``."""

from __future__ import annotations

from paddle_dialog.benchmark.operations import Lengths, Product, model_products
from paddle_dialog.config.schema import LstmAttentionConfig
from tasks.empathetic.config import ConvolutionalTransformerConfig, EmpatheticConfig
from tasks.empathetic.emotions import EMOTIONS


def emo_prepend_products(config: EmpatheticConfig, vocab_size: int, lengths: Lengths) -> list[Product]:
    """Those of the family, the emotion head and the copying gate; empty for the family with convolutions.

    The n-gram classifier, which is not trained, is left out.

    Args:
        config: of the model.
        vocab_size: V.
        lengths: of the batch.
    """
    model = config.model
    if isinstance(model, ConvolutionalTransformerConfig):
        return []
    read = embedded = model.width  # widths of the encoder's outputs and of the embeddings
    if isinstance(model, LstmAttentionConfig):
        read, embedded = model.width * (2 if model.bidirectional else 1), model.embedding_size
    batch, emotions = len(lengths.source), len(EMOTIONS)
    products = [*model_products(model, vocab_size, lengths), Product(batch, read, emotions)]
    if config.emotion.head == "attention":
        products.append(Product(lengths.sources, read, 1, 2))  # scores and average
    if config.emotion.prepend != "none":
        products.append(Product(batch, emotions, embedded))
    if config.generator.pointer:
        products.append(Product(lengths.targets, model.width, 1))
    return products
