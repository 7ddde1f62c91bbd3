"""Two discriminators that learn to tell the network's words from people's while the network learns to deceive them.

After Li et al. 2020, "EmpDG: Multi-resolution Interactive Empathetic Dialogue Generation": one discriminator judges
the meaning of a reply, the other its emotional words. Ours differ from the paper: they learn together with the
network in one optimiser step, by cross-entropy, on the words that the network would write at each position; and they
do not see the speaker's answer to the reply, the paper's user feedback.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.layers.masks import additive_mask
from paddle_dialog.layers.pointer_generator import log_mixture
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.distributed import mean_over_ranks
from tasks.empathetic.data.dataset import NO_EMOTION
from tasks.empathetic.data.emotions import EMOTIONS, EmotionLexicon
from tasks.empathetic.network.adversarial_config import AdversarialConfig
from tasks.empathetic.network.criterion import EmpatheticLoss
from tasks.empathetic.network.outputs import Outputs, is_given

WRITTEN = len(EMOTIONS)  # the class of the network's own words beside the emotions of people's
LEAST = 1e-20  # keeps the logarithms of the noise finite


class Adversary(nn.Layer):
    """The discriminators of meaning and emotion, which only training needs.

    Args:
        config: their settings.
        word_size: of the word vectors E.
        context_size: of the encoder's outputs C.
        vocab_size: V.

    Attributes:
        lexicon: float [V], 1 for the words by which the emotion is judged; all at first.
    """

    training_only = True
    lexicon: Tensor

    def __init__(self, config: AdversarialConfig, word_size: int, context_size: int, vocab_size: int) -> None:
        super().__init__()
        self.temperature = config.temperature
        self.semantic = SemanticDiscriminator(word_size, context_size, config.size)
        self.emotional = EmotionalDiscriminator(word_size, config.size)
        self.register_buffer("lexicon", paddle.ones([vocab_size]), persistable=False)

    def set_lexicon(self, lexicon: EmotionLexicon, vocabulary: Vocabulary) -> None:
        """Let only the words of a lexicon count for the emotion."""
        marks = [float(token in lexicon) for token in vocabulary]
        self.lexicon.set_value(paddle.to_tensor(marks))

    def forward(
        self, reply: Sequence[Tensor], target: Tensor, outputs: Tensor, seen: Tensor, table: Tensor
    ) -> Tensor:
        """Return the discriminators' verdicts on people's words and on the network's.

        Args:
            reply: the network's scores: logits [B, T, V], with a pointer also gate logits [B, T], attention
                [B, T, S] and the context's extended ids [B, S].
            target: extended ids [B, T] of the true reply, begin token first.
            outputs: of the encoder [B, S, C].
            seen: bool [B, S], the real positions of the contexts.
            table: the vocabulary's vectors [V, E].

        Returns:
            float32 [B, 3, 34]: of people's words, for the discriminators to learn; of the network's, for the
            discriminators; of the network's, for the network. Each is the logit of people's meaning, then the
            logits of the 32 emotions and of `WRITTEN`.
        """
        with paddle.amp.auto_cast(enable=False):
            lexicon = self.lexicon.unsqueeze(-1)  # [V, 1]
            scaled = table.detach().astype("float32") * table.shape[1] ** 0.5
            words = paddle.concat([scaled, lexicon], axis=-1)  # [V, E + 1]
            following, real = _following(target)  # [B, T] each
            context = _mean(outputs.detach().astype("float32"), seen.astype("float32"))  # [B, C]
            true = F.embedding(_known(following, words), words)  # [B, T, E + 1]
            written = written_words(
                [part.astype("float32") for part in reply[:3]], reply[3:], words, self.temperature
            )
            verdicts = [self._judge(true, real, context), self._judge(written.detach(), real, context)]
            with frozen(self):
                verdicts.append(self._judge(written, real, context))
        return paddle.stack(verdicts, axis=1)  # [B, 3, 34]

    def _judge(self, words: Tensor, real: Tensor, context: Tensor) -> Tensor:
        meaning = self.semantic(words[:, :, :-1], real, context)  # [B, 1]
        emotion = self.emotional(words[:, :, :-1], words[:, :, -1] * real)  # [B, 33]
        return paddle.concat([meaning, emotion], axis=-1)


class SemanticDiscriminator(nn.Layer):
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


class EmotionalDiscriminator(nn.Layer):
    """Which emotion a person's words carry, or that they are the network's: a hidden layer over their mean.

    Args:
        word_size: E.
        size: of the hidden layer D.
    """

    def __init__(self, word_size: int, size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(word_size, size)
        self.output = nn.Linear(size, len(EMOTIONS) + 1)

    def forward(self, words: Tensor, visible: Tensor) -> Tensor:
        """Return logits [B, 33] of words [B, T, E]; only those whose `visible` [B, T] is 1 are seen."""
        return self.output(F.relu(self.hidden(_mean(words, visible))))


class AdversarialLoss(nn.Layer):
    """The loss of a network with an adversary: its own, and both sides' part of the contest.

    The gradients of the discriminators' part reach only the discriminators, those of the other part only the rest, so
    one step of the optimiser trains both sides.

    Args:
        own: the loss without an adversary.
        config: the weights.
    """

    def __init__(self, own: EmpatheticLoss, config: AdversarialConfig) -> None:
        super().__init__()
        self._own = own
        self._weights = config.semantic, config.emotional

    @property
    def token_nll(self) -> Tensor:
        """The values of the loss without an adversary."""
        return self._own.token_nll

    def forward(self, *parts: Tensor, emotion: Tensor, label: Tensor, mask: Tensor) -> Tensor:
        """Return the loss, a scalar; without the contest for a network in evaluation, which gives no verdicts.

        Args:
            parts, emotion, label, mask: as of `EmpatheticLoss`.
        """
        loss = self._own(*parts, emotion=emotion, label=label, mask=mask)
        verdicts = Outputs(*parts).verdicts
        if not is_given(verdicts):
            return loss
        semantic, emotional = self._weights
        meaning, carried = verdicts[:, :, 0], verdicts[:, :, 1:]  # [B, 3], [B, 3, 33]
        return loss + semantic * semantic_loss(meaning) + emotional * emotional_loss(carried, emotion)


def semantic_loss(logits: Tensor) -> Tensor:
    """Return both sides' loss, the network's in the form that does not saturate (Goodfellow et al. 2014, section 3).

    Args:
        logits: of people's meaning [B, 3], see `Adversary`.

    Returns:
        The mean of (-log σ(people's) - log σ(-network's)) / 2 - log σ(network's), [].
    """
    people, written, deceiving = logits.unbind(axis=1)  # [B] each
    told_apart = 0.5 * (F.softplus(-people) + F.softplus(written))
    count = paddle.full([], float(len(people)))
    return mean_over_ranks((told_apart + F.softplus(-deceiving)).sum(), count)


def emotional_loss(logits: Tensor, emotion: Tensor) -> Tensor:
    """Return both sides' loss with the network's words as a further class (Salimans et al. 2016, section 5).

    Args:
        logits: of the emotions and of `WRITTEN` [B, 3, 33], see `Adversary`.
        emotion: the annotated ones [B], or `NO_EMOTION`.

    Returns:
        The mean over the annotated rows of (-log p(emotion | people's) - log p(WRITTEN | network's)) / 2
        - log p(emotion | network's), [].
    """
    annotated = (emotion != NO_EMOTION).astype(logits.dtype)  # [B]
    true = paddle.clip(emotion, min=0)
    labels = paddle.stack([true, paddle.full_like(true, WRITTEN), true], axis=1)  # [B, 3]
    nll = F.cross_entropy(logits, labels.unsqueeze(-1), reduction="none").squeeze(-1)  # [B, 3]
    loss = 0.5 * (nll[:, 0] + nll[:, 1]) + nll[:, 2]  # [B]
    return mean_over_ranks((loss * annotated).sum(), annotated.sum())


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
