"""Training examples that are made of others, and what a run says of them."""

import json
from collections import Counter
from pathlib import Path

from command import run_here
from empathetic_toys import MODELS, make_config, make_vocabulary

from tasks.empathetic.data.dataset import DialogueDataset, changed_subjects
from tasks.empathetic.data.dialogue import Dialogue, check_alternation
from tasks.empathetic.data.sources import read_dialogues

EMOTIONS = ("sad", "proud", "angry", "afraid")
DIALOGUES = [Dialogue([f"first {n} ."], f"reply {n} .", EMOTIONS[n % 4]) for n in range(40)] + [
    Dialogue([f"first {n} .", f"reply {n} .", f"then {n} ."], f"answer {n} .", EMOTIONS[n % 4])
    for n in range(40)
]


def test_a_conversation_follows_the_end_of_another_with_its_own_emotion_and_reply() -> None:
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


def test_nothing_follows_an_example_without_a_reply() -> None:
    alone = [Dialogue([f"only {n} ."], "", EMOTIONS[n % 4]) for n in range(40)]
    made = changed_subjects([*DIALOGUES, *alone], 1.0, seed=3)
    assert 60 < len(made) < 120 and all(all(dialogue.context) for dialogue in made)


def test_the_share_and_the_seed_decide() -> None:
    assert changed_subjects(DIALOGUES, 0.0, seed=3) == []
    few = changed_subjects(DIALOGUES, 0.25, seed=3)
    assert 15 < len(few) <= 20
    assert few == changed_subjects(DIALOGUES, 0.25, seed=3) != changed_subjects(DIALOGUES, 0.25, seed=4)


def test_what_stands_in_a_context_already_is_not_learned_twice() -> None:
    config = make_config(
        "causal", data={"mark_turns": True}, emotion={"hints": False}, generator={"context_weight": 1.0}
    )
    vocabulary = make_vocabulary(DIALOGUES)
    made = changed_subjects(DIALOGUES, 1.0, seed=3)
    dataset = DialogueDataset([DIALOGUES[0], *made], config, vocabulary, 20, Counter())
    assert dataset[0].next_words.any()
    assert not any(dataset[index].next_words.any() for index in range(1, len(dataset)))


def test_a_run_tells_of_further_conversations_small_talk_and_changed_subjects(tmp_path: Path) -> None:
    more = tmp_path / "more.jsonl"
    conversations = [["hello there", "hi", "how are you", "fine"], ["a", "b"]]
    more.write_text("\n".join(json.dumps({"turns": turns}) for turns in conversations), encoding="utf-8")
    config = {
        "task": "empathetic",
        "model": MODELS["causal"],
        "emotion": {"hints": False},
        "data": {"more": str(more), "small_talk": 2, "changed_subjects": 0.5, "dev": None, "max_length": 60},
        "training": {"max_steps": 1},
        "output_dir": f"{tmp_path}/run",
    }
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(json.dumps(config), encoding="utf-8")
    outcome = run_here("train", "-c", recipe)
    assert outcome.status == 0, outcome.stderr
    assert f"further conversations {more}: 2 pieces" in outcome.stderr
    sample, talk = len(read_dialogues("sample")), len(read_dialogues("small_talk"))
    (line,) = (line for line in outcome.stderr.splitlines() if "small talk and changed subjects: " in line)
    made = int(line.split("subjects: ")[1].split()[0])
    assert 2 * talk < made <= 2 * talk + round(sample / 2)
