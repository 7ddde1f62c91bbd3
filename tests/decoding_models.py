"""Tiny models for the tests of the search: random tables, so that every probability is known exactly."""

from __future__ import annotations

import itertools

import numpy as np

BOS, EOS = 2, 3


class TableModel:
    """Logits looked up by (first source id, step, previous token); a row never depends on the others."""

    def __init__(self, seed, vocab_size=5, steps=8, sources=4, spread=2.0):
        generator = np.random.default_rng(seed)
        table = generator.normal(size=(sources, steps, vocab_size, vocab_size)) * spread
        self.logits = table  # float64, so that no rounding reorders texts
        self.rows_asked: list[int] = []

    def encode(self, source, lengths):
        return {"source": source[:, 0], "step": [np.zeros_like(lengths)]}

    def step(self, token, state):
        self.rows_asked.append(len(token))
        step = state["step"][0]
        return self.logits[state["source"], step, token], {"source": state["source"], "step": [step + 1]}

    def reorder(self, state, index):
        return {"source": state["source"][index], "step": [state["step"][0][index]]}

    def log_probs(self, source, step, previous):
        logits = self.logits[source, step, previous]
        return logits - np.log(np.exp(logits).sum())

    def text_log_prob(self, source, text):
        """Return log p(text, end), by the chain rule."""
        written = [BOS, *text, EOS]
        return float(
            sum(self.log_probs(source, t, a)[b] for t, (a, b) in enumerate(itertools.pairwise(written)))
        )

    def every_text(self, max_length):
        """Return all texts of at most `max_length` tokens."""
        tokens = [t for t in range(self.logits.shape[-1]) if t != EOS]
        return [text for n in range(max_length + 1) for text in itertools.product(tokens, repeat=n)]


def inputs(*sources):
    """Return a batch whose inputs are single ids."""
    return np.array([[s] for s in sources], dtype=np.int64).reshape(-1, 1), np.ones(
        len(sources), dtype=np.int64
    )


def charge(penalties):
    """Return a rule that charges tokens by their position."""

    def rule(scores, prefixes):
        scores -= penalties.get(prefixes.length, 0.0)

    return rule
