"""Batches of a file that is read while it is used."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.data.batching import StreamedBatches, StreamedData
from paddle_dialog.data.files import count_lines, read_lines
from paddle_dialog.errors import UserError

LINES = st.lists(st.text("ab", max_size=6), min_size=4, max_size=90)


def keep_all(number: int, line: str) -> tuple[int, str]:
    return number, line


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def stream(path: Path, read: Any = keep_all, **options: Any) -> StreamedBatches:
    return StreamedBatches(StreamedData(path, read, lambda example: (len(example[1]),)), **options)


def numbers(batches: StreamedBatches, epoch: int = 0, skip: int = 0) -> list[list[int]]:
    batches.set_epoch(epoch)
    batches.skip_batches(skip)
    return [[number for number, _ in batch] for batch in batches]


@settings(deadline=None, max_examples=60)
@given(LINES, st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2))
def test_replicas_share_all_lines_and_resume_anywhere(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    batch_size: int,
    bucket: int,
    replicas: int,
    epoch: int,
) -> None:
    path = write(tmp_path_factory.mktemp("stream") / "corpus.txt", lines)
    options = {"batch_size": batch_size, "bucket_batches": bucket, "num_replicas": replicas, "seed": 5}
    seen: list[int] = []
    for rank in range(replicas):
        batches = stream(path, **options, rank=rank)
        epoch_batches = numbers(batches, epoch)
        assert len(epoch_batches) == len(batches) == -(-len(lines) // (batch_size * replicas))
        assert all(1 <= len(batch) <= batch_size for batch in epoch_batches)
        for done in range(len(batches) + 1):
            assert numbers(batches, epoch, done) == epoch_batches[done:]
        seen += {number for batch in epoch_batches for number in batch}
    assert sorted(seen) == list(range(1, len(lines) + 1))


def test_lines_left_out_do_not_move_a_resumed_run(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", ["x" * (n % 9) for n in range(100)])

    def every_third(number: int, line: str) -> tuple[int, str] | None:
        return (number, line) if number % 3 == 0 else None

    batches = stream(path, every_third, batch_size=4, bucket_batches=5)
    whole = numbers(batches)
    assert len(whole) == 25 and max(map(len, whole)) == 2
    assert sorted(number for batch in whole for number in batch) == list(range(3, 101, 3))
    assert numbers(batches, skip=13) == whole[13:]


def test_one_block_is_read_before_its_first_batch(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", ["x"] * 1000)
    read: list[int] = []

    def remember(number: int, line: str) -> tuple[int, str]:
        read.append(number)
        return number, line

    batches = iter(stream(path, remember, batch_size=5, bucket_batches=4))
    for taken, expected in ((1, 20), (3, 20), (1, 40)):
        for _ in range(taken):
            next(batches)
        assert read == list(range(1, expected + 1))


def test_batches_hold_similar_lengths_in_a_new_order_each_epoch(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", ["x" * (n * 7 % 50) for n in range(1000)])
    options = {"batch_size": 10, "bucket_batches": 25, "num_replicas": 2, "seed": 1}
    ranks = [stream(path, **options, rank=rank) for rank in range(2)]
    for ours, theirs in zip(*ranks, strict=True):
        lengths = [len(text) for _, text in [*ours, *theirs]]
        assert max(lengths) - min(lengths) <= 6
    first, second = numbers(ranks[0], 0), numbers(ranks[0], 1)
    assert first != second
    assert {n for batch in first for n in batch} == {n for batch in second for n in batch}
    assert numbers(ranks[0], 1) == second
    assert numbers(stream(path, **{**options, "seed": 2})) != first


def test_lines_are_counted_and_skipped_in_any_kind_of_file(tmp_path: Path) -> None:
    content = "一\n\n二\r\n三".encode()
    for name, pack in (("a.txt", bytes), ("a.gz", gzip.compress), ("a.xz", lzma.compress)):
        path = tmp_path / name
        path.write_bytes(pack(content))
        assert count_lines(path) == 4
        assert list(read_lines(path, skip=2)) == [(3, "二"), (4, "三")]
        assert list(read_lines(path, skip=9)) == []


def test_unusable_files_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "corpus.txt", ["x"] * 9)
    with pytest.raises(UserError, match=r"corpus\.txt: 9 lines are too few for 10 processes"):
        stream(path, batch_size=1, num_replicas=10)

    def not_after_four(number: int, line: str) -> tuple[int, str] | None:
        return (number, line) if number <= 4 else None

    batches = iter(stream(path, not_after_four, batch_size=2, bucket_batches=2))
    assert len([next(batches), next(batches)]) == 2
    with pytest.raises(UserError, match="not one line can be used from line 5 on"):
        next(batches)
    with pytest.raises(UserError, match="after 6 batches of an epoch that has 5"):
        stream(path, batch_size=2, bucket_batches=2).skip_batches(6)


def test_each_block_of_a_stream_has_an_order_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("x\n" * 40, encoding="utf-8")
    data = StreamedData(path, lambda number, line: number - 1, lambda example: [1])
    first, second = StreamedBatches(data, batch_size=20, bucket_batches=1)
    assert [number % 20 for number in first] != [number % 20 for number in second]
