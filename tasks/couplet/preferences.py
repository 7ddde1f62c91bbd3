"""Learning from rated answers: their file, batches of them with ordinary examples, and the loss.

Of two answers to one line the one that was rated better becomes likelier, compared with the weights before: direct
preference optimisation (Rafailov et al. 2023).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

from paddle_dialog.data.batching import EncodedData, EpochBatches
from paddle_dialog.data.files import Record, read_records
from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.couplet.prompts import TO_SECOND, Example, collate, compose_source, encode_sources
from paddle_dialog.tasks.couplet.rules import FREE
from paddle_dialog.text.vocabulary import Vocabulary
from paddle_dialog.training.losses import SequenceCrossEntropy, mean_of

_FORM = (
    '{"answers": [{"first": 上联, "second": 下联, "rating": number}, …]}, where the 上联 may stand once beside '
    '"answers", and an answer that was composed has its "template" and "told"'
)
STRENGTH = 0.1  # β, by which rewards are multiplied: the greater, the nearer the weights stay to those before
INPUTS = 16  # rated inputs in a batch, with `data.batch_size` examples
OWN_LENGTH = 12  # least characters of a 上联 to which the corpus's own answer is added
SCORED = 256  # texts that are scored together
POOLED = 20  # batches among whose rated inputs those of like length are put together
Text = tuple[list[int], list[int]]  # ids of what is asked and of what is written, without begin and end


@dataclass(frozen=True)
class RatedAnswer:
    """A couplet and what it is worth."""

    first: str  # 上联
    second: str  # 下联, which the model wrote
    rating: float  # the higher, the better; only those of one input are compared
    # Of a 上联 that the model wrote too, ？ for any character; None where it was given.
    template: str | None = None
    told: str = ""  # characters of theme words that the model was given for it

    def texts(self, vocabulary: Vocabulary) -> list[Text]:
        """Return the texts that the model wrote of it, and what they were asked by."""
        written = [(TO_SECOND.source(vocabulary, self.first), vocabulary.encode(self.second))]
        if self.template is not None:
            shape = [None if character == FREE else character for character in self.template]
            written.append((compose_source(vocabulary, shape, self.told), vocabulary.encode(self.first)))
        return written


def read_ratings(path: str | Path) -> list[list[RatedAnswer]]:
    """Read the rated answers to each input.

    Args:
        path: JSON lines, plain or compressed, each `{"answers": [{"first", "second", "rating"}, …]}`.
    """
    found = list(read_records(path, _answers, _FORM))
    if not found:
        raise UserError(f"{path}: no rated answers in this file; a line must be {_FORM}")
    return found


def with_own(
    rated: Sequence[list[RatedAnswer]], couplets: Iterable[Couplet], rating: float, length: int = OWN_LENGTH
) -> int:
    """Add to the answers to each 上联 of `length` or more the one of the corpus; return how many were added."""
    own = {couplet.first: couplet.second for couplet in couplets}
    added = 0
    for answers in rated:
        first = answers[0].first
        given = all(answer.first == first and answer.template is None for answer in answers)
        if not given or len(first) < length or own.get(first) in (None, *(a.second for a in answers)):
            continue
        answers.append(RatedAnswer(first, own[first], rating))
        added += 1
    return added


def _answers(record: Record) -> list[RatedAnswer]:
    answers = [_answer({**record, **answer}) for answer in record["answers"]]
    if not answers:
        raise ValueError("'answers' is empty")
    return answers


def _answer(fields: dict[str, Any]) -> RatedAnswer:
    rating, template = float(fields["rating"]), fields.get("template")
    texts = {key: fields[key] for key in ("first", "second")} | {"told": fields.get("told", "")}
    for key, text in (texts | ({} if template is None else {"template": template})).items():
        if not isinstance(text, str) or not (text or key == "told"):
            raise ValueError(f"{key}: {text!r} is not a text")
    if not math.isfinite(rating):
        raise ValueError(f"rating: {rating} is not a finite number")
    if template is not None and len(template) != len(texts["first"]):
        raise ValueError(f"template: '{template}' is not as long as '{texts['first']}'")
    return RatedAnswer(texts["first"], texts["second"], rating, template, texts["told"])


class RatedInput(NamedTuple):
    """The rated answers to one input, A of them with M texts."""

    texts: list[Example]
    answers: np.ndarray  # of each text, int64 [M]
    ratings: np.ndarray  # float32 [A]
    before: np.ndarray  # log-probability under the weights before, float32 [A]


class RatedDataset:
    """Ordinary examples, and after them the rated inputs."""

    def __init__(
        self,
        examples: EncodedData,
        rated: Sequence[Sequence[RatedAnswer]],
        vocabulary: Vocabulary,
        before: StepModel,
    ) -> None:
        self.examples = examples
        self._inputs = [_encode(answers, vocabulary) for answers in rated]
        texts = [text for each in self._inputs for text in each.texts]
        scores = np.split(_log_probs(before, texts), np.cumsum([len(each.texts) for each in self._inputs]))
        for each, own in zip(self._inputs, scores, strict=False):
            np.add.at(each.before, each.answers, own)

    @property
    def rated(self) -> range:
        """Indices of the rated inputs."""
        return range(len(self) - len(self._inputs), len(self))

    @property
    def rated_lengths(self) -> np.ndarray:
        """Characters of the longest text to each rated input, int64."""
        return np.array([max(len(text) for _, text in each.texts) for each in self._inputs])

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the ordinary examples."""
        getattr(self.examples.dataset, "set_epoch", lambda _: None)(epoch)

    def __len__(self) -> int:
        return len(self.examples.lengths) + len(self._inputs)

    def __getitem__(self, index: int) -> Example | RatedInput:
        ordinary = len(self.examples.lengths)
        return self.examples.dataset[index] if index < ordinary else self._inputs[index - ordinary]


