"""The data of a run: dialogues as ids, batches of them, and the classifier of emotions that is fitted before.

Support vector machines over weighted n-grams predict the emotion of a new context better than an encoder that learned
from the same few conversations.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from paddle import io
from scipy.sparse import coo_matrix, csr_matrix, vstack
from scipy.sparse.csgraph import connected_components

from paddle_dialog.config.models import CausalTransformerConfig, PretrainedConfig
from paddle_dialog.data.batching import EncodedData, TrainingData, pad_batch, target_arrays
from paddle_dialog.linear_classifier import (
    LinearSettings,
    fit_classifier,
    fit_machine,
    sparse_rows,
    unit_vectors,
)
from paddle_dialog.tasks.empathetic.config import EmotionConfig, EmpatheticConfig, EmpatheticDataConfig
from paddle_dialog.tasks.empathetic.data.dialogue import (
    Dialogue,
    read_conversations,
    read_dialogues,
    read_turns,
)
from paddle_dialog.tasks.empathetic.data.emotions import emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    NO_EMOTION,
    VOCABULARY,
    DialogueEncoder,
    EncodedContext,
    Source,
    chosen_vocabulary,
    column_weights,
    count_words,
    make_encoder,
    pad_sources,
    pretrained_vocabulary,
)
from paddle_dialog.tasks.empathetic.data.language import (
    PIECES,
    Language,
    language_of_model,
    learn_pieces,
    read_pieces,
    sample_of_turns,
)
from paddle_dialog.text.vocabulary import Vocabulary

logger = logging.getLogger("paddle_dialog")

UNLIMITED = 1 << 20  # positions of a recurrent model

# Of the classifier of emotions.
PENALTY = 0.2  # C of the support vector machines
RATIO_POWER = 0.25  # of the log-count ratios
NEUTRAL_WEIGHT = 5.0  # of a context without emotion in the loss of the machine that detects them
# From which margin of that machine on contexts are neutral, and how gradually.
NEUTRAL_FROM, NEUTRAL_WIDTH = -0.8, 0.05
HELD_OUT = 5  # one in this many conversations is held out to fit the scale


class Example(NamedTuple):
    """One encoded example."""

    source: Source
    target: np.ndarray  # extended ids [T], without begin and end
    emotion: int  # class id or NO_EMOTION
    has_reply: bool = True  # False where it teaches the emotion alone
    next_words: np.ndarray | None = None  # what a language model predicts at each position, 0 for nothing [S]


def longest_target(config: EmpatheticConfig) -> int:
    """Return the length of the longest reply that the model can score, far longer than those in training."""
    positions = getattr(config.model, "max_positions", UNLIMITED)
    if isinstance(config.model, CausalTransformerConfig):  # those after the longest context and its mark
        positions -= config.data.max_length + 1
    return positions - 1  # the end token needs a position


class DialogueDataset(io.Dataset):
    """Encoded dialogues.

    Args:
        max_target_length: longest reply; the rest is cut.
        counts: occurrences in the training text, for training data only: some of the words seen once are shown as
            unknown, different ones in each epoch.
    """

    def __init__(
        self,
        dialogues: Sequence[Dialogue],
        encoder: DialogueEncoder,
        max_target_length: int,
        counts: Counter[str] | None = None,
    ) -> None:
        super().__init__()
        self.dialogues, self.encoder, config = dialogues, encoder, encoder.config
        self._seed, self._epoch = config.seed, 0
        self._unknown_rate = 0.0 if counts is None else config.data.unknown_rate
        self._learns_contexts = counts is not None and config.generator.context_weight > 0
        # Context, target and emotion of each.
        self._encoded: list[tuple[EncodedContext, np.ndarray, int]] = []
        self.cut_targets = 0
        for dialogue in dialogues:
            tokens = self.encoder.language.tokens_of(dialogue.target)
            self.cut_targets += len(tokens) > max_target_length
            emotion = NO_EMOTION
            if dialogue.emotion is not None:
                emotion = emotion_id(dialogue.emotion, self.encoder.language.emotions)
            context = self.encoder.context(dialogue.context)
            self._encoded.append((context, self.encoder.numbers(tokens[:max_target_length]), emotion))
        self._once = np.array([counts is not None and counts[word] == 1 for word in self.encoder.words()])

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, which decides what is shown as unknown."""
        self._epoch = epoch

    @property
    def lengths(self) -> np.ndarray:
        """Positions of source and target of each example, [N, 2]."""
        return np.array([[len(context.words) + 1, len(target)] for context, target, _ in self._encoded])

    def __len__(self) -> int:
        return len(self._encoded)

    def __getitem__(self, index: int) -> Example:
        context, target, emotion = self._encoded[index]
        unknown = self._shown_as_unknown(index, context.words, target)
        source, extended = self.encoder.pack(context, unknown=unknown)
        dialogue, next_words = self.dialogues[index], None
        if self._learns_contexts:
            next_words = self.encoder.learned(context, dialogue.context, dialogue.new_turns)
        reply = self.encoder.target(target, extended, unknown)
        return Example(source, reply, emotion, dialogue.target != "", next_words)

    def _shown_as_unknown(self, index: int, *texts: np.ndarray) -> set[int]:
        """Draw the words of an example that this epoch hides, a function of seed, epoch and example."""
        if not self._unknown_rate:
            return set()
        words = np.unique(np.concatenate(texts))
        rare = words[self._once[words]]
        draws = np.random.default_rng([self._seed, self._epoch, index]).random(len(rare))
        return set(rare[draws < self._unknown_rate].tolist())


