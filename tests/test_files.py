"""Text files: encodings, line ends, archives, and one plain sentence for every failure."""

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError

WRITERS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


def write(folder: Path, suffix: str, data: bytes) -> Path:
    path = folder / f"lines.txt{suffix}"
    path.write_bytes(WRITERS[suffix.lower()](data))
    return path


def refusal(path: str | Path) -> str:
    with pytest.raises(UserError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_bom_and_both_line_ends_are_removed_and_numbers_start_at_one(tmp_path, suffix):
    path = write(tmp_path, suffix, b"\xef\xbb\xbf" + "春\r\n\r\n秋\t月\n 末".encode())
    assert list(read_lines(path)) == [(1, "春"), (2, ""), (3, "秋\t月"), (4, " 末")]


def test_only_a_line_feed_ends_a_line_and_only_a_leading_bom_is_dropped(tmp_path):
    path = write(tmp_path, "", "a\u2028b\x0bc\x85d\re\n\ufefff\n".encode())
    assert list(read_lines(str(path))) == [(1, "a\u2028b\x0bc\x85d\re"), (2, "\ufefff")]


def test_suffix_is_read_in_any_case_and_archives_of_several_streams_to_the_end(tmp_path):
    for suffix in (".gz", ".XZ"):
        pack = WRITERS[suffix.lower()]
        path = tmp_path / f"two{suffix}"
        path.write_bytes(pack(b"one\n") + pack(b"two\n"))
        assert list(read_lines(path)) == [(1, "one"), (2, "two")]


@settings(deadline=None, max_examples=50)
@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1)
)
def test_lines_written_come_back(tmp_path_factory, lines):
    if lines[0].startswith("\ufeff"):
        lines[0] = "x" + lines[0]
    path = write(tmp_path_factory.mktemp("lines"), ".gz", "".join(line + "\n" for line in lines).encode())
    assert list(read_lines(path)) == list(enumerate(lines, start=1))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_line_that_is_not_utf8_is_named_after_the_good_ones(tmp_path, suffix):
    path = write(tmp_path, suffix, "好\n".encode() + "ab好".encode("gbk") + b"\n")
    lines = read_lines(path)
    assert next(lines) == (1, "好")
    with pytest.raises(
        UserError, match=r":2: not UTF-8 \(byte 3 of the line is 0xba\); save the file as UTF-8"
    ):
        next(lines)


def test_folder_and_file_used_as_folder(tmp_path):
    (tmp_path / "folder.gz").mkdir()
    assert "this is a folder" in refusal(tmp_path / "folder.gz")
    assert "this is a folder" in refusal(tmp_path)
    file = write(tmp_path, "", b"x")
    assert "is a file, not a folder" in refusal(file / "inner.txt")


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_empty_file_and_archive_of_nothing(tmp_path, suffix):
    path = write(tmp_path, suffix, b"")
    assert "the file is empty" in refusal(path)
    path.write_bytes(b"")
    assert "the file is empty" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_what_is_no_sound_archive(tmp_path, suffix):
    path = write(tmp_path, suffix, "".join(f"{n * n * 7919 % 10007}\n" for n in range(5000)).encode())
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert "ends too early" in refusal(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    path.write_bytes(flipped)
    assert f"not a sound {suffix} archive" in refusal(path)
    path.write_text("上\t下\n" * 30, encoding="utf-8")
    assert "plain text under a name without that suffix" in refusal(path)


def test_no_permission_and_no_possible_path(tmp_path, monkeypatch):
    path = write(tmp_path, "", b"x")

    def refuse(*_: object, **__: object) -> None:  # chmod does not stop root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    assert "no permission to read" in refusal(path)
    monkeypatch.undo()
    for impossible in ("a\0b.txt", "a" * 5000):
        assert "cannot be opened" in refusal(impossible)
