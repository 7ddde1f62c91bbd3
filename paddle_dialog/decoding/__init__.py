"""One search engine for every model: greedy, beam and sampling, with rules as logits processors."""
