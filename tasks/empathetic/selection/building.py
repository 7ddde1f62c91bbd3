"""Making a store of replies from a corpus or a user's file."""

from __future__ import annotations

import dataclasses
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from tasks.empathetic.config import EmpatheticConfig
from tasks.empathetic.data.dialogue import clean_turn
from tasks.empathetic.data.encoding import DialogueEncoder
from tasks.empathetic.data.language import ENGLISH, Language
from tasks.empathetic.data.sources import SERVING, Dialogue, read_configured
from tasks.empathetic.data.vocabulary import turns_once
from tasks.empathetic.reading.vectors import (
    BATCH,
    SelectionModel,
    context_vectors,
    log_probs,
    reply_vectors,
)
from tasks.empathetic.selection.cleaning import Reply, fault_of
from tasks.empathetic.selection.context_index import ContextIndex
from tasks.empathetic.selection.editing import editor_of
from tasks.empathetic.selection.felt import FeelingModel, emotions_of_replies
from tasks.empathetic.selection.store import REPLY_STORE, ReplyStore
from tasks.empathetic.selection.word_use import WordUse

logger = logging.getLogger("paddle_dialog")

MOST_USER_WORDS = 64  # longest reply of a user's file
PIECE = 512  # replies scored between two progress messages
PROBES, SAME_COSINE = (
    8,
    0.999,
)  # replies that identify a model, and the least cosine that rounding leaves of 1


def find_store(
    config: EmpatheticConfig, content: bytes | None, model: SelectionModel, encoder: DialogueEncoder
) -> ReplyStore | None:
    """Return the store that a config asks for.

    Args:
        config: of the predictor.
        content: of the bundle's `REPLY_STORE`; None where it has none.
        model: that reads the contexts, and the replies of a user's file.
        encoder: of the model.

    Returns:
        None where the config wants none, or leaves the choice to a bundle that has none.

    Raises:
        UserError: the store is required but missing, it belongs to another model, or the user's file is faulty.
    """
    settings = config.replies
    if settings.store is False:
        return None
    if settings.file is not None:
        path = Path(settings.file)
        cache = path.with_name(f"{path.name}.vectors.safetensors") if settings.cache else None
        return store_of_file(path, model, encoder, cache)
    if content is None:
        missing = f"these weights have no store of replies ({REPLY_STORE})"
        if settings.store or not settings.generate:
            raise UserError(
                f"replies.store: {missing}; make a bundle with one by tools/export.py --data, name a file of replies "
                "by replies.file, or set -o replies.store=false -o replies.generate=true"
            )
        logger.info("%s; the generator answers alone", missing)
        return None
    store = ReplyStore.from_bytes(content, REPLY_STORE)
    if store.vectors.shape[1] != config.selection.size:
        raise UserError(
            f"{REPLY_STORE}: has vectors of {store.vectors.shape[1]} numbers, and the model of "
            f"{config.selection.size}; make it anew by tools/export.py --data"
        )
    return store


def store_of_corpus(
    sources: Sequence[str], config: EmpatheticConfig, model: SelectionModel, encoder: DialogueEncoder
) -> ReplyStore:
    """Make a store of the listeners' turns that fit other conversations too; log how many were dropped.

    Args:
        sources: as for `read_configured`.
        config: of the model; without vectors (`selection.size`) the store is searched by the words of its
            conversations.
        model: whose vectors and probabilities are kept.
        encoder: of the model.

    Raises:
        UserError: a source cannot be read, or none of its replies is usable.
    """
    read = {source: read_configured(config, source) for source in sources}
    dialogues = [dialogue for source in sources for dialogue in read[source]]
    ours = {id(dialogue) for source in sources if source in SERVING for dialogue in read[source]}
    language, has_vectors = encoder.language, config.selection.size > 0
    kept, dropped = good_replies(dialogues, language, ours)
    told = ", ".join(f"{name} {dropped[name]:,}" for name in [*editor_of(language).rules, "repeated"])
    logger.info(
        "%s: %s replies, kept %s; left out: %s",
        ", ".join(sources),
        f"{len(dialogues):,}",
        f"{len(kept):,}",
        told,
    )
    if not kept:
        raise UserError(f"{', '.join(sources)}: none of the replies serves in other conversations; give more")
    emotions = emotions_of_replies(list(kept.values()), ours, cast(FeelingModel, model), encoder)
    examples = [one for given in kept.values() for one in given]
    contexts = ContextIndex.build(
        [[language.terms(turn) for turn in one.context] for one in examples],
        [row for row, given in enumerate(kept.values()) for _ in given],
        _context_vectors([one.context for one in examples], model, encoder)
        if has_vectors
        else np.zeros((len(examples), 0), np.float32),
    )
    store = _store(list(kept), emotions, model, encoder, contexts, has_vectors)
    own = np.array([any(id(one) in ours for one in given) for given in kept.values()])  # [N]
    return dataclasses.replace(store, own=own) if own.any() else store


