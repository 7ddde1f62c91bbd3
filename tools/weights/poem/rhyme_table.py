"""Make the table of rhymes from poems that keep them.

python tools/weights/poem/rhyme_table.py poems.txt.xz

The characters that end the even lines of a poem belong to one of thirty rhymes. Which one is not written there: a
mixture model, started from a few characters of each rhyme, finds it by expectation and maximisation (Dempster et al.
1977), and with it the rhymes of all other characters.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

from paddle_dialog.command_line import program_parser, run_tool
from paddle_dialog.tasks.poem.data import read_poems
from paddle_dialog.tasks.poem.forms import NAMES, RHYMES, form_of, split_lines
from paddle_dialog.text.characters import can_be_level

SEEDS = [
    "东风中空同红公宫通翁穷功",
    "冬龙松容峰钟浓逢踪从封",
    "江窗双邦降缸",
    "时知诗迟枝思悲期池师眉奇",
    "归飞衣微晖稀扉肥辉非",
    "书居鱼初余车疏庐虚渔",
    "无湖孤芜途珠图壶夫须趋",
    "西低迷溪啼鸡齐泥栖题",
    "佳街阶斋怀柴鞋谐偕排牌埋",
    "来开台梅回杯哀苔催灰才",
    "人春新尘真身津邻频亲辰",
    "云君闻军群分文纷裙",
    "门村魂言园源存尊喧昏论",
    "寒看难残安干欢阑端官",
    "山关间还闲颜湾班",
    "年天前边烟然船眠田泉仙",
    "遥桥朝消萧潮销招",
    "交郊茅巢梢抛",
    "高豪毫袍涛劳毛",
    "多何歌波河过罗和",
    "家花斜沙华涯霞车",
    "长香光凉霜阳乡堂方王",
    "情声明生城清名成行横",
    "青星亭庭屏听汀经",
    "灯僧冰层登能陵",
    "秋流楼愁头舟游州休",
    "心深林阴寻音金琴吟",
    "南潭酣龛谈堪",
    "帘纤厌盐檐淹",
    "帆衫岩缄咸凡",
]
ROUNDS, SMOOTHING, ANCHOR = 30, 0.01, 100.0  # of the seeds, in poems
LEAST, SHARE = 3.0, 0.15  # expected poems that a character must have in a rhyme, and share of all of its own


def find_rhymes(endings: list[str]) -> dict[str, str]:
    """Find the characters of each rhyme.

    Args:
        endings: for each poem the last characters of its even lines.

    Returns:
        Rhyme → characters, the most frequent first.
    """
    characters = sorted({char for ending in endings for char in ending} | set("".join(SEEDS)))
    ids = {char: index for index, char in enumerate(characters)}
    poems = np.repeat(np.arange(len(endings)), [len(ending) for ending in endings])  # [N]
    members = np.array([ids[char] for ending in endings for char in ending])  # [N]
    prior = np.full((len(characters), len(NAMES)), SMOOTHING)  # [C, R]
    for rhyme, seeds in enumerate(SEEDS):
        prior[[ids[char] for char in seeds], rhyme] = ANCHOR
    expected = np.zeros_like(prior)  # [C, R] poems in which a character has a rhyme
    shares = np.full(len(NAMES), 1.0 / len(NAMES))  # [R] of all poems
    for _ in range(ROUNDS):
        logs = np.log((expected + prior) / (expected + prior).sum(axis=0))
        weights = np.tile(np.log(shares + 1e-9), (len(endings), 1))  # [P, R]
        np.add.at(weights, poems, logs[members])
        weights = np.exp(weights - weights.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        shares = weights.mean(axis=0)
        expected = np.zeros_like(expected)
        np.add.at(expected, members, weights[poems])
    own = expected / np.maximum(expected.sum(axis=1, keepdims=True), 1e-9)
    kept = (expected >= LEAST) & (own >= SHARE)  # [C, R]
    return {
        name: "".join(characters[index] for index in np.argsort(-expected[:, rhyme]) if kept[index, rhyme])
        for rhyme, name in enumerate(NAMES)
    }


def main(arguments: argparse.Namespace) -> None:
    """Read poems and write the table."""
    endings = []
    for poem in read_poems(arguments.poems):
        if form_of(poem.body) is not None:
            lasts = [line[-1] for line in split_lines(poem.body)[1::2]]
            if all(map(can_be_level, lasts)):
                endings.append("".join(lasts))
    lines = (f"{name} {characters}\n" for name, characters in find_rhymes(endings).items())
    RHYMES.write_text("".join(lines), encoding="utf-8")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument("poems", metavar="POEMS", help="title<TAB>body a line")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
