"""Rules that tell which Chinese replies fit other conversations than their own; see `cleaning`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tasks.empathetic.selection.cleaning import Reply, Rule
from tasks.empathetic.selection.word_lists import word_list
from tasks.empathetic.selection.word_use import WordUse

FEWEST_CHARACTERS, MOST_CHARACTERS = 5, 45
MOST_IN_A_NAME = 3
_HANZI = re.compile(r"[\u4e00-\u9fff]")
_ANSWERS = re.compile(r"(?:是的|不是|对的|对，|对。|没有|好的|可以|当然|会的|能的|嗯)")
_NUMBERS = re.compile(
    r"[0-9０-９A-Za-zＡ-Ｚａ-ｚ]|第[一二三四五六七八九十]|[一二三四五六七八九十两]+(?:年|岁|月|天前|点钟)"
)
_CALLED = re.compile(
    r"女士|先生|小姐|同学|老师|姑娘|宝贝|宝宝|亲爱|亲亲|求助者|来访者|这位|(?:阿姨|叔叔|姐姐|哥哥)，"
)
_FIRST_CLAUSE = re.compile(r"([^，。！？、…]+)[，。！？、…]")
_NO_NAMES = word_list("chinese openings")
# What listeners may say of themselves: what they hear, guess, wish and promise.
_MAY_SAY = (
    r"能?(?:够|非常|很|完全|可以|也|都|会|真的|特别|相信|一直)*"
    r"(?:理解|明白|懂|知道|了解|感受|感觉|听|看|相信|希望|想|觉得|认为|猜|愿|祝|建议|在这|陪|支持|帮|为你|替你|高兴|抱歉|"
    r"很抱歉|心疼|佩服|欣赏|好奇|注意|发现|关心|期待|们|的建议|的意思|的理解)"
)
_OWN = re.compile(rf"我(?!{_MAY_SAY})")
_LIVED = re.compile(
    r"我(?:也|曾|以前|当时|自己|小时候|有过|有一|家|妈|爸|老公|老婆|男|女|孩|朋友|同事|上学|工作)"
    r"|咱家|换做我|如果是我"
)
_ESSAY = re.compile(
    r"首先|其次|再次|另外|此外|最后|以下|如下|上述|上面|下面|文中|文章|文字|题主|楼主|帖|回答|提问|问题描述|留言|咨询师|见字如面|同时，|"
    r"另一方面|因此|换句话说|综上|总之|例如|比如|方法是|（|）|\(|\)|【|】|“|”|《|》|：|；|～|~"
)
_COARSE = re.compile(
    r"他妈|妈的|傻逼|傻子|白痴|笨蛋|去死|滚蛋|混蛋|王八|婊|屁|操你|靠，|蠢|贱|神经病|杠精|变态"
)


def _is_short(reply: Reply, use: WordUse) -> bool:
    return len(_HANZI.findall(reply.text)) < FEWEST_CHARACTERS


def _is_long(reply: Reply, use: WordUse) -> bool:
    return len(reply.text) > MOST_CHARACTERS


def _answers(reply: Reply, use: WordUse) -> bool:
    """Return whether it says yes or no to a question."""
    return reply.asked and _ANSWERS.match(reply.text) is not None


def _has_numbers(reply: Reply, use: WordUse) -> bool:
    return _NUMBERS.search(reply.text) is not None


def _has_names(reply: Reply, use: WordUse) -> bool:
    """Return whether it calls somebody by a name or a title."""
    clause = _FIRST_CLAUSE.match(reply.text)
    is_name = clause is not None and len(clause[1]) <= MOST_IN_A_NAME and clause[1] not in _NO_NAMES
    return is_name or _CALLED.search(reply.text) is not None


def _claims_facts(reply: Reply, use: WordUse) -> bool:
    """Return whether it tells of the listener's own life."""
    return _LIVED.search(reply.text) is not None or _OWN.search(reply.text) is not None


def _is_of_an_essay(reply: Reply, use: WordUse) -> bool:
    """Return whether it is cut out of a long text, or speaks of one."""
    return _ESSAY.search(reply.text) is not None


def _is_coarse(reply: Reply, use: WordUse) -> bool:
    return _COARSE.search(reply.text) is not None


def _is_unfinished(reply: Reply, use: WordUse) -> bool:
    """Return whether it does not end as a sentence, or has a very rare piece."""
    return reply.text[-1] not in "。！？…!?" or any(
        _HANZI.match(token) and use.is_rare(token) for token in reply.tokens
    )


CHINESE_RULES: Mapping[str, Rule] = {
    "short": _is_short,
    "long": _is_long,
    "answer": _answers,
    "number or date": _has_numbers,
    "name": _has_names,
    "own life": _claims_facts,
    "essay": _is_of_an_essay,
    "coarse": _is_coarse,
    "unfinished": _is_unfinished,
}


def same_characters(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the characters of a reply, which are equal for replies that differ in punctuation alone."""
    return tuple(_HANZI.findall("".join(tokens)))
