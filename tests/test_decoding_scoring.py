"""Given texts, those of one input read together, against the chain rule for each."""

import numpy as np
from decoding_models import TableModel
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.decoding.scoring import text_log_probs

ONE = np.array([[1]]), np.array([1])


@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=8))
@settings(deadline=None, max_examples=40)
def test_texts_score_as_each_does_alone(texts: list[list[int]]) -> None:
    model = TableModel(5)
    expected = [model.text_log_prob(1, tuple(text)) for text in texts]
    found = text_log_probs(model, *ONE, texts, inputs=[0] * len(texts))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 4), max_size=4)), max_size=8))
@settings(deadline=None, max_examples=40)
def test_texts_of_several_inputs_score_as_each_does_alone(pairs: list[tuple[int, list[int]]]) -> None:
    model = TableModel(5)
    sources = np.array([[3], [1], [0]])
    found = text_log_probs(
        model, sources, np.ones(3, np.int64), [t for _, t in pairs], [row for row, _ in pairs]
    )
    expected = [model.text_log_prob(int(sources[row, 0]), tuple(text)) for row, text in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_what_texts_share_is_read_once() -> None:
    model = TableModel(5)
    text_log_probs(model, *ONE, [[4, 4, 2], [4, 4, 4], [4, 2], [4, 4, 2]], inputs=[0] * 4)
    assert model.rows_asked == [1, 1, 2, 2]  # nothing; 4; 4 4, 4 2; 4 4 2, 4 4 4
