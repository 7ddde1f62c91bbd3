"""Couplets: their form by hand, files, PaddleNLP's corpus, what ships; one network for all uses of a couplet."""

import lzma
import re
import sys

import pytest
from command import run_here
from conftest import write_couplets
from couplet_toys import FORM
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.tasks.couplet.config import CoupletDataConfig
from paddle_dialog.tasks.couplet.couplets import _USUAL_LINE, Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.prompts import (
    BLANK,
    COMPOSE,
    FIRST,
    MARKS,
    TO_FIRST,
    TO_SECOND,
    VERSE,
    compose_source,
    with_marks,
)
from paddle_dialog.tasks.couplet.rules import form_report, rhythm_opposed
from paddle_dialog.tasks.couplet.task import form_rates
from paddle_dialog.tasks.couplet.training_data import UsesDataset, regulated
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_a_good_couplet_and_one_that_breaks_every_rule_by_hand():
    # 一 / 万 both 仄, 风 / 如 both 平, 顺 / 意 both 仄; 帆 平 / 事 仄, 年 平 / 步 仄 twice, 好 仄 / 高 平.
    assert form_report("一帆风顺年年好", "万事如意步步高").as_dict() == FORM | {"tone_opposed": 4 / 7}
    # 春雨，春 / 山雪春高日: no mark in the second, 日 仄 at the end, 春 shared and no longer repeated.
    # 春/山 平平 no, 雨/雪 仄仄 no, ，/春 and 春/高 平平 no, nothing/日 no: 0 of 5
    broken = dict.fromkeys(FORM, False) | {"tone_opposed": 0.0, "shares_character": True}
    assert form_report("春雨，春", "山雪春高日").as_dict() == broken


@pytest.mark.parametrize(
    ("first", "second", "field", "value"),
    [
        ("山雪！", "雨春？", "final_level", True),  # trailing punctuation aside
        ("山雪！", "雨春？", "final_pair", True),
        ("雪山。", "雨春。", "final_pair", False),
        ("山雪。", "春雨。", "final_level", False),
        ("春雨", "雪", "tone_opposed", 1 / 2),  # a missing position is not opposed, nor is a surplus one
        ("雪", "春雨", "tone_opposed", 1 / 2),
        ("春", "a", "tone_opposed", 0.0),
        ("，", "，", "tone_opposed", 0.0),
        ("多事何人？芭蕉闲种", "伤怀如我，寅夜不眠", "punctuation_aligned", True),  # by position, not by mark
        ("春，雨山", "雪山，春", "punctuation_aligned", False),
        ("年年好", "步步高", "repeats_mirrored", True),
        ("年年好", "步高高", "repeats_mirrored", False),  # repeated elsewhere
        ("年年好", "山步高", "repeats_mirrored", False),  # repetition lost
        ("年山好", "步步高", "repeats_mirrored", False),  # repetition of its own
        ("年年年", "步步高", "repeats_mirrored", False),  # only part of it
        ("山水山，水水", "日月日，月月", "repeats_mirrored", True),
        ("山，水，日", "月，云，星", "repeats_mirrored", True),  # punctuation repeats freely
        ("山水山水", "日月月日", "repeats_mirrored", False),
        ("春，Ａ山！", "雪，A水！", "shares_character", False),  # nor are punctuation and letters shared ones
        ("春，山", "雪，春", "shares_character", True),
    ],
)
def test_a_rule_of_form(first, second, field, value):
    assert form_report(first, second).as_dict()[field] == value


lines = st.text("春雨山雪年，？", max_size=8)


@settings(deadline=None, max_examples=100)
@given(lines, lines)
def test_symmetric_fields_do_not_care_which_line_is_first(one, other):
    forward, backward = form_report(one, other).as_dict(), form_report(other, one).as_dict()
    for name in forward.keys() - {"final_level", "final_pair"}:
        assert forward[name] == backward[name]


@pytest.mark.parametrize(
    ("first", "second", "opposed"),
    [
        ("春雨", "山鸟", False),  # 雨 and 鸟 are both oblique; the first place is free
        ("雨雨", "鸟春", True),
        ("春雨山，春", "春山鸟，鸟", True),  # even places and ends: 雨 山, 山 鸟 and 春 鸟
        ("春雨山，春", "春山山，鸟", False),  # 山 ends the first clause of both
        ("春雨山", "春", True),  # lengths that differ are another fault
    ],
)
def test_the_even_places_and_the_ends_are_opposed(first, second, opposed):
    assert rhythm_opposed(first, second) is opposed


