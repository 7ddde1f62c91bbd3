"""A discriminator that learns to tell the network's words from people's while the network learns to deceive it.

After Li et al. 2020, "EmpDG: Multi-resolution Interactive Empathetic Dialogue Generation", whose discriminator of
meaning this is. It differs from the paper: both sides learn together in one optimiser step, by cross-entropy, on the
words that the network would write at each position; and it does not see the speaker's answer to the reply, the
paper's user feedback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.pointer_generator import log_mixture
from paddle_dialog.tasks.empathetic.config import AdversarialConfig
from paddle_dialog.text.vocabulary import Vocabulary

LEAST = 1e-20  # keeps the logarithms of the noise finite


class Adversary(nn.Layer):
    """The discriminator, which only training needs.

    Args:
        config: its settings.
        word_size: of the word vectors E.
        context_size: of the encoder's outputs C.
    """

    training_only = True

    def __init__(self, config: AdversarialConfig, word_size: int, context_size: int) -> None:
        super().__init__()
        self.temperature = config.temperature
        self.discriminator = Discriminator(word_size, context_size, config.size)

    def forward(
        self, reply: Sequence[Tensor], target: Tensor, outputs: Tensor, real: Tensor, table: Tensor
    ) -> Tensor:
        """Return the verdicts on people's words and on the network's.

        Args:
            reply: the network's scores: logits [B, T, V], with a pointer also gate logits [B, T], attention
                [B, T, S] and the context's extended ids [B, S].
            target: extended ids [B, T] of the true reply, begin token first.
            outputs: of the encoder [B, S, C].
            real: bool [B, S], the real positions of the contexts.
            table: the vocabulary's vectors [V, E].

        Returns:
            Logits float32 [B, 3] that a person wrote the words: of people's words, for the discriminator to learn; of
            the network's, for the discriminator; of the network's, for the network.
        """
        with paddle.amp.auto_cast(enable=False):
            words = table.detach().astype("float32") * table.shape[1] ** 0.5  # [V, E]
            following, is_word = _following(target)  # [B, T] each
            context = _mean(outputs.detach().astype("float32"), real.astype("float32"))  # [B, C]
            true = F.embedding(_known(following, words), words)  # [B, T, E]
            scores = [part.astype("float32") for part in reply[:3]]
            written = written_words(scores, reply[3:], words, self.temperature)  # [B, T, E]
            verdicts = [self.discriminator(each, is_word, context) for each in (true, written.detach())]
            with frozen(self):
                verdicts.append(self.discriminator(written, is_word, context))
        return paddle.concat(verdicts, axis=1)  # [B, 3]


class Discriminator(nn.Layer):
    """Whether a person wrote a reply to a context: a convolution over its words, the maximum, a hidden layer.

    Args:
        word_size: E.
        context_size: C.
        size: of the hidden layers D.
    """

    def __init__(self, word_size: int, context_size: int, size: int) -> None:
        super().__init__()
        self.words = nn.Conv1D(word_size, size, 3, padding=1, data_format="NLC")
        self.context = nn.Linear(context_size, size)
        self.hidden = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, 1)

    def forward(self, words: Tensor, real: Tensor, context: Tensor) -> Tensor:
        """Return logits [B, 1] of words [B, T, E], real where `real` [B, T] is 1, in answer to contexts [B, C]."""
        features = F.relu(self.words(words * real.unsqueeze(-1)))  # [B, T, D]
        reply = (features + additive_mask(real > 0, features.dtype).unsqueeze(-1)).max(axis=1)  # [B, D]
        both = paddle.concat([reply, paddle.tanh(self.context(context))], axis=-1)  # [B, 2D]
        return self.output(F.relu(self.hidden(both)))


def written_words(
    scores: Sequence[Tensor], copy_ids: Sequence[Tensor], words: Tensor, temperature: float
) -> Tensor:
    """Draw one word at each position such that gradients pass through the choice.

    Straight-through Gumbel-softmax (Jang et al. 2017, section 2.2) over the vocabulary and, with a pointer, the
    positions of the context: the value is the drawn word's, the gradient that of the softmax of the noisy scores.
    A mean of all words would be trivial to tell from a word.

    Args:
        scores: logits [B, T, V]; with a pointer also gate logits [B, T] and attention [B, T, S].
        copy_ids: with a pointer the context's extended ids [B, S].
        words: vectors of the vocabulary [V, E]; words outside it have the unknown word's.
        temperature: τ of the softmax.

    Returns:
        Vectors [B, T, E].
    """
    logits = scores[0] if not copy_ids else log_mixture(*scores)  # [B, T, V (+ S)]
    uniform = paddle.clip(paddle.rand(logits.shape), min=LEAST)
    noisy = logits - paddle.log(paddle.clip(-paddle.log(uniform), min=LEAST))
    share = F.softmax(noisy / temperature, axis=-1)
    drawn = noisy.argmax(-1)  # [B, T], V + i for position i of the context
    vocab_size = len(words)
    soft = paddle.matmul(share[:, :, :vocab_size], words)  # [B, T, E]
    if copy_ids:
        source = _known(copy_ids[0], words)  # [B, S]
        soft = soft + paddle.matmul(share[:, :, vocab_size:], F.embedding(source, words))
        place = paddle.clip(drawn - vocab_size, min=0)  # [B, T]
        drawn = paddle.where(drawn < vocab_size, drawn, paddle.take_along_axis(source, place, axis=1))
    return soft + (F.embedding(drawn, words) - soft).detach()


@contextmanager
def frozen(layer: nn.Layer) -> Iterator[None]:
    """Within a `with` block, let gradients pass to inputs but not to the layer's parameters."""
    trained = [parameter for parameter in layer.parameters() if not parameter.stop_gradient]
    for parameter in trained:
        parameter.stop_gradient = True
    try:
        yield
    finally:
        for parameter in trained:
            parameter.stop_gradient = False


def _following(target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the true next word at each position, end token last, and which positions are real: ids, float [B, T]."""
    real = (target != Vocabulary.pad_id).astype("int64")  # [B, T]
    shifted = F.pad(target[:, 1:], [0, 1], value=Vocabulary.pad_id)  # [B, T]
    end = real - F.pad(real[:, 1:], [0, 1], value=0)  # [B, T], 1 at the last real position
    return shifted + end * Vocabulary.eos_id, real.astype("float32")


def _mean(vectors: Tensor, chosen: Tensor) -> Tensor:
    """Average the vectors [B, T, D] whose `chosen` [B, T] is 1, as [B, D]; zero where none is."""
    total = paddle.matmul(chosen.unsqueeze(1), vectors).squeeze(1)  # [B, D]
    return total / paddle.clip(chosen.sum(-1, keepdim=True), min=1.0)


def _known(ids: Tensor, words: Tensor) -> Tensor:
    """Return ids inside the vocabulary; the others become unknown."""
    return paddle.where(ids < len(words), ids, paddle.full_like(ids, Vocabulary.unk_id))
