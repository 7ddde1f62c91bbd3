"""A ranker of replies: one causal Transformer reads a context and each candidate after it, and says which fits."""
