"""The emotion labels of each language and their ids.

English has the 32 of EmpatheticDialogues (Rashkin et al., 2019). Chinese has eight groups of the 13 of CPED (Chen et
al., 2022), the only ones annotated there.
"""

import difflib
from collections.abc import Sequence

from paddle_dialog.errors import UserError

# Alphabetical; the position is the class id stored in trained weights, so this order must never change.
_IN_CHINESE: dict[str, str] = {
    "afraid": "害怕",
    "angry": "生气",
    "annoyed": "恼火",
    "anticipating": "盼望",
    "anxious": "焦虑",
    "apprehensive": "忐忑",
    "ashamed": "羞愧",
    "caring": "关怀",
    "confident": "自信",
    "content": "满足",
    "devastated": "悲痛欲绝",
    "disappointed": "失望",
    "disgusted": "厌恶",
    "embarrassed": "尴尬",
    "excited": "兴奋",
    "faithful": "忠诚",
    "furious": "愤怒",
    "grateful": "感激",
    "guilty": "内疚",
    "hopeful": "充满希望",
    "impressed": "钦佩",
    "jealous": "嫉妒",
    "joyful": "喜悦",
    "lonely": "孤独",
    "nostalgic": "怀旧",
    "prepared": "有准备",
    "proud": "自豪",
    "sad": "悲伤",
    "sentimental": "感伤",
    "surprised": "惊讶",
    "terrified": "恐惧",
    "trusting": "信任",
}
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


def emotion_id(label: str, emotions: Sequence[str] = EMOTIONS) -> int:
    """Return class id of an emotion label.

    Args:
        label: one of `emotions`; case and outer blanks do not matter. Of the Chinese emotions the Chinese name or a
            label of CPED will do.
        emotions: of the language.

    Returns:
        The id, from 0.

    Raises:
        UserError: the label is unknown; the message names the one nearest in spelling.
    """
    name = label.strip().lower()
    if name not in emotions and emotions == CHINESE_EMOTIONS:
        name = _OTHER_NAMES.get(name, name)
    if name not in emotions:
        known = "labels of EmpatheticDialogues" if emotions == EMOTIONS else f"labels {', '.join(emotions)}"
        raise UserError(
            f"unknown emotion {label[:40]!r}; did you mean {nearest_emotion(label, emotions)!r}? (one of the "
            f"{len(emotions)} {known} is needed)"
        )
    return emotions.index(name)


def nearest_emotion(label: str, emotions: Sequence[str] = EMOTIONS) -> str:
    """Return the known label most similar in spelling to `label` (Ratcliff/Obershelp similarity)."""
    return difflib.get_close_matches(label.strip().lower(), emotions, n=1, cutoff=0.0)[0]
