"""Couplets streamed from a file during training."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from paddle_dialog.config.schema import DataConfig
from paddle_dialog.data.files import read_lines
from paddle_dialog.data.streaming import StreamedData
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.data.couplets import parse_couplet, within_length
from tasks.couplet.data.encoding import Example


def stream_couplets(settings: DataConfig, vocabulary: Vocabulary) -> StreamedData:
    """Stream the training couplets: read, limit in length and encode them one at a time.

    Raises:
        UserError: `data.train` names no file.
    """
    path = streamed_path(settings)

    def read_example(number: int, line: str) -> Example | None:
        couplet = parse_couplet(path, number, line)
        if couplet is not None:
            couplet = within_length(couplet, settings.max_length, settings.overlong)
        if couplet is None:
            return None
        first, second = (
            np.array(vocabulary.encode(text), np.int32) for text in (couplet.first, couplet.second)
        )
        return first, second

    return StreamedData(path, read_example, lambda example: (len(example[0]), len(example[1])))


def streamed_vocabulary(settings: DataConfig) -> Vocabulary:
    """Build the vocabulary of the training couplets in one pass, with only the counts in memory."""
    path = streamed_path(settings)

    def lines() -> Iterator[str]:
        for number, line in read_lines(path):
            couplet = parse_couplet(path, number, line)
            if couplet is not None:
                couplet = within_length(couplet, settings.max_length, settings.overlong)
            if couplet is not None:
                yield couplet.first
                yield couplet.second

    return Vocabulary.build(lines(), settings.min_count, settings.max_vocabulary)


def streamed_path(settings: DataConfig) -> Path:
    """Return the file that `data.train` names.

    Raises:
        UserError: it names another source.
    """
    if settings.train == "sample" or settings.train.partition(":")[0] == "paddlenlp":
        raise UserError(f"data.streaming: data.train is '{settings.train}'; only a file can be streamed")
    return Path(settings.train)
