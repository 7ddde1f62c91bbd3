import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_build_orders_by_count_then_code_point():
    vocabulary = Vocabulary.build(["春风春", "风春月", "山"])
    assert vocabulary.tokens == ("<pad>", "<unk>", "<bos>", "<eos>", "春", "风", "山", "月")
    assert vocabulary.encode("春雨月") == [4, 1, 7]
    assert vocabulary.decode([2, 4, 7, 3]) == ["<bos>", "春", "月", "<eos>"]
    assert (vocabulary.pad_id, vocabulary.unk_id, vocabulary.bos_id, vocabulary.eos_id) == (0, 1, 2, 3)


def test_build_limits():
    sequences = [["a", "a", "b", "b", "c"], ["<eos>", "a"]]
    assert Vocabulary.build(sequences, min_count=2).tokens[4:] == ("a", "b")
    assert Vocabulary.build(sequences, max_size=5).tokens[4:] == ("a",)
    assert Vocabulary.build(sequences, reserved=["c", "z"], max_size=7).tokens[4:] == ("c", "z", "a")
    with pytest.raises(ValueError, match="max_size is 3"):
        Vocabulary.build(sequences, max_size=3)


tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(tokens, max_size=6), max_size=6))
def test_every_vocabulary_survives_its_file(tmp_path_factory, sequences):
    path = tmp_path_factory.mktemp("vocabulary") / "v.txt"
    vocabulary = Vocabulary.build(sequences)
    vocabulary.save(path)
    assert Vocabulary.load(path) == vocabulary
    for sequence in sequences:
        assert vocabulary.decode(vocabulary.encode(sequence)) == sequence


def test_line_number_is_the_id(tmp_path):
    path = tmp_path / "v.txt"
    vocabulary = Vocabulary.build(["春风"])
    vocabulary.save(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [lines[vocabulary.id(token)] for token in vocabulary] == list(vocabulary)


def test_windows_line_ends_and_byte_order_mark_are_read(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes("\ufeff".encode() + "\r\n".join([*SPECIAL_TOKENS, "春"]).encode() + b"\r\n")
    assert Vocabulary.load(path).tokens == (*SPECIAL_TOKENS, "春")


LEAD = "<pad>\n<unk>\n<bos>\n<eos>\n"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "line 1: "),
        (b"<pad>\n<unk>\n", "line 3: .* ends before"),
        ("春\n风\n".encode(), "line 1: .*<pad> must stand, not '春'"),
        (b"[PAD]\n[UNK]\n", "line 1: "),
        (LEAD.encode() + b"a\nb\na\n", "line 7: 'a' .*line 5"),
        (LEAD.encode() + b"a\n<eos>\n", "line 6: '<eos>' .*line 4"),
        (LEAD.encode() + b"a\n\nb\n", "line 6: the line is empty"),
        (LEAD.encode() + b"a\nb\rc\n", "line 6: .*line break"),
        (LEAD.encode() + "春风".encode()[:-1], "line 5: .*UTF-8"),
    ],
)
def test_damaged_file_is_named_with_its_line(tmp_path, content, where):
    path = tmp_path / "v.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(str(path)) + ", " + where) as caught:
        Vocabulary.load(path)
    assert "\n" not in str(caught.value)


def test_missing_file_is_a_user_error(tmp_path):
    with pytest.raises(UserError, match=r"nothing\.txt: cannot read"):
        Vocabulary.load(tmp_path / "nothing.txt")
    with pytest.raises(UserError, match="cannot read"):
        Vocabulary.load(tmp_path)


@pytest.mark.parametrize("index", [-1, 4])
def test_ids_outside_are_refused(index):
    with pytest.raises(IndexError, match=f"id {index} is outside"):
        Vocabulary(SPECIAL_TOKENS).decode([index])


def test_constructor_refuses_what_a_file_cannot_hold():
    with pytest.raises(ValueError, match=r"entry 4: .*line break"):
        Vocabulary([*SPECIAL_TOKENS, "a\nb"])