def good_replies(
    dialogues: Sequence[Dialogue], language: Language = ENGLISH, kept_all: Collection[int] = ()
) -> tuple[dict[str, list[Dialogue]], Counter[str]]:
    """Find the replies that serve in other conversations too.

    Args:
        dialogues: examples, those of one conversation one after the other.
        language: of them.
        kept_all: the `id` of those that were written to serve anywhere, whose replies no rule leaves out.

    Returns:
        Each reply, tidied, with every example that has it, and how many replies each rule of
        the language has dropped, "repeated" those that differ from an earlier one in punctuation alone.
    """
    editor, use = editor_of(language), WordUse(turns_once((d.context, d.target) for d in dialogues), language)
    kept: dict[tuple[str, ...], tuple[str, list[Dialogue]]] = {}
    dropped: Counter[str] = Counter()
    for dialogue in dialogues:
        if not dialogue.target:  # it has an emotion alone
            continue
        text = editor.tidied(dialogue.target)
        asked = editor.question_mark in dialogue.context[-1]
        reply = Reply(text, language.tokens_of(text), asked)
        fault = fault_of(reply, use, editor.rules)
        if fault is not None and id(dialogue) not in kept_all:
            dropped[fault] += 1
            continue
        _, given = kept.setdefault(editor.same_words(reply.tokens), (text, []))
        dropped["repeated"] += bool(given)
        given.append(dialogue)
    return dict(kept.values()), dropped


def store_of_file(
    path: Path, model: SelectionModel, encoder: DialogueEncoder, cache: Path | None
) -> ReplyStore:
    """Make a store of a user's replies, one a line; skip blank lines and repetitions.

    Args:
        path: plain, `.gz` or `.xz`.
        model: whose vectors and probabilities are kept.
        encoder: of the model.
        cache: file to keep the vectors and probabilities in; None keeps none.

    Raises:
        UserError: the file cannot be read, a line is longer than `MOST_USER_WORDS`, no line has a reply, or the
            cache cannot be read or written.
    """
    texts = _user_replies(path, encoder.language)
    if cache is not None and cache.exists():
        store = _read_cache(cache)
        if list(store.texts) == texts and _is_of(model, encoder, store):
            return store
        logger.info("%s: is of other replies or of another model; making it anew", cache)
    store = _store(texts, np.zeros(len(texts), np.uint32), model, encoder)
    if cache is not None:
        try:
            cache.write_bytes(store.to_bytes())
        except OSError as error:
            raise UserError(
                f"{cache}: cannot be written ({error.strerror}); or set replies.cache: false"
            ) from error
    return store


def _user_replies(path: Path, language: Language) -> list[str]:
    texts: dict[str, None] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            text = clean_turn(line, "the reply")
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}; give one reply a line") from error
        words = len(language.tokens_of(text))
        if words > MOST_USER_WORDS:
            raise UserError(
                f"{path}:{number}: the reply has {words:,} words, and {MOST_USER_WORDS} are the most; "
                "shorten it, and give one reply a line"
            )
        texts[text] = None
    if not texts:
        raise UserError(f"{path}: has no reply; give one reply a line")
    return list(texts)


def _read_cache(cache: Path) -> ReplyStore:
    try:
        return ReplyStore.from_bytes(cache.read_bytes(), str(cache))
    except OSError as error:
        raise UserError(f"{cache}: cannot be read ({error.strerror}); remove it") from error


def _is_of(model: SelectionModel, encoder: DialogueEncoder, store: ReplyStore) -> bool:
    """Return whether a model gives a store's first replies the stored vectors, up to rounding."""
    texts = [encoder.language.tokens_of(text) for text in store.texts[:PROBES]]
    vectors = reply_vectors(model, encoder.vocabulary, texts)  # [P, K]
    known = store.vectors[:PROBES]
    return vectors.shape == known.shape and bool(((vectors * known).sum(axis=1) > SAME_COSINE).all())


def _store(
    texts: Sequence[str],
    emotions: np.ndarray,
    model: SelectionModel,
    encoder: DialogueEncoder,
    contexts: ContextIndex | None = None,
    has_vectors: bool = True,
) -> ReplyStore:
    """Compute the vectors and the probabilities of replies."""
    tokens = [encoder.language.tokens_of(text) for text in texts]
    vectors = np.zeros((len(texts), 0), np.float32)
    if has_vectors:
        vectors = reply_vectors(model, encoder.vocabulary, tokens)
    scores = np.zeros(len(texts), dtype=np.float32)
    order = sorted(
        range(len(texts)), key=lambda row: tokens[row]
    )  # replies with a common prefix are read together
    for start in range(0, len(order), PIECE):
        rows = order[start : start + PIECE]
        scores[rows] = log_probs(model, encoder, [tokens[row] for row in rows])
        if start % (PIECE * 10) == 0:
            logger.info("reading replies: %s of %s", f"{start:,}", f"{len(order):,}")
    return ReplyStore(texts, vectors, scores, emotions, contexts)


def _context_vectors(
    contexts: Sequence[Sequence[str]], model: SelectionModel, encoder: DialogueEncoder
) -> np.ndarray:
    """Compute unit vectors [C, K] of contexts, read in the order of their lengths."""
    packed = [encoder.pack(encoder.context(context))[0] for context in contexts]
    order = np.argsort([len(one) for one in packed], kind="stable")
    parts = []
    for start in range(0, len(order), BATCH):
        parts.append(context_vectors(model, [packed[row] for row in order[start : start + BATCH]]))
        if start % (BATCH * 100) == 0:
            logger.info("reading their contexts: %s of %s", f"{start:,}", f"{len(order):,}")
    vectors = np.concatenate(parts)
    vectors[order] = vectors.copy()
    return vectors
