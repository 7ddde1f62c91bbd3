"""Making an index of couplets."""

from __future__ import annotations

import logging
import lzma
from collections import Counter
from collections.abc import Iterable

import numpy as np
from safetensors.numpy import save

from paddle_dialog.errors import UserError
from tasks.couplet.data.couplets import Couplet
from tasks.couplet.known.index import ABSENT, CHARACTERS, NUMBER, PAIRS

logger = logging.getLogger("paddle_dialog")

MOST_BYTES = 10_000_000


def index_bytes(couplets: Iterable[Couplet], most_bytes: int = MOST_BYTES) -> bytes:
    """Return the file of an index that holds the couplets with the shortest lines, as many lengths as fit.

    Every couplet once; those whose lines differ in length are left out.

    Args:
        couplets: normalised.
        most_bytes: greatest size of the file.

    Raises:
        UserError: not even the shortest ones fit, or there are more different characters than numbers for them.
    """
    by_length: dict[int, set[tuple[str, str]]] = {}
    for couplet in couplets:
        if len(couplet.first) == len(couplet.second):
            by_length.setdefault(len(couplet.first), set()).add((couplet.first, couplet.second))
    counts = Counter(
        character for pairs in by_length.values() for pair in pairs for line in pair for character in line
    )
    characters = "".join(character for character, _ in counts.most_common())
    if len(characters) >= ABSENT:
        raise UserError(
            f"the couplets have {len(characters):,} different characters, and {ABSENT - 1:,} are the most"
        )
    numbers = {character: number for number, character in enumerate(characters)}
    tensors = {CHARACTERS: np.frombuffer(characters.encode("utf-8"), np.uint8)}
    content = b""
    for length in sorted(by_length):
        tensors[f"{PAIRS}{length}"] = np.frombuffer(_packed(sorted(by_length[length]), numbers), np.uint8)
        longer = save(tensors)
        if len(longer) > most_bytes:
            break
        content = longer
        logger.info("index: lines of %d characters, %s bytes so far", length, f"{len(content):,}")
    if not content:
        raise UserError(f"the index of the shortest couplets alone is larger than {most_bytes:,} bytes")
    return content


def _packed(pairs: list[tuple[str, str]], numbers: dict[str, int]) -> bytes:
    """Compress couplets of one length, told that every other byte is the high one of a number."""
    values = [numbers[character] for pair in pairs for line in pair for character in line]
    data = np.array(values, NUMBER).tobytes()
    size = max(len(data), 4096)
    filters = [
        {
            "id": lzma.FILTER_LZMA2,
            "preset": 9 | lzma.PRESET_EXTREME,
            "dict_size": size,
            "lc": 0,
            "lp": 1,
            "pb": 1,
        }
    ]
    return lzma.compress(data, check=lzma.CHECK_CRC32, filters=filters)
