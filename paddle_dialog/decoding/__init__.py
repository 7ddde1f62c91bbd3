"""One search engine for every model: greedy, beam and sampling, with rules as logits processors.

`decode(model, source, lengths, SearchOptions(...))` gives each input its n best `Hypothesis` objects. A model
offers the `StepModel` interface. `reference` runs the same beam search with Paddle's own decoder, for comparison.
"""

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import (
    ForbiddenTokens,
    ForcedPrefix,
    LogitsProcessor,
    MinimumLength,
    NoRepeatNGram,
    Prefixes,
)
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import SearchOptions, decode

__all__ = [
    "ForbiddenTokens",
    "ForcedPrefix",
    "Hypothesis",
    "LogitsProcessor",
    "MinimumLength",
    "NoRepeatNGram",
    "Prefixes",
    "SearchOptions",
    "StepModel",
    "decode",
    "reference_beam_search",
    "text_log_probs",
]