class DialogueBatch(NamedTuple):
    """A training batch."""

    words: np.ndarray  # [B, S]; see `Source`, as the next four
    roles: np.ndarray | None  # [B, S] or None
    hints: np.ndarray | None  # [B, S] or None
    ngrams: np.ndarray | None  # [B, S, G] or None
    condition: np.ndarray  # [B]
    source_lengths: np.ndarray  # [B]
    # Ids that are learned at the positions of contexts, 0 for none [B, S]; None where none is learned.
    next_words: np.ndarray | None
    target: np.ndarray  # input ids [B, T], begin token first
    emotion: np.ndarray  # class ids or `NO_EMOTION` [B]
    label: np.ndarray  # output ids [B, T], end token last
    mask: np.ndarray  # float32 [B, T], 1 on real target tokens


def collate(examples: list[Example]) -> DialogueBatch:
    """Pad examples to a training batch."""
    source, source_lengths = pad_sources([example.source for example in examples])
    learned = [example.next_words for example in examples if example.next_words is not None]
    next_words = pad_batch(learned, 0)[0] if learned else None  # [B, S]
    target, label, mask = target_arrays([example.target for example in examples])  # [B, T] each
    mask[[not example.has_reply for example in examples]] = 0.0
    emotions = np.array([example.emotion for example in examples], dtype=np.int64)
    return DialogueBatch(*source, source_lengths, next_words, target, emotions, label, mask)


def training_data(
    config: EmpatheticConfig, vocabularies: Mapping[str, Vocabulary] | None, pieces: bytes | None
) -> TrainingData:
    """Read and encode the dialogues of a run.

    Args:
        vocabularies: of weights that exist; None makes one from the training text.
        pieces: of weights that exist; None makes them from the training text where the language has pieces.
    """
    settings = config.data
    train = read_dialogues(settings.train, config.language)
    is_pretrained = isinstance(config.model, PretrainedConfig)
    if config.language == "zh" and pieces is None and not is_pretrained:
        pieces = _pieces_of(settings, train)
    language = language_of_model(config, pieces)
    more, counts = _further_conversations(settings, language, count_words(train, language))
    known = None if vocabularies is None else vocabularies[VOCABULARY]
    if is_pretrained:
        vocabulary = pretrained_vocabulary(config)
    else:
        vocabulary = chosen_vocabulary(settings, counts, language, known)
    encoder = make_encoder(config, vocabulary, language=language)
    dataset = DialogueDataset([*train, *more], encoder, settings.max_target_length, counts)
    notes = [
        f"training data {settings.train}: {len(train):,} examples, {dataset.cut_targets:,} replies cut to "
        f"{settings.max_target_length} words",
        f"vocabulary: {len(vocabulary):,} tokens, special and reserved ones included",
    ]
    if more:
        notes.append(f"further conversations {settings.more}: {len(more):,} pieces")
    dev = None
    if settings.dev is not None:
        dialogues, longest = read_dialogues(settings.dev, config.language), longest_target(config)
        scored = DialogueDataset(dialogues, encoder, longest)
        dev = EncodedData(scored, scored.lengths)
        notes.append(f"dev data {settings.dev}: {len(dev.lengths):,} examples")
    files = {} if pieces is None else {PIECES: pieces}
    encoded = EncodedData(dataset, dataset.lengths)
    return TrainingData(encoded, dev, {VOCABULARY: vocabulary}, collate, notes, files)


def _further_conversations(
    settings: EmpatheticDataConfig, language: Language, counts: Counter[str]
) -> tuple[list[Dialogue], Counter[str]]:
    """Return the further conversations of `data.more`, if any, and the counts of words with theirs.

    Words that only they have, and fewer than `data.more_min_count` times, count 0.
    """
    if settings.more is None:
        return [], counts
    more = read_conversations(settings.more, settings.max_length, language)
    further = count_words(more, language)
    together = counts + further
    for word, count in further.items():
        if word not in counts and count < settings.more_min_count:
            together[word] = 0
    return more, together


def _pieces_of(settings: EmpatheticDataConfig, train: Sequence[Dialogue]) -> bytes:
    """Read or learn the pieces that Chinese is cut into."""
    if settings.pieces is not None:
        return read_pieces(settings.pieces)
    more = [] if settings.more is None else read_turns(settings.more)
    logger.info("learning %s pieces from a sample of the training text", f"{settings.piece_count:,}")
    conversations = [*more, *([d.context[-1], d.target] for d in train)]
    return learn_pieces(sample_of_turns(conversations), settings.piece_count)