def test_form_rates_by_hand():
    # Pair 1: all rules kept, tones 2/2. Pair 2: 年 平 / 日 仄 twice and 雪 仄 / 春 平: 3/3.
    rates = form_rates(["春雨", "年年，雪", "春雨"], ["雪山", "日日,春", "春雪，"])
    # Pair 3: longer, its comma stands alone, ends 仄, 春/春 平平 and 雨/雪 仄仄: 0/2, 春 shared, no repeats
    assert rates == pytest.approx(
        {
            "length_equal": 2 / 3,
            "punctuation_aligned": 2 / 3,
            "final_level": 2 / 3,
            "final_pair": 2 / 3,
            "tone_opposed": (1 + 1 + 0) / 3,
            "repeats_mirrored": 1.0,
            "shares_character": 1 / 3,
            "distinct_1": 5 / 9,  # 雪 山 日 ， 春 of 雪山日日，春春雪，
            "distinct_2": 6 / 6,  # 雪山 日日 日， ，春 春雪 雪，
        }
    )


def test_the_shipped_couplets_are_normalised_differ_and_keep_the_rules():
    pairs = [(couplet.first, couplet.second) for couplet in read_couplets("sample")]
    lines = [line for pair in pairs for line in pair]
    assert len(pairs) >= 360 and len(set(lines)) == len(lines)
    for line in lines:
        assert line == normalise_line(line) and 4 <= len(line) <= 13
        assert all(is_hanzi(char) or char in "，、" for char in line), line
    for first, second in pairs:
        opposed = form_report(first, second).tone_opposed
        assert form_report(first, second).as_dict() == FORM | {"tone_opposed": opposed}, (first, second)
        assert opposed > 0.5 and marks(first) == marks(second), (first, second)
    rates = form_rates(*zip(*pairs, strict=True))
    assert rates["tone_opposed"] >= 0.80


def marks(line):
    return [(place, char) for place, char in enumerate(line) if not is_hanzi(char)]


def test_couplets_of_a_file_in_order_with_blank_lines_skipped(tmp_path):
    text = "一帆风顺\t万事如意\r\n\n  \u3000\n 春，风 \t秋，雨\nA股红\tB股绿\n\U00020000\t〇\n"
    text += "春 风,来!\t秋 雨，去！\n山\u200b高Ａ\t\ufeff水长A\n"  # normalised as those of users are
    expected = [
        Couplet("一帆风顺", "万事如意"),
        Couplet("春，风", "秋，雨"),
        Couplet("A股红", "B股绿"),
        Couplet("\U00020000", "〇"),
        Couplet("春风，来！", "秋雨，去！"),
        Couplet("山高A", "水长A"),
    ]
    plain, packed = tmp_path / "c.tsv", tmp_path / "c.tsv.xz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(lzma.compress(text.encode()))
    assert read_couplets(str(plain)) == expected
    assert read_couplets(str(packed)) == expected


def test_lines_that_are_taken_as_they_are_need_no_normalising():
    usual = [chr(code) for code in range(sys.maxunicode + 1) if _USUAL_LINE.fullmatch("一" + chr(code))]
    assert len(usual) > 20_000
    assert all(normalise_line(char) == char for char in usual)
    assert not _USUAL_LINE.fullmatch("，。")


LINES = st.text("春夏秋冬，", min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.builds(Couplet, LINES, LINES)), st.integers(1, 9))
def test_only_the_long_couplets_are_skipped(couplets, limit):
    short = [c for c in couplets if max(len(c.first), len(c.second)) <= limit]
    if couplets and not short:
        with pytest.raises(UserError, match="every couplet"):
            limit_length(couplets, limit)
        return
    kept, note = limit_length(couplets, limit)
    assert kept == short and f" {len(couplets) - len(kept)} skipped" in note


VOCABULARY = with_marks(Vocabulary([*SPECIAL_TOKENS, *"，春风花月雪山水云"]))
MODERN, CLASSICAL = Couplet("春风，花月", "雪山，水云"), Couplet("月山", "云水")


def texts(source):
    return VOCABULARY.decode(source.tolist())


def dataset(reverse=1.0, compose=1.0, seed=1):
    settings = CoupletDataConfig(reverse=reverse, compose=compose)
    return UsesDataset([MODERN], [CLASSICAL], settings, VOCABULARY, seed)


