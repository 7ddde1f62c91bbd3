"""A chat of many turns: its state, its commands, and the tool with pipe, terminal and history."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run_here, start
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of, save_model

from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.answer import Answer, ReplyPrediction
from paddle_dialog.tasks.empathetic.chat import Chat, format_answer
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.sources import read_dialogues
from paddle_dialog.tasks.empathetic.prediction import EmpatheticPredictor
from paddle_dialog.tasks.empathetic.task import TASK

TINY = {"data": {"max_length": 24}, "decoding": {"beam_size": 2, "max_length": 5}}


def make_predictor(**sections: Any) -> EmpatheticPredictor:
    """Return a random model."""
    config, vocabulary = make_config(**{**TINY, **sections}), make_vocabulary()
    return predictor_of(config, make_network(config, len(vocabulary)), vocabulary)


@pytest.fixture(scope="module")
def predictor() -> EmpatheticPredictor:
    return make_predictor()


def test_an_answer_for_reading() -> None:
    probabilities = np.full(32, 0.1 / 29)
    for label, probability in (("sad", 0.5), ("lonely", 0.3), ("proud", 0.1)):
        probabilities[EMOTIONS.index(label)] = probability
    one = Answer(
        ["x"], "sad", probabilities, [ReplyPrediction("I'm sorry.", -0.5, ("i", "am", "sorry", "."))]
    )
    assert format_answer(one) == "[sad 50%, lonely 30%, proud 10%]\nI'm sorry."
    unclear = Answer(["x"], None, probabilities, [ReplyPrediction("Hello!", -0.5, ())])
    assert format_answer(unclear) == "[no clear emotion]\nHello!"
    two = Answer(
        ["x"], "joyful", probabilities, [ReplyPrediction("A.", -0.5, ()), ReplyPrediction("B.", -1.25, ())]
    )
    assert format_answer(two, is_set=True) == (
        "[joyful, set by you; predicted: sad 50%, lonely 30%, proud 10%]\n1. A. (-0.50)\n2. B. (-1.25)"
    )


def test_each_turn_is_answered_with_all_before_it_in_mind(predictor: EmpatheticPredictor) -> None:
    chat, turns = Chat(predictor), ["my dog died .", "  he was   called Rex .", "i won"]
    context: list[str] = []
    for turn in turns:
        context.append(" ".join(turn.split()))
        (expected,) = predictor.answer([context])
        assert chat.handle(turn).reply == format_answer(expected)
        context.append(expected.predictions[0].text)
    assert chat.turns == context
    alone = predictor.answer([["i won"]])[0].probabilities
    assert not np.allclose(alone, predictor.answer([context[:-1]])[0].probabilities)


def test_undo_and_reset(predictor: EmpatheticPredictor) -> None:
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


def test_the_emotion_can_be_set_and_given_back(predictor: EmpatheticPredictor) -> None:
    chat, turn = Chat(predictor), "my dog died ."
    assert "predicted by the model" in (chat.handle("/emotion").note or "")
    free = chat.handle(turn).reply
    chat.handle("/undo")
    with pytest.raises(UserError, match="unknown emotion 'prowd'; did you mean 'proud'"):
        chat.handle("/emotion prowd")
    assert chat.emotion is None
    chat.handle("/emotion  PROUD ")
    (told,) = predictor.answer([[turn]], emotions=["proud"])
    assert chat.handle(turn).reply == format_answer(told, is_set=True)
    assert "set to proud" in (chat.handle("/emotion").note or "")
    chat.handle("/undo")
    chat.handle("/emotion auto")
    assert chat.handle(turn).reply == free


def test_an_emotion_is_not_set_where_the_model_would_not_see_it() -> None:
    chat = Chat(make_predictor(emotion={"prepend": "none"}))
    with pytest.raises(UserError, match="without an emotion"):
        chat.handle("/emotion proud")


def test_a_model_that_must_be_told_the_emotion_says_so() -> None:
    chat = Chat(make_predictor(emotion={"prepend": "gold"}))
    with pytest.raises(UserError, match="is told the emotion"):
        chat.handle("i won")
    chat.handle("/emotion proud")
    assert (chat.handle("i won").reply or "").startswith("[proud, set by you")


def test_n_best(predictor: EmpatheticPredictor) -> None:
    chat = Chat(predictor)
    chat.handle("/n-best 3")
    lines = (chat.handle("my dog died .").reply or "").splitlines()
    assert [line[:3] for line in lines[1:]] == ["1. ", "2. ", "3. "]
    assert lines[1].startswith(f"1. {chat.turns[-1]} (")
    for wrong in ("", "0", "two", "51", "9" * 5000, "²"):
        with pytest.raises(UserError, match="from 1 to 50"):
            chat.handle(f"/n-best {wrong}")
    greedy = Chat(make_predictor(decoding={"strategy": "greedy", "max_length": 5}))
    with pytest.raises(UserError, match="greedy search gives one reply"):
        greedy.handle("/n-best 2")


def test_a_saved_conversation_is_a_dialogue_again(predictor: EmpatheticPredictor, tmp_path: Path) -> None:
    file, chat = tmp_path / "chat.jsonl", Chat(predictor)
    with pytest.raises(UserError, match="nothing to save"):
        chat.handle(f"/save {file}")
    chat.handle('he said "oh no" 🏝')
    file.write_text('{"context": ["hello"], "target": "hi"}', encoding="utf-8")  # without an end of line
    chat.handle(f"/save {file}")
    chat.handle("/emotion sad")
    chat.handle("i won")
    chat.handle("/emotion proud")  # for what may follow
    chat.handle("and more")
    chat.handle("/undo")
    chat.handle(f"/save {file}")
    old, first, second = read_dialogues(str(file))
    assert old.target == "hi"
    assert [*first.context, first.target] == chat.turns[:2] and first.emotion is None
    assert [*second.context, second.target] == chat.turns and second.emotion == "sad"
    assert TASK.evaluate(predictor, str(file), None)["n"] == 3
    for name, said in ((tmp_path, "cannot be saved"), ("a.jsonl.gz", "plain JSON lines"), ("", "name of a")):
        with pytest.raises(UserError, match=said):
            chat.handle(f"/save {name}")


def test_the_history_holds_every_conversation_that_ended(
    predictor: EmpatheticPredictor, tmp_path: Path
) -> None:
    file = tmp_path / "history.jsonl"
    chat = Chat(predictor, file)
    chat.handle("/reset")
    chat.end()
    assert file.read_bytes() == b""
    chat.handle("one")
    chat.handle("/reset")
    chat.handle("two")
    chat.end()
    assert [d.context for d in read_dialogues(str(file))] == [["one"], ["two"]]
    with pytest.raises(UserError, match="cannot be saved"):
        Chat(predictor, tmp_path)


def test_of_hundreds_of_turns_the_newest_are_read() -> None:
    predictor = make_predictor(decoding={"strategy": "greedy", "max_length": 3})
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


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("x" * 10_000, r"knows none of these words"),
        ("dog " * 2500, r"2,500 words; the model reads the last 24"),
        ("😭😭 🏝", r"knows none of these words"),
        ("qwrtz\x1b[31m zxcvb", r"knows none of these words|^$"),
        (" /quit", r"knows none of these words"),
        ("my dog 😭", r"^$"),
    ],
)
def test_odd_turns_are_answered(predictor: EmpatheticPredictor, line: str, note: str) -> None:
    chat = Chat(predictor)
    response = chat.handle(line)
    assert response.reply and re.search(note, response.note or "")
    assert len(chat.turns) == 2 and "\x1b" not in "".join(chat.turns)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "the turn is empty"),
        (" \t\u3000", "the turn is empty"),
        ("\x00", "the turn is empty"),
        ("/emtion sad", "did you mean /emotion"),
        ("/" + "x" * 10_000, "/help lists them"),
        ("/emotion " + "x" * 10_000, "unknown emotion"),
        ("caf\udce9", "half of a surrogate pair"),
    ],
)
def test_a_refused_line_is_told_in_a_sentence_and_forgotten(
    predictor: EmpatheticPredictor, line: str, said: str
) -> None:
    chat = Chat(predictor)
    with pytest.raises(UserError, match=said) as told:
        chat.handle(line)
    assert len(str(told.value)) < 200
    assert chat.turns == [] and not chat.finished


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(
        tmp_path_factory.mktemp("chat"), data={"max_length": 24}, decoding={"beam_size": 2, "max_length": 5}
    )


def test_piped_lines_are_answered_without_decoration(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    lines = [
        "\ufeffmy dog died .",
        "",
        "/emotion prowd",
        "/emotion proud",
        "/n-best 2",
        "i won\r",
        "/help",
        f"/save {file}",
        "/quit",
        "never said",
    ]
    stdin = "\n".join(lines).encode() + b"\n\xff\n"
    outcome = run_here("chat", "-c", recipe, stdin=stdin)
    assert outcome.status == 0, outcome.stderr
    shown = outcome.stdout.splitlines()
    assert len(shown) == 2 + 3  # emotion and reply; emotion and two replies
    assert re.fullmatch(r"\[\w+ \d+%, \w+ \d+%, \w+ \d+%\]", shown[0])
    assert shown[2].startswith("[proud, set by you; predicted: ") and shown[4].startswith("2. ")
    (saved,) = read_dialogues(str(file))
    assert saved.context[0] == "my dog died ." and saved.context[2] == "i won"
    for said in ("error: the turn is empty", "did you mean 'proud'", "4 turns added", "/undo"):
        assert said in outcome.stderr
    assert "Traceback" not in outcome.stderr


def test_the_end_of_input_ends_the_chat_and_keeps_the_history(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    outcome = run_here("chat", "-c", recipe, "--history", file, stdin=b"\xff\xfe\nmy dog died .")
    assert outcome.status == 0 and "error: this line is not UTF-8" in outcome.stderr
    assert json.loads(file.read_text(encoding="utf-8"))["context"] == ["my dog died ."]
    assert run_here("chat", "-c", recipe, stdin=b"").stdout == ""


def test_a_history_that_cannot_be_written_and_a_model_without_dialogues(
    recipe: Path, tmp_path: Path, trained: Any
) -> None:
    outcome = run_here("chat", "-c", recipe, "--history", tmp_path)
    assert f"{tmp_path}: the conversation cannot be saved" in outcome.error_line()
    outcome = run_here("chat", "-c", trained["lstm"].config)
    assert "a chat needs a model of dialogues" in outcome.error_line()


def test_a_terminal_is_prompted_and_ctrl_c_ends_with_130(recipe: Path, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    leader, follower = pty.openpty()
    options = {"stdin": follower, "stdout": follower, "environment": {"TERM": "dumb"}}
    process = start("chat", "-c", recipe, "--history", file, start_new_session=True, **options)
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
    assert [d.context for d in read_dialogues(str(file))] == [["my dog died 🏝"]]


def wait_for(terminal: int, pattern: str) -> str:
    """Return what a terminal shows up to this pattern."""
    shown = ""
    while not re.search(pattern, shown):
        shown += os.read(terminal, 4096).decode("utf-8", "replace")
    return shown
