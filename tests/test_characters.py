import string
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddle_dialog.text.characters import is_hanzi, is_punctuation, normalise_line


@pytest.mark.parametrize("char", "一春〇㐀龥鿿𠀀𪜀𫝀𬺰𮯰𰀀𱍐")
def test_hanzi_of_every_block(char):
    assert is_hanzi(char)
    assert not is_punctuation(char)


@pytest.mark.parametrize("char", "aＡ1，、。 \tあ〤々ㄅ⼀한")
def test_not_hanzi(char):
    assert not is_hanzi(char)


def test_hanzi_are_the_unified_ideographs_of_unicode_and_the_zero():
    for char in map(chr, range(0x110000)):
        name = unicodedata.name(char, "")
        if name:
            # Twelve "compatibility" ideographs stand for no other character: they are unified ones, misnamed.
            is_own = name.startswith("CJK COMPATIBILITY IDEOGRAPH-") and not unicodedata.decomposition(char)
            assert is_hanzi(char) == (name.startswith("CJK UNIFIED IDEOGRAPH-") or is_own or char == "〇"), (
                name
            )


@pytest.mark.parametrize("char", string.punctuation + "，。！？；：、“”‘’（）《》【】—…·～｡､＋")
def test_punctuation(char):
    assert is_punctuation(char)


@pytest.mark.parametrize("char", "春a1１〇 ○")
def test_not_punctuation(char):
    assert not is_punctuation(char)


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("  晚风摇树,树还挺 \n", "晚风摇树，树还挺"),
        ("春 风\u3000纵\t马", "春风纵马"),
        ("春\x02风\u200b纵\ufeff马\ufe00", "春风纵马"),
        (",.!?;:", "，。！？；："),
        ("，．！？；：", "，。！？；："),
        ("｡､﹐︒︑", "。、，。、"),
        ("多事何人?芭蕉闲种.", "多事何人？芭蕉闲种。"),
        ("（春）…—“风”《马》", "（春）…—“风”《马》"),
        ("ＡＢ１２⼀", "AB12一"),
        ("裏里裡〇㐀𠀀", "裏里裡〇㐀𠀀"),
        ("", ""),
        (" \u3000", ""),
    ],
)
def test_normalise_line(line, normal):
    assert normalise_line(line) == normal


@settings(deadline=None, max_examples=200)
@given(st.text())
@example("⒈")
def test_normalising_twice_changes_nothing_more(line):
    once = normalise_line(line)
    assert normalise_line(once) == once


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_hanzi_pass_untouched_and_in_order(line):
    kept = [char for char in normalise_line(line) if is_hanzi(char)]
    remaining = iter(kept)
    assert all(char in remaining for char in line if is_hanzi(char))
