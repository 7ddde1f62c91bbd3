"""Texts of one input that are scored together, against the chain rule for each."""

import numpy as np
from decoding_models import TableModel
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.prefix_tree import one_input_log_probs


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=8))
@settings(deadline=None, max_examples=40)
def test_texts_score_as_each_does_alone(texts: list[list[int]]) -> None:
    model = TableModel(5)
    expected = [model.text_log_prob(1, tuple(text)) for text in texts]
    np.testing.assert_allclose(one_input_log_probs(model, np.array([1]), texts), expected, atol=1e-9)


def test_what_texts_share_is_read_once() -> None:
    model = TableModel(5)
    one_input_log_probs(model, np.array([1]), [[4, 4, 2], [4, 4, 4], [4, 2], [4, 4, 2]])
    assert model.rows_asked == [1, 1, 2, 2]  # nothing; 4; 4 4, 4 2; 4 4 2, 4 4 4
