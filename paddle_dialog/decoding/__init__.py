"""One search engine for every model: greedy, beam and sampling, with rules as logits processors.

`decode(model, source, lengths, SearchOptions(...))` gives each input its n best `Hypothesis` objects. A model
offers the `StepModel` interface. `reference` runs the same beam search with Paddle's own decoder, for comparison.
"""

from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import (
    BannedWords,
    ExactLength,
    ForbiddenTokens,
    ForcedPrefix,
    ForcedTokens,
    LogitsProcessor,
    MinimumLength,
    PositionPenalties,
    Prefixes,
)
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.repetition import (
    NoRepeatNGram,
    RepetitionPattern,
    RepetitionPenalty,
    repetition_pattern,
)
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.decoding.search import decode

__all__ = [
    "BannedWords",
    "ExactLength",
    "ForbiddenTokens",
    "ForcedPrefix",
    "ForcedTokens",
    "Hypothesis",
    "LogitsProcessor",
    "MinimumLength",
    "NoRepeatNGram",
    "PositionPenalties",
    "Prefixes",
    "RepetitionPattern",
    "RepetitionPenalty",
    "SearchOptions",
    "StepModel",
    "decode",
    "reference_beam_search",
    "repetition_pattern",
    "text_log_probs",
]
