"""What may stand where in a poem's rhymes, by hand."""

from test_poem_forms import FORMS, HANZI, allowed, can_be_level, can_be_oblique, make_plan, rhymes

from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.poem.config import PoemDataConfig
from tasks.poem.data import FORM_TOKENS, Poem
from tasks.poem.dataset import single_rows

FORM = FORMS["五绝"]
LEVEL = next(char for char in HANZI if can_be_level(char) and not can_be_oblique(char))
OBLIQUE = next(char for char in HANZI if can_be_oblique(char) and not can_be_level(char))
FIRST_LINE = OBLIQUE * 3 + LEVEL  # its last character is free
SECOND_LINE = FIRST_LINE + "秋，" + LEVEL * 2 + OBLIQUE * 2


def test_a_level_first_line_has_the_rhyme_that_is_given_for_another():
    found = allowed(make_plan(FORM, {10: "秋"}), FIRST_LINE)
    assert "舟" in found and "东" not in found
    assert all("尤" in rhymes(char) for char in found if can_be_level(char))


def test_a_first_line_ends_on_no_character_of_both_tones():
    found = allowed(make_plan(FORM, {}), FIRST_LINE)
    assert {"秋", "东"} <= set(found)
    assert not [char for char in found if can_be_level(char) and can_be_oblique(char)]


def test_the_second_line_rhymes_with_a_level_first_one_and_repeats_no_rhyme():
    found = allowed(make_plan(FORM, {}), SECOND_LINE)
    assert "舟" in found and not {"秋", "东"} & set(found)
    given = allowed(make_plan(FORM, {22: "州"}), SECOND_LINE)  # 州 is to end the last line
    assert "舟" in given and "州" not in given


def test_a_titled_poem_is_read_after_its_form():
    body = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *FORM_TOKENS.values(), *sorted(set("登" + body))])
    row = single_rows(PoemDataConfig(), [Poem("登", body)], vocabulary, titled=True)[0]
    wanted = [vocabulary.id(FORM_TOKENS["五绝"]), vocabulary.id("登"), Vocabulary.bos_id]
    assert row[:3, 0].tolist() == wanted
