"""Flattening and truncating a context."""

import pytest
from empathetic_toys import make_config, make_vocabulary
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.empathetic.data.encoding import LISTENER, NO_ROLE, SPEAKER, History, flatten, make_encoder

TURNS = [["a", "b"], ["c"], ["d", "e", "f"]]


def test_roles_alternate_from_the_speaker_and_differ_from_padding():
    s, t = SPEAKER, LISTENER
    assert flatten(TURNS) == History(["a", "b", "c", "d", "e", "f"], [s, s, t, s, s, s], 0)
    assert len({SPEAKER, LISTENER, NO_ROLE}) == 3


@pytest.mark.parametrize(
    ("room", "tokens", "dropped_tokens"),
    [
        (6, "abcdef", 0),
        (5, "bcdef", 1),
        (4, "cdef", 2),
        (3, "def", 3),
        (2, "ef", 4),
        (1, "f", 5),
    ],
)
def test_the_newest_tokens_stay(room, tokens, dropped_tokens):
    history = flatten(TURNS, room)
    assert "".join(history.tokens) == tokens
    assert history.dropped_tokens == dropped_tokens


def test_a_small_older_turn_does_not_slip_in_behind_a_cut_one():
    assert flatten([["a"], ["b", "c", "d"], ["e"]], 2).tokens == ["d", "e"]


def test_room_for_no_token_is_refused():
    with pytest.raises(ValueError, match="max_tokens is 0"):
        flatten(TURNS, 0)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.text(min_size=1, max_size=2), max_size=5), max_size=6), st.integers(1, 20))
def test_what_stays_is_the_end_of_the_whole(turns, room):
    whole, part = flatten(turns), flatten(turns, room)
    assert len(part.tokens) == min(room, len(whole.tokens)) == len(part.roles)
    assert part.tokens == whole.tokens[len(whole.tokens) - len(part.tokens) :]
    assert part.roles == whole.roles[len(whole.roles) - len(part.roles) :]
    assert part.dropped_tokens == len(whole.tokens) - len(part.tokens)


def test_where_tokens_are_dropped_no_turn_is_the_first():
    turns = ["my dog died .", "oh no !", "yes"]
    whole, cut = make_config(), make_config(data={"max_length": 5})
    assert make_encoder(whole, make_vocabulary()).context(turns).first_turn == 4
    assert make_encoder(cut, make_vocabulary()).context(turns).first_turn == 0
