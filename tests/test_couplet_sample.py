"""The shipped couplets keep the rules of form that can be checked without a reader."""

import importlib.resources
import statistics
from collections import Counter

from paddle_dialog.text.characters import is_hanzi, normalise_line
from tasks.couplet.couplets import read_couplets
from tasks.couplet.form import form_report

_ROWS = [
    tuple(row.split("\t"))
    for row in importlib.resources.files("tasks.couplet")
    .joinpath("sample.tsv")
    .read_text("utf-8")
    .splitlines()
]


def _broken(keeps):
    """Return the pairs that a rule does not hold for, so that a failing test names them."""
    return [(first, second) for first, second in _ROWS if not keeps(first, second)]


def _marks(line):
    return [(position, char) for position, char in enumerate(line) if not is_hanzi(char)]


def test_at_least_360_rows_of_two_columns():
    assert len(_ROWS) >= 360
    assert [row for row in _ROWS if len(row) != 2] == []


def test_reader_gives_every_row_unchanged():
    assert [(couplet.first, couplet.second) for couplet in read_couplets("sample")] == _ROWS


def test_lines_are_normalised_hanzi_of_four_to_thirteen_characters():
    lines = [line for row in _ROWS for line in row]
    assert [line for line in lines if line != normalise_line(line)] == []
    assert [line for line in lines if not all(is_hanzi(char) or char in "，、" for char in line)] == []
    assert [line for line in lines if not 4 <= len(line) <= 13] == []


def test_no_line_occurs_twice():
    counts = Counter(line for row in _ROWS for line in row)
    assert [line for line, count in counts.items() if count > 1] == []


def test_lines_of_a_pair_are_equally_long():
    assert _broken(lambda first, second: form_report(first, second).length_equal) == []


def test_same_punctuation_stands_at_same_positions():
    assert _broken(lambda first, second: form_report(first, second).punctuation_aligned) == []
    assert _broken(lambda first, second: _marks(first) == _marks(second)) == []


def test_no_hanzi_is_shared():
    assert _broken(lambda first, second: not form_report(first, second).shares_character) == []


def test_repeats_are_mirrored():
    assert _broken(lambda first, second: form_report(first, second).repeats_mirrored) == []


def test_first_line_ends_oblique_and_second_level():
    assert _broken(lambda first, second: form_report(first, second).final_level) == []
    assert _broken(lambda first, second: form_report(first, second).final_pair) == []


def test_tones_are_opposed_at_most_positions():
    shares = [form_report(first, second).tone_opposed for first, second in _ROWS]
    assert statistics.mean(shares) >= 0.80
    assert _broken(lambda first, second: form_report(first, second).tone_opposed > 0.5) == []


def test_sample_mixes_lengths_and_repetition():
    lengths = Counter(len(first) for first, _ in _ROWS)
    assert lengths[5] >= 120
    assert lengths[7] >= 150
    assert sum("，" in first for first, _ in _ROWS) >= 30
    assert sum(len(set(first) - set("，、")) < sum(map(is_hanzi, first)) for first, _ in _ROWS) >= 25
