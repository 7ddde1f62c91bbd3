"""A causal Transformer that predicts each next token of a text (Radford et al. 2018)."""
