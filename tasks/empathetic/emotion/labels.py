"""The 32 emotion labels of EmpatheticDialogues (Rashkin et al., 2019) and their ids."""

import difflib

from paddle_dialog.errors import UserError

# Alphabetical; the position is the class id stored in trained weights, so this order must never change.
EMOTIONS: tuple[str, ...] = (
    "afraid",
    "angry",
    "annoyed",
    "anticipating",
    "anxious",
    "apprehensive",
    "ashamed",
    "caring",
    "confident",
    "content",
    "devastated",
    "disappointed",
    "disgusted",
    "embarrassed",
    "excited",
    "faithful",
    "furious",
    "grateful",
    "guilty",
    "hopeful",
    "impressed",
    "jealous",
    "joyful",
    "lonely",
    "nostalgic",
    "prepared",
    "proud",
    "sad",
    "sentimental",
    "surprised",
    "terrified",
    "trusting",
)

NO_CLEAR_EMOTION = "no clear emotion"  # shown where none is likely enough

_IDS = {label: number for number, label in enumerate(EMOTIONS)}


def emotion_id(label: str) -> int:
    """Return class id of an emotion label.

    Args:
        label: one of `EMOTIONS`; case and outer blanks do not matter.

    Returns:
        The id, 0 to 31.

    Raises:
        UserError: the label is unknown; the message names the one nearest in spelling.
    """
    number = _IDS.get(label.strip().lower())
    if number is None:
        raise UserError(
            f"unknown emotion {label[:40]!r}; did you mean {nearest_emotion(label)!r}? (one of the "
            f"{len(EMOTIONS)} labels of EmpatheticDialogues is needed)"
        )
    return number


def nearest_emotion(label: str) -> str:
    """Return the known label most similar in spelling to `label` (Ratcliff/Obershelp similarity)."""
    return difflib.get_close_matches(label.strip().lower(), EMOTIONS, n=1, cutoff=0.0)[0]
