"""A chat of many turns: its state, its commands, and the tool with pipe and terminal."""

import contextlib
import os
import pty
import re
import signal
import subprocess

import numpy as np
import pytest
from command import run_here, start
from empathetic_toys import random_predictor, save_model

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.chat_command import Chat, format_answer
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.replies import Answer, ReplyPrediction

TINY = {"data": {"max_length": 24}, "decoding": {"beam_size": 2, "max_length": 5}}


@pytest.fixture(scope="module")
def predictor():
    return random_predictor(**TINY)


def test_an_answer_for_reading():
    probabilities = np.full(32, 0.1 / 29)
    for label, probability in (("sad", 0.5), ("lonely", 0.3), ("proud", 0.1)):
        probabilities[EMOTIONS.index(label)] = probability
    a, b = ReplyPrediction("A.", -0.5, ()), ReplyPrediction("B.", -1.25, ())
    assert format_answer(Answer(["x"], "sad", probabilities, [a])) == "[sad 50%, lonely 30%, proud 10%]\nA."
    assert format_answer(Answer(["x"], None, probabilities, [b])) == "[no clear emotion]\nB."
    assert format_answer(Answer(["x"], "joyful", probabilities, [a, b]), is_set=True) == (
        "[joyful, set by you; predicted: sad 50%, lonely 30%, proud 10%]\n1. A. (-0.50)\n2. B. (-1.25)"
    )


def test_each_turn_is_answered_with_all_before_it_in_mind(predictor):
    chat, turns = Chat(predictor), ["my dog died .", "  he was   called Rex .", "i won"]
    context = []
    for turn in turns:
        context.append(" ".join(turn.split()))
        (expected,) = predictor.answer([context])
        assert chat.handle(turn).reply == format_answer(expected)
        context.append(expected.predictions[0].text)
    assert chat.turns == context
    alone = predictor.answer([["i won"]])[0].probabilities
    assert not np.allclose(alone, predictor.answer([context[:-1]])[0].probabilities)


def test_undo_and_reset(predictor):
    chat = Chat(predictor)
    with pytest.raises(UserError, match="no turn to take back"):
        chat.handle("/undo")
    first, second = chat.handle("my dog died .").reply, chat.handle("i won").reply
    assert chat.handle("/undo").note == "taken back: i won"
    assert len(chat.turns) == 2
    assert chat.handle("i won").reply == second
    chat.handle("/emotion sad")
    chat.handle("/reset")
    assert chat.turns == [] and chat.emotion is None
    assert chat.handle("my dog died .").reply == first


def test_the_emotion_can_be_set_and_given_back(predictor):
    chat, turn = Chat(predictor), "my dog died ."
    assert "predicted by the model" in (chat.handle("/emotion").note or "")
    free = chat.handle(turn).reply
    chat.handle("/undo")
    with pytest.raises(UserError, match="unknown emotion 'prowd'; did you mean 'proud'"):
        chat.handle("/emotion prowd")
    assert chat.emotion is None
    chat.handle("/emotion  PROUD ")
    (given,) = predictor.answer([[turn]], emotions=["proud"])
    assert chat.handle(turn).reply == format_answer(given, is_set=True)
    assert "set to proud" in (chat.handle("/emotion").note or "")
    chat.handle("/undo")
    chat.handle("/emotion auto")
    assert chat.handle(turn).reply == free


def test_of_hundreds_of_turns_the_newest_are_read():
    predictor = random_predictor(**{**TINY, "decoding": {"strategy": "greedy", "max_length": 3}})
    chat, lengths = Chat(predictor), []
    read = predictor.model.read_contexts
    predictor.model.read_contexts = lambda source, n: lengths.append(n.max().item()) or read(source, n)
    for number in range(150):
        chat.handle(f"turn {number} of my dog")
    assert len(chat.turns) == 300
    assert max(lengths) == lengths[-1] == 24 + 1  # all the words it may read, and CLS
    context = [*chat.turns, "my bike"]
    (whole,), (newest,) = predictor.answer([context]), predictor.answer([context[-21:]])
    np.testing.assert_array_equal(whole.probabilities, newest.probabilities)
    assert whole.predictions == newest.predictions
    assert predictor.answer([context[-1:]])[0].predictions[0].score != whole.predictions[0].score


def test_odd_turns_are_answered_and_a_refused_line_gets_a_sentence(predictor):
    notes = {
        "dog " * 2500: r"2,500 words; the model reads the last 24",
        "🏝": r"knows none of these words",
        "qwrtz\x1b[31m zxcvb": r"knows none of these words|^$",
        " /quit": r"knows none of these words",
        "my dog 😭": r"^$",
    }
    for line, note in notes.items():
        chat = Chat(predictor)
        response = chat.handle(line)
        assert response.reply and re.search(note, response.note or "")
        assert len(chat.turns) == 2 and "\x1b" not in "".join(chat.turns)
    refused = {
        "": "the turn is empty",
        "/emtion sad": "did you mean /emotion",
        "/" + "x" * 10_000: "/help lists them",
        "caf\udce9": "half of a surrogate pair",
    }
    chat = Chat(predictor)
    for line, said in refused.items():
        with pytest.raises(UserError, match=said) as raised:
            chat.handle(line)
        assert len(str(raised.value)) < 200 and chat.turns == [] and not chat.finished


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("chat"), **TINY)


def test_piped_lines_are_answered_without_decoration(recipe):
    lines = "\ufeffmy dog died .\n\n/emotion prowd\n/emotion proud\ni won\r\n/help\n/quit\nnever said\n"
    stdin = lines.encode() + b"\xff\n"
    outcome = run_here("chat", "-c", recipe, stdin=stdin)
    assert outcome.status == 0, outcome.stderr
    shown = outcome.stdout.splitlines()
    assert len(shown) == 2 + 2  # emotion and reply
    assert re.fullmatch(r"\[\w+ \d+%, \w+ \d+%, \w+ \d+%\]", shown[0])
    assert shown[2].startswith("[proud, set by you; predicted: ")
    for said in ("error: the turn is empty", "did you mean 'proud'", "/undo"):
        assert said in outcome.stderr
    assert "Traceback" not in outcome.stderr
    assert "error: this line is not UTF-8" in run_here("chat", "-c", recipe, stdin=b"\xff\n").stderr


def test_a_terminal_is_prompted_and_ctrl_c_ends_with_130(recipe):
    leader, follower = pty.openpty()
    options = {"stdin": follower, "stdout": follower, "environment": {"TERM": "dumb"}}
    process = start("chat", "-c", recipe, start_new_session=True, **options)
    os.close(follower)
    assert wait_for(leader, r"> ").endswith("> ")
    os.write(leader, "my dog died 🏝\n".encode())
    assert re.search(r"\[\w+ \d+%, \w+ \d+%, \w+ \d+%\]\r\n.+\r\n> $", wait_for(leader, r"%\]\r\n.+\r\n> "))
    while process.poll() is None:  # one that arrives between prompt and wait is only seen at the next
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=20)
    _, stderr = process.communicate(timeout=300)
    os.close(leader)
    assert process.returncode == 130, stderr
    assert b"interrupted" in stderr and b"Traceback" not in stderr


def wait_for(terminal, pattern):
    """Return what a terminal shows up to this pattern."""
    shown = ""
    while not re.search(pattern, shown):
        shown += os.read(terminal, 4096).decode("utf-8", "replace")
    return shown
