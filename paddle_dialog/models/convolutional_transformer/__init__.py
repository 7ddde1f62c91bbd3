"""A Transformer with convolutions in its feed-forward layers."""
