"""Every family: `forward`, the prefix read again, and steps in NumPy give the same numbers and texts."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from empathetic_toys import make_config, make_network, predictor_of
from hypothesis import given, settings
from hypothesis import strategies as st
from network_cases import (
    CONTEXTS,
    COPYING,
    EMPATHETIC,
    LM,
    LSTM,
    NAMES,
    PLAIN,
    SERVED,
    TRANSFORMER,
    VOCABULARY,
    WORDS,
    case,
)

from paddle_dialog.bundle.folder import Bundle, TrainedModel
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.search import SearchOptions, decode, text_log_probs
from paddle_dialog.errors import UnsupportedModelError, UserError
from paddle_dialog.models.families import NUMPY_PAIRS, build_pair, numpy_pair
from paddle_dialog.models.numpy_layers import RowInputs
from paddle_dialog.models.numpy_operators import (
    COLUMNS,
    ROWS,
    NumpyLinear,
    Weights,
    label_log_softmax,
)
from paddle_dialog.models.numpy_seq2seq import NumpySeq2Seq
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.empathetic.data.encoding import Source
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend
from paddle_dialog.tasks.empathetic.network.numpy_emo_prepend import NumpyCausalEmoPrepend, numpy_emo_prepend
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.replies import score_replies

random_case = cache(case)


def targets(made, length, seed=2):
    """Return a target for each source [5, T], begin token first."""
    target = np.random.default_rng(seed).integers(4, made.size, (len(made.lengths), length))
    target[:, 0] = 2
    return target


def forward_scores(name, made, target):
    """Return log P [B, T, V] of the words of the vocabulary after each position, by `forward` alone."""
    source = (
        made.source.map(paddle.to_tensor) if isinstance(made.source, tuple) else paddle.to_tensor(made.source)
    )
    lengths, tokens = paddle.to_tensor(made.lengths), paddle.to_tensor(target)
    with paddle.no_grad():
        if name in LM:
            rows = []
            for ids, length, own in zip(made.source, made.lengths, target, strict=True):
                text = paddle.to_tensor([[*ids[:length], *own]])
                places = paddle.arange(-int(length), len(own)).unsqueeze(0)
                rows.append(made.network(text, places)[:, int(length) :])
            return F.log_softmax(paddle.concat(rows), axis=-1).numpy()
        parts = (
            made.network(*source, lengths, tokens)
            if name in EMPATHETIC
            else made.network(source, lengths, tokens)
        )
    if name in PLAIN:
        return F.log_softmax(parts, axis=-1).numpy()
    logits, gate, attention, copy_ids = (part.numpy() for part in parts[:4])
    logits = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    if not made.paddle.returns_log_probabilities:
        return logits
    share = 1 / (1 + np.exp(-gate[..., None]))
    probabilities = share * np.exp(logits)
    for row, ids in enumerate(copy_ids):
        for place, word in enumerate(ids):
            if word < probabilities.shape[-1]:
                probabilities[row, :, word] += (1 - share[row, :, 0]) * attention[row, :, place]
    return np.log(probabilities)


def normalised(model, scores):
    """Return log-probabilities, at least -50: Paddle's softmax leaves 1e-28 where NumPy leaves nothing."""
    if not getattr(model, "returns_log_probabilities", False):
        scores = scores - np.log(np.exp(scores.astype(np.float64)).sum(-1, keepdims=True))
    return np.maximum(scores, -50)


def test_every_family_is_in_the_table():
    pairs = {*PLAIN.values(), *COPYING.values()}
    assert {config.name for config in pairs} == set(NUMPY_PAIRS)


