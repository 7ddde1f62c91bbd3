"""The settings of the poem task, and its data: poems or running text, in windows of a stream or in single rows.

Positions count from the begin token of a text; those of the form and title before it are negative. A text begins
where a position is not one above that before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from paddle_dialog.config.models import CausalLmConfig, LanguageModelConfig, RecurrentLmConfig
from paddle_dialog.config.schema import DataConfig, DecodingConfig, GenerationConfig
from paddle_dialog.config.typed import Problem, at_least, setting
from paddle_dialog.data import corpora
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.poem.forms import FORMS, form_of
from paddle_dialog.text.characters import normalise_line, read_as_simplified
from paddle_dialog.text.vocabulary import Vocabulary

InputKind = Literal["begin", "acrostic", "title"]
MAX_TITLE = 24  # characters of a title; the rest is cut


@dataclass(frozen=True)
class PoemDataConfig(DataConfig):
    """Texts are joined and cut into windows of one length, so that no batch has padding."""

    max_length: int = at_least(1, 128, "longest poem in characters; longer ones are skipped")
    running_text: bool = setting(False, "a file is one running text in any language, and not poems")
    window: int = at_least(2, 256, "characters of a window")


@dataclass(frozen=True)
class PoemDecodingConfig(DecodingConfig):
    """How poems are drawn."""

    strategy: Literal["beam", "greedy", "sample"] = "sample"
    temperature: float = field(default=0.55, metadata={"above": 0.0})
    max_length: int = at_least(1, 80)


@dataclass(frozen=True)
class VerseConfig:
    """The form and the rules that a poem is held to, and what the input means."""

    form: Literal["五绝", "七绝", "五律", "七律"] | None = setting(
        None, "number and length of lines; null lets the model continue freely"
    )
    input: Literal["begin", "acrostic", "title"] = setting(
        "begin", "what a text asks for: a beginning, the first character of each line (藏头), or a title"
    )
    title: str | None = setting(None, "a title that all poems are written to")
    rhyme: bool = setting(True, "the even lines of a form end in one rhyme, on different characters")
    title_weight: float = at_least(
        0.0,
        0.7,
        "λ: poems to a title are ordered by log p(poem | title) - λ · log p(poem), so that what would suit any "
        "title comes later",
    )


@dataclass(frozen=True)
class PoemConfig(GenerationConfig):
    """A poem recipe."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding", "verse")

    model: LanguageModelConfig = field(default_factory=CausalLmConfig)  # type: ignore[assignment]
    data: PoemDataConfig = field(default_factory=PoemDataConfig)
    decoding: PoemDecodingConfig = field(default_factory=PoemDecodingConfig)
    verse: VerseConfig = field(default_factory=VerseConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if self.decoding.engine == "reference" and (self.verse.form or self.verse.input == "acrostic"):
            yield "decoding.engine", "reference knows no forms; leave verse.form out, or take fast"
        texts = max(self.data.max_length, self.decoding.max_length) + MAX_TITLE + 2
        longest = max(self.data.window, texts)
        if longest > self.model.max_positions:
            yield (
                "model.max_positions",
                f"must be at least {longest} to hold data.window, and a title of {MAX_TITLE} with data.max_length "
                f"and decoding.max_length, and is {self.model.max_positions}",
            )


TITLES = Path(__file__).with_name("titles.txt")
SAMPLE = Path(__file__).with_name("sample.txt")
NEWLINE = "<newline>"  # a vocabulary's file cannot hold a line break
FORM_TOKENS = {name: f"<{name}>" for name in FORMS}


@dataclass(frozen=True, slots=True)
class Poem:
    """One poem; the title may be empty."""

    title: str
    body: str


def read_poems(source: str) -> list[Poem]:
    """Read poems, normalised and in simplified characters, in one of the forms of `corpora.read_poems`.

    Args:
        source: `sample` (a few poems that come with the package), or a UTF-8 file, also `.xz` or `.gz`.
    """
    path = SAMPLE if source == "sample" else Path(source)
    poems = []
    for line, *texts in corpora.read_poems(path):
        title, body = (read_as_simplified(normalise_line(text)) for text in texts)
        if not body:
            raise UserError(f"{path}:{line}: the poem is empty; give {corpora.POEMS}")
        poems.append(Poem(title, body))
    if not poems:
        raise UserError(f"{path}: no poem in this file; give {corpora.POEMS}")
    return poems


def classical_title(title: str) -> str | None:
    """Return the title that a poem is written to: of `titles.txt` if a third of it is of today, else itself.

    None where classical verse has nothing of the kind.
    """
    known = max(
        (word for word in _titles() if word in title and 3 * len(word) >= len(title)), key=len, default=None
    )
    return title if known is None else _titles()[known]


@cache
def _titles() -> dict[str, str | None]:
    rows = TITLES.read_text(encoding="utf-8").splitlines()
    parts = [row.partition(":") for row in rows if not row.startswith("#")]
    return {word: title.strip() or None for words, _, title in parts for word in words.split()}


def characters(text: str) -> list[str]:
    """Split a text into characters as the vocabulary has them."""
    return [NEWLINE if char == "\n" else char for char in text]


FORM_RATE, TITLE_RATE = (
    0.5,
    0.7,
)  # of the poems of an epoch, shown with the name of their form, and with their title
Stream = np.ndarray  # int32 [N, 4]: inputs, positions, labels, and whether a label is learned


class EncodedPoem:
    """A poem's ids."""

    __slots__ = ("body", "form", "title")

    def __init__(self, poem: Poem, vocabulary: Vocabulary) -> None:
        form = form_of(poem.body)
        self.form = np.array([] if form is None else [vocabulary.id(FORM_TOKENS[form.name])], np.int32)
        self.title = np.array(vocabulary.encode(poem.title[:MAX_TITLE]), np.int32)
        self.body = np.array(vocabulary.encode(poem.body), np.int32)

    def stream(self, with_form: bool = False, with_title: bool = False) -> Stream:
        """Make a stream of the poem alone [T, 4]; the body and its end are learned."""
        prefix = np.concatenate([self.form[: int(with_form)], self.title if with_title else self.title[:0]])
        text = np.concatenate([prefix, [Vocabulary.bos_id], self.body, [Vocabulary.eos_id]])
        positions = np.arange(len(text) - 1) - len(prefix)
        return np.stack([text[:-1], positions, text[1:], positions >= 0], axis=1).astype(np.int32)


def stream_poems(poems: Sequence[EncodedPoem], seed: int, epoch: int) -> Stream:
    """Make a stream of all poems, in another order and with other titles each epoch."""
    rng = np.random.Generator(np.random.PCG64([seed, epoch]))
    order = rng.permutation(len(poems))
    forms, titles = rng.random(len(poems)) < FORM_RATE, rng.random(len(poems)) < TITLE_RATE
    return np.concatenate([poems[i].stream(forms[i], titles[i]) for i in order])


def stream_text(ids: np.ndarray) -> Stream:
    """Make a stream of a running text [N]."""
    inputs = np.concatenate([[Vocabulary.bos_id], ids[:-1]])
    return np.stack([inputs, np.arange(len(ids)), ids, np.ones(len(ids))], axis=1).astype(np.int32)


def cut_text(ids: np.ndarray, window: int, seed: int, epoch: int) -> Stream:
    """Cut a running text into pieces of one length, each a text of its own, at other places each epoch."""
    window = min(window, len(ids))
    offset = np.random.Generator(np.random.PCG64([seed, epoch])).integers(len(ids) % window + 1)
    starts = range(int(offset), len(ids) - window + 1, window)
    return np.concatenate([stream_text(ids[start : start + window]) for start in starts])


class Windows:
    """A stream cut into windows.

    Args:
        lay_out: makes the stream of an epoch. All epochs are as long as the first; a longer one is cut, of a
            shorter one the beginning is repeated.
        window: length T; a shorter text is one window.
    """

    def __init__(self, lay_out: Callable[[int], Stream], window: int) -> None:
        self._lay_out = lay_out
        size = len(lay_out(0))
        self._window = min(window, size)
        if self._window < 2:
            raise UserError("data.train: the training text has a single character; give more text")
        self._count = size // self._window
        self.set_epoch(0)

    def set_epoch(self, epoch: int) -> None:
        """Lay out an epoch."""
        stream = np.resize(self._lay_out(epoch), (self._count * self._window, 4))
        self._windows = stream.reshape(-1, self._window, 4)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Stream:
        return self._windows[index]


class Poems:
    """The poems of a source that are short enough, each a text of its own."""

    reserved = (NEWLINE, *FORM_TOKENS.values())  # of the vocabulary

    def __init__(self, source: str, settings: PoemDataConfig) -> None:
        read, limit = read_poems(source), settings.max_length
        self.poems = [poem for poem in read if len(poem.body) <= limit]
        if not self.poems:
            raise UserError(f"data.max_length: every poem has more than {limit} characters; set it higher")
        self.skipped = len(read) - len(self.poems)
        self.note = (
            f"{len(self.poems):,} poems, {self.skipped:,} others skipped as longer than {limit} characters"
        )

    def sequences(self) -> list[str]:
        """Return the tokens that the vocabulary is made of."""
        return [text for poem in self.poems for text in (poem.title[:MAX_TITLE], poem.body)]

    def epochs(self, config: PoemConfig, vocabulary: Vocabulary) -> Callable[[int], Stream]:
        """Return what makes the training stream of an epoch."""
        return partial(stream_poems, [EncodedPoem(poem, vocabulary) for poem in self.poems], config.seed)

    def rows(self, vocabulary: Vocabulary, window: int, titled: bool = False) -> list[Stream]:
        """Encode single texts, as an evaluation reads them; after form and title if `titled`."""
        return [EncodedPoem(poem, vocabulary).stream(titled, titled) for poem in self.poems]


class RunningText:
    """A source whose whole file is one text."""

    reserved, skipped = (NEWLINE,), 0

    def __init__(self, source: str) -> None:
        path = SAMPLE if source == "sample" else Path(source)
        self.text = read_as_simplified("\n".join(line for _, line in read_lines(path)))
        self.note = f"a text of {len(self.text):,} characters"

    def sequences(self) -> list[list[str]]:
        return [characters(self.text)]

    def epochs(self, config: PoemConfig, vocabulary: Vocabulary) -> Callable[[int], Stream]:
        """Return what makes the training stream of an epoch: windows, or the whole where a state is carried on."""
        ids = np.array(vocabulary.encode(characters(self.text)), np.int32)
        if isinstance(config.model, RecurrentLmConfig):
            whole = stream_text(ids)
            return lambda epoch: whole
        return partial(cut_text, ids, config.data.window, config.seed)

    def rows(self, vocabulary: Vocabulary, window: int, titled: bool = False) -> list[Stream]:
        """Encode the text in windows; the last may be shorter."""
        ids = np.array(vocabulary.encode(characters(self.text)), np.int32)
        return [stream_text(ids[start : start + window]) for start in range(0, len(ids), window)]


def read_texts(source: str, settings: PoemDataConfig) -> Poems | RunningText:
    """Read what the settings say that a source is."""
    return RunningText(source) if settings.running_text else Poems(source, settings)


class PoemBatch(NamedTuple):
    """A training batch: ids, positions and labels, int64 [B, T]; and the mask of the labels that count, float32."""

    ids: np.ndarray
    positions: np.ndarray
    label: np.ndarray
    mask: np.ndarray


def collate(rows: Sequence[Stream]) -> PoemBatch:
    """Make a batch."""
    inputs, positions, labels, counts = (pad_batch([row[:, part] for row in rows], 0)[0] for part in range(4))
    return PoemBatch(inputs, positions, labels, counts.astype(np.float32))
