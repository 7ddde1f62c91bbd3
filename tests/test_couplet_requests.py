"""What `predict` is asked for: characters of either script, numbers in their range, and the same best 下联 always."""

import pytest
from couplet_toys import LEVEL, OBLIQUE, toy

from paddle_dialog.errors import UserError
from tasks.couplet.form import rhythm_opposed

ROOMY = LEVEL + OBLIQUE + "，。"


def test_a_line_in_traditional_characters_is_answered_as_in_simplified_ones():
    predictor = toy(ROOMY + "风东")
    plain, traditional = predictor.predict(["东风", "東風"], n_best=3)
    assert plain == traditional
    assert predictor.predict(["东风"], template="？風") == predictor.predict(["东风"], template="？风")


@pytest.mark.parametrize("distance", [0.0, 1 / 3])
def test_the_best_candidate_is_the_same_however_many_are_wanted(distance):
    reranked = {"candidates": 3, "reverse": 2.0}
    predictor = toy(ROOMY, 4, rerank=reranked, choice={"distance": distance}, marks=True, beam_size=12)
    best = {predictor.predict(["月春雨"], n_best=count)[0][0].text for count in (1, 2, 3, 5, 12)}
    assert len(best) == 1
    first = predictor.predict(["月春雨"], n_best=12)[0]
    assert len({candidate.text for candidate in first}) == 12


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"lines": "晚风"}, r"give a list of texts, e\.g\. \['晚风'\]; this is one text"),
        ({"n_best": 0}, "n_best is 0; give 1 or more"),
        ({"distance": 5}, "distance is 5; give a share from 0 to 1"),
        ({"lock": {0: "山"}, "template": "月？"}, "position 0 is '月' in the template and '山' in lock"),
    ],
)
def test_what_cannot_be_is_refused(asked, said):
    with pytest.raises(UserError, match=said):
        toy(ROOMY).predict(**{"lines": ["春雨"], **asked})


def test_a_lock_of_the_mark_for_any_character_locks_nothing():
    assert toy(ROOMY).predict(["春雨"], lock={0: "？"}) == toy(ROOMY).predict(["春雨"])


@pytest.mark.parametrize(
    ("first", "second", "opposed"),
    [
        ("春雨", "山鸟", False),  # 雨 and 鸟 are both oblique; the first place is free
        ("雨雨", "鸟春", True),
        ("春雨山，春", "春山鸟，鸟", True),  # even places and ends: 雨 山, 山 鸟 and 春 鸟
        ("春雨山，春", "春山山，鸟", False),  # 山 ends the first clause of both
        ("春雨山", "春", True),  # lengths that differ are another fault
    ],
)
def test_the_even_places_and_the_ends_are_opposed(first, second, opposed):
    assert rhythm_opposed(first, second) is opposed
