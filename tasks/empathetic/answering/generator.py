"""Replies that the model writes itself, and the search for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from paddle_dialog.decoding.interface import Hypothesis, StepModel, to_model
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor, MinimumLength, NoRepeatNGram
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.config import EmpatheticDecodingConfig
from tasks.empathetic.data.encoding import DialogueEncoder, Packed, pad_sources
from tasks.empathetic.data.vocabulary import not_words
from tasks.empathetic.selection.candidate import ReplyPrediction


def write_replies(
    model: StepModel, encoder: DialogueEncoder, packed: Sequence[Packed], options: SearchOptions
) -> list[list[ReplyPrediction]]:
    """Write replies.

    Args:
        model: of the network.
        encoder: that packed the contexts.
        packed: contexts with their extended ids.
        options: of the search.

    Returns:
        The candidates of each context in the order of the search.
    """
    source, lengths = (to_model(model, array) for array in pad_sources([one for one, _ in packed]))
    found = decode(model, source, lengths, options)
    return [
        _predictions(encoder, hypotheses, extended)
        for hypotheses, (_, extended) in zip(found, packed, strict=True)
    ]


def _predictions(
    encoder: DialogueEncoder, hypotheses: Sequence[Hypothesis], extended: dict[int, int]
) -> list[ReplyPrediction]:
    """Make replies of hypotheses; `extended` maps the encoder's numbers to extended ids."""
    copied = {index: number for number, index in extended.items()}
    words = encoder.words() if copied else []
    size = len(encoder.vocabulary)
    predictions = []
    for hypothesis in hypotheses:
        tokens = tuple(
            encoder.vocabulary.token(index) if index < size else words[copied[index]]
            for index in hypothesis.tokens
            if index < size or index in copied
        )
        predictions.append(ReplyPrediction(encoder.language.detokenise(tokens), hypothesis.score, tokens))
    return predictions


def search_options(
    settings: EmpatheticDecodingConfig,
    n_best: int,
    seed: int,
    more: Sequence[LogitsProcessor],
    has_store: bool,
    emotions: Sequence[str],
) -> SearchOptions:
    """Return the options of the search for candidates.

    Args:
        settings: of decoding.
        n_best: replies asked for. Where they are ranked, there are more candidates.
        seed: of the draws.
        more: rules of the search beside those of the settings.
        has_store: people's replies are candidates too, so the generator need not write all `n_best`.
        emotions: of the language, whose entries are no words.
    """
    count = n_best
    if has_store:
        count = 1 if settings.strategy == "greedy" else settings.rerank.candidates
    elif ranks(settings):
        count = max(count, settings.rerank.candidates)
    processors: list[LogitsProcessor] = [ForbiddenTokens([not_words(emotions)]), *more]
    if settings.min_length:
        processors.append(MinimumLength(settings.min_length, Vocabulary.eos_id))
    if settings.no_repeat_ngram:
        processors.append(NoRepeatNGram(settings.no_repeat_ngram))
    wide = dataclasses.replace(settings, beam_size=max(settings.beam_size, n_best))
    return SearchOptions.of(wide, count, seed, processors)


def ranks(settings: EmpatheticDecodingConfig) -> bool:
    """Return whether the generator's candidates are re-ranked."""
    return settings.rerank.is_active and settings.strategy != "greedy"


def search_summary(settings: EmpatheticDecodingConfig, options: SearchOptions) -> str:
    """Describe the generator's search in a few words."""
    penalty = f"length penalty {settings.length_penalty}" + (
        f" {settings.alpha}" if settings.length_penalty != "none" else ""
    )
    search = {
        "beam": f"beam {options.beam_size}, {penalty}",
        "greedy": "greedy",
        "sample": f"sampling, temperature {settings.temperature}, top-k {settings.top_k}, "
        f"top-p {settings.top_p}, seed {options.seed}",
    }[settings.strategy]
    repeats = f", no repeated {settings.no_repeat_ngram}-gram" if settings.no_repeat_ngram else ""
    return f"{search}{repeats}, at most {settings.max_length} tokens"
