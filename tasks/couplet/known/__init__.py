"""Whether a couplet stands in the training corpus: a compact index of it, how it is made, and the search in it."""