def test_a_source_names_its_use_behind_the_line():
    decode = VOCABULARY.decode
    assert decode(TO_SECOND.source(VOCABULARY, "春风")) == ["春", "风"]
    assert decode(TO_FIRST.source(VOCABULARY, "雪山")) == ["雪", "山", FIRST]
    found = decode(compose_source(VOCABULARY, ["春", None, "，", None], "花月"))
    assert found == ["春", BLANK, "，", BLANK, COMPOSE, "花", "月"]


def test_every_pair_is_learned_in_every_use_and_lengths_are_those_within_the_theme():
    examples = dataset()
    found = [(texts(source), "".join(texts(target))) for source, target in examples]
    assert found[0] == ([*MODERN.first], MODERN.second)
    assert found[1] == ([*CLASSICAL.first, VERSE], CLASSICAL.second)
    assert found[2] == ([*MODERN.second, FIRST], MODERN.first)
    assert found[3] == ([*CLASSICAL.second, FIRST, VERSE], CLASSICAL.first)
    assert [target for _, target in found[4:]] == [MODERN.first, CLASSICAL.first]
    assert found[5][0][-1] == VERSE
    for (source, target), (longest, exact) in zip(examples, examples.lengths, strict=True):
        assert len(target) == exact and abs(len(source) - longest) <= 2


@given(st.integers(0, 200), st.integers(0, 3))
def test_a_template_shows_the_line_at_few_places_and_words_of_the_couplet(seed, epoch):
    examples = dataset(seed=seed)
    examples.set_epoch(epoch)
    source = texts(examples[4][0])
    shape, theme = source[:5], source[6:]
    assert source[5] == COMPOSE and shape[2] == "，"
    assert all(shown in (BLANK, char) for shown, char in zip(shape, MODERN.first, strict=True))
    assert sum(shown != BLANK for shown in shape) <= 3  # two hanzi and the comma
    words = {"".join(theme[start : start + 2]) for start in range(0, len(theme), 2)}
    assert words <= {"春风", "花月", "雪山", "水云"}


def test_templates_differ_from_epoch_to_epoch_and_seeds_repeat_them():
    def shown(epoch):
        examples = [dataset(seed=seed) for seed in range(20)]
        for each in examples:
            each.set_epoch(epoch)
        return [texts(each[4][0]) for each in examples]

    assert shown(0) == shown(0) != shown(1)


def test_positions_must_hold_the_marks_of_the_uses():
    assert load_config("configs/couplet.yaml", ["model.max_positions=70"])[1].data.longest_source == 69
    for override, longest in (("data.compose=0.25", 69), ("data.compose=0", 65), ("data.verse=v.tsv", 70)):
        least = ["data.reverse=0.3", override, f"model.max_positions={longest}"]
        assert load_config("configs/couplet.yaml", least)[1].data.longest_source == longest
        if longest > 65:  # the end token asks for 65 anyway
            with pytest.raises(UserError, match=f"the marks of the uses, {longest} in all"):
                load_config("configs/couplet.yaml", [*least[:2], f"model.max_positions={longest - 1}"])


def test_verse_must_end_oblique_and_level():
    verse = [Couplet("春月", "秋风"), Couplet("秋风", "春月"), Couplet("春月", "秋雪")]
    assert regulated(verse) == verse[:1]
    assert len(regulated([Couplet("春月，", "秋风。"), Couplet("秋风，", "春月。")])) == 1


def test_a_run_for_all_uses_starts_from_a_smaller_network_for_one(trained, tmp_path):
    """From the weights of the session's tiny model, with one layer more."""
    start, uses = trained["transformer"], tmp_path / "uses.yaml"
    write_couplets(tmp_path / "verse.tsv", 20, seed=5)
    uses.write_text(
        f"""base: {start.config}
model: {{encoder_layers: 2, max_positions: 18}}
data: {{verse: {tmp_path}/verse.tsv, reverse: 0.5, compose: 0.5}}
training: {{start_from: {start.folder}/best, optimizer: muon, learning_rate: 1.0e-9, epochs: 1}}
output_dir: {tmp_path}/run
""",
        encoding="utf-8",
    )
    outcome = run_here("train", "-c", uses)
    assert outcome.status == 0, outcome.stderr
    bundle = load_bundle(tmp_path / "run" / "best")
    assert bundle.vocabularies["text"].tokens[-4:] == MARKS
    before = float(re.findall(r"dev perplexity ([\d.]+)", start.outcome.stderr)[-1])
    after = float(re.findall(r"dev perplexity ([\d.]+)", outcome.stderr)[0])
    assert after == pytest.approx(before, rel=0.05)  # four new rows of the vocabulary take a little
    again = run_here("train", "-c", uses, "--resume", "auto")
    assert "already finished" in again.stderr