@pytest.mark.parametrize("name", NAMES)
def test_a_prefix_read_again_scores_as_forward(name):
    made, length = random_case(name), 6
    target = targets(made, length)
    expected = np.maximum(forward_scores(name, made, target), -50)
    state = made.paddle.encode(made.source, made.lengths)
    for place in range(length):
        scores, state = made.paddle.step(target[:, place], state)
        found = normalised(made.paddle, scores)
        np.testing.assert_allclose(np.exp(found).sum(-1), 1, atol=1e-4)
        size = expected.shape[-1]
        np.testing.assert_allclose(found[:, :size], expected[:, place], atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_source_alone_scores_as_in_a_padded_batch(name):
    made = random_case(name)
    for model in (made.paddle, made.arrays) if made.arrays else (made.paddle,):
        together = model.step(np.full(5, 2), model.encode(made.source, made.lengths))[0]
        for row in range(5):
            alone = model.step(np.array([2]), model.encode(*made.only(row)))[0][0]
            np.testing.assert_allclose(alone, together[row, : len(alone)], atol=2e-4)


@pytest.mark.parametrize("name", SERVED)
@settings(deadline=None, max_examples=6)
@given(data=st.data())
def test_arrays_step_as_the_network_whatever_rows_the_search_takes(name, data):
    made = random_case(name)
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    theirs, ours = (model.encode(made.source, made.lengths) for model in (made.paddle, made.arrays))
    owners = np.arange(5)
    for step in range(data.draw(st.integers(1, 6))):
        index = np.array(data.draw(st.lists(st.integers(0, len(owners) - 1), min_size=1, max_size=6)))
        theirs, owners = made.paddle.reorder(theirs, index), owners[index]
        ours = made.arrays.reorder(ours, index)
        token = np.full(len(owners), 2) if step == 0 else rng.integers(0, made.size, len(owners))
        expected, theirs = made.paddle.step(token, theirs)
        found, ours = made.arrays.step(token, ours)
        common = min(found.shape[1], expected.shape[1])  # of sources that are gone arrays keep the words
        np.testing.assert_allclose(
            np.maximum(found[:, :common], -50), np.maximum(expected[:, :common], -50), atol=3e-4, rtol=1e-3
        )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LM])
def test_attention_is_a_distribution_over_real_positions_and_the_same_over_arrays(name):
    made = random_case(name)
    target = targets(made, 4)
    weights = made.paddle.attention_weights(made.source, made.lengths, target)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    for row, length in enumerate(made.lengths):
        assert not weights[row, :, length:].any()
    if hasattr(made.arrays, "attention_weights"):
        found = made.arrays.attention_weights(made.source, made.lengths, target)
        np.testing.assert_allclose(found, weights, atol=1e-5)


@pytest.mark.parametrize("name", SERVED)
@settings(deadline=None, max_examples=5)
@given(data=st.data())
def test_given_texts_score_as_by_the_network(name, data):
    made = random_case(name)
    words = st.sampled_from([5, 6]) | st.integers(4, made.size - 1)  # so that some begin alike
    texts = data.draw(st.lists(st.lists(words, max_size=6), min_size=1, max_size=6))
    if name in EMPATHETIC:
        source, lengths = made.only(data.draw(st.integers(0, 4)))
        texts = [
            [min(word, max(len(WORDS), int(source.words.max()) + 1) - 1) for word in text] for text in texts
        ]
        ids, inputs = source.words, np.zeros(len(texts), dtype=np.int64)
    else:
        source = ids = made.source
        lengths, row = made.lengths, data.draw(st.integers(0, 4))
        inputs = (row + np.arange(len(texts)) % 2) % 5
        if name in COPYING:
            inputs = np.full(len(texts), 2)  # its source has the last word that can be copied
    expected, found = (
        text_log_probs(model, ids, lengths, texts, inputs, state=model.encode(source, lengths))
        for model in (made.paddle, made.arrays)
    )
    np.testing.assert_allclose(found, expected, atol=2e-3, rtol=1e-3)
    if name in EMPATHETIC:
        state, emotions = made.arrays.read_contexts(source, lengths)
        np.testing.assert_allclose(emotions, made.paddle.read_contexts(source, lengths)[1], atol=1e-5)
    if isinstance(made.arrays, NumpyCausalEmoPrepend):
        scores, states = made.arrays.read_replies(state, texts)
        np.testing.assert_allclose(scores, expected, atol=2e-3, rtol=1e-3)
        theirs = made.paddle.read_replies(made.paddle.encode(source, lengths), texts)
        np.testing.assert_allclose(theirs[0], expected, atol=1e-6)
        np.testing.assert_allclose(states, theirs[1], atol=1e-4)


@pytest.mark.parametrize("name", SERVED)
def test_the_search_finds_the_texts_of_the_network(name):
    made = random_case(name)
    options = SearchOptions(beam_size=4, n_best=3, max_length=6)
    ids = made.source.words if name in EMPATHETIC else made.source
    expected, found = (
        decode(model, ids, made.lengths, options, model.encode(made.source, made.lengths))
        for model in (made.paddle, made.arrays)
    )
    assert [[h.tokens for h in each] for each in found] == [[h.tokens for h in each] for each in expected]
    scores = [np.array([h.log_prob for each in texts for h in each]) for texts in (found, expected)]
    np.testing.assert_allclose(*scores, atol=1e-3)


def test_transformers_and_language_models_read_texts_whole():
    reads = {name for name in SERVED if isinstance(random_case(name).arrays, TextReader)}
    assert reads == {"language model", *(name for name in PLAIN if name.startswith("transformer"))}


