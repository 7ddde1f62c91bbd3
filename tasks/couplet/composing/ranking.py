"""How good a composed couplet is held to be, for the choice among many.

What a model finds likeliest is what the corpus repeats a thousandfold. So a line gains nothing by being likelier than
a good one of a person's usually is, set phrases cost something, and lines that speak of the theme gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from tasks.couplet.composing.themes import Theme, main_names, theme_association

LIKELY_FIRST, LIKELY_SECOND = -1.9, -0.9  # nats per character, beyond which a line gains nothing
SECOND_WEIGHT = 1.2  # of the 下联 beside the 上联, whose likelihood says less
FIRST_WEIGHT = 0.3  # of the 上联 by itself without that bound; fitted to ratings, as the next
REVERSE_WEIGHT = 0.3  # of the 上联 after its 下联
RELAXED_COST = 1.0  # for each rule that is not kept
SET_PHRASE_COST = 0.25  # for each of them
THEME_WEIGHT = 0.5  # of the association of both lines with the themes, in nats
# Filler of greetings and slogans that fits every form and says nothing, and animals of years.
SET_PHRASES = (
    *("盛世", "和谐", "小康", "宏图", "鸿图", "四化", "党恩", "政策", "德政", "国策", "大业", "辉煌", "兴邦"),
    *("国强", "民富", "改革", "开放", "致富", "两岸", "一国", "三农", "科学", "国泰民安", "风调雨顺", "国运"),
    *("伟业", "骏业", "政通", "人和", "神州", "九州", "中华", "华夏", "祖国", "人民", "共产", "社会", "民族"),
    *("万象更新", "万紫千红", "风和日丽", "长征", "复兴", "五洲", "腾飞", "民生", "反腐", "倡廉", "特色"),
    *(
        "金蛇",
        "银蛇",
        "灵猴",
        "金猴",
        "神猴",
        "金牛",
        "金猪",
        "金鼠",
        "玉犬",
        "瑞犬",
        "义犬",
        "金鸡",
        "玉兔",
        "金羊",
    ),
)
KNOWN_COST = 0.5  # where a line stands in the training corpus as it is
SAD_COST = 0.4  # for each of these characters where the occasion is glad
SAD = frozenset("苦愁泪恨悲哀残断孤寂寞离死亡鬼哭怨凄惨败祸灾难瘦伤魂丧病坟葬")
GLAD_OCCASIONS = (
    *(
        "春节",
        "元旦",
        "元宵",
        "中秋",
        "国庆",
        "婚庆",
        "寿",
        "生子",
        "乔迁",
        "店铺开业",
        "酒店",
        "家庭",
        "高考",
    ),
    *("学校", "老师", "健康", "志向", "龙年", "马年"),
)


class Scores(NamedTuple):
    """Log-probabilities per token, and a judgement.

    Args:
        first: of the 上联, per token that was left to the model.
        second: of the 下联 after the 上联.
        reverse: of the 上联 after the 下联.
        judged: what a judge fitted to ratings says of the couplet, in the same unit.
    """

    first: float
    second: float
    reverse: float
    judged: float = 0.0


def quality(
    lines: tuple[str, str],
    scores: Scores,
    relaxed: Sequence[str],
    themes: Sequence[Theme],
    named: bool,
) -> float:
    """Return how good a couplet is held to be; only the order means something.

    Args:
        lines: 上联 and 下联.
        scores: what the model gives them.
        relaxed: rules it does not keep.
        themes: it was asked to speak of.
        named: whether it has a name, which is a glad occasion unless a theme says otherwise.
    """
    first, second = min(scores.first, LIKELY_FIRST), min(scores.second, LIKELY_SECOND)
    asked = "".join(word for theme in themes for word in theme.words)
    phrases = sum(phrase in line for line in lines for phrase in SET_PHRASES if phrase not in asked)
    likely = (first + SECOND_WEIGHT * second) / (1 + SECOND_WEIGHT)
    return (
        likely
        + FIRST_WEIGHT * scores.first
        + REVERSE_WEIGHT * scores.reverse
        + scores.judged
        + THEME_WEIGHT * relevance(lines, themes)
        - RELAXED_COST * len(relaxed)
        - SET_PHRASE_COST * phrases
        - SAD_COST * _sad(lines, themes, named)
    )


def _sad(lines: Sequence[str], themes: Sequence[Theme], named: bool) -> int:
    """Return how many sad characters the lines have, if the occasion is glad."""
    glad = any(main_names().get(theme.words) in GLAD_OCCASIONS for theme in themes)
    if not glad and (themes or not named):
        return 0
    return sum(character in SAD for line in lines for character in line)


def relevance(lines: Sequence[str], themes: Sequence[Theme]) -> float:
    """Return the mean association of the lines with the themes of the table, in nats; 0 without any."""
    numbers = [number for theme in themes if (number := _numbers().get(theme.words)) is not None]
    if not numbers:
        return 0.0
    table = theme_association()
    return float(np.mean([table.of(line)[numbers] for line in lines]))


@cache
def _numbers() -> dict[tuple[str, ...], int]:
    """Return the place of each theme in the table, by its words."""
    names = theme_association().words
    return {words: names.index(name) for words, name in main_names().items() if name in names}
