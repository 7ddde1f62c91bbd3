"""Diverse beam search against plain beam search and hand-computed cases."""

import numpy as np
import pytest
from decoding_models import BOS, EOS, TableModel, inputs
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding import SearchOptions, decode
from paddle_dialog.decoding.diverse import DiverseBeamSearch
from paddle_dialog.decoding.repetition import NoRepeatNGram
from paddle_dialog.errors import UserError

seeds = st.integers(0, 2**31)
penalties = st.tuples(st.sampled_from(["none", "average", "gnmt"]), st.sampled_from([0.6, 1.0, 1.7]))


def searched(model, options, *sources):
    return DiverseBeamSearch(model, options).run(*inputs(*sources))


def texts(found):
    return [tuple(hypothesis.tokens) for hypothesis in found]


@given(seeds, penalties, st.integers(1, 5), st.floats(0, 3), st.data())
@settings(deadline=None, max_examples=40)
def test_one_group_is_plain_beam_search(seed, penalty, beam_size, strength, data):
    options = SearchOptions(
        beam_size=beam_size,
        diversity_penalty=strength,
        n_best=data.draw(st.integers(1, beam_size)),
        length_penalty=penalty[0],
        alpha=penalty[1],
        max_length=6,
        processors=[NoRepeatNGram(2)],
    )
    assert searched(TableModel(seed), options, 0, 1, 2) == decode(TableModel(seed), *inputs(0, 1, 2), options)


@given(seeds, penalties, st.integers(1, 3), st.integers(2, 3))
@settings(deadline=None, max_examples=30)
def test_without_a_penalty_every_group_is_the_same_smaller_beam(seed, penalty, width, groups):
    common = {"length_penalty": penalty[0], "alpha": penalty[1], "max_length": 6, "n_best": width}
    grouped = SearchOptions(beam_size=width * groups, groups=groups, **common)
    plain = SearchOptions(beam_size=width, **common)
    found = decode(TableModel(seed), *inputs(0, 1), grouped)
    assert found == decode(TableModel(seed), *inputs(0, 1), plain)


@given(seeds, penalties, st.floats(0, 3), st.integers(1, 6))
@settings(deadline=None, max_examples=40)
def test_candidates_differ_are_ordered_and_scored_without_the_penalty(seed, penalty, strength, n_best):
    model = TableModel(seed)
    common = {
        "beam_size": 6,
        "groups": 3,
        "diversity_penalty": strength,
        "n_best": n_best,
        "length_penalty": penalty[0],
        "alpha": penalty[1],
        "max_length": 6,
    }
    together = decode(model, *inputs(0, 1, 3), SearchOptions(**common))
    assert together == decode(model, *inputs(0, 1, 3), SearchOptions(**common, early_stopping=False))
    for source, found in zip((0, 1, 3), together, strict=True):
        assert decode(model, *inputs(source), SearchOptions(**common)) == [found]
        assert len(set(texts(found))) == len(found) <= n_best
        ranks = [hypothesis.rank_score for hypothesis in found]
        assert ranks == sorted(ranks, reverse=True)
        for hypothesis in found:
            forced = model.text_log_prob(source, tuple(hypothesis.tokens))
            assert hypothesis.log_prob == pytest.approx(forced, rel=1e-5, abs=1e-5)


def scripted():
    """Return a model: first 4 with .5, 5 with .3 or 0 with .2; then 4 with .6 or 5 with .4; then the end."""
    model = TableModel(0, vocab_size=6, steps=4, sources=1)
    model.logits[:] = np.log(1e-12)
    model.logits[0, 0, BOS, [4, 5, 0]] = np.log([0.5, 0.3, 0.2])
    model.logits[0, 1, :, [4, 5]] = np.log([0.6, 0.4])[:, None]
    model.logits[0, 2, :, EOS] = 0.0
    return model


def scripted_texts(strength):
    options = SearchOptions(
        beam_size=3, groups=3, n_best=3, diversity_penalty=strength, max_length=2, early_stopping=False
    )
    (found,) = decode(scripted(), *inputs(0), options)
    return {tuple(h.tokens): round(float(np.exp(h.log_prob)), 3) for h in found}


def test_three_groups_by_hand():
    # 0.3 nats: group 1 takes 4 (.5). To group 2, 4 is worth .5 e^-.3 = .370 and 5 .3, so it takes 4 as well; to
    # group 3, 4 is worth .5 e^-.6 = .274 and 5 .3. Then group 1 takes 4 (.6); to group 2, 4 is worth .444 and 5 .4;
    # to group 3, 4 is worth .329 and 5 .4. Groups 1 and 2 wrote the same text.
    assert scripted_texts(0.3) == {(4, 4): 0.3, (5, 5): 0.12}
    # 0.45: group 2 takes 4 (.319 against .3), group 3 takes 5. Then group 2 takes 5 (.383 against .4). To group 3,
    # 4 and 5 have been taken once each, so 4 is again the better one.
    assert scripted_texts(0.45) == {(4, 4): 0.3, (4, 5): 0.2, (5, 4): 0.18}
    # 2: a token taken before is worth e^-2 = .135 of itself: 4, 5 and 0. Then 4, 5, and to group 3 both are equally
    # spent.
    assert scripted_texts(2.0) == {(4, 4): 0.3, (5, 5): 0.12, (0, 4): 0.12}


def test_groups_must_share_the_beam_equally():
    with pytest.raises(UserError, match=r"groups: must divide beam_size \(5\), and 2 does not"):
        SearchOptions(beam_size=5, groups=2)
    with pytest.raises(UserError, match="diversity_penalty: must be a number"):
        SearchOptions(diversity_penalty=-1)