def test_many_texts_are_read_in_parts():
    made, rng = random_case("transformer aligned"), np.random.default_rng(1)
    source, lengths = rng.integers(4, VOCABULARY, (60, 9)), rng.integers(8, 10, 60)
    texts = [rng.integers(4, VOCABULARY, size).tolist() for size in rng.integers(7, 9, 60)]
    expected = text_log_probs(made.paddle, source, lengths, texts)
    np.testing.assert_allclose(
        text_log_probs(made.arrays, source, lengths, texts), expected, atol=2e-3, rtol=1e-3
    )


def test_texts_that_share_a_window_do_not_see_each_other():
    network = random_case("language model").network

    def logits(ids, places):
        with paddle.no_grad():
            found: np.ndarray = network(paddle.to_tensor([ids]), paddle.to_tensor([places])).numpy()[0]
        return found

    texts = [([2, 5, 6], [0, 1, 2]), ([7, 2, 8, 9], [-1, 0, 1, 2]), ([2, 4, 5], [0, 1, 2])]
    packed = logits(*([n for each in texts for n in each[part]] for part in range(2)))
    np.testing.assert_allclose(packed, np.concatenate([logits(*text) for text in texts]), atol=1e-5)


# What the steps in NumPy do not support


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", r"^output\.bias is missing"),
        ("shape", r"^output\.bias is of shape \[\d+\], where "),
        ("foreign", r"^odd\.weight is unknown"),
    ],
)
def test_weights_of_another_model_are_left_to_the_network_to_refuse(change, message):
    weights = read_weights(random_case("lstm").network)
    if change == "missing":
        del weights["output.bias"]
    elif change == "shape":
        weights["output.bias"] = weights["output.bias"][:-1]
    else:
        weights["odd.weight"] = np.zeros(1, dtype=np.float32)
    with pytest.raises(UnsupportedModelError, match=message):
        NumpySeq2Seq(LSTM, VOCABULARY, weights)


def with_unknown(config, key):
    """Return settings with a value that no code knows, as of a network that somebody has changed."""
    section, _, name = key.rpartition(".")
    if not section:
        return replace(config, **{name: "new"})
    return replace(config, **{section: replace(getattr(config, section), **{name: "new"})})


@pytest.mark.parametrize(
    "key",
    ["name", "score", "feed_forward", "project_embeddings", "key_size", "value_size", "emotion.head"],
)
def test_a_choice_that_the_arrays_do_not_know_is_never_taken_for_another(key):
    config: Any = LSTM if key == "score" else TRANSFORMER
    network = Seq2Seq(config, VOCABULARY)
    make: Any = lambda config, weights: numpy_pair(config, Weights(weights))  # noqa: E731
    if key == "emotion.head":
        config = make_config()
        network = make_network(config, len(WORDS))
        make = lambda config, weights: numpy_emo_prepend(config, len(WORDS), weights)  # noqa: E731
    make(config, read_weights(network))
    with pytest.raises(UnsupportedModelError, match=r"new$"):
        make(with_unknown(config, key), read_weights(network))


def test_an_unknown_family_is_refused_by_its_name():
    unknown: Any = replace(TRANSFORMER, name="mamba")
    known = "causal_transformer, lstm_attention, transformer"
    with pytest.raises(UserError, match=f"^model.name: 'mamba' is unknown; this version has {known}$"):
        build_pair(unknown)


def saved(config, network):
    """Return a network as it comes back from a bundle."""
    bundle = Bundle("empathetic", "", {"text": WORDS}, read_weights(network))

    def build(sizes):
        built = EmoPrepend(config, sizes["text"])
        built.set_state_dict(network.state_dict())
        return built

    return TrainedModel.of_bundle(bundle, build, Path())


@pytest.mark.parametrize("family", ["causal", "convolutional"])
@pytest.mark.parametrize("strategy", ["beam", "sample"])
def test_a_predictor_answers_as_with_the_network_alone_and_in_a_batch(family, strategy, caplog):
    config = make_config(family, decoding={"strategy": strategy, "max_length": 8, "top_k": 5})
    network = make_network(config, len(WORDS))
    trained = saved(config, network)
    ours = EmpatheticPredictor(config, trained)
    expected = predictor_of(config, network, WORDS).answer(CONTEXTS, 4)
    together, alone = ours.answer(CONTEXTS, 4), [ours.answer([context], 4)[0] for context in CONTEXTS]
    told = ".: the steps in NumPy do not know model.feed_forward: cc; answering through Paddle, which"
    assert ("network" in vars(trained)) == (family == "convolutional")  # else the arrays were enough
    assert [m.startswith(told) for m in caplog.messages] == [True] * (family == "convolutional")
    for found in (together, alone):
        for answer, wanted in zip(found, expected, strict=True):
            assert answer.emotion == wanted.emotion
            assert [p.tokens for p in answer.predictions] == [p.tokens for p in wanted.predictions]
            scores = ([p.score for p in each.predictions] for each in (answer, wanted))
            np.testing.assert_allclose(*scores, atol=1e-4)


