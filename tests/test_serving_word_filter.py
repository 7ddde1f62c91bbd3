"""Words that are neither taken nor written: where they are found and where not."""

import pytest

from paddle_dialog.errors import UserError
from paddle_dialog.serving.word_filter import WordFilter


@pytest.mark.parametrize(
    ("words", "text", "found"),
    [
        (["ass"], "you ASS.", True),
        (["ass"], "a class", False),
        (["ass"], "ass_", False),
        (["ass"], "我ass你", True),
        (["ass"], "ａｓｓ", True),
        (["ass"], "a\u200bss", True),
        (["shut up"], "Shut \n UP now", True),
        (["shut up"], "shut  upwards", False),
        (["c++"], "i like c++!", True),
        (["don't"], "don’t", True),
        (["花更"], "花 更红", True),
        (["花更"], "花\u200b更红", True),
        (["花更"], "花红更", False),
        (["Ａ计划"], "a计划", True),
        ([], "anything", False),
        (["", "  ", "\u200b"], "anything", False),
    ],
)
def test_what_is_found(words, text, found):
    assert WordFilter(words).finds(text) is found


def test_a_file_of_words(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("rude\n\n 花更 \n", encoding="utf-8")
    words = WordFilter.load(str(file))
    assert words.words == ["rude", "花更"] and words.path == str(file)
    assert not WordFilter.load(None).words
    file.write_text(" \n", encoding="utf-8")
    with pytest.raises(UserError, match="holds no word"):
        WordFilter.load(str(file))
    with pytest.raises(UserError, match="no such file"):
        WordFilter.load(str(tmp_path / "other"))