class RatedBatches(EpochBatches):
    """Batches of ordinary examples and rated inputs; an epoch has every rated input once."""

    def __init__(
        self, dataset: RatedDataset, examples: int, inputs: int, seed: int, processes: int = 1, rank: int = 0
    ) -> None:
        self._rated, self._ordinary = np.array(dataset.rated), len(dataset.examples.lengths)
        self._lengths = dataset.rated_lengths
        self._examples, self._inputs, self._seed = examples, inputs, seed
        self._processes, self._rank = processes, rank

    def __len__(self) -> int:
        return -(-len(self._rated) // (self._inputs * self._processes))

    def batches(self, epoch: int, skip: int = 0) -> Iterator[list[int]]:
        random = np.random.default_rng((self._seed, epoch))
        order = random.permutation(len(self._rated))
        # An input comes twice where a process would have none in the last step, and the others would wait for it.
        order = np.resize(order, max(len(order), len(self) * self._processes))
        size = self._inputs * POOLED
        pools = [order[start : start + size] for start in range(0, len(order), size)]
        order = np.concatenate([pool[np.argsort(self._lengths[pool], kind="stable")] for pool in pools])
        parts = np.array_split(self._rated[order], len(self) * self._processes)
        parts = [parts[place] for place in random.permutation(len(parts))]
        for step in range(skip, len(self)):
            number = step * self._processes + self._rank
            random = np.random.default_rng((self._seed, epoch, number))
            yield [*random.integers(self._ordinary, size=self._examples).tolist(), *parts[number].tolist()]


class RatedBatch(NamedTuple):
    """N ordinary examples and, after them, the M texts of the A answers to the rated inputs."""

    source: np.ndarray  # ids [N + M, S]
    source_lengths: np.ndarray  # [N + M]
    target: np.ndarray  # input ids [N + M, T], begin token first
    label: np.ndarray  # output ids [N + M, T], end token last
    # Of the ordinary examples, float32 [N, T]; those below are arguments of `PreferenceLoss`.
    mask: np.ndarray
    text_mask: np.ndarray | None = None
    answers: np.ndarray | None = None
    inputs: np.ndarray | None = None
    ratings: np.ndarray | None = None
    before: np.ndarray | None = None


def collate_rated(examples: Sequence[Example | RatedInput]) -> RatedBatch:
    """Pad ordinary examples and, after them, rated inputs to a batch."""
    rated = [each for each in examples if isinstance(each, RatedInput)]
    ordinary = [each for each in examples if not isinstance(each, RatedInput)]
    source, lengths, target, label, mask = collate(
        [*ordinary, *(text for each in rated for text in each.texts)]
    )
    if not rated:
        return RatedBatch(source, lengths, target, label, mask)
    sizes = [len(each.ratings) for each in rated]
    starts = np.cumsum([0, *sizes[:-1]])
    return RatedBatch(
        source,
        lengths,
        target,
        label,
        mask[: len(ordinary)],
        mask[len(ordinary) :],
        np.concatenate([each.answers + start for each, start in zip(rated, starts, strict=True)]),
        np.repeat(np.arange(len(rated)), sizes),
        np.concatenate([each.ratings for each in rated]),
        np.concatenate([each.before for each in rated]),
    )


class PreferenceLoss(nn.Layer):
    """Loss of ordinary examples, and of the order in which the answers to one input were rated.

    The second is over all pairs of answers to an input of which one is rated better: the mean over the pairs of
    -log σ(r_better - r_worse), and the mean over the inputs of that, with r = β · (log p - log p of the weights
    before): direct preference optimisation (Rafailov et al. 2023, "Direct Preference Optimization", equation 7).

    Args:
        own: loss of the ordinary examples.
        least_gap: least difference of two ratings that makes an answer the better one.
    """

    def __init__(self, own: SequenceCrossEntropy, least_gap: float) -> None:
        super().__init__()
        self._own = own
        self._least_gap = least_gap

    @property
    def token_nll(self) -> Tensor:
        """Negative log-likelihoods [N, T] of the ordinary examples of the last call, masked."""
        return self._own.token_nll

    def forward(
        self,
        logits: Tensor,
        label: Tensor,
        mask: Tensor,
        text_mask: Tensor | None = None,
        answers: Tensor | None = None,
        inputs: Tensor | None = None,
        ratings: Tensor | None = None,
        before: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar.

        Args:
            logits: [N + M, T, V] of N ordinary examples and then the M texts of the rated answers.
            label: int64 [N + M, T].
            mask: of the ordinary examples [N, T].
            text_mask: of the texts of the A rated answers [M, T]; None, as all below, without any (a dev batch).
            answers: the answer of each text, int64 [M].
            inputs: the input of each answer, int64 [A].
            ratings: of the answers [A].
            before: log-probabilities of the answers under the weights before [A].
        """
        count = mask.shape[0]
        loss = self._own(logits[:count], label[:count], mask)
        if text_mask is None or answers is None or inputs is None or ratings is None or before is None:
            return loss
        nll = F.cross_entropy(logits[count:], label[count:].unsqueeze(-1), reduction="none").squeeze(-1)
        texts = -(nll * text_mask).sum(-1)  # [M]
        log_probs = paddle.zeros_like(before).scatter_nd_add(answers.unsqueeze(-1), texts)  # [A]
        rewards = STRENGTH * (log_probs - before)  # [A]
        total, inputs_with_pairs = preference_nll(rewards, ratings, inputs, self._least_gap)
        return loss + mean_of(total, inputs_with_pairs)


def preference_nll(
    rewards: Tensor, ratings: Tensor, inputs: Tensor, least_gap: float
) -> tuple[Tensor, Tensor]:
    """Return the negative log-likelihood of the order of ratings (Bradley & Terry 1952), two scalars.

    Args:
        rewards: of answers, [A].
        ratings: of the answers, [A].
        inputs: the input of each answer, int64 [A].

    Returns:
        The sum over the inputs of the mean over their ordered pairs of -log σ(difference of rewards); the number of
        inputs with such a pair.
    """
    together = inputs.unsqueeze(1) == inputs.unsqueeze(0)  # [A, A]
    better = ratings.unsqueeze(1) - ratings.unsqueeze(0) >= least_gap  # [A, A]
    pairs = paddle.logical_and(together, better).astype(rewards.dtype)  # [A, A]
    per_answer = pairs.sum(1)  # [A], pairs that it wins
    per_input = (together.astype(rewards.dtype) * per_answer.unsqueeze(0)).sum(1)  # [A], pairs of its input
    weights = pairs / paddle.clip(per_input, min=1.0).unsqueeze(1)  # [A, A], sum to 1 over an input
    nll = F.softplus(rewards.unsqueeze(0) - rewards.unsqueeze(1))  # [A, A]
    return (nll * weights).sum(), weights.sum()


def _encode(answers: Sequence[RatedAnswer], vocabulary: Vocabulary) -> RatedInput:
    """Encode the answers to one input; their log-probabilities are 0 as yet."""
    texts = [answer.texts(vocabulary) for answer in answers]
    arrays = [(np.array(asked, np.int32), np.array(text, np.int32)) for own in texts for asked, text in own]
    numbers = np.repeat(np.arange(len(answers)), [len(own) for own in texts])
    ratings = np.array([answer.rating for answer in answers], np.float32)
    return RatedInput(arrays, numbers, ratings, np.zeros(len(answers), np.float32))


def _log_probs(model: StepModel, texts: Sequence[Example]) -> np.ndarray:
    """Return the log-probability of each text, its end included, [M]."""
    found = np.zeros(len(texts))
    order = np.argsort([len(asked) for asked, _ in texts], kind="stable")  # little padding
    for start in range(0, len(order), SCORED):
        batch = order[start : start + SCORED]
        source, lengths = encode_sources([texts[number][0] for number in batch])
        found[batch] = text_log_probs(model, source, lengths, [texts[number][1] for number in batch])
    return found