def test_a_reply_longer_than_the_positions_left_is_refused():
    sections = {"model": {"max_positions": 24}, "data": {"max_length": 12, "max_target_length": 8}}
    config = make_config("causal", **sections, decoding={"max_length": 10})
    arrays = numpy_emo_prepend(config, len(WORDS), read_weights(make_network(config, len(WORDS))))
    assert isinstance(arrays, NumpyCausalEmoPrepend)
    fives = np.full((1, 13), 5)
    state = arrays.encode(Source(fives, fives, None, None, np.array([-1])), np.array([13]))
    assert np.isfinite(arrays.read_replies(state, [[5] * 10])[0]).all()
    with pytest.raises(UserError, match=r"a reply of 11 tokens cannot be scored.* 10 positions left"):
        arrays.read_replies(state, [[5] * 11])


def test_a_context_is_read_once_for_emotion_and_replies(monkeypatch):
    config = make_config("causal", decoding={"max_length": 5})
    predictor = EmpatheticPredictor(config, saved(config, make_network(config, len(WORDS))))
    encoder, lengths = predictor.model._encoder, []
    read = encoder.read
    monkeypatch.setattr(encoder, "read", lambda x, sizes: (lengths.append(len(x)), read(x, sizes))[1])
    (answer,) = predictor.answer([CONTEXTS[0]], 2)
    (context,) = predictor.read(predictor.encode([CONTEXTS[0]]))
    again, _ = score_replies(predictor.encoder, context, answer.predictions)
    scores = ([each.score for each in some] for some in (again, answer.predictions))
    np.testing.assert_allclose(*scores, atol=1e-4)
    assert lengths == [1, 1]


# Operators


def test_padding_is_read_as_zeros_even_where_its_row_holds_numbers():
    made = random_case("lstm tied")
    source, lengths, token = np.array([[5, 0, 3]]), np.array([3]), np.array([0])
    expected, found = (
        model.step(token, model.encode(source, lengths))[0] for model in (made.paddle, made.arrays)
    )
    np.testing.assert_allclose(found, expected, atol=2e-5, rtol=1e-4)


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 70),
    inputs=st.sampled_from([1, 7, 300]),
    outputs=st.sampled_from([1, COLUMNS - 1, COLUMNS, COLUMNS + 1, 200]),
)
def test_blocks_of_columns_make_the_same_product(rows, inputs, outputs):
    rng = np.random.default_rng(rows)
    x, weight = (rng.normal(size=size).astype(np.float32) for size in ((rows, inputs), (inputs, outputs)))
    bias = rng.normal(size=outputs).astype(np.float32)
    expected, linear = x.astype(np.float64) @ weight + bias, NumpyLinear(weight, bias)
    np.testing.assert_allclose(linear(x), expected, atol=1e-3)
    np.testing.assert_allclose(linear(x.reshape(1, rows, 1, inputs))[0, :, 0], expected, atol=1e-3)


def test_labels_of_many_rows_are_scored_in_parts():
    rng = np.random.default_rng(1)
    count, size, temperature = 2 * ROWS + 5, 70, np.float32(0.5)
    hidden, weight = (rng.normal(size=shape).astype(np.float32) for shape in ((count, 16), (16, size)))
    labels = rng.integers(0, size, count)
    logits = hidden.astype(np.float64) @ weight / temperature
    expected = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    found = label_log_softmax(NumpyLinear(weight), hidden, labels, temperature)
    np.testing.assert_allclose(found, expected[np.arange(count), labels], atol=1e-4)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_gathering_undoes_scattering_to_the_rows_of_each_input(inputs):
    rows = RowInputs.of(np.array(inputs), 4)
    values = np.arange(len(inputs), dtype=np.float32)[:, None] + 1
    grid = rows.scatter(values)
    assert grid.shape == (4, max(map(inputs.count, inputs)), 1)
    for number in range(4):
        own = sorted(value for value in grid[number].ravel().tolist() if value)
        assert own == [place + 1 for place, owner in enumerate(inputs) if owner == number]
    np.testing.assert_array_equal(rows.gather(grid), values)
