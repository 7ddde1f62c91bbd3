import pytest
from sacrebleu.metrics import BLEU

from tasks.couplet.evaluation import couplet_scores, form_rates

FIRSTS = ["春雨", "年年，雪"]
HYPOTHESES = ["雪山", "日日,春"]
# pair 1: all rules kept, tones 2/2. Pair 2: 年 平 / 日 仄 twice and 雪 仄 / 春 平: 3/3.


def test_form_rates_by_hand():
    rates = form_rates([*FIRSTS, "春雨"], [*HYPOTHESES, "春雪，"])
    # pair 3: longer, its comma stands alone, ends 仄, 春/春 平平 and 雨/雪 仄仄: 0/2, 春 shared, no repeats
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


def test_bleu_is_that_of_sacrebleu_over_characters():
    hypotheses, references = ["酒醉月初圆", "万马奔腾岁岁新"], ["酒醉泪长圆", "万事如意步岁新"]
    scores = couplet_scores(["诗成花已落", "一帆风顺年年好"], hypotheses, references)
    assert scores.bleu == pytest.approx(BLEU(tokenize="char").corpus_score(hypotheses, [references]).score)
    assert 0 < scores.bleu < 100


def test_perfect_and_unrelated_bleu():
    lines = ["万马奔腾岁岁新", "酒醉月初圆"]
    assert couplet_scores(["一", "二"], lines, lines).bleu == pytest.approx(100)
    assert couplet_scores(["一"], ["春雨山雪"], ["年日月云"]).bleu < 20


def test_widths_of_punctuation_are_one_for_bleu():
    scores = couplet_scores(["年年，雪白"], ["日日,春山"], ["日日，春山"])
    assert scores.bleu == pytest.approx(100)


def test_counts_must_agree():
    with pytest.raises(ValueError, match="2 first lines, 1 hypotheses, 1 references"):
        couplet_scores(["春", "雨"], ["山"], ["雪"])
    with pytest.raises(ValueError, match="no pair"):
        form_rates([], [])
