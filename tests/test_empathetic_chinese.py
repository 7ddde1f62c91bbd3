"""The Chinese side of the empathetic task, from pieces to commands."""

import json

import numpy as np
import pytest
from command import ROOT, run_here
from empathetic_toys import TURNS, chinese_predictor
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.metrics import common_openings
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, read_dialogues
from paddle_dialog.tasks.empathetic.data.emotions import (
    CHINESE_EMOTIONS,
    CHINESE_GROUPS,
    EMOTIONS,
    emotion_id,
)
from paddle_dialog.tasks.empathetic.data.encoding import reserved_entries
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.data.language import (
    ENGLISH,
    MAX_TURNS,
    learn_pieces,
    make_language,
    piece_splitter,
    sample_of_turns,
)
from paddle_dialog.tasks.empathetic.evaluation import evaluate, measure_likelihood, reply_metrics

PIECES = learn_pieces(TURNS, 120)
CHINESE = make_language("zh", PIECES)


def test_pieces_are_learned_alike_each_time_and_cut_all_of_a_text():
    assert learn_pieces(TURNS, 120) == PIECES
    sample = [turn for one in read_dialogues("sample", "zh") for turn in (*one.context, one.target)]
    assert any(len(piece) > 1 for piece in piece_splitter(learn_pieces(sample, 400))(sample[0]))
    for turn in TURNS:
        assert "".join(CHINESE.tokens_of(turn)) == turn == CHINESE.detokenise(CHINESE.tokens_of(turn))


@settings(max_examples=50, deadline=None)
@given(st.text("我你难过，。？😀𠮷ab 1", min_size=1, max_size=20))
def test_any_text_is_read_and_printed_again(text):
    plain = " ".join(text.split())
    assert CHINESE.detokenise(CHINESE.tokens_of(plain)) == plain


def test_pieces_come_from_conversations_all_over_the_text():
    talks = [[f"{number}", ""] for number in range(3 * MAX_TURNS)]
    sample = sample_of_turns(talks)
    assert len(sample) == MAX_TURNS / 2 and sample[:2] == ["0", "6"]


def test_faulty_pieces_and_too_little_text_are_refused():
    with pytest.raises(UserError, match=r"pieces\.model: is no model of SentencePiece"):
        piece_splitter(b"nonsense")
    with pytest.raises(UserError, match=r"data\.piece_count: 100 pieces cannot be learned"):
        learn_pieces([], 100)
    with pytest.raises(UserError, match=r"have no pieces\.model"):
        make_language("zh", None)


def test_the_emotions_of_each_language():
    assert len(EMOTIONS) == 32 and tuple(CHINESE_GROUPS) == CHINESE_EMOTIONS and len(CHINESE_EMOTIONS) == 8
    known = [label for _, labels in CHINESE_GROUPS.values() for label in labels]
    assert len(known) == len(set(known)) == 13  # of CPED
    for number, (name, (chinese, labels)) in enumerate(CHINESE_GROUPS.items()):
        for label in (name, name.upper(), chinese, *labels):
            assert emotion_id(label, CHINESE_EMOTIONS) == number
    with pytest.raises(UserError, match=r"unknown emotion '开心'.*one of the 8 labels happy, calm"):
        emotion_id("开心", CHINESE_EMOTIONS)
    with pytest.raises(UserError, match="unknown emotion '难过'"):
        emotion_id("难过")
    assert reserved_entries(CHINESE_EMOTIONS)[4:] == tuple(f"<{name}>" for name in CHINESE_EMOTIONS)


