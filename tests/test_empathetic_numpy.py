"""EmoPrepend over arrays gives the numbers and the replies of the network whose weights it has."""

from pathlib import Path

import numpy as np
import paddle
import pytest
from empathetic_array_cases import ALL_CASES, CASES, CONTEXTS, VOCABULARY, Sections, models, packed
from empathetic_toys import make_config, make_network, predictor_of
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import Bundle
from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.models.numpy_operators import UnsupportedModelError
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import numpy_emo_prepend
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor


def saved(config: EmpatheticConfig, network: EmoPrepend) -> TrainedModel:
    """Return a network as it comes back from a bundle."""
    bundle = Bundle("empathetic", "", {"text": VOCABULARY}, read_weights(network))
    return TrainedModel.of_bundle(bundle, lambda sizes: EmoPrepend(config, sizes["text"]), Path())


@pytest.mark.parametrize(("family", "sections"), ALL_CASES)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_steps_equal_the_network_whatever_rows_the_search_takes(
    family: str, sections: Sections, data: st.DataObject
) -> None:
    network, made = models(family, sections)
    label = st.none() | st.integers(0, 31)
    source, lengths = packed(family, sections, data.draw(st.lists(label, min_size=5, max_size=5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    tensors = [source.map(paddle.to_tensor), paddle.to_tensor(lengths)]
    with paddle.no_grad():
        np.testing.assert_allclose(
            made.emotion_probabilities(source, lengths),
            network.emotion_probabilities(*tensors).numpy(),
            atol=1e-5,
        )
        theirs, ours = network.encode(*tensors), made.encode(source, lengths)
        rows, owners = len(lengths), np.arange(len(lengths))
        for step in range(data.draw(st.integers(1, 7))):
            index = np.array(data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=6)))
            within = len(index) == rows and np.array_equal(owners[index], owners)
            name = "reorder_within" if within else "reorder"
            theirs = getattr(network, name)(theirs, paddle.to_tensor(index))
            ours = getattr(made, name)(ours, index)
            rows, owners = len(index), owners[index]
            size = len(VOCABULARY) + (ours.extra if made.returns_log_probabilities else 0)
            token = np.full(rows, 2) if step == 0 else rng.integers(0, size, rows)
            expected, theirs = network.step(paddle.to_tensor(token), theirs)
            found, ours = made.step(token, ours)
            assert found.shape == (rows, size)
            # Paddle's softmax leaves 1e-28 where this leaves nothing, which is as little under a logarithm.
            np.testing.assert_allclose(
                np.maximum(found, -50), np.maximum(expected.numpy(), -50), atol=2e-4, rtol=1e-4
            )


@pytest.mark.parametrize(("family", "sections"), ALL_CASES)
def test_attention_over_the_context_equals_the_networks(family: str, sections: Sections) -> None:
    network, made = models(family, sections)
    source, lengths = packed(family, sections, [3, 5, 7, 9, 11])
    generator = np.random.default_rng(0)
    target = generator.integers(4, len(VOCABULARY) + 2, (len(lengths), 4))
    target[:, 0] = 2
    with paddle.no_grad():
        inputs = source.map(paddle.to_tensor), paddle.to_tensor(lengths), paddle.to_tensor(target)
        expected = network.attention_weights(*inputs)
    found = made.attention_weights(source, lengths, target)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("strategy", ["beam", "sample"])
@pytest.mark.parametrize(
    ("family", "sections"), [ALL_CASES[n] for n in (0, 2, 6, len(CASES), len(CASES) + 1, -2)]
)
def test_predictor_answers_as_with_the_network_alone_and_in_a_batch(
    family: str, sections: Sections, strategy: str
) -> None:
    decoding = {"strategy": strategy, "max_length": 8, "top_k": 5}
    config = make_config(family, **sections, decoding=decoding)
    network = make_network(config, len(VOCABULARY))
    trained = saved(config, network)
    ours = EmpatheticPredictor(config, trained)
    expected = predictor_of(config, network, VOCABULARY).answer(CONTEXTS, 4)
    together = ours.answer(CONTEXTS, 4)
    assert "network" not in vars(trained)  # the arrays were enough
    alone = [ours.answer([context], 4)[0] for context in CONTEXTS]
    for found in (together, alone):
        for answer, wanted in zip(found, expected, strict=True):
            assert answer.emotion == wanted.emotion
            assert [p.tokens for p in answer.predictions] == [p.tokens for p in wanted.predictions]
            scores = ([p.score for p in each.predictions] for each in (answer, wanted))
            np.testing.assert_allclose(*scores, atol=1e-4)
            np.testing.assert_allclose(answer.probabilities, wanted.probabilities, atol=1e-5)


@pytest.mark.parametrize(
    ("family", "sections", "told"), [("convolutional", {}, "the model is convolutional_transformer")]
)
def test_what_is_not_served_stays_with_the_network(
    family: str, sections: Sections, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config(family, **sections)
    network = make_network(config, len(VOCABULARY))
    ours, theirs = (
        EmpatheticPredictor(config, saved(config, network)),
        predictor_of(config, network, VOCABULARY),
    )
    assert isinstance(ours.network, EmoPrepend)
    assert caplog.messages == [f".: {told}; answering through Paddle, which starts seconds later"]
    (found,), (expected,) = ours.answer(CONTEXTS[:1]), theirs.answer(CONTEXTS[:1])
    assert found.predictions == expected.predictions


@pytest.mark.parametrize("change", ["missing", "shape", "foreign"])
def test_weights_of_another_model_are_left_to_the_network_to_refuse(change: str) -> None:
    config = make_config()
    weights = read_weights(make_network(config, len(VOCABULARY)))
    if change == "missing":
        del weights["generator.gate.bias"]
    elif change == "shape":
        weights["emotion_head.output.weight"] = weights["emotion_head.output.weight"][:-1]
    else:
        weights["odd.weight"] = np.zeros(1, dtype=np.float32)
    with pytest.raises(
        UnsupportedModelError, match=r"generator\.gate\.bias is missing|of shape|odd\.weight is unknown"
    ):
        numpy_emo_prepend(config, len(VOCABULARY), weights)
