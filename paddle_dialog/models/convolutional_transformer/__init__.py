"""A Transformer with convolutions for feed-forward."""
