"""What a ranker learns from: a context's own reply and wrong ones beside it; and the settings of that."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from empathetic_toys import make_vocabulary
from ranker_toys import DIALOGUES, NOUNS, PLACES, make_ranker_config, ranker_mapping

from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.ranking.config import RankerConfig
from tasks.empathetic.ranking.dataset import ChoiceDataset, collate, nearest_contexts, read_generated

VOCABULARY = make_vocabulary(DIALOGUES)
NO_OTHERS = {"near": 0, "same_emotion": 0, "spliced": 0, "generated": 0}


def make_dataset(
    dialogues: list[Dialogue] = DIALOGUES,
    written: dict[tuple[str, ...], list[str]] | None = None,
    **kinds: Any,
) -> ChoiceDataset:
    """Return a data set whose wrong replies are of the given kinds alone."""
    candidates = {**NO_OTHERS, **({"file": "some"} if "generated" in kinds else {}), **kinds}
    return ChoiceDataset(dialogues, make_ranker_config(candidates=candidates), VOCABULARY, written or {})


def texts(dataset: ChoiceDataset, index: int) -> list[str]:
    """Return the candidates of a choice as words, after a check of their marks."""
    found = []
    for reply in dataset[index].candidates:
        assert reply[0] == Vocabulary.bos_id and reply[-1] == Vocabulary.eos_id
        found.append(" ".join(VOCABULARY.token(word) for word in reply[1:-1]))
    return found


def test_the_own_reply_stands_first_and_near_ones_are_of_other_conversations_and_other_words() -> None:
    first = [Dialogue(d.context, f"sorry {d.context[0]}") for d in DIALOGUES]
    later = [Dialogue([*d.context, d.target, "thank you ."], d.context[0]) for d in first]
    dialogues = [*first, *later]
    dataset = make_dataset(dialogues, near=2, neighbours=6)
    for index, dialogue in enumerate(dialogues):
        own, *wrong = texts(dataset, index)
        assert own == dialogue.target and len(wrong) == 2
        same = {other.target for other in dialogues if other.context[0] == dialogue.context[0]}
        assert not set(wrong) & same


def test_the_nearest_contexts_are_those_that_share_rare_words() -> None:
    near = nearest_contexts(DIALOGUES, len(PLACES) - 1)
    nouns = np.arange(len(DIALOGUES)) // len(PLACES)
    # A noun stands in four contexts, a place in twelve of 48, which is too many to tell anything.
    assert (nouns[near] == nouns[:, None]).all()
    assert not (near == np.arange(len(DIALOGUES))[:, None]).any()
    assert nearest_contexts(DIALOGUES[2:5], 20).shape == (3, 2)


def test_replies_of_the_same_emotion_are_drawn_anew_in_each_epoch_and_always_the_same() -> None:
    dataset, again = make_dataset(same_emotion=2), make_dataset(same_emotion=2)
    drawn = []
    for epoch in range(4):
        dataset.set_epoch(epoch)
        again.set_epoch(epoch)
        drawn.append([texts(dataset, index) for index in range(len(DIALOGUES))])
        assert drawn[-1] == [texts(again, index) for index in reversed(range(len(DIALOGUES)))][::-1]
    assert len({str(one) for one in drawn}) == 4
    emotions = {d.target: d.emotion for d in DIALOGUES}
    for dialogue, (_, *wrong) in zip(DIALOGUES, drawn[0], strict=True):
        assert {emotions[text] for text in wrong} == {dialogue.emotion}
        assert dialogue.target not in wrong


def test_a_splice_has_the_beginning_of_the_own_reply_and_the_end_of_another() -> None:
    dataset, other_ends = make_dataset(spliced=1), set()
    for epoch in range(10):
        dataset.set_epoch(epoch)
        own, spliced = texts(dataset, 0)
        assert spliced != own
        assert spliced.split()[0] == "i" and spliced.split()[-1] == "!"
        other_ends |= set(spliced.split()) & set(NOUNS)
    assert other_ends - {"dog"}


def test_generated_replies_are_those_to_the_context_and_others_where_there_are_none() -> None:
    own = DIALOGUES[0]
    dataset = make_dataset(written={tuple(own.context): ["my dog !", own.target]}, generated=2)
    assert dataset.answered == 1
    _, first, second = texts(dataset, 0)  # the own reply, which the generator found too, is not wrong
    assert first == "my dog !" and second in {d.target for d in DIALOGUES} - {own.target}
    assert not {"my dog !", DIALOGUES[5].target} & set(texts(dataset, 5)[1:])


def test_too_few_dialogues_are_told() -> None:
    with pytest.raises(UserError, match=r"have 0 wrong replies to a context where 1 are wanted"):
        make_dataset(DIALOGUES[: len(PLACES)], same_emotion=1)[0]
    with pytest.raises(UserError, match=r"candidates\.near: no two contexts of these data share a rare word"):
        make_dataset([Dialogue(["hello"], "hi"), Dialogue(["bye"], "see you")], near=1)


def test_a_batch_holds_all_candidates_of_a_context_together() -> None:
    dataset = make_dataset([DIALOGUES[0], Dialogue(["help me please"], "no .")], same_emotion=1)
    source, lengths, candidates, labels, mask = collate([dataset[0], dataset[1]])
    assert lengths.tolist() == [8, 4] and source.shape[:2] == (2, 8)
    assert candidates.shape == (2, 2, 9)  # begin, seven words, end
    np.testing.assert_array_equal(candidates[0, 0], candidates[1, 1])
    assert candidates[1, 0].tolist()[:2] == [Vocabulary.bos_id, VOCABULARY.unk_id]
    assert not candidates[1, 0, 4:].any() and candidates[1, 0, 3] == Vocabulary.eos_id
    assert labels.tolist() == [[0], [0]] and mask.tolist() == [[1.0], [1.0]]


def test_generated_replies_are_read_from_the_records_of_the_predict_command(tmp_path: Path) -> None:
    path = tmp_path / "replies.jsonl"
    records = [
        {"context": ["a"], "emotion": "sad", "predictions": [{"text": "b", "score": -1}, {"text": " "}]},
        {"context": ["a"], "predictions": [{"text": "c"}]},
        {"context": ["a", "b", "c"], "predictions": []},
    ]
    path.write_text("\n\n".join(json.dumps(record) for record in records), encoding="utf-8")
    assert read_generated(path) == {("a",): ["b", "c"], ("a", "b", "c"): []}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("\n", "no reply in this file"),
        ('\n{"context": ["a"]}', "2: key 'predictions' is missing; a line must be"),
        ("nonsense", "1: broken JSON at column 1"),
        ("[1]", "1: a JSON list found"),
        ("[" * 100_000, "1: JSON nested too deeply"),
        ('{"context": "abc", "predictions": []}', "1: a turn or a reply is no text"),
        ('{"context": ["a", 1], "predictions": []}', "1: a turn or a reply is no text"),
        ('{"context": ["a"], "predictions": [{"text": 3}]}', "1: a turn or a reply is no text"),
        ('{"context": ["a"], "predictions": ["b"]}', "1: a value of another type than it should be"),
    ],
)
def test_what_is_no_record_is_told_with_its_line(tmp_path: Path, content: str, told: str) -> None:
    path = tmp_path / "replies.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UserError) as error:
        read_generated(path)
    assert str(error.value).startswith(str(path)) and told in str(error.value)


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"candidates": {"generated": 1}}, "candidates.file: is needed for generated replies"),
        ({"candidates": {"near": 0, "same_emotion": 0}}, "candidates.near: leaves no wrong reply"),
        ({"candidates": {"near": 9}}, "candidates.neighbours: must be at least near (9), and is 8"),
        ({"model": {"activation": "gelu"}}, "model.activation: must be relu for a ranker"),
        ({"generator": {"pointer": True}}, "generator.pointer: is true, but a ranker copies nothing"),
        ({"emotion": {"hints": True}}, "emotion.hints: is true, but a ranker reads no hints"),
        ({"selection": {"size": 4}}, "selection.size: is 4, but a ranker compares no vectors"),
        ({"data": {"max_length": 46}}, "model.max_positions: must hold a context, 1 times"),
        ({"data": {"max_length": 34}, "candidates": {"spliced": 1}}, "three marks (61 tokens), and is 60"),
    ],
)
def test_settings_that_contradict_each_other_are_told(sections: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as error:
        make_ranker_config(**sections)
    assert told in str(error.value)


def test_a_ranker_of_another_family_is_told() -> None:
    with pytest.raises(UserError, match=r"model\.name: a ranker is a causal_transformer"):
        build(RankerConfig, {**ranker_mapping(), "model": {"name": "transformer"}}, "test")
