"""Which replies of a corpus fit other conversations than their own, and how they are tidied.

A reply goes into the store if no rule finds fault with it. The rules are deliberately simple: there are more replies
than needed, so losing a good one costs little, while a reply that gives somebody another's wife, town or answer
costs much.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tasks.empathetic.data.language import ENGLISH, Language
from tasks.empathetic.overlap import word_list

# English.
FEWEST_WORDS, MOST_WORDS = 2, 25
_LETTER = re.compile(r"[^\W\d_]")
_MARKS = re.compile(r"[a-z',.!?;:()\"$%&*`~^=<>/_-]+")
_DATES = word_list("dates")
_NUMBERS = word_list("numbers")
_VERBS_BEFORE_HAVE = frozenset(["must", "could", "should", "would", "might"])
_OWN = word_list("own")
_COARSE = word_list("coarse")
_NOT_OWN = {("oh", "my"), *(("my", word) for word in word_list("my"))}
# What listeners may say of themselves: feelings about what they hear, guesses, wishes and promises.
_ADVERBS = word_list("adverbs")
_MAY_SAY = word_list("may say")
_MAY_BE = word_list("may be")
_CLAIMS = (
    *(("me", word) for word in ("too", "either", "neither", "and", "to")),
    *((word, "me") for word in ("to", "reminds", "for", "with", "makes", "made", "and", "like", "as")),
    ("same", "here"),
    ("personal", "experience"),
    ("from", "experience"),
    ("so", "do", "i"),
    ("so", "did", "i"),
    ("i", "would", "too"),
    ("i", "feel", "the", "same"),
)
_ANSWERS = frozenset(["yes", "no", "nope", "yep", "yup", "nah", "sure"])
_NO_ANSWERS = frozenset(["way", "problem", "wonder", "kidding", "doubt", "one", "need", "matter", "worries"])
RARE = 150_000
_WORD = re.compile(r"[^\W\d_]+")
_BEGINS = re.compile(r"(?:^|[.!?:;\"()*~-])[\s\"'(]*$")  # what stands before the first word of a sentence
# Capitalised words that are not names.
_NO_NAMES = word_list("no names")
# English spelling.
_SPACED = re.compile(r"\s+(?=[,.!?;:](?:\s|$))")
_LONE_I = re.compile(r"(?<![\w'.])i(?=$|[\s,!?;:]|'|\.(?!\w))")
_SENTENCE = re.compile(r"(^|(?<!\.)[.!?]\s+)([a-z])")
_GLUED = re.compile(r"(?<=[a-z])([.!?,])(?=[A-Z])")
_ASKING = re.compile(
    r"(?:^|[.!?,]\s+)"
    r"(?:(?:why|how|what|where|when|who) (?:did|do|does|is|are|was|were|have|has|will|can|could|would|about)"
    r"|(?:did|do|does|are|were|have|would|will|can|could) you|is (?:it|he|she|that|there)|did (?:it|he|she|they))"
    r"\b[^.!?]*\.$",
    re.IGNORECASE,
)
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "…": "..."})
_VERBS = "do does did is are was were has have had could should would ca".split()  # noqa: SIM905
_UNMARKED = {  # words whose apostrophe is often left out and that mean nothing else
    **{f"{verb}nt": f"{verb}n't" for verb in _VERBS},
    **{f"{word}s": f"{word}'s" for word in ("that", "what", "there", "here", "where", "who")},
    **{
        "im": "I'm",
        "ive": "I've",
        "youre": "you're",
        "youve": "you've",
        "youll": "you'll",
        "theyre": "they're",
    },
}
_UNMARKED_WORD = re.compile(rf"(?<![\w'])({'|'.join(_UNMARKED)})(?![\w'])", re.IGNORECASE)

# Chinese.
FEWEST_CHARACTERS, MOST_CHARACTERS = 5, 45
MOST_IN_A_NAME = 3
_HANZI = re.compile(r"[\u4e00-\u9fff]")
_CHINESE_ANSWERS = re.compile(r"(?:是的|不是|对的|对，|对。|没有|好的|可以|当然|会的|能的|嗯)")
_CHINESE_NUMBERS = re.compile(
    r"[0-9０-９A-Za-zＡ-Ｚａ-ｚ]|第[一二三四五六七八九十]|[一二三四五六七八九十两]+(?:年|岁|月|天前|点钟)"
)
_CALLED = re.compile(
    r"女士|先生|小姐|同学|老师|姑娘|宝贝|宝宝|亲爱|亲亲|求助者|来访者|这位|(?:阿姨|叔叔|姐姐|哥哥)，"
)
_FIRST_CLAUSE = re.compile(r"([^，。！？、…]+)[，。！？、…]")
_CHINESE_NO_NAMES = word_list("chinese openings")
# What listeners may say of themselves: what they hear, guess, wish and promise.
_CHINESE_MAY_SAY = (
    r"能?(?:够|非常|很|完全|可以|也|都|会|真的|特别|相信|一直)*"
    r"(?:理解|明白|懂|知道|了解|感受|感觉|听|看|相信|希望|想|觉得|认为|猜|愿|祝|建议|在这|陪|支持|帮|为你|替你|高兴|抱歉|"
    r"很抱歉|心疼|佩服|欣赏|好奇|注意|发现|关心|期待|们|的建议|的意思|的理解)"
)
_CHINESE_OWN = re.compile(rf"我(?!{_CHINESE_MAY_SAY})")
_LIVED = re.compile(
    r"我(?:也|曾|以前|当时|自己|小时候|有过|有一|家|妈|爸|老公|老婆|男|女|孩|朋友|同事|上学|工作)"
    r"|咱家|换做我|如果是我"
)
_ESSAY = re.compile(
    r"首先|其次|再次|另外|此外|最后|以下|如下|上述|上面|下面|文中|文章|文字|题主|楼主|帖|回答|提问|问题描述|留言|咨询师|见字如面|同时，|"
    r"另一方面|因此|换句话说|综上|总之|例如|比如|方法是|（|）|\(|\)|【|】|“|”|《|》|：|；|～|~"
)
_CHINESE_COARSE = re.compile(
    r"他妈|妈的|傻逼|傻子|白痴|笨蛋|去死|滚蛋|混蛋|王八|婊|屁|操你|靠，|蠢|贱|神经病|杠精|变态"
)


class WordUse:
    """Counts of a corpus's words.

    Args:
        turns: all turns, each once.
        language: of the turns.
    """

    def __init__(self, turns: Iterable[str], language: Language = ENGLISH) -> None:
        self._counts: Counter[str] = Counter()
        self._small: Counter[str] = Counter()
        self._capital: Counter[str] = Counter()
        for turn in turns:
            self._counts.update(language.tokens_of(turn))
            self._note_capitals(turn)
        self._total = sum(self._counts.values())

    def is_rare(self, token: str) -> bool:
        """Return whether a token, lower case, is seen less than once in `RARE` tokens, as typing errors are."""
        return self._counts[token] * RARE < self._total

    def is_name(self, word: str) -> bool:
        """Return whether a word, lower case, is mostly written with a capital inside of sentences."""
        capital = self._capital[word]
        return word not in _NO_NAMES and capital > 0 and capital >= self._small[word]

    def _note_capitals(self, turn: str) -> None:
        words = _WORD.findall(turn)
        if 2 * sum(word[0].isupper() for word in words) > len(words) + 1:
            return  # shouted, or a title: its capitals carry no information
        for match in _WORD.finditer(turn):
            word = match.group()
            if word[0].islower():
                self._small[word.lower()] += 1
            elif not _BEGINS.search(turn[: match.start()]):
                self._capital[word.lower()] += 1


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply where it was said.

    Attributes:
        text: as it was written.
        tokens: of the text.
        asked: the turn before it is a question.
    """

    text: str
    tokens: tuple[str, ...]
    asked: bool