def fit_emotions(
    encoder: DialogueEncoder,
    dialogues: Sequence[Dialogue],
    settings: EmotionConfig,
    neutral: Sequence[Sequence[str]] = (),
) -> dict[str, np.ndarray]:
    """Fit the classifier of n-grams to the annotated contexts of dialogues.

    The features are vectors of unit length of idf(bucket) = ln((1 + N) / (1 + texts with it)) + 1; see
    `paddle_dialog.linear_classifier.fit_classifier` for the machines.

    Args:
        settings: how many buckets, and what else is learned from.
        neutral: contexts without any emotion, which a further machine separates from all others.

    Returns:
        `idf` [buckets] and `table` [buckets, C] that gives logits of the emotions (row 0, no feature, has zeros);
        with neutral contexts `plainness` [buckets], whose weighted sum less that of bucket 0 is a logit of none.
    """
    emotions, buckets = encoder.language.emotions, settings.ngram_buckets
    texts, conversations = annotated_texts(dialogues, settings.situations)
    labels = np.array([emotion_id(emotion, emotions) for _, emotion in texts], dtype=np.int64)  # [N]
    fitted = {"idf": np.zeros(buckets, np.float32), "table": np.zeros((buckets, len(emotions)), np.float32)}
    if neutral:
        fitted["plainness"] = np.zeros(buckets, np.float32)
        fitted["plainness"][0] = NEUTRAL_FROM / NEUTRAL_WIDTH
    if len(np.unique(labels)) < 2:  # nothing to separate
        return fitted
    features = ngram_features(encoder, [turns for turns, _ in texts], settings)  # [N, buckets]
    texts_with = np.bincount(features.indices, minlength=buckets)  # [buckets]
    idf = fitted["idf"]
    idf[1:] = np.log((1 + len(labels)) / (1 + texts_with[1:])) + 1
    features = unit_vectors(features, idf)
    machine = LinearSettings(PENALTY, ratio_power=RATIO_POWER)
    held_out = conversations % HELD_OUT == 0
    fitted["table"][1:] = fit_classifier(features, labels, held_out, len(emotions), machine)[1:]
    if neutral:
        both = vstack([features, unit_vectors(ngram_features(encoder, neutral, settings), idf)])
        is_neutral = np.arange(both.shape[0]) >= len(texts)  # [N + M]
        weights = fit_machine(both, is_neutral, machine, np.where(is_neutral, NEUTRAL_WEIGHT, 1.0))
        fitted["plainness"][1:] = weights[1:] / NEUTRAL_WIDTH
    return fitted


def ngram_features(
    encoder: DialogueEncoder, texts: Sequence[Sequence[str]], settings: EmotionConfig
) -> csr_matrix:
    """Return the buckets of each context, weighted by column, as a sparse float32 matrix [N, buckets]."""
    columns, buckets, weights = column_weights(settings.character_weight), [], []
    for turns in texts:
        ngrams = encoder.ngrams(encoder.context(turns))  # [S, G]
        kept = ngrams > 0
        buckets.append(ngrams[kept])
        weights.append(np.broadcast_to(columns, ngrams.shape)[kept])
    return sparse_rows(buckets, weights, settings.ngram_buckets)


def annotated_texts(
    dialogues: Sequence[Dialogue], situations: bool
) -> tuple[list[tuple[list[str], str]], np.ndarray]:
    """Return contexts with their emotion, and the conversation of each [N]; those of different ones share no text.

    Contexts belong together if they have the same opening or situation, or if one contains the opening of another.

    Args:
        situations: add the situation of each conversation, once, as a context of a single turn.
    """
    openings = {dialogue.context[0]: number for number, dialogue in enumerate(dialogues)}
    first: dict[str, int] = {}  # the first dialogue of each situation
    pairs = []  # of dialogues that belong together
    for number, dialogue in enumerate(dialogues):
        pairs += [(number, openings[turn]) for turn in dialogue.context[::2] if turn in openings]
        if dialogue.situation is not None:
            pairs.append((number, first.setdefault(dialogue.situation, number)))
    rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    shape = (len(dialogues), len(dialogues))
    graph = coo_matrix((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=shape)
    parts = connected_components(graph, directed=False)[1]  # [dialogues]
    texts = [(d.context, d.emotion, part) for d, part in zip(dialogues, parts, strict=True)]
    if situations:
        known = dict.fromkeys((d.situation, d.emotion) for d in dialogues if d.situation is not None)
        texts += [([situation], emotion, parts[first[situation]]) for situation, emotion in known]
    annotated = [(turns, emotion) for turns, emotion, _ in texts if emotion is not None]
    return annotated, np.array([part for _, emotion, part in texts if emotion is not None], dtype=np.int64)
