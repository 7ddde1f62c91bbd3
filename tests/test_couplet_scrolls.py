"""横批: the list, the table of associations counted by hand, and the choice."""

from pathlib import Path

import numpy as np
import pytest

from paddle_dialog.text.characters import is_hanzi, normalise_line
from tasks.couplet.association import Association, count_association
from tasks.couplet.composing.ranking import Scores, quality, relevance
from tasks.couplet.composing.themes import main_themes, read_themes, theme_association
from tasks.couplet.couplets import Couplet
from tasks.couplet.scrolls.chooser import ScrollChooser, scroll_association
from tasks.couplet.scrolls.listing import all_scrolls, all_words, occasions

KNOWN = Path(__file__).parent / "data" / "known_scrolls.tsv"
CHOOSER = ScrollChooser()


def texts(first, second, **options):
    return [scroll.text for scroll in CHOOSER.choose(first, second, **options)]


def test_every_scroll_is_four_hanzi_in_the_written_form():
    assert len(all_scrolls()) == 765
    for scroll in all_scrolls():
        assert len(scroll) == 4 and all(map(is_hanzi, scroll)) and normalise_line(scroll) == scroll
    for occasion, scrolls in occasions().items():
        assert len(set(scrolls)) == len(scrolls), occasion


def test_the_tables_that_ship_are_of_the_lists_that_ship():
    assert set(all_words()) <= set(scroll_association().words)
    assert theme_association().words == tuple(main_themes())


def test_the_known_scrolls_are_in_the_list():
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            first, second, known = line.split("\t")
            assert len(first) == len(second) and set(known.split("/")) <= set(all_scrolls())


def test_an_association_by_hand():
    pairs = [Couplet("春风花", "瑞雪梅")] * 40 + [Couplet("秋水长", "寒山远")] * 60
    table = count_association(pairs, ["春风", "寒山"])
    assert table.words == ("春风", "寒山") and set(table.characters) == set("春风花瑞雪梅秋水长寒山远")
    # p(花) = 0.4; p(花 | 春风) = (40 + 20 * 0.4) / (40 + 20) = 0.8, and log 2 = 0.69 is below 1 nat
    assert table.steps[table.characters.index("花"), 0] == 0
    rare = count_association([Couplet("春风花", "瑞雪梅")] * 10 + pairs[40:] * 2, ["春风", "寒山"])
    likely = (10 + 20 * 10 / 130) / (10 + 20)
    assert rare.steps[rare.characters.index("花"), 0] == round(np.log(likely / (10 / 130)) * 40)
    assert rare.steps[rare.characters.index("花"), 1] == 0
    by_line = rare.of("花，秋")  # the comma does not count
    assert by_line[0] == pytest.approx(rare.steps[rare.characters.index("花"), 0] / 40 / 2)
    again = Association.of_bytes(rare.to_bytes())
    assert again.words == rare.words and (again.steps == rare.steps).all()
    both = rare.grouped({"all": ["春风", "寒山"]})
    assert both.steps[:, 0].tolist() == rare.steps.mean(axis=1).round().tolist()


def test_the_choice_fits_the_occasion():
    assert texts("生意兴隆通四海", "财源茂盛达三江")[0] == "财源广进"
    wedding = texts("百年恩爱双心结", "千里姻缘一线牵")
    assert len(wedding) == 5 and set(wedding) <= set(occasions()["婚庆"])
    assert "千里姻缘" not in wedding  # it stands in the couplet
    assert not any(len(set(a) & set(b)) > 2 for i, a in enumerate(wedding) for b in wedding[:i])


def test_mourning_and_animals_wait_for_a_word_of_them():
    only_mourning = set(occasions()["挽联"]) - {s for o, ss in occasions().items() if o != "挽联" for s in ss}
    assert not set(texts("一年四季春常在", "万紫千红永开花", count=50)) & only_mourning
    assert set(texts("音容已杳", "德泽犹存")) & only_mourning
    assert set(texts("一年四季春常在", "万紫千红永开花", asked=["挽联"], count=50)) & only_mourning
    assert "俎豆千秋" not in texts("圆梦千秋家国事", "画楼万古月星辉", count=50)
    assert "俎豆千秋" in texts("祖德千秋家国事", "宗功万古月星辉", count=50)
    assert "金鸡报晓" not in texts("红梅万点报春早", "紫燕千声祝岁新", count=50)
    assert "金鸡报晓" in texts("雄鸡一唱报春早", "紫燕千声祝岁新", count=50)


def test_an_occasion_that_was_asked_for_counts():
    plain, asked = texts("春风送暖", "旭日升辉"), texts("春风送暖", "旭日升辉", asked=["乔迁"])
    new_home = set(occasions()["乔迁"])
    assert len(new_home & set(asked)) > len(new_home & set(plain))


def test_lines_that_speak_of_the_theme_are_held_to_be_better():
    (doctors,) = read_themes("医院")
    fitting, other = ("妙手回春除疾苦", "仁心济世保安康"), ("东风吹绿江南岸", "细雨浇开陌上花")
    assert relevance(fitting, [doctors]) > 5 * relevance(other, [doctors])
    assert relevance(fitting, read_themes("围棋子")) == relevance(fitting, []) == 0

    def good(lines, theme="", scores=(-2.5, -1.5, -1.0), relaxed=(), named=False):
        return quality(lines, Scores(*scores), relaxed, read_themes(theme), named)

    assert good(fitting, "医院") > good(other, "医院")
    assert good(other, scores=(-1.9, -0.5, -1.0)) == good(other, scores=(-1.9, -0.9, -1.0)) > good(other)
    assert good(other, scores=(-2.5, -1.5, -0.5)) > good(other)
    less = good(other, scores=(-1.0, -1.5, -1.0)) - good(other, scores=(-1.9, -1.5, -1.0))
    assert 0 < less < good(other, scores=(-1.6, -1.5, -1.0)) - good(other, scores=(-2.5, -1.5, -1.0))
    assert good(("东风吹绿神州岸", other[1])) < good(other)
    assert good(("东风吹绿神州岸", other[1]), "国庆") > good(("东风吹绿九州岸", other[1]), "国庆")
    assert good(other, relaxed=["final_tone"]) == pytest.approx(good(other) - 1)
    sad = ("东风吹落江南泪", other[1])
    assert good(sad) == good(other) and good(sad, named=True) == pytest.approx(good(other) - 0.4)
