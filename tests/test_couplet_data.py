"""Couplet sources and the rule for over-long lines."""

import lzma
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import normalise_line
from tasks.couplet.couplets import _USUAL_LINE, Couplet, LengthReport, limit_length, read_couplets


def refusal(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_couplets(str(path))
    return str(caught.value)


def test_couplets_of_a_file_in_order_with_blank_lines_skipped(tmp_path: Path) -> None:
    text = "一帆风顺\t万事如意\r\n\n  \u3000\n 春，风 \t秋，雨\nA股红\tB股绿\n\U00020000\t〇\n"
    expected = [
        Couplet("一帆风顺", "万事如意"),
        Couplet("春，风", "秋，雨"),
        Couplet("A股红", "B股绿"),
        Couplet("\U00020000", "〇"),
    ]
    plain, packed = tmp_path / "c.tsv", tmp_path / "c.tsv.xz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(lzma.compress(text.encode()))
    assert read_couplets(str(plain)) == expected
    assert read_couplets(str(packed)) == expected


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("春风", "1 column found"),
        ("春\t风\t雨", "3 columns found"),
        ("\t\t", "3 columns found"),
        ("\t风", "the first line (上联) is empty"),
        ("春\t\u3000 ", "the second line (下联) is empty"),
        ("\t", "the first line (上联) is empty"),
        ("hello\t风", "the first line (上联) has no hanzi: 'hello'"),
        ("春\t，。", "the second line (下联) has no hanzi: '，。'"),
        ("春\tかな", "the second line (下联) has no hanzi: 'かな'"),
    ],
)
def test_faulty_line_is_told_with_file_and_number(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "c.tsv"
    message = refusal(path, f"好\t坏\n\n{line}\n")
    assert message == f"{path}:3: {fault}; a line must be 上联<TAB>下联"


def test_lines_are_normalised_as_those_of_users_are(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("春 风,来!\t秋 雨，去！\n山\u200b高Ａ\t\ufeff水长A\n", encoding="utf-8")
    assert read_couplets(str(path)) == [Couplet("春风，来！", "秋雨，去！"), Couplet("山高A", "水长A")]


def test_lines_that_are_taken_as_they_are_need_no_normalising() -> None:
    usual = [chr(code) for code in range(sys.maxunicode + 1) if _USUAL_LINE.fullmatch("一" + chr(code))]
    assert len(usual) > 20_000
    assert all(normalise_line(char) == char for char in usual)
    assert not _USUAL_LINE.fullmatch("，。")


def test_file_of_blank_lines_only(tmp_path: Path) -> None:
    assert "no couplet in this file" in refusal(tmp_path / "c.tsv", "\n \n")


def test_couplet_is_frozen_and_survives_pickling() -> None:
    couplet = Couplet("春", "秋")
    with pytest.raises(AttributeError):
        couplet.first = "夏"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(couplet)) == couplet


PAIRS = [
    Couplet("一二三", "四五六"),
    Couplet("一二三四", "五六七八"),
    Couplet("一", "二三四五六"),
    Couplet("一二", "三"),
]


def test_skip_counts_what_it_leaves_out() -> None:
    kept, report = limit_length(PAIRS, 3)
    assert kept == [PAIRS[0], PAIRS[3]]
    assert report == LengthReport(total=4, kept=2, skipped=2, truncated=0, unequal=2)
    assert "2 skipped" in str(report)


def test_truncate_counts_what_it_cuts() -> None:
    kept, report = limit_length(iter(PAIRS), 3, "truncate")
    assert kept == [PAIRS[0], Couplet("一二三", "五六七"), Couplet("一", "二三四"), PAIRS[3]]
    assert report == LengthReport(total=4, kept=4, skipped=0, truncated=2, unequal=2)


def test_lines_of_exactly_the_limit_are_untouched() -> None:
    for rule in ("skip", "truncate"):
        kept, report = limit_length([PAIRS[1]], 4, rule)
        assert kept == [PAIRS[1]]
        assert report == LengthReport(1, 1, 0, 0, 0)


def test_limit_refuses_what_makes_no_sense() -> None:
    with pytest.raises(UserError, match="at least 1"):
        limit_length(PAIRS, 0)
    with pytest.raises(UserError, match="'skip' or 'truncate'"):
        limit_length(PAIRS, 5, "drop")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="every couplet"):
        limit_length(PAIRS[1:3], 2)


LINES = st.text("春夏秋冬，", min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.builds(Couplet, LINES, LINES)), st.integers(1, 9))
def test_truncation_loses_no_pair_and_the_counts_add_up(couplets: list[Couplet], limit: int) -> None:
    kept, report = limit_length(couplets, limit, "truncate")
    assert [(c.first, c.second) for c in kept] == [(c.first[:limit], c.second[:limit]) for c in couplets]
    assert report.truncated == sum(a != b for a, b in zip(kept, couplets, strict=True))
    if any(max(len(c.first), len(c.second)) <= limit for c in couplets):
        kept, report = limit_length(couplets, limit, "skip")
        assert report.kept + report.skipped == report.total == len(couplets)
        assert kept == [c for c in couplets if max(len(c.first), len(c.second)) <= limit]


def test_sample_comes_with_the_package_and_is_fit_for_training() -> None:
    couplets = read_couplets("sample")
    assert len(couplets) == len(set(couplets)) >= 100
    kept, report = limit_length(couplets, 32)
    assert (kept, report.unequal) == (couplets, 0)
