"""Searches worked out by hand, where a rule of the search decides what is found."""

from dataclasses import fields

import numpy as np
import pytest
from decoding_models import BOS, EOS, TableModel, inputs

from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.decoding import PositionPenalties, SearchOptions, decode


def table(*steps):
    """Return a model whose steps give each token a probability, whatever stands before; others have nearly none."""
    model = TableModel(0, vocab_size=6, steps=len(steps), sources=1)
    model.logits[:] = np.log(1e-12)
    for number, step in enumerate(steps):
        for token, probability in step.items():
            model.logits[0, number, BOS if number == 0 else slice(None), token] = np.log(probability)
    return model


def texts(model, **options):
    return [hypothesis.tokens for hypothesis in decode(model, *inputs(0), SearchOptions(**options))[0]]


def test_early_stopping_looks_to_the_end_token_behind_the_longest_text():
    # In the mean () has ln .6 = -.511 and (4, 4) with its end ln .279 / 3 = -.426, though / 2 it would be -.638.
    model = table({4: 0.279, 5: 0.121, EOS: 0.6}, {4: 1.0}, {EOS: 1.0})
    assert texts(model, beam_size=2, length_penalty="average", max_length=2) == [[4, 4]]


def test_a_group_keeps_away_from_the_ends_of_another():
    model = table({EOS: 0.5, 4: 0.3, 5: 0.2}, {EOS: 1.0})
    assert texts(model, beam_size=2, groups=2, n_best=2, diversity_penalty=1.0, max_length=2) == [[], [4]]


def test_a_finished_text_keeps_its_slot_where_what_would_take_it_has_been_taken():
    # (4, 4) and (4, 5) of .325 take both slots of group 1. To group 2 they are worth .325 / e^.5 = .197, so () of
    # .3 keeps its slot.
    model = table({4: 0.65, EOS: 0.3}, {4: 0.5, 5: 0.5}, {4: 0.5, 5: 0.5}, {EOS: 1.0})
    assert texts(model, beam_size=4, groups=2, diversity_penalty=0.5, max_length=3) == [[]]


def test_samples_are_ranked_by_what_rules_leave_of_their_scores():
    weight = np.array([0.0, 1.5, 0.0, 0.0, 0.7])
    rules = [PositionPenalties([{0: weight, 1: weight}])]
    options = SearchOptions(strategy="sample", n_best=30, max_length=2, processors=rules)
    found = decode(TableModel(1), *inputs(0), options)[0]
    assert {1, 4} & {token for hypothesis in found for token in hypothesis.tokens}
    for hypothesis in found:
        charged = sum(weight[token] for token in hypothesis.tokens)
        assert hypothesis.rank_score == pytest.approx(hypothesis.log_prob - charged, abs=1e-5)


def test_every_setting_of_the_section_reaches_the_search():
    settings = DecodingConfig(
        strategy="sample",
        beam_size=6,
        groups=3,
        diversity_penalty=0.7,
        n_best=2,
        length_penalty="gnmt",
        alpha=0.6,
        max_length=9,
        temperature=0.8,
        top_k=4,
        top_p=0.9,
    )
    found = SearchOptions.of(settings, 2, 5, [])
    shared = {f.name for f in fields(SearchOptions)} & {f.name for f in fields(DecodingConfig)}
    assert len(shared) > 9
    assert {name: getattr(found, name) for name in shared} == {
        name: getattr(settings, name) for name in shared
    }
