"""The scripts that made the empathetic weights, each on tiny data to its end."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import ROOT, run_here

import paddle_dialog
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, check_alternation, read_dialogues
from tools.weights.empathetic.prepare import changed_subjects, shortened

FOLDER = ROOT / "tools" / "weights" / "empathetic"
EMOTIONS = ("sad", "proud", "angry", "afraid")
DIALOGUES = [Dialogue([f"first {n} ."], f"reply {n} .", EMOTIONS[n % 4]) for n in range(40)] + [
    Dialogue([f"first {n} .", f"reply {n} .", f"then {n} ."], f"answer {n} .", EMOTIONS[n % 4])
    for n in range(40)
]


def run(*words):
    return run_here("weights/empathetic/prepare", *words).status


def test_a_conversation_follows_the_end_of_another_with_its_own_emotion_and_reply():
    made = changed_subjects(DIALOGUES, 1.0, seed=3)
    assert 60 < len(made) <= 80
    known = {(tuple(d.context), d.target): d for d in DIALOGUES}
    for dialogue in made:
        check_alternation(dialogue.context)
        turns = (*dialogue.context, dialogue.target)
        splits = [
            (known[turns[:end][:-1], turns[end - 1]], known[turns[end:-1], turns[-1]])
            for end in range(2, len(turns), 2)
            if (turns[: end - 1], turns[end - 1]) in known and (turns[end:-1], turns[-1]) in known
        ]
        assert len(splits) == 1
        earlier, later = splits[0]
        assert earlier.context[0] != later.context[0]
        assert (dialogue.emotion, dialogue.target) == (later.emotion, later.target)
    assert made == changed_subjects(DIALOGUES, 1.0, seed=3) != changed_subjects(DIALOGUES, 1.0, seed=4)
    alone = [Dialogue([f"only {n} ."], "", EMOTIONS[n % 4]) for n in range(40)]
    made = changed_subjects([*DIALOGUES, *alone], 1.0, seed=3)
    assert 60 < len(made) < 120 and all(all(dialogue.context) for dialogue in made)


YEAR, TEN = "这一年里发生了太多的事，换谁都会觉得累。", "一二三四五六七八九十"


def test_dialogues_are_mixed_with_small_talk_and_changed_subjects(tmp_path):
    file = tmp_path / "mixed.jsonl.xz"
    assert run("mixed", "sample", file, "--changed-subjects", 0.5, "--small-talk", 2) == 0
    sample, talk = read_dialogues("sample"), read_dialogues("small_talk")
    found = read_dialogues(str(file))
    assert found[: len(sample)] == sample and found[len(sample) :][: 2 * len(talk)] == talk * 2
    assert 0 < len(found) - len(sample) - 2 * len(talk) <= len(sample) / 2


@pytest.mark.parametrize(
    ("reply", "cut"),
    [
        ("我明白。你累了。", "我明白。你累了。"),
        ("我明白你的心情。这一年你太累了。你愿意多说一点吗？", "我明白你的心情。这一年你太累了。"),
        (f"我明白你。{YEAR}后来呢？", YEAR),
        (f"{YEAR}后来呢？你说说。", YEAR),
        (f"{TEN}，一二三四五六，{TEN}{TEN}。", f"{TEN}，一二三四五六。"),
        ("一" * 50, "一" * 20 + "。"),
    ],
)
def test_replies_are_cut_to_one_or_two_sentences(reply, cut):
    assert shortened(reply, 20) == cut


def test_conversations_are_shortened(tmp_path):
    file, long = tmp_path / "talk.jsonl", "我明白你的心情。这一年你太累了。你愿意多说一点吗？"
    file.write_text(json.dumps({"turns": [long, long]}), encoding="utf-8")
    assert run("shortened", file, tmp_path / "short.jsonl", "--characters", 20) == 0
    record = json.loads((tmp_path / "short.jsonl").read_text(encoding="utf-8"))
    assert record == {"turns": [long, "我明白你的心情。这一年你太累了。"]}


def test_labels_of_single_lines_are_examples_without_a_reply(tmp_path):
    lines = {
        "turns": ["姥姥", "您藏东西呢", "没藏", "我藏什么呀", "好吧"],
        "emotions": ["neutral", "neutral", "astonished", "depress", "sadness"],
        "speakers": [0, 0, 1, 1, 1],
    }
    long = {"turns": ["字" * 40] * 3, "emotions": ["neutral"] * 3, "speakers": [0] * 3}
    file, made = tmp_path / "lines.jsonl.xz", tmp_path / "made.jsonl"
    file.write_bytes(lzma.compress(f"{json.dumps(lines)}\n{json.dumps(long)}\n".encode()))
    assert run("labelled", file, made) == 0
    *first, fourth, fifth = read_dialogues(str(made), "zh")
    assert first == [
        Dialogue(["姥姥，您藏东西呢。"], "", "neutral"),
        Dialogue(["没藏。"], "", "surprised"),
        Dialogue(["我藏什么呀，好吧。"], "", "sad"),
    ]
    assert [len(one.context[0]) for one in (fourth, fifth)] == [82, 41]


TINY = (
    "model.width=8 model.inner_width=8 model.num_heads=2 model.num_layers=1 model.copy_size=4 training.max_steps=1 "
    "data.piece_count=500 emotion.ngram_buckets=100"
)


def test_the_weights_are_made_from_corpora_to_bundles(tmp_path):
    names = ("english", "edos", "chinese", "labelled")
    english, edos, chinese, labelled = (tmp_path / f"{name}.jsonl" for name in names)
    sourced = [{"source": name, "turns": ["hello there", "hi"]} for name in ("self_dialogue", "topical_chat")]
    english.write_text("".join(json.dumps(one) + "\n" for one in sourced), encoding="utf-8")
    taught = [{"turns": ["I won!"], "label": label} for label in ("proud", "questioning")]
    edos.write_text("".join(json.dumps(one) + "\n" for one in taught), encoding="utf-8")
    chinese.write_text(json.dumps({"turns": ["我很累。", "辛苦了。"]}) + "\n", encoding="utf-8")
    talk = [turn for one in read_dialogues("sample", "zh") for turn in one.context]
    emotions = ["happy", "sadness"] * len(talk)
    line = {"turns": talk, "emotions": emotions[: len(talk)], "speakers": [*range(len(talk))]}
    labelled.write_text(json.dumps(line), encoding="utf-8")
    rated = tmp_path / "rated"
    rated.mkdir()
    for language in ("en", "zh"):
        talks = lzma.decompress((FOLDER / f"conversations/talks_{language}.jsonl.xz").read_bytes())
        some = talks.splitlines(True)[:120:6]  # of several conversations
        (rated / f"talks_{language}.jsonl.xz").write_bytes(lzma.compress(b"".join(some)))
        (rated / f"turns_{language}.tsv").write_text("thanks\tthank you\n", encoding="utf-8")
    data = {
        **{"EMPATHETIC_TRAIN": "sample", "EMPATHETIC_DEV": "sample", "EN_CONVERSATIONS": str(english)},
        **{"EDOS": str(edos), "ZH_CONVERSATIONS": str(chinese), "ZH_LABELLED": str(labelled)},
        **{
            "ZH_DEV": "sample",
            "RATED": str(rated),
            "OPTIONS": " ".join(f"-o {part}" for part in TINY.split()),
        },
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["bash", "tools/weights/empathetic/make.sh", str(tmp_path / "runs")]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **data}, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    everyday = lzma.decompress((tmp_path / "runs" / "everyday.jsonl.xz").read_bytes()).decode().splitlines()
    assert everyday == ['{"turns": ["hello there", "hi"]}']  # of one of the two sources
    mixture = lzma.decompress((tmp_path / "runs" / "mixture.jsonl.xz").read_bytes()).decode().splitlines()
    assert len(mixture) == len(read_dialogues("sample")) + 1
    assert mixture[-1] == '{"context": ["I won!"], "target": null, "emotion": "proud"}'
    for name in ("empathetic", "empathetic_zh"):
        predictor = paddle_dialog.load(tmp_path / "runs" / "bundles" / name)
        assert predictor.judge is not None and predictor.predict(["hello"])[0]


def test_the_conversations_can_be_read():
    from tools.weights.empathetic.judge_fitting import read_ratings

    for language, talks in (("en", 350), ("zh", 300)):
        rated = read_ratings(str(FOLDER / f"conversations/talks_{language}.jsonl.xz"))
        assert len({one.talk for one in rated}) == talks
