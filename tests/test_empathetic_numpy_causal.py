"""What the causal family offers over arrays beside steps: given replies scored in one pass."""

from pathlib import Path

import numpy as np
import paddle
import pytest
from empathetic_array_cases import CAUSAL_CASES, CONTEXTS, VOCABULARY, Sections, models, only, packed
from empathetic_toys import make_config, make_network, named, tensors
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import Bundle
from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.models.numpy_pointer_seq2seq import NumpyPointerState
from paddle_dialog.tasks.empathetic.data.encoding import Source
from paddle_dialog.tasks.empathetic.data.examples import Example, collate
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.loss import EmpatheticLoss
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyCausalEmoPrepend
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.reading import log_probs


def causal_models(sections: Sections) -> tuple[EmoPrepend, NumpyCausalEmoPrepend]:
    """Return as `models`."""
    network, made = models("causal", sections)
    assert isinstance(made, NumpyCausalEmoPrepend)
    return network, made


def extended_words(source: Source, config_has_pointer: bool) -> int:
    """Return how many ids a reply to these contexts may have."""
    return max(len(VOCABULARY), int(source.words.max()) + 1) if config_has_pointer else len(VOCABULARY)


@pytest.mark.parametrize("sections", CAUSAL_CASES)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_given_replies_score_as_by_steps_and_as_in_training(sections: Sections, data: st.DataObject) -> None:
    network, made = causal_models(sections)
    source, lengths = packed("causal", sections, [None] * 5)
    row = data.draw(st.integers(0, 4))
    source, lengths = only(source, lengths, row)
    size = extended_words(source, made.returns_log_probabilities)
    few = st.sampled_from([1, 5, size - 1]) | st.integers(1, size - 1)  # so that some begin alike
    replies = data.draw(st.lists(st.lists(few.filter(lambda i: i not in (2, 3)), max_size=6), min_size=1))
    state = made.encode(source, lengths)
    found = scores(made, state, replies)
    assert found.dtype == np.float64 and found.shape == (len(replies),)
    sizes = [len(reply) + 1 for reply in replies]
    np.testing.assert_allclose(scores(made, state, replies), found)  # the state stays as it is
    repeated = source.map(lambda x: np.repeat(x, len(replies), axis=0)), np.repeat(lengths, len(replies))
    by_steps = text_log_probs(made, repeated[0].words, repeated[1], replies, state=made.encode(*repeated))
    np.testing.assert_allclose(found, by_steps / sizes, atol=1e-4)
    np.testing.assert_allclose(found, -teacher_forced_nll(network, source, lengths, replies), atol=1e-4)


def scores(made: NumpyCausalEmoPrepend, state: NumpyPointerState, replies: list[list[int]]) -> np.ndarray:
    """Return log p per token of each reply to the context of a state."""
    found: np.ndarray = made.read_replies(state, replies)[0] / [len(reply) + 1 for reply in replies]
    return found


def teacher_forced_nll(
    network: EmoPrepend, source: Source, lengths: np.ndarray, replies: list[list[int]]
) -> np.ndarray:
    """Return -log p per token of each reply to one context, by the training criterion."""
    criterion = EmpatheticLoss()
    context = source.map(lambda x: x[0])
    examples = [Example(context, np.array(reply, dtype=np.int64), 0) for reply in replies]
    with paddle.no_grad():
        inputs, *labels = (batch := tensors(collate(examples)))[0], *batch[3:]
        criterion(*network(*inputs, *batch[1:3]), **named(labels))
        nll: np.ndarray = (criterion.token_nll.sum(-1) / batch[-1].sum(-1)).numpy()
    return nll


def test_padding_of_the_only_context_does_not_count() -> None:
    made = causal_models(CAUSAL_CASES[0])[1]
    source, lengths = packed("causal", CAUSAL_CASES[0], [None] * 5)
    short = int(lengths.argmin())
    padded, alone = only(source, lengths, short, int(lengths.max()))[0], only(source, lengths, short)[0]
    assert padded.words.shape != alone.words.shape
    replies = [[5, 6, 7], [], [5, int(alone.words[0, 2])]]
    both = [scores(made, made.encode(s, lengths[short : short + 1]), replies) for s in (padded, alone)]
    np.testing.assert_allclose(*both, atol=1e-6)


def test_a_reply_longer_than_the_positions_left_is_refused() -> None:
    sections = {"model": {"max_positions": 24}, "data": {"max_length": 12, "max_target_length": 8}}
    made = causal_models({**sections, "decoding": {"max_length": 10}})[1]
    fives = np.full((1, 13), 5)
    state = made.encode(Source(fives, fives, None, None, np.array([-1])), np.array([13]))
    assert np.isfinite(scores(made, state, [[5] * 10])).all()
    with pytest.raises(UserError, match=r"a reply of 11 tokens cannot be scored.* 10 positions left"):
        scores(made, state, [[5] * 11])


def test_a_context_is_read_once_for_emotion_and_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    config = make_config("causal", decoding={"max_length": 5})
    network = make_network(config, len(VOCABULARY))
    bundle = Bundle("empathetic", "", {"text": VOCABULARY}, read_weights(network))
    trained = TrainedModel.of_bundle(bundle, lambda sizes: network, Path())
    predictor = EmpatheticPredictor(config, trained)
    encoder, lengths = predictor.model._encoder, []  # type: ignore[union-attr]
    read = encoder.read
    monkeypatch.setattr(encoder, "read", lambda x, sizes: (lengths.append(len(x)), read(x, sizes))[1])
    (answer,) = predictor.answer([CONTEXTS[0]], 2)
    (context,) = predictor.understand(predictor.read([CONTEXTS[0]]))
    likely = log_probs(predictor.encoder, [each.tokens for each in answer.predictions], context)
    np.testing.assert_allclose(likely, [each.score for each in answer.predictions], atol=1e-4)
    assert lengths == [1, 1]
