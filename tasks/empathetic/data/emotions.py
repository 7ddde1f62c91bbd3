"""The emotion labels of each language and their ids, and the words that hint at an emotion.

English has the 32 of EmpatheticDialogues (Rashkin et al., 2019). Chinese has eight groups of the 13 of CPED (Chen et
al., 2022), the only ones annotated there. The hints are by default the words of the NRC lexicon (Mohammad and Turney,
2013).
"""

from __future__ import annotations

import difflib
import importlib.util
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary

_PACKAGE, _DATA_FILE = "nrclex", "nrc_en.json"  # of the distribution NRCLex

# Alphabetical; the position is the class id stored in trained weights, so this order must never change.
_NAMES = """
afraid=害怕 angry=生气 annoyed=恼火 anticipating=盼望 anxious=焦虑 apprehensive=忐忑
ashamed=羞愧 caring=关怀 confident=自信 content=满足 devastated=悲痛欲绝 disappointed=失望
disgusted=厌恶 embarrassed=尴尬 excited=兴奋 faithful=忠诚 furious=愤怒 grateful=感激
guilty=内疚 hopeful=充满希望 impressed=钦佩 jealous=嫉妒 joyful=喜悦 lonely=孤独
nostalgic=怀旧 prepared=有准备 proud=自豪 sad=悲伤 sentimental=感伤 surprised=惊讶
terrified=恐惧 trusting=信任
"""
_IN_CHINESE: dict[str, str] = dict(pair.split("=") for pair in _NAMES.split())
EMOTIONS: tuple[str, ...] = tuple(_IN_CHINESE)

# name: (in Chinese, the labels of CPED in this group); the same holds for this order.
CHINESE_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "happy": ("高兴", ("happy", "grateful", "positive-other")),
    "calm": ("平静", ("relaxed",)),
    "neutral": ("中性", ("neutral",)),
    "sad": ("难过", ("sadness", "depress")),
    "anxious": ("担忧", ("worried", "fear")),
    "angry": ("生气", ("anger",)),
    "annoyed": ("厌烦", ("disgust", "negative-other")),
    "surprised": ("惊讶", ("astonished",)),
}
CHINESE_EMOTIONS: tuple[str, ...] = tuple(CHINESE_GROUPS)
CHINESE_NAMES: dict[str, dict[str, str]] = {  # of each label, by the language of the model
    "en": _IN_CHINESE,
    "zh": {name: chinese for name, (chinese, _) in CHINESE_GROUPS.items()},
}
EMOTIONS_OF: dict[str, tuple[str, ...]] = {"en": EMOTIONS, "zh": CHINESE_EMOTIONS}  # by language

NO_CLEAR_EMOTION = "no clear emotion"  # shown where none is likely enough

_OTHER_NAMES = {
    other: name for name, (chinese, labels) in CHINESE_GROUPS.items() for other in (chinese, *labels)
}
KNOWN_LABELS = tuple(dict.fromkeys((*EMOTIONS, *CHINESE_EMOTIONS, *_OTHER_NAMES)))  # of any model


def emotion_id(label: str, emotions: Sequence[str] = EMOTIONS) -> int:
    """Return class id of an emotion label.

    Args:
        label: one of `emotions`; case and outer blanks do not matter. Of the Chinese emotions the Chinese name or a
            label of CPED will do.
    """
    name = label.strip().lower()
    if name not in emotions and emotions == CHINESE_EMOTIONS:
        name = _OTHER_NAMES.get(name, name)
    if name not in emotions:
        known = "labels of EmpatheticDialogues" if emotions == EMOTIONS else f"labels {', '.join(emotions)}"
        nearest = difflib.get_close_matches(name, emotions, n=1, cutoff=0.0)[0]  # by Ratcliff and Obershelp
        raise UserError(
            f"unknown emotion {label[:40]!r}; did you mean {nearest!r}? (one of the "
            f"{len(emotions)} {known} is needed)",
            "emotion_unknown",
            emotion=label[:40],
        )
    return emotions.index(name)


class EmotionLexicon(frozenset[str]):
    """A set of lower-case words."""

    def __new__(cls, words: Iterable[str]) -> EmotionLexicon:
        return super().__new__(cls, (word.lower() for word in words))

    @classmethod
    def load(cls, source: str = "nrc") -> EmotionLexicon:
        """Read a lexicon.

        Args:
            source: `nrc` (the lexicon inside the installed PyPI package NRCLex, read without importing it), a
                `.json` file `{"word": [category, …], …}`, of which words without a category are left out, or
                a text file of one word a line; both UTF-8, `.xz` and `.gz` allowed.
        """
        path = _nrc_path() if source == "nrc" else Path(source)
        suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
        words = _json_words(path) if ".json" in suffixes else _lines(path)
        if not words:
            raise UserError(f"{path}: no word in this lexicon; give one word a line or JSON word → list")
        return cls(words)

    def to_marks(self, vocabulary: Vocabulary) -> bytes:
        """Return the lexicon as a file of a bundle, so that answering needs none: a line for each token, 1 or 0."""
        return "".join("1\n" if token in self else "0\n" for token in vocabulary).encode("ascii")

    @classmethod
    def from_marks(cls, marks: bytes, vocabulary: Vocabulary, where: str) -> EmotionLexicon:
        """Make a lexicon of the words that the marks of a vocabulary's tokens name."""
        lines = marks.split(b"\n")
        if lines.pop() or set(lines) - {b"0", b"1"} or len(lines) != len(vocabulary):
            raise UserError(
                f"{where}: must hold {len(vocabulary):,} lines of 0 or 1, one for each line of the vocabulary; "
                "take another bundle"
            )
        return cls(token for token, mark in zip(vocabulary, lines, strict=True) if mark == b"1")


def _nrc_path() -> Path:
    spec = importlib.util.find_spec(_PACKAGE)  # without importing it, which takes seconds
    folders = (spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in sorted(Path(folder).rglob(_DATA_FILE))]
    if not found:
        raise UserError(
            "emotion lexicon nrc: the package NRCLex is not installed; pip install NRCLex==4.1.0, name a file of one "
            "word a line, or take a bundle that has hints.txt"
        )
    return found[0]


def _json_words(path: Path) -> list[str]:
    try:
        table = json.loads("\n".join(line for _, line in read_lines(path)))
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path}:{error.lineno}: broken JSON ({error.msg}); a lexicon is word → list"
        ) from error
    if not isinstance(table, dict) or not all(isinstance(value, list) for value in table.values()):
        raise UserError(f'{path}: is no lexicon, which is {{"word": [category, …], …}}')
    return [word for word, categories in table.items() if categories]


def _lines(path: Path) -> list[str]:
    words = []
    for number, line in read_lines(path):
        word = line.strip()
        if len(word.split()) > 1:
            raise UserError(f"{path}:{number}: {word[:40]!r} is more than one word; give one word a line")
        if word:
            words.append(word)
    return words
