"""Embeddings, pretrained vectors and the tied output layer."""

import gzip
import lzma
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.errors import UserError
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding, load_pretrained_vectors
from paddle_dialog.text.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["<pad>", "<unk>", "<bos>", "<eos>", "风", "月", "山"])
GLOVE = "风 1 2 3\n海 7 7 7\n月 -1.5 0 2e-1\n"


class TiedModel(nn.Layer):
    """An embedding and the output layer that shares its table."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(7, 4)
        self.projection = TiedProjection(self.embedding, bias)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.projection(self.embedding(ids))


def write(folder: Path, text: str, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_initial_vectors_have_deviation_one_over_root_size() -> None:
    paddle.seed(5)
    table = TokenEmbedding(2000, 64).weight.numpy()
    assert (table[0] == 0).all()
    np.testing.assert_allclose(table[1:].std(), 1 / 8, rtol=0.02)
    np.testing.assert_allclose(table[1:].mean(), 0, atol=2e-3)


def test_scale_multiplies_by_root_size() -> None:
    embedding = TokenEmbedding(5, 9, scale=True)
    vectors = embedding(paddle.to_tensor([[1, 2], [3, 0]]))
    assert vectors.shape == [2, 2, 9]
    np.testing.assert_allclose(vectors.numpy()[0, 1], embedding.weight.numpy()[2] * 3.0, rtol=1e-6)


def test_padding_gets_no_gradient() -> None:
    embedding = TokenEmbedding(5, 3)
    vectors = embedding(paddle.to_tensor([[1, 0, 0]]))
    assert (vectors.numpy()[0, 1:] == 0).all()
    vectors.sum().backward()
    assert embedding.weight.grad.numpy().sum(axis=1).tolist() == [0, 3, 0, 0, 0]


def test_pretrained_vectors_replace_the_table_and_can_be_frozen() -> None:
    embedding = TokenEmbedding(4, 2)
    vectors = np.arange(8, dtype="float64").reshape(4, 2) + 1
    for trainable in (False, True):
        embedding.set_pretrained(vectors, trainable)
        assert embedding.weight.tolist() == [[0, 0], [3, 4], [5, 6], [7, 8]]
        assert embedding(paddle.to_tensor([1])).stop_gradient is not trainable
    assert vectors[0].tolist() == [1, 2]


def test_frozen_table_is_not_trained() -> None:
    model = TiedModel(bias=True)
    model.embedding.set_pretrained(np.ones((7, 4)), trainable=False)
    before = model.embedding.weight.numpy().copy()
    optimizer = paddle.optimizer.SGD(0.5, parameters=model.parameters())
    model(paddle.to_tensor([[1, 2]])).square().sum().backward()
    optimizer.step()
    np.testing.assert_array_equal(model.embedding.weight.numpy(), before)
    assert (model.projection.bias.numpy() != 0).any()


def test_pretrained_vectors_of_another_shape_are_refused() -> None:
    with pytest.raises(UserError, match=r"\[4, 3\].*\[4, 2\]"):
        TokenEmbedding(4, 2).set_pretrained(np.zeros((4, 3)))


@pytest.mark.parametrize("bias", [True, False])
def test_tied_projection_owns_only_its_bias(bias: bool) -> None:
    model = TiedModel(bias)
    assert sum(math.prod(p.shape) for p in model.parameters()) == 7 * 4 + 7 * bias
    assert sorted(model.state_dict()) == ["embedding.table.weight", *["projection.bias"] * bias]


def test_tied_logits_are_products_with_the_table() -> None:
    model = TiedModel(bias=True)
    model.projection.bias.set_value(paddle.arange(7, dtype="float32"))
    table = model.embedding.weight.numpy()
    ids = np.array([[3, 1], [2, 6]])
    logits = model(paddle.to_tensor(ids)).numpy()
    assert logits.shape == (2, 2, 7)
    np.testing.assert_allclose(logits, table[ids] @ table.T + np.arange(7), atol=1e-5)


def test_tied_weight_gets_gradients_from_both_ends_and_follows_loading() -> None:
    model, other = TiedModel(bias=True), TiedModel(bias=True)
    ids = paddle.to_tensor([[1]])
    model(ids).sum().backward()
    table = model.embedding.weight.numpy()
    expected = np.tile(table[1], (7, 1))  # from the projection: the feature, for every token
    expected[1] += table.sum(axis=0)  # from the lookup of token 1
    np.testing.assert_allclose(model.embedding.weight.grad.numpy(), expected, atol=1e-5)
    other.set_state_dict(model.state_dict())
    np.testing.assert_array_equal(other(ids).numpy(), model(ids).numpy())


@pytest.mark.parametrize("text", [GLOVE, "3 3\n" + GLOVE, GLOVE.replace("\n", " \n")])
def test_both_text_forms(tmp_path: Path, text: str) -> None:
    vectors, found = load_pretrained_vectors(write(tmp_path, text), VOCABULARY)
    assert found == 2
    assert vectors.shape == (7, 3)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[[4, 5]], [[1, 2, 3], [-1.5, 0, 0.2]], atol=1e-7)


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open)])
def test_compressed_vectors(tmp_path: Path, suffix: str, opener: Callable) -> None:
    path = tmp_path / f"vectors.txt{suffix}"
    with opener(path, "wt", encoding="utf-8") as stream:
        stream.write(GLOVE)
    vectors, found = load_pretrained_vectors(path, VOCABULARY)
    assert found == 2
    assert vectors[4].tolist() == [1, 2, 3]


def test_missing_vectors_match_the_found_ones_and_the_seed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    tokens = [f"t{i}" for i in range(400)]
    vocabulary = Vocabulary([*VOCABULARY.tokens[:4], *tokens])
    lines = (f"{t} " + " ".join(str(x) for x in rng.normal(2, 0.5, 20)) for t in tokens[:200])
    path = write(tmp_path, "\n".join(lines))
    vectors, found = load_pretrained_vectors(path, vocabulary, seed=1)
    assert found == 200
    missing = vectors[204:]
    np.testing.assert_allclose([missing.mean(), missing.std()], [2, 0.5], atol=0.05)
    np.testing.assert_array_equal(vectors, load_pretrained_vectors(path, vocabulary, seed=1)[0])
    again, _ = load_pretrained_vectors(path, vocabulary, seed=2)
    np.testing.assert_array_equal(again[4:204], vectors[4:204])
    assert (again[204:] != vectors[204:]).any()


def test_first_vector_of_a_token_counts_and_tokens_may_hold_spaces(tmp_path: Path) -> None:
    path = write(tmp_path, "风 1 2\n. . . 5 6\n\u3000 3 4\n风 9 9\n")
    vectors, found = load_pretrained_vectors(path, Vocabulary([*VOCABULARY.tokens, ". . .", "\u3000"]))
    assert found == 3
    assert vectors[[4, 7, 8]].tolist() == [[1, 2], [5, 6], [3, 4]]


@pytest.mark.parametrize(
    ("text", "size", "message"),
    [
        ("风 1 2 3\n月 1 2\n", None, r"txt:2: .* 2 numbers, expected: 3"),
        ("风 1 2 3\n月 1 2 3 4\n", None, r"txt:2: .* 4 numbers, expected: 3"),
        ("2 3\n风 1 2 3\n\n", None, r"txt:3: .* 0 numbers, expected: 3"),
        ("2 3\n风 1 2 3 4\n", None, r"txt:2: .* 4 numbers, expected: 3"),
        ("风 1 2 3\n", 4, r"txt:1: .* 3 numbers, expected: 4"),
        ("9 3\n风 1 2 3\n", 4, r"txt:1: .* 3 numbers, expected: 4"),
        ("风\n", None, r"txt:1: .* 0 numbers"),
        ("风 1 x 3\n", None, r"txt:1: 'x' is not a number"),
        ("风 1 nan 3\n", None, r"txt:1: .*not finite"),
        ("海 1 2 3\n", None, r"none of the 7 tokens"),
    ],
)
def test_bad_vectors_are_named_with_their_line(
    tmp_path: Path, text: str, size: int | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load_pretrained_vectors(write(tmp_path, text), VOCABULARY, size)
