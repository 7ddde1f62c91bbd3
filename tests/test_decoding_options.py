"""What the search refuses, in one plain sentence."""

import numpy as np
import paddle
import pytest
from decoding_models import TableModel, inputs

from paddle_dialog.decoding import SearchOptions, decode, text_log_probs
from paddle_dialog.errors import UserError


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "magic"}, 'strategy: must be one of beam, greedy, sample, found "magic"'),
        ({"length_penalty": "long"}, 'length_penalty: must be one of none, average, gnmt, found "long"'),
        ({"beam_size": 0}, "beam_size: must be an integer (at least 1), found 0"),
        ({"n_best": 0}, "n_best: must be an integer (at least 1), found 0"),
        ({"beam_size": 2, "n_best": 3}, "n_best: is 3, but a beam of 2 holds fewer; raise beam_size"),
        (
            {"strategy": "greedy", "n_best": 2},
            "n_best: is 2, but greedy search gives one candidate; take beam or sample",
        ),
        ({"alpha": -0.1}, "alpha: must be a number (at least 0.0), found -0.1"),
        ({"alpha": float("nan")}, "alpha: must be a number (at least 0.0), found NaN"),
        ({"temperature": 0.0}, "temperature: must be a number (above 0.0), found 0.0"),
        ({"top_p": 0.0}, "top_p: must be a number (above 0.0 and at most 1.0), found 0.0"),
        ({"top_p": 1.1}, "top_p: must be a number (above 0.0 and at most 1.0), found 1.1"),
        ({"top_k": -1}, "top_k: must be an integer (at least 0), found -1"),
        ({"seed": -1}, "seed is -1, it must be 0 or more"),
        ({"max_length": 0}, "max_length: must be an integer (at least 1), found 0"),
        ({"max_length": [3, 0]}, "max_length: must be an integer (at least 1), found 0"),
    ],
)
def test_nonsense_is_refused(settings, message):
    with pytest.raises(UserError) as refused:
        SearchOptions(**settings)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_more_samples_than_beams_are_fine():
    assert SearchOptions(strategy="sample", beam_size=1, n_best=5).n_best == 5


def test_limits_must_fit_the_batch():
    with pytest.raises(UserError, match="max_length has 2 limits for 3 inputs"):
        decode(TableModel(0), *inputs(0, 1, 2), SearchOptions(max_length=[1, 2]))


def test_lengths_must_fit_the_source():
    with pytest.raises(UserError, match=r"source has shape \[2, 1\] and lengths \[1\]"):
        decode(TableModel(0), inputs(0, 1)[0], paddle.ones([1], "int64"), SearchOptions())


def test_no_input_gives_no_answer():
    empty = paddle.zeros([0, 4], "int64")
    assert decode(TableModel(0), empty, paddle.zeros([0], "int64"), SearchOptions()) == []


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("strategy", ["greedy", "beam", "sample"])
def test_damaged_weights_are_told(value, strategy):
    model = TableModel(0)
    model.logits[0, 0, 2, 1] = value
    with pytest.raises(UserError, match="NaN or infinity"):
        decode(model, *inputs(0), SearchOptions(strategy=strategy, max_length=2))


def test_texts_of_different_length_are_scored_together():
    model = TableModel(4)
    texts = [(), (1, 4, 0), (4,)]
    found = text_log_probs(model, *inputs(0, 1, 2), texts)
    expected = [model.text_log_prob(source, text) for source, text in enumerate(texts)]
    assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
