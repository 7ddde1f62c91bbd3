"""EmoPrepend over arrays gives the numbers and the replies of the network whose weights it has."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
from empathetic_toys import DIALOGUES, make_config, make_network, make_vocabulary, save_model
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import read_weights
from paddle_dialog.bundle.trained import TrainedNetwork
from paddle_dialog.decoding.prefix_tree import one_input_log_probs
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.numpy_models import pointer_generator
from paddle_dialog.numpy_models.operators import NotServed
from tasks.empathetic.answering.prediction import EmpatheticPredictor
from tasks.empathetic.data.dataset import Example, collate
from tasks.empathetic.data.encoding import make_encoder, pad_sources
from tasks.empathetic.network.criterion import EmpatheticLoss
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.network.numpy_model import NumpyCausalEmoPrepend, NumpyEmoPrepend, numpy_emo_prepend

Sections = dict[str, dict[str, Any]]
VOCABULARY = make_vocabulary()
PRE = {"norm": "pre"}
POST = {"norm": "post", "positions": "learned"}
OWN_TABLES = {"share_embeddings": False, "tie_output": False}
CASES: list[Sections] = [
    {},
    {"model": {**POST, "bias": False}},
    {"model": {**POST, **OWN_TABLES}, "generator": {"pointer": False, "temperature": 0.7}},
    {"model": {**PRE, **OWN_TABLES, "bias": False}, "emotion": {"head": "cls", "prepend_form": "argmax"}},
    {"model": {**PRE, "share_embeddings": False, "tie_output": True}, "emotion": {"prepend": "gold"}},
    {"emotion": {"prepend": "none", "roles": False, "hints": False}, "generator": {"temperature": 1.5}},
    {
        "model": {**PRE, "bias": False},
        "emotion": {"ngram_buckets": 50, "encoder_share": 0.3, "character_weight": 0.5, "small_talk": True},
    },
    {"emotion": {"ngram_buckets": 50, "prepend": "gold", "prepend_form": "argmax", "hints": False}},
    {"emotion": {"head": "cls", "roles": False}, "generator": {"pointer": False}},
]
MARKED = {"data": {"mark_turns": True}}
CAUSAL_CASES: list[Sections] = [
    {**MARKED, "selection": {"size": 6}},
    {**MARKED, "emotion": {"hints": False, "ngram_buckets": 50, "encoder_share": 0.3}},
    {
        "model": {"bias": True, **OWN_TABLES},
        "generator": {"temperature": 0.7},
        "emotion": {"prepend": "gold"},
    },
    {"model": {"bias": True, "tie_output": False}, "emotion": {"prepend_form": "argmax"}},
    {"model": {"share_embeddings": False}, "emotion": {"prepend": "none"}, "selection": {"size": 1}},
    {"emotion": {"prepend": "none", "roles": False}, "generator": {"pointer": False, "temperature": 1.5}},
]
ALL_CASES = [
    *(("transformer", sections) for sections in CASES),
    *(("causal", sections) for sections in CAUSAL_CASES),
]
CONTEXTS = [
    *(dialogue.context for dialogue in DIALOGUES),
    ["qwrtz took my qwrtz bike", "oh no !", "zkp found qwrtz , my dog"],
    ["zkp"],
]


def models(family: str, sections: Sections) -> tuple[EmoPrepend, NumpyEmoPrepend]:
    """A random network and the model over arrays made of it."""
    config = make_config(family, **sections)
    network = make_network(config, len(VOCABULARY))
    return network, numpy_emo_prepend(config, len(VOCABULARY), read_weights(network))


def packed(family: str, sections: Sections, given_emotion: list[int | None]) -> tuple[np.ndarray, np.ndarray]:
    """The contexts as a batch; three words of theirs are not in the vocabulary."""
    encoder = make_encoder(make_config(family, **sections), VOCABULARY)
    return pad_sources(
        [
            encoder.pack(encoder.context(turns), emotion)[0]
            for turns, emotion in zip(CONTEXTS, given_emotion, strict=True)
        ]
    )


@pytest.mark.parametrize(("family", "sections"), ALL_CASES)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_steps_equal_the_network_whatever_rows_the_search_takes(
    family: str, sections: Sections, data: st.DataObject
) -> None:
    network, made = models(family, sections)
    must = sections.get("emotion", {}).get("prepend") == "gold"
    label = st.integers(0, 31) if must else st.none() | st.integers(0, 31)
    source, lengths = packed(family, sections, data.draw(st.lists(label, min_size=5, max_size=5)))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    tensors = [paddle.to_tensor(array) for array in (source, lengths)]
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
    target = generator.integers(4, len(VOCABULARY) + 2, (len(source), 4))
    target[:, 0] = 2
    with paddle.no_grad():
        expected = network.attention_weights(*(paddle.to_tensor(a) for a in (source, lengths, target)))
    found = made.attention_weights(source, lengths, target)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("strategy", ["beam", "sample"])
@pytest.mark.parametrize(
    ("family", "sections"), [ALL_CASES[n] for n in (0, 2, 6, len(CASES), len(CASES) + 1)]
)
def test_predictor_answers_as_with_the_network_alone_and_in_a_batch(
    family: str, sections: Sections, strategy: str
) -> None:
    decoding = {
        "strategy": strategy,
        "max_length": 8,
        "top_k": 5,
        "rerank": {"candidates": 6, "mutual_information": 0.3, "consensus": 0.2},
    }
    config = make_config(family, **sections, decoding=decoding)
    network = make_network(config, len(VOCABULARY))
    trained = TrainedNetwork(read_weights(network), lambda: EmoPrepend(config, len(VOCABULARY)), Path())
    ours = EmpatheticPredictor(config, trained, VOCABULARY)
    expected = EmpatheticPredictor(config, network, VOCABULARY).answer(CONTEXTS, 4)
    together = ours.answer(CONTEXTS, 4)
    assert "network" not in vars(ours) and "network" not in vars(trained)  # the arrays were enough
    alone = [ours.answer([context], 4)[0] for context in CONTEXTS]
    for found in (together, alone):
        for answer, wanted in zip(found, expected, strict=True):
            assert answer.emotion == wanted.emotion
            assert [p.tokens for p in answer.predictions] == [p.tokens for p in wanted.predictions]
            scores = ([p.score for p in each.predictions] for each in (answer, wanted))
            np.testing.assert_allclose(*scores, atol=1e-4)
            np.testing.assert_allclose(answer.probabilities, wanted.probabilities, atol=1e-5)


def causal_models(sections: Sections) -> tuple[EmoPrepend, NumpyCausalEmoPrepend]:
    """As ``models``."""
    network, made = models("causal", sections)
    assert isinstance(made, NumpyCausalEmoPrepend)
    return network, made


def extended_words(source: np.ndarray, config_has_pointer: bool) -> int:
    """How many ids a reply to these contexts may have."""
    return max(len(VOCABULARY), int(source[..., 0].max()) + 1) if config_has_pointer else len(VOCABULARY)


@pytest.mark.parametrize("sections", CAUSAL_CASES)
@settings(deadline=None, max_examples=8)
@given(data=st.data())
def test_given_replies_score_as_by_steps_and_as_in_training(sections: Sections, data: st.DataObject) -> None:
    network, made = causal_models(sections)
    label = 3 if sections.get("emotion", {}).get("prepend") == "gold" else None
    source, lengths = packed("causal", sections, [label] * 5)
    row = data.draw(st.integers(0, 4))
    source, lengths = source[row : row + 1, : lengths[row]], lengths[row : row + 1]
    size = extended_words(source, made.returns_log_probabilities)
    few = st.sampled_from([1, 5, size - 1]) | st.integers(1, size - 1)  # so that some begin alike
    replies = data.draw(st.lists(st.lists(few.filter(lambda i: i not in (2, 3)), max_size=6), min_size=1))
    state = made.encode(source, lengths)
    found = made.score_replies(state, replies)
    assert found.dtype == np.float64 and found.shape == (len(replies),)
    sizes = [len(reply) + 1 for reply in replies]
    np.testing.assert_allclose(made.score_replies(state, replies), found)  # the state stays as it is
    by_steps = text_log_probs(
        made, np.repeat(source, len(replies), axis=0), np.repeat(lengths, len(replies)), replies
    )
    np.testing.assert_allclose(found, np.array(by_steps) / sizes, atol=1e-4)
    by_tree = one_input_log_probs(made, source[0], replies)
    np.testing.assert_allclose(found, by_tree / sizes, atol=1e-6)
    np.testing.assert_allclose(found, -teacher_forced_nll(network, source, lengths, replies), atol=1e-4)


def teacher_forced_nll(
    network: EmoPrepend, source: np.ndarray, lengths: np.ndarray, replies: list[list[int]]
) -> np.ndarray:
    """-log p per token of each reply to one context, by the training criterion."""
    criterion = EmpatheticLoss(pointer=network.returns_log_probabilities)
    examples = [Example(source[0], np.array(reply, dtype=np.int64), 0) for reply in replies]
    with paddle.no_grad():
        batch = [paddle.to_tensor(array) for array in collate(examples)]
        criterion(*network(*batch[:3]), *batch[3:])
        nll: np.ndarray = (criterion.token_nll.sum(-1) / batch[-1].sum(-1)).numpy()
    return nll


def test_padding_of_the_only_context_does_not_count() -> None:
    made = causal_models(CAUSAL_CASES[0])[1]
    source, lengths = packed("causal", CAUSAL_CASES[0], [None] * 5)
    short = int(lengths.argmin())
    padded, alone = source[short : short + 1], source[short : short + 1, : lengths[short]]
    assert padded.shape != alone.shape
    replies = [[5, 6, 7], [], [5, int(alone[0, 2, 0])]]
    scores = [
        made.score_replies(made.encode(s, lengths[short : short + 1]), replies) for s in (padded, alone)
    ]
    np.testing.assert_allclose(*scores, atol=1e-6)


def test_a_vocabulary_of_many_parts_is_normalised_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = causal_models(CAUSAL_CASES[1])[1]
    source, lengths = packed("causal", CAUSAL_CASES[1], [None] * 5)
    state = made.encode(source[:1, : lengths[0]], lengths[:1])
    replies = [[5, len(VOCABULARY) - 1], [6], [6, 46]]
    expected = made.score_replies(state, replies)
    monkeypatch.setattr(pointer_generator, "WORDS_AT_ONCE", 7)
    np.testing.assert_allclose(made.score_replies(state, replies), expected, atol=1e-6)


def test_a_reply_longer_than_the_positions_left_is_refused() -> None:
    sections = {"model": {"max_positions": 24}, "data": {"max_length": 12, "max_target_length": 8}}
    made = causal_models({**sections, "decoding": {"max_length": 10}})[1]
    state = made.encode(np.full((1, 13, 4), 5), np.array([13]))
    assert np.isfinite(made.score_replies(state, [[5] * 10])).all()
    with pytest.raises(UserError, match=r"a reply of 11 tokens cannot be scored.* 10 positions left"):
        made.score_replies(state, [[5] * 11])


@pytest.mark.parametrize("sections", [CAUSAL_CASES[0], CAUSAL_CASES[4]])
def test_vectors_equal_those_of_the_network(sections: Sections) -> None:
    network, made = causal_models(sections)
    source, lengths = packed("causal", sections, [None] * 5)
    target = np.array([[2, 5, 6, 7], [2, 9, 0, 0], [2, 0, 0, 0]])
    sizes = np.array([4, 2, 1])
    made.encode(source, lengths)
    with paddle.no_grad():
        pairs = [
            (made.context_vectors(source, lengths), network.context_vectors),
            (made.reply_vectors(target, sizes), network.reply_vectors),
        ]
        inputs = [(source, lengths), (target, sizes)]
        for (found, expected), arrays in zip(pairs, inputs, strict=True):
            np.testing.assert_allclose(found, expected(*map(paddle.to_tensor, arrays)).numpy(), atol=1e-5)
            np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)


def test_a_context_is_read_once_for_emotion_replies_vector_and_comparison_with_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = causal_models(CAUSAL_CASES[0])[1]
    source, lengths = packed("causal", CAUSAL_CASES[0], [None] * 5)
    read = []
    monkeypatch.setattr(
        made._causal,
        "read",
        lambda x, lengths, read_=made._causal.read: (read.append(1), read_(x, lengths))[1],
    )
    blank = source[:1, :1], np.array([1])
    made.emotion_probabilities(source, lengths)
    for _ in range(2):
        made.encode(source, lengths)
        made.encode(*blank)
        made.context_vectors(source, lengths)
    assert len(read) == 2


def test_a_context_that_changes_in_place_is_read_anew() -> None:
    made = models("transformer", {})[1]
    source, lengths = packed("transformer", {}, [None] * 5)
    before = made.emotion_probabilities(source, lengths)
    source[0, 1, 0] += 1
    after = made.emotion_probabilities(source, lengths)
    assert np.abs(after[0] - before[0]).max() > 1e-4
    np.testing.assert_allclose(after[1:], before[1:], atol=1e-6)


@pytest.mark.parametrize(
    ("family", "sections", "told"),
    [
        ("lstm", {}, "the model is lstm_attention"),
        ("convolutional", {}, "the model is convolutional_transformer"),
        ("transformer", {"model": {"activation": "gelu"}}, "activation is gelu"),
        ("causal", {"model": {"activation": "gelu"}}, "activation is gelu"),
    ],
)
def test_what_is_not_served_stays_with_the_network(
    family: str, sections: Sections, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    config = make_config(family, **sections)
    network = make_network(config, len(VOCABULARY))
    weights = read_weights(network)
    trained = TrainedNetwork(weights, lambda: EmoPrepend(config, len(VOCABULARY)), Path())
    ours, theirs = (EmpatheticPredictor(config, each, VOCABULARY) for each in (trained, network))
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
    with pytest.raises(NotServed, match=r"generator\.gate\.bias is missing|of shape|odd\.weight is unknown"):
        numpy_emo_prepend(config, len(VOCABULARY), weights)


REFUSE_PADDLE = """
import runpy, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("paddle", "paddlenlp", "visualdl", "matplotlib"):
            sys.exit("imports " + name)
sys.meta_path.insert(0, Refuse())
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(paddle.is_compiled_with_cuda(), reason="the GPU build is asked for its devices")
@pytest.mark.parametrize(("tool", "text"), [("predict", ["my dog died ."]), ("chat", [])])
def test_tools_answer_without_importing_paddle(tool: str, text: list[str], tmp_path: Path) -> None:
    recipe = save_model(
        tmp_path,
        emotion={"ngram_buckets": 50},
        decoding={"max_length": 6, "rerank": {"candidates": 5, "mutual_information": 0.3}},
    )
    path = Path(__file__).parents[1] / "tools" / f"{tool}.py"
    weights = tmp_path / "run" / "best"
    done = subprocess.run(
        [sys.executable, "-c", REFUSE_PADDLE, path, "-c", recipe, "--weights", weights, *text],
        capture_output=True,
        input="my dog died .\n/quit\n",
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[")
