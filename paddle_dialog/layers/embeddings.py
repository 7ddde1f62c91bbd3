"""Token embeddings, pretrained word vectors, and the output layer that shares the embedding's weight."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import paddle
from paddle import nn

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.layers.linear import add_bias
from paddle_dialog.text.vocabulary import Vocabulary


class TokenEmbedding(nn.Layer):
    """A vector for each token id, N(0, 1/size) at first; the padding vector is zero, and stays so
    unless an output layer shares the table.

    Args:
        vocab_size: V, number of tokens.
        size: D, vector size.
        padding_idx: id of the padding token.
        scale: multiply the vectors by sqrt(D) (Vaswani et al. 2017, section 3.4).
    """

    def __init__(self, vocab_size: int, size: int, padding_idx: int = 0, scale: bool = False) -> None:
        super().__init__()
        self.padding_idx = padding_idx
        self.factor = size**0.5 if scale else 1.0
        init = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, size**-0.5))
        self.table = nn.Embedding(vocab_size, size, padding_idx=padding_idx, weight_attr=init)

    @property
    def weight(self) -> paddle.Tensor:
        """The table [V, D], without the factor."""
        return self.table.weight

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        """Look up ids, int64 of any shape [...], as float [..., D]."""
        vectors = self.table(ids)  # [..., D]
        return vectors if self.factor == 1.0 else vectors * self.factor

    def set_pretrained(self, vectors: np.ndarray, trainable: bool = True) -> None:
        """Replace the table by pretrained vectors; the padding row becomes zero.

        Args:
            vectors: float [V, D], row = token id.
            trainable: whether training changes the table from here on.

        Raises:
            UserError: the vectors' shape is not that of the table.
        """
        expected = tuple(self.weight.shape)
        if vectors.shape != expected:
            raise UserError(
                f"pretrained vectors have shape {list(vectors.shape)}, but the embedding needs "
                f"{list(expected)} (vocabulary size, vector size)"
            )
        table = np.array(vectors, dtype=np.float32)  # [V, D]
        table[self.padding_idx] = 0.0
        self.weight.set_value(paddle.to_tensor(table).astype(self.weight.dtype))
        self.weight.trainable = trainable


class TiedProjection(nn.Layer):
    """Output layer whose weight is the embedding's table (Press & Wolf 2017): logits = x Eᵀ + b.

    The table stays the embedding's parameter: here it is neither counted nor saved a second time. The model
    that holds this layer must hold the embedding too.

    Args:
        embedding: the table's owner.
        bias: whether each token has a bias.
    """

    def __init__(self, embedding: TokenEmbedding, bias: bool = True) -> None:
        super().__init__()
        self._owner = (embedding,)  # a tuple, because an attribute of type Layer would be registered
        vocab_size = embedding.weight.shape[0]
        self.bias = self.create_parameter([vocab_size], is_bias=True) if bias else None

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """Map features [..., D] to logits [..., V]."""
        logits = paddle.matmul(x, self._owner[0].weight, transpose_y=True)  # [..., V]
        return logits if self.bias is None else add_bias(logits, self.bias)


def set_vectors_from_file(
    tables: Iterable[TokenEmbedding], path: str | Path, vocabulary: Vocabulary, trainable: bool
) -> str:
    """Set the rows of embedding tables to the vectors of a text file.

    Args:
        tables: of V tokens each, all of one size.
        path: see `load_pretrained_vectors`.
        vocabulary: V tokens.
        trainable: False freezes the tables.

    Returns:
        How many tokens were found, in a sentence.

    Raises:
        UserError: the file cannot be read, or its vectors have another size than the tables.
    """
    tables = list(tables)
    vectors, found = load_pretrained_vectors(path, vocabulary, tables[0].weight.shape[1])
    for table in tables:
        table.set_pretrained(vectors, trainable)
    return f"pretrained vectors {path}: {found:,} of the vocabulary's {len(vocabulary):,} tokens found"


def load_pretrained_vectors(
    path: str | Path, vocabulary: Vocabulary, size: int | None = None, seed: int = 0
) -> tuple[np.ndarray, int]:
    """Read the vectors of a vocabulary's tokens from a text file, a line at a time.

    Both common forms are read: word2vec (a first line "count size") and GloVe (no such line); then each
    line holds a token and its numbers, separated by spaces. If a token occurs twice, the first line
    counts. Tokens without a vector are drawn from a normal distribution with the mean and deviation of the
    vectors found.

    Args:
        path: text file; `.gz` and `.xz` are decompressed on the fly.
        vocabulary: V tokens; other lines are skipped.
        size: D that the model needs; by default that of the file.
        seed: of the random vectors.

    Returns:
        float32 [V, D], row = token id, and the number of tokens found.

    Raises:
        UserError: the file cannot be read, a line has another dimension or no numbers, or no token is found.
    """
    found: dict[int, np.ndarray] = {}
    for place, token, numbers in _vector_lines(path, size):
        if token in vocabulary and vocabulary.id(token) not in found:
            found[vocabulary.id(token)] = _parse_vector(numbers, place)
    if not found:
        raise UserError(
            f"{path}: none of the {len(vocabulary)} tokens of the vocabulary has a vector here; "
            "give vectors of the same language and tokenisation"
        )
    known = np.stack(list(found.values()))  # [found, D]
    rng = np.random.default_rng(seed)
    vectors = rng.normal(known.mean(), known.std(), (len(vocabulary), known.shape[1])).astype(np.float32)
    vectors[list(found)] = known  # [V, D]
    return vectors, len(found)


def _vector_lines(path: str | Path, size: int | None) -> Iterator[tuple[str, str, list[str]]]:
    """Iterate over (file:line, token, numbers as text), with the dimension of each line checked."""
    dimension = 0
    for line_number, line in read_lines(path):
        place = f"{path}:{line_number}"
        line = line.rstrip(" ")  # some writers end each line with a space
        if line_number == 1:
            fields = line.split(" ")
            is_header = len(fields) == 2 and all(field.isdecimal() for field in fields)
            dimension = int(fields[1]) if is_header else len(fields) - 1
            if dimension < 1 or (size is not None and dimension != size):
                wanted = "a token and its numbers, separated by spaces" if size is None else f"{size} numbers"
                raise UserError(f"{place}: the vectors have {dimension} numbers, expected: {wanted}")
            if is_header:
                continue
        token, *numbers = line.rsplit(" ", dimension)
        # GloVe has tokens with spaces (". . ."), but a token that ends in a number means one number too many.
        excess = " " in token and _is_number(token.rsplit(" ", 1)[-1])
        if len(numbers) != dimension or excess:
            raise UserError(
                f"{place}: the vector has {line.count(' ')} numbers, expected: {dimension} numbers"
            )
        yield place, token, numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parse_vector(numbers: list[str], place: str) -> np.ndarray:
    """Parse D numbers, as float32 [D]."""
    for field in numbers:
        if not _is_number(field):
            raise UserError(f"{place}: {field[:40]!r} is not a number; a line is a token and its numbers")
    vector = np.array(numbers, dtype=np.float32)  # [D]
    if not np.isfinite(vector).all():
        raise UserError(f"{place}: a number of the vector is not finite; remove or repair this line")
    return vector
