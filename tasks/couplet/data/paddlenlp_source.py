"""The couplet corpus that PaddleNLP downloads, and its vocabulary.

PaddleNLP fetches the corpus once into `$PPNLP_HOME/datasets` (by default `~/.paddlenlp/datasets`).
"""

import tarfile
from collections.abc import Iterator
from typing import Any

from paddle_dialog.errors import UserError

SPLITS = ("train", "dev", "test")
_SEPARATOR = "\x02"
_REMEDY = "check the network and PPNLP_HOME, or give a TSV file of 上联<TAB>下联 instead"
# Errors of PaddleNLP and its downloader: no connection, wrong checksum, broken archive, full disk.
_FAILURES = (RuntimeError, OSError, ValueError, EOFError, tarfile.TarError)


def read_split(split: str) -> Iterator[tuple[str, str]]:
    """Iterate over one split of the corpus, which is downloaded if it is not there.

    Args:
        split: `train`, `dev` or `test`.

    Yields:
        (上联, 下联), without the separators between characters.

    Raises:
        UserError: the split is unknown, PaddleNLP cannot be imported, or the corpus cannot be fetched.
    """
    try:
        for example in _load(split):
            yield _join(example["first"]), _join(example["second"])
    except _FAILURES as error:
        raise UserError(
            f"paddlenlp:{split}: PaddleNLP could not fetch or read its couplets ({_line(error)}); {_REMEDY}"
        ) from error


def _load(split: str) -> Any:
    if split not in SPLITS:
        raise UserError(f"paddlenlp:{split}: no such split; it must be one of {', '.join(SPLITS)}")
    try:
        from paddlenlp.datasets import load_dataset
    except Exception as error:  # its long import chain fails in more ways than ImportError
        raise UserError(
            f"paddlenlp:{split}: PaddleNLP cannot be imported ({_line(error)}); install the "
            "extra train, or give a TSV file of 上联<TAB>下联 instead"
        ) from error
    # Lazy; otherwise all pairs would be held as dictionaries first.
    return load_dataset("couplet", splits=split, lazy=True)


def _join(characters: str) -> str:
    return characters.replace(_SEPARATOR, "")


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