def test_a_line_of_turns_gives_an_example_for_every_listeners_turn(tmp_path):
    file = tmp_path / "talk.jsonl"
    lines = [
        {"turns": ["我难过。", "我明白。再说说吧，好吗？", "嗯。", "我在听。", "谢谢。"], "emotion": "难过"},
        {"context": ["真好！"], "target": None, "emotion": "happy"},
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert read_dialogues(str(file), "zh") == [
        Dialogue(["我难过。"], "我明白。再说说吧，好吗？", "sad"),
        Dialogue(["我难过。", "我明白。再说说吧，好吗？", "嗯。"], "我在听。", "sad"),
        Dialogue(["真好！"], "", "happy"),
    ]


def test_an_example_without_a_reply_teaches_the_emotion_alone():
    predictor = chinese_predictor()
    dialogues = [Dialogue([TURNS[0]], "", "sad"), Dialogue([TURNS[0]], TURNS[1])]
    dataset = DialogueDataset(dialogues, predictor.encoder, 20)
    batch = collate([dataset[0], dataset[1]])
    assert batch.emotion.tolist() == [emotion_id("sad", CHINESE_EMOTIONS), -1]
    assert batch.mask.sum(axis=1).tolist() == [0, len(CHINESE.tokens_of(TURNS[1])) + 1]


def test_figures_count_characters(tmp_path):
    predictor = chinese_predictor(decoding={"strategy": "greedy"})
    file = tmp_path / "dev.jsonl"
    lines = [{"turns": TURNS[:4]}, {"context": ["烦死了"], "target": None, "emotion": "annoyed"}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    found = evaluate(predictor, str(file), tmp_path / "out.jsonl")
    likelihood = measure_likelihood(predictor, read_dialogues(str(file), "zh")[:2])
    characters = len(TURNS[1]) + len(TURNS[3]) + 2  # with the ends
    assert likelihood.units.sum() == characters
    assert CHINESE.units(("我的", "工作", "▁")) == tuple("我的工作")
    assert found["perplexity"] == pytest.approx(np.exp(likelihood.nll.sum() / characters), rel=1e-5)
    assert found["n"] == 3 and found["emotion_accuracy"] in (0.0, 1.0)
    replies = [json.loads(line)["generated"] for line in (tmp_path / "out.jsonl").open()]
    assert found["mean_length"] == pytest.approx(np.mean([len(reply) for reply in replies[:2]]), abs=1)


def test_common_openings_by_hand():
    replies = ["我理解你的难处", "我理解你呀", "你好", *(chr(0x4E00 + number) * 5 for number in range(10))]
    assert common_openings(replies, 4) == pytest.approx(11 / 13)  # two alike, and nine of eleven
    assert reply_metrics(replies, replies, CHINESE)["common_openings"] == pytest.approx(11 / 13)
    assert reply_metrics(replies, replies, CHINESE)["stock_replies"] == pytest.approx(2 / 13)
    assert "common_openings" not in reply_metrics(replies, replies, ENGLISH)


RECIPE = ROOT / "configs" / "empathetic_zh.yaml"
TINY = (
    "model.width=16 model.num_heads=2 model.inner_width=32 model.num_layers=1 model.copy_size=4 data.piece_count=500 "
    "data.batch_size=8 emotion.ngram_buckets=500 training.max_steps=3 decoding.beam_size=2 decoding.max_length=6"
)


def test_a_run_from_other_weights_keeps_the_pieces_that_the_first_has_learned(tmp_path):
    more, best = tmp_path / "more.jsonl", tmp_path / "run" / "best"
    more.write_text('{"turns": ["我很累。", "辛苦了。", "谢谢你。", "不客气。"]}\n', encoding="utf-8")
    first, second = (
        run_here("train", "-c", RECIPE, *(part for one in (*TINY.split(), *own) for part in ("-o", one)))
        for own in (
            (f"output_dir={tmp_path / 'run'}", f"data.more={more}"),
            (f"output_dir={tmp_path / 'other'}", f"training.start_from={best}", "data.train=small_talk"),
        )
    )
    assert first.status == second.status == 0, first.stderr + second.stderr
    assert "further conversations" in first.stderr and "learning 500 pieces" in first.stderr
    assert "pieces from a sample" not in second.stderr
    pieces = [(folder / "pieces.model").read_bytes() for folder in (best, tmp_path / "other" / "best")]
    assert pieces[0] == pieces[1]