Rule = Callable[[Reply, WordUse], bool]


def tidied(text: str) -> str:
    """Return a reply as an editor would print it: capitals, blanks and marks in place, words unchanged."""
    text = _SPACED.sub("", " ".join(text.translate(_QUOTES).split()))
    text = _LONE_I.sub("I", _GLUED.sub(r"\1 ", text))
    text = _UNMARKED_WORD.sub(lambda match: _UNMARKED[match[1].lower()], text)
    text = _SENTENCE.sub(lambda match: match[1] + match[2].upper(), text)
    text = text if text.endswith(tuple(".!?)\"'*:;")) else f"{text}."
    return f"{text[:-1]}?" if _ASKING.search(text) and not text.endswith("..") else text


def _is_short(reply: Reply, use: WordUse) -> bool:
    return len(_words(reply)) < FEWEST_WORDS


def _is_long(reply: Reply, use: WordUse) -> bool:
    return len(_words(reply)) > MOST_WORDS


def _answers(reply: Reply, use: WordUse) -> bool:
    """Return whether it answers a question, or begins as if it did ("yes, last week")."""
    first, second = (*reply.tokens, "", "")[:2]
    return reply.asked or (first in _ANSWERS and second not in _NO_ANSWERS)


def _has_numbers(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a number, a date or a time."""
    return any(
        token in _NUMBERS or token in _DATES or any(character.isdigit() for character in token)
        for token in reply.tokens
    )


def _has_names(reply: Reply, use: WordUse) -> bool:
    """Return whether it names a person, place, people or brand, capitalised or not."""
    return any(use.is_name(token) for token in reply.tokens)


def _claims_facts(reply: Reply, use: WordUse) -> bool:
    """Return whether it tells facts about the listener: "my wife and I", "I had one too"."""
    tokens = reply.tokens
    if any(tokens[at : at + len(claim)] == claim for claim in _CLAIMS for at in range(len(tokens))):
        return True
    for at, token in enumerate(tokens):
        if token in _OWN and not {tokens[at - 1 : at + 1], tokens[at : at + 2]} & _NOT_OWN:
            return True
        if token == "i" and not _says_nothing_of_himself(tokens[at + 1 :]):
            return True
    return False


def _says_nothing_of_himself(rest: Sequence[str]) -> bool:
    """Return whether a sentence that begins with "I" goes on with a wish, a guess or a feeling about the other."""
    words = [word for word in rest[:6] if word not in _ADVERBS]
    if words[:1] in (["am"], ["'m"]):
        return words[1:2] != [] and words[1] in _MAY_BE
    return words[:1] != [] and words[0] in _MAY_SAY


def _is_coarse(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a coarse or insulting word."""
    return any(token in _COARSE for token in reply.tokens)


def _is_misspelt(reply: Reply, use: WordUse) -> bool:
    """Return whether it has a very rare word, "must of", or characters that no sentence needs."""
    if any(one in _VERBS_BEFORE_HAVE and other == "of" for one, other in pairwise(reply.tokens)):
        return True
    return any(
        _MARKS.fullmatch(token) is None or (_LETTER.search(token) and use.is_rare(token))
        for token in reply.tokens
    )


RULES: Mapping[str, Rule] = {
    "short": _is_short,
    "long": _is_long,
    "answer": _answers,
    "number or date": _has_numbers,
    "name": _has_names,
    "own life": _claims_facts,
    "coarse": _is_coarse,
    "misspelt": _is_misspelt,
}


def same_words(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a reply, which are equal for replies that differ in punctuation alone."""
    return tuple(token for token in tokens if _LETTER.search(token))


def _words(reply: Reply) -> list[str]:
    return [token for token in reply.tokens if _LETTER.search(token)]


def _is_short_zh(reply: Reply, use: WordUse) -> bool:
    return len(_HANZI.findall(reply.text)) < FEWEST_CHARACTERS


def _is_long_zh(reply: Reply, use: WordUse) -> bool:
    return len(reply.text) > MOST_CHARACTERS


def _answers_zh(reply: Reply, use: WordUse) -> bool:
    """Return whether it says yes or no to a question."""
    return reply.asked and _CHINESE_ANSWERS.match(reply.text) is not None


def _has_numbers_zh(reply: Reply, use: WordUse) -> bool:
    return _CHINESE_NUMBERS.search(reply.text) is not None


def _has_names_zh(reply: Reply, use: WordUse) -> bool:
    """Return whether it calls somebody by a name or a title."""
    clause = _FIRST_CLAUSE.match(reply.text)
    is_name = clause is not None and len(clause[1]) <= MOST_IN_A_NAME and clause[1] not in _CHINESE_NO_NAMES
    return is_name or _CALLED.search(reply.text) is not None


def _claims_facts_zh(reply: Reply, use: WordUse) -> bool:
    """Return whether it tells of the listener's own life."""
    return _LIVED.search(reply.text) is not None or _CHINESE_OWN.search(reply.text) is not None


def _is_of_an_essay(reply: Reply, use: WordUse) -> bool:
    """Return whether it is cut out of a long text, or speaks of one."""
    return _ESSAY.search(reply.text) is not None


def _is_coarse_zh(reply: Reply, use: WordUse) -> bool:
    return _CHINESE_COARSE.search(reply.text) is not None


def _is_unfinished(reply: Reply, use: WordUse) -> bool:
    """Return whether it does not end as a sentence, or has a very rare piece."""
    return reply.text[-1] not in "。！？…!?" or any(
        _HANZI.match(token) and use.is_rare(token) for token in reply.tokens
    )


CHINESE_RULES: Mapping[str, Rule] = {
    "short": _is_short_zh,
    "long": _is_long_zh,
    "answer": _answers_zh,
    "number or date": _has_numbers_zh,
    "name": _has_names_zh,
    "own life": _claims_facts_zh,
    "essay": _is_of_an_essay,
    "coarse": _is_coarse_zh,
    "unfinished": _is_unfinished,
}


def same_characters(tokens: Sequence[str]) -> tuple[str, ...]:
    """Return the characters of a reply, which are equal for replies that differ in punctuation alone."""
    return tuple(_HANZI.findall("".join(tokens)))


def fault_of(reply: Reply, use: WordUse, rules: Mapping[str, Rule] = RULES) -> str | None:
    """Return the name of the first rule that finds fault with a reply; None for a good one.

    Args:
        reply: where it was said.
        use: of words in its corpus.
        rules: of its language.
    """
    return next((name for name, finds_fault in rules.items() if finds_fault(reply, use)), None)


@dataclass(frozen=True)
class Editor:
    """The editor of one language's replies.

    Args:
        tidied: gives a reply's spelling and marks their usual form.
        rules: that find fault with a reply, by name.
        same_words: what two replies that differ in punctuation alone have in common, of their tokens.
        question_mark: by which a question is known.
    """

    tidied: Callable[[str], str]
    rules: Mapping[str, Rule]
    same_words: Callable[[Sequence[str]], tuple[str, ...]]
    question_mark: str


_EDITORS = {
    "en": Editor(tidied, RULES, same_words, "?"),
    "zh": Editor(str.strip, CHINESE_RULES, same_characters, "？"),
}


def editor_of(language: Language) -> Editor:
    """Return the editor of a language."""
    return _EDITORS[language.name]
