"""The ranker over arrays: the numbers of the network, and what 8 bits a number change."""

import json

import numpy as np
import paddle
import pytest
from empathetic_toys import make_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st
from ranker_toys import DIALOGUES, make_ranker_config, make_ranker_network
from safetensors.numpy import load, save

from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.data.lengths import pad_batch
from paddle_dialog.errors import UserError
from paddle_dialog.models.arrays.operators import UnsupportedModelError, Weights
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import make_encoder, pad_sources
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.dataset import ChoiceDataset, collate
from tasks.empathetic.ranking.encoding import reply_ids
from tasks.empathetic.ranking.network import ReplyRanker
from tasks.empathetic.ranking.numpy_ranker import NumpyReplyRanker
from tasks.empathetic.ranking.stored import ranker_from_bytes, ranker_to_bytes

VOCABULARY = make_vocabulary(DIALOGUES)
CONFIGS = [
    make_ranker_config(),
    make_ranker_config(model={"bias": True, "num_layers": 1}, emotion={"roles": False}),
    make_ranker_config(model={"num_layers": 3}, data={"mark_turns": True}),
]


def network_scores(
    network: ReplyRanker, sources: list[np.ndarray], replies: list[list[np.ndarray]]
) -> np.ndarray:
    """Score [B, K] of packed sources [S, k] and the replies to each."""
    source, lengths = pad_sources(sources)
    rows, _ = pad_batch([reply for own in replies for reply in own], 0)
    arrays = source, lengths, rows.reshape(len(sources), -1, rows.shape[1])
    with paddle.no_grad():
        return network(*map(paddle.to_tensor, arrays)).numpy()


@pytest.mark.parametrize("config", CONFIGS)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_scores_are_those_of_the_network(config: RankerConfig, data: st.DataObject) -> None:
    network = make_ranker_network(config, len(VOCABULARY))
    ours = NumpyReplyRanker(config, len(VOCABULARY), Weights(read_weights(network)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    sources, replies = [], []
    for size in data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)):
        source = np.zeros((size, 4), dtype=np.int64)
        source[:, 0], source[:, 1] = rng.integers(4, len(VOCABULARY), size), rng.choice([0, 5, 6], size)
        sources.append(source)
        lengths = rng.integers(0, 6, 5)
        words = [rng.integers(4, 9, length) for length in lengths]  # few words, so that replies begin alike
        replies.append([np.array([Vocabulary.bos_id, *own, Vocabulary.eos_id]) for own in words])
    expected = network_scores(network, sources, replies)
    for source, own, row in zip(sources, replies, expected, strict=True):
        np.testing.assert_allclose(ours(source, own), row, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(ours(source, own[:1]), row[:1], rtol=2e-4, atol=2e-5)  # one alone


def test_a_conversation_is_read_as_in_training() -> None:
    config = make_ranker_config(
        data={"mark_turns": True, "max_length": 9}, candidates={"near": 0, "same_emotion": 2}
    )
    network = make_ranker_network(config, len(VOCABULARY))
    ranker = ranker_from_bytes(ranker_to_bytes(config, read_weights(network)), VOCABULARY, "here")
    long = [Dialogue([*d.context, "zzz qqq", "at work now ."], d.target, "sad") for d in DIALOGUES[:8]]
    dataset = ChoiceDataset(long, config, VOCABULARY, {})
    choice = dataset[0]
    source, lengths, candidates, _, _ = collate([choice])
    with paddle.no_grad():
        expected = network(*map(paddle.to_tensor, (source, lengths, candidates))).numpy()[0]
    texts = [[VOCABULARY.token(word) for word in reply[1:-1]] for reply in choice.candidates]
    found = ranker.scores(long[0].context, [*texts, [*texts[0], "dog"] * 9])
    np.testing.assert_allclose(found[:-1], expected, atol=0.1)  # 8 bits
    assert len(choice.source) == 10 and np.isfinite(found).all()


def test_eight_bits_change_the_order_of_few_lists() -> None:
    config = make_ranker_config(model={"width": 64, "num_heads": 4, "inner_width": 256, "num_layers": 4})
    network = make_ranker_network(config, len(VOCABULARY))
    weights = {
        name: values
        if values.ndim == 1
        else values / (0.3 * len(values) ** 0.5)  # of the size of trained ones
        for name, values in read_weights(network).items()
    }
    whole = NumpyReplyRanker(config, len(VOCABULARY), Weights(weights))
    stored = ranker_from_bytes(ranker_to_bytes(config, weights), VOCABULARY, "here")
    replies = [d.target.split() for d in DIALOGUES] + [d.context[0].split() for d in DIALOGUES]
    encoder, firsts, errors = make_encoder(config, VOCABULARY), 0, []
    rng = np.random.default_rng(0)
    for number in range(100):
        turns = DIALOGUES[number % len(DIALOGUES)].context
        drawn = [replies[place] for place in rng.choice(len(replies), 30, replace=False)]
        source, _ = encoder.pack(encoder.context(turns))
        exact = whole(source, [reply_ids(encoder, reply, 12) for reply in drawn])
        found = stored.scores(turns, drawn)
        errors.append(np.abs((found - found.mean()) - (exact - exact.mean())).mean() / exact.std())
        firsts += int(found.argmax() != exact.argmax())
    assert 0 < np.mean(errors) < 0.03
    assert firsts <= 6


def test_a_file_has_eight_bits_a_number_and_no_path() -> None:
    config = make_ranker_config(
        data={"train": "/secret/train.jsonl", "max_length": 40},
        training={"start_from": "/secret/run"},
        model={"inner_width": 256},
    )
    weights = read_weights(make_ranker_network(config, len(VOCABULARY)))
    content = ranker_to_bytes(config, weights)
    assert len(content) < 0.5 * sum(values.nbytes for values in weights.values())
    assert b"secret" not in content
    assert ranker_from_bytes(content, VOCABULARY, "here").scores(["hello"], [["dog"]]).shape == (1,)
    tensors = load(content)
    for name, values in weights.items():
        if values.ndim == 2 and values.shape[1] > 1:
            restored = tensors[name] * tensors[f"{name}.scale"]
            step = np.abs(values).max(axis=1, keepdims=True) / 127
            assert (np.abs(restored - values) <= 0.51 * np.maximum(step, 1e-9)).all()
        else:
            np.testing.assert_array_equal(tensors[name], values)


def test_other_content_is_told() -> None:
    config = CONFIGS[0]
    content = ranker_to_bytes(config, read_weights(make_ranker_network(config, len(VOCABULARY))))
    other = make_vocabulary(DIALOGUES[:4])
    tensors = load(content)
    settings = json.loads(tensors["settings"].tobytes())
    missing = {name: values for name, values in tensors.items() if name != "output.weight"}
    grown = {**settings, "model": {**settings["model"], "num_layers": 7}}
    for broken, vocabulary in (
        (b"", VOCABULARY),
        (content[:-5], VOCABULARY),
        (save(missing), VOCABULARY),
        (save({**tensors, "settings": np.frombuffer(b"[", np.uint8)}), VOCABULARY),
        (save({**tensors, "settings": np.frombuffer(json.dumps(grown).encode(), np.uint8)}), VOCABULARY),
        (content, other),
    ):
        with pytest.raises(UserError, match="here: holds no ranker of these weights"):
            ranker_from_bytes(broken, vocabulary, "here")
    with pytest.raises(UnsupportedModelError):
        NumpyReplyRanker(config, len(VOCABULARY), Weights({}))
