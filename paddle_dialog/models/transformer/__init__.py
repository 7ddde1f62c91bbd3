"""The Transformer (Vaswani et al. 2017)."""
