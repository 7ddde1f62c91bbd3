"""The emotion labels and their ids."""

import pytest

from paddle_dialog.errors import UserError
from tasks.empathetic.data.emotions import EMOTIONS, emotion_id, nearest_emotion


def test_there_are_32_different_labels_and_ids_follow_their_order():
    assert len(EMOTIONS) == len(set(EMOTIONS)) == 32
    assert [emotion_id(label) for label in EMOTIONS] == list(range(32))


def test_ids_that_trained_weights_rely_on_stay():
    pinned = {"afraid": 0, "caring": 7, "excited": 14, "joyful": 22, "proud": 26, "trusting": 31}
    assert {label: emotion_id(label) for label in pinned} == pinned


def test_case_and_outer_blanks_do_not_matter():
    assert emotion_id(" Proud ") == emotion_id("proud")


@pytest.mark.parametrize(
    ("wrong", "meant"), [("prowd", "proud"), ("suprised", "surprised"), ("gratefull", "grateful")]
)
def test_unknown_label_names_the_nearest(wrong, meant):
    with pytest.raises(UserError, match=f"unknown emotion '{wrong}'.*'{meant}'"):
        emotion_id(wrong)


@pytest.mark.parametrize("wrong", ["", "zzz", "😀"])
def test_even_a_hopeless_label_gets_a_known_suggestion(wrong):
    assert nearest_emotion(wrong) in EMOTIONS
    with pytest.raises(UserError):
        emotion_id(wrong)
