"""Poems and running text, from files to windows."""

import lzma
from itertools import pairwise

import numpy as np
import pytest

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.poem.data import FORM_TOKENS, NEWLINE, Poem, limit_length, read_texts
from paddle_dialog.tasks.poem.dataset import (
    EncodedPoem,
    Windows,
    collate,
    cut_text,
    single_rows,
    stream_poems,
    stream_text,
)
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

POEM = Poem("登鹳雀楼", "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。")
VOCABULARY = Vocabulary(
    [
        *SPECIAL_TOKENS,
        NEWLINE,
        *FORM_TOKENS.values(),
        *sorted(set(POEM.title + POEM.body + "甲乙丙丁")),
        "x",
        "y",
    ]
)


def texts_of(stream):
    """Yield the texts of a stream: inputs, positions and learned labels of each, as tokens."""
    starts = [0, *(np.flatnonzero(np.diff(stream[:, 1]) != 1) + 1), len(stream)]
    for start, stop in pairwise(starts):
        part = stream[start:stop]
        learned = part[part[:, 3] == 1, 2]
        yield "".join(VOCABULARY.decode(part[:, 0])), part[0, 1], "".join(VOCABULARY.decode(learned))


def test_a_file_of_poems_or_of_text_is_read(tmp_path):
    poems = tmp_path / "poems.txt.xz"
    poems.write_bytes(lzma.compress("题\t床前明月光,疑是 地上霜.\n\n\t无题\n".encode()))
    assert read_texts(str(poems)) == [Poem("题", "床前明月光，疑是地上霜。"), Poem("", "无题")]
    text = tmp_path / "text.txt"
    text.write_text("First:\nBefore we  go\n\nAll:\n", encoding="utf-8")
    assert read_texts(str(text), running=True) == "First:\nBefore we  go\n\nAll:"


def test_form_and_title_stand_before_the_begin_token_and_are_not_learned():
    poem = EncodedPoem(POEM, VOCABULARY)
    assert list(texts_of(poem.stream())) == [("<bos>" + POEM.body, 0, POEM.body + "<eos>")]
    titled = [("<五绝>登鹳雀楼<bos>" + POEM.body, -5, POEM.body + "<eos>")]
    assert list(texts_of(poem.stream(True, True))) == titled
    assert list(texts_of(single_rows([POEM], VOCABULARY, 256, titled=True)[0])) == titled


def test_an_epoch_has_each_poem_once_in_an_order_of_its_own():
    poems = [Poem(title, title * 3) for title in "甲乙丙丁"]
    encoded = [EncodedPoem(poem, VOCABULARY) for poem in poems]
    orders = []
    for epoch in (0, 0, 1, 2, 3):
        found = list(texts_of(stream_poems(encoded, 7, epoch)))
        bodies = [learned for _, _, learned in found]
        assert sorted(bodies) == sorted(f"{poem.body}<eos>" for poem in poems)
        orders.append([text for text, _, _ in found])
    assert orders[0] == orders[1] and any(orders[0] != order for order in orders[2:])
    titled = [text.startswith("<bos>") for order in orders for text in order]
    assert 0 < sum(titled) < len(titled)


def test_windows_have_one_length_and_no_padding():
    windows = Windows(lambda epoch: stream_text(np.arange(10, 33 + epoch)), 5)
    assert len(windows) == 4
    batch = collate([windows[index] for index in range(4)])
    assert [array.shape for array in batch] == [(4, 5)] * 4 and batch[3].all()
    np.testing.assert_array_equal(batch[2].ravel(), np.arange(10, 30))
    windows.set_epoch(7)
    assert len(windows) == 4


def test_running_text_is_cut_at_other_places_each_epoch_and_read_whole_in_an_evaluation():
    ids = np.array(VOCABULARY.encode("xy" * 11 + "x"))
    places = {int(cut_text(ids, 4, 1, epoch)[0, 2]) for epoch in range(20)}
    assert len(places) == 2
    assert all(begin == "<bos>" for text, *_ in texts_of(cut_text(ids, 4, 1, 0)) for begin in [text[:5]])
    rows = single_rows("xy" * 11 + "x", VOCABULARY, 10)
    assert list(rows.lengths) == [10, 10, 3]
    assert sum(int(rows[index][:, 3].sum()) for index in range(3)) == 23


def test_poems_that_are_too_long_are_skipped():
    poems = [Poem("甲", "甲乙丙丁"), Poem("乙", "甲乙")]
    skipped = "1 poems, 1 others skipped as longer than 3 characters"
    assert limit_length(poems, 3) == ([poems[1]], skipped)
    with pytest.raises(UserError, match="every poem has more than 1 characters; set it higher"):
        limit_length(poems, 1)


def test_a_text_of_one_character_is_told():
    with pytest.raises(UserError, match="has a single character; give more text"):
        Windows(lambda epoch: stream_text(np.arange(10, 11)), 5)
