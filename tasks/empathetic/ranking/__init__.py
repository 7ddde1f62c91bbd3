"""A ranker of replies: one causal Transformer reads a context, then each candidate, and scores how well it fits."""
