"""The table between tokens and ids, and its file: one token a line, the zero-based line number is the id."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.config.schema import DataConfig

logger = logging.getLogger("paddle_dialog")

MANY_UNKNOWN = 0.1  # share of the training tokens
PAD, UNK, BOS, EOS = "<pad>", "<unk>", "<bos>", "<eos>"
SPECIAL_TOKENS = (PAD, UNK, BOS, EOS)


class Vocabulary:
    """Tokens with fixed ids: 0 padding, 1 unknown, 2 begin, 3 end of sequence, then the others in order.

    Args:
        tokens: every token in the order of its id; the first four are `SPECIAL_TOKENS`.

    Raises:
        ValueError: the special tokens do not lead, or a token is empty, contains a line break or comes twice.
    """

    pad_id, unk_id, bos_id, eos_id = range(4)

    def __init__(self, tokens: Iterable[str]) -> None:
        self._tokens = tuple(tokens)
        fault = _first_fault(self._tokens)
        if fault is not None:
            index, problem = fault
            raise ValueError(f"vocabulary entry {index}: {problem}")
        self._ids = {token: index for index, token in enumerate(self._tokens)}

    @classmethod
    def build(
        cls,
        sequences: Iterable[Iterable[str]] | Mapping[str, int],
        min_count: int = 1,
        max_size: int | None = None,
        reserved: Sequence[str] = (),
    ) -> Vocabulary:
        """Count tokens and keep the frequent ones, most frequent first, equal counts in code point order.

        Args:
            sequences: token sequences, or the counts of tokens; a string counts as a sequence of characters.
            min_count: rarer tokens are left out (default 1 keeps all).
            max_size: upper bound on `len`, special and reserved tokens included (default none).
            reserved: tokens that stay whatever their count; they follow the special ones in this order.
        """
        lead = [*SPECIAL_TOKENS, *reserved]
        if max_size is not None and max_size < len(lead):
            raise ValueError(f"max_size is {max_size}, but {len(lead)} special and reserved tokens need room")
        if isinstance(sequences, Mapping):
            counts = Counter(sequences)
        else:
            counts = Counter(token for sequence in sequences for token in sequence)
        for token in lead:
            counts.pop(token, None)
        frequent = sorted((-count, token) for token, count in counts.items() if count >= min_count)
        room = None if max_size is None else max_size - len(lead)
        return cls([*lead, *(token for _, token in frequent[:room])])

    @classmethod
    def of_data(
        cls,
        settings: DataConfig,
        sequences: Iterable[Sequence[str]],
        known: Vocabulary | None = None,
        reserved: Sequence[str] = (),
    ) -> Vocabulary:
        """Return `known`, that of existing weights, else the file that the settings name, else one of sequences.

        Where many of the training tokens are not in it, that is logged.
        """
        counts = Counter(token for sequence in sequences for token in sequence)
        if known is not None:
            vocabulary, remedy = known, "train without training.start_from, or on what is more like its data"
        elif settings.vocabulary is not None:
            vocabulary, remedy = cls.load(settings.vocabulary), "name another data.vocabulary"
        else:
            vocabulary = cls.build(counts, settings.min_count, settings.max_vocabulary, reserved)
            remedy = "set -o data.min_count=1" if settings.min_count > 1 else "raise data.max_vocabulary"
        total = sum(counts.values())
        unknown = sum(count for token, count in counts.items() if token not in vocabulary)
        if total and unknown == total:
            raise UserError(
                f"data.train: a vocabulary of {len(vocabulary)} tokens has none of its {total:,}; {remedy}"
            )
        if unknown > MANY_UNKNOWN * total:
            share = 100 * unknown / total
            logger.warning("data.train: %.0f %% of its tokens are not in the vocabulary; %s", share, remedy)
        return vocabulary

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a file that `save` wrote."""
        path = Path(path)
        try:
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise UserError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}, line {line}: the vocabulary must be UTF-8 text") from error
        # str.splitlines would also cut at U+2028 and other characters that may be tokens.
        tokens = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        fault = _first_fault(tokens)
        if fault is not None:
            index, problem = fault
            raise UserError(f"{path}, line {index + 1}: {problem}")
        return cls(tokens)

    def save(self, path: str | Path) -> None:
        """Write UTF-8 text, one token a line, in the order of the ids."""
        Path(path).write_bytes("".join(f"{token}\n" for token in self._tokens).encode("utf-8"))

    def id(self, token: str) -> int:
        """Return the id of a token, `unk_id` if it is not in the vocabulary."""
        return self._ids.get(token, self.unk_id)

    def token(self, index: int) -> str:
        """Return the token of an id."""
        if not 0 <= index < len(self._tokens):
            raise IndexError(f"id {index} is outside a vocabulary of {len(self._tokens)} tokens")
        return self._tokens[index]

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the id of each token; begin and end are not added."""
        return [self.id(token) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Return the token of each id, special tokens included."""
        return [self.token(index) for index in ids]

    @property
    def tokens(self) -> tuple[str, ...]:
        """All tokens in the order of their ids."""
        return self._tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self._tokens == other._tokens

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"


def _first_fault(tokens: Sequence[str]) -> tuple[int, str] | None:
    """Return index and description of the first entry that no vocabulary may have."""
    lead = tuple(tokens[: len(SPECIAL_TOKENS)])
    if lead != SPECIAL_TOKENS:
        index = next((n for n, token in enumerate(lead) if token != SPECIAL_TOKENS[n]), len(lead))
        found = f"not {lead[index][:40]!r}" if index < len(lead) else "but the vocabulary ends before"
        names = " ".join(SPECIAL_TOKENS)
        return index, f"a vocabulary begins with {names}; here {SPECIAL_TOKENS[index]} must stand, {found}"
    first_seen: dict[str, int] = {}
    for index, token in enumerate(tokens):
        if not token:
            return index, "the line is empty; every line of a vocabulary holds one token"
        if "\n" in token or "\r" in token:
            return index, f"{token[:40]!r} contains a line break, which a vocabulary file cannot hold"
        if token in first_seen:
            return index, f"{token[:40]!r} is in line {first_seen[token] + 1} already; each token comes once"
        first_seen[token] = index
    return None
