"""What `predict` is asked for: locked characters, either script; what is refused; the best stays."""

from __future__ import annotations

import json

import paddle
import pytest
from command import run_here
from couplet_toys import LEVEL, OBLIQUE, toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import Bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig, CoupletDataConfig
from paddle_dialog.tasks.couplet.form import form_report
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

ROOMY = LEVEL + OBLIQUE + "，。"
STRATEGIES = [{"strategy": "beam"}, {"strategy": "greedy"}, {"strategy": "sample"}]


def best(predictor, first, **options):
    return predictor.predict([first], **options)[0][0]


@settings(deadline=None, max_examples=40)
@given(data=st.data(), strategy=st.sampled_from(STRATEGIES))
def test_locked_characters_stand_and_the_rest_keeps_the_rules(data, strategy):
    first = data.draw(st.text("春雨月，龘", min_size=1, max_size=5).filter(lambda line: line.strip("，")))
    template = "".join(data.draw(st.sampled_from("？？？花柳靐")) for _ in first)
    answer = best(toy(ROOMY, data.draw(st.integers(0, 9)), **strategy), first, template=template)
    assert len(answer.text) == len(first)
    assert all(lock in ("？", char) for lock, char in zip(template, answer.text, strict=True))
    # What a rule says of positions without a lock holds.
    assert not set(answer.text) & (set(first) - {"，"})
    assert all(answer.text[p] == char for p, char in enumerate(first) if char == "，" and template[p] == "？")
    assert answer.form == form_report(first, answer.text)
    assert ("mirror_repeats" in answer.relaxed) is not answer.form.repeats_mirrored


def test_a_locked_character_is_repeated_where_the_first_line_repeats():
    answer = best(toy(ROOMY, 5), "雨雪雨月", lock={2: "风"})
    assert (answer.text[0], answer.text[2]) == ("风", "风") and answer.text.count("风") == 2
    assert answer.relaxed == []


def test_a_character_locked_further_on_is_not_used_before():
    for seed in range(6):
        wished = best(toy(ROOMY, seed), "雨雪月").text[0]
        answer = best(toy(ROOMY, seed), "雨雪月", lock={1: wished})
        assert answer.text.count(wished) == 1 and answer.relaxed == []


def test_a_lock_wins_over_each_rule_and_this_is_told():
    predictor = toy(ROOMY, 5)
    for lock, relaxed in [
        ({3: "绿"}, ["final_tone"]),
        ({0: "雨"}, ["no_shared_character"]),
        ({0: "风", 2: "花"}, ["mirror_repeats"]),
        ({1: "风", 3: "风"}, ["mirror_repeats"]),
        ({1: "，"}, ["copy_punctuation"]),
    ]:
        answer = best(predictor, "雨雪雨月", lock=lock)
        assert all(answer.text[place] == char for place, char in lock.items())
        assert answer.relaxed == relaxed
    assert best(predictor, "雨，月", lock={1: "风"}).relaxed == ["copy_punctuation"]


def test_a_locked_character_that_the_vocabulary_lacks_is_shown():
    predictor = toy(ROOMY, 5)
    answer = best(predictor, "雨雪雨月", template="靐？？？")
    assert (answer.text[0], answer.text[2]) == ("靐", "靐")
    unknown = predictor.vocabulary.unk_id
    ids = [predictor.vocabulary.id(char) for char in answer.text]
    assert ids[0] == ids[2] == unknown and answer.relaxed == []
    source = predictor.vocabulary.id("雨")
    expected = predictor.network.text_log_prob(source, tuple(ids)) / 5
    assert answer.score == pytest.approx(expected)


def test_the_command_locks_and_reports_what_it_relaxed(tmp_path):
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *ROOMY])
    model = LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1)
    config = CoupletConfig(task="couplet", model=model, data=CoupletDataConfig(max_length=12))
    paddle.seed(3)
    weights = read_weights(Seq2Seq(model, len(vocabulary)))
    save_bundle(Bundle("couplet", dump(config), {"text": vocabulary}, weights), tmp_path / "bundle")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("task: couplet\n", encoding="utf-8")
    arguments = ("-c", recipe, "--weights", tmp_path / "bundle")

    outcome = run_here("predict", *arguments, "--json", "--n-best", 3, "--template", "？？??花", "雨雨，雪月")
    record = json.loads(outcome.stdout)
    assert record["first"] == "雨雨，雪月" and len(record["predictions"]) == 3
    for prediction in record["predictions"]:
        text = prediction["text"]
        assert text[0] == text[1] and text[2] == "，" and text[4] == "花" and len(text) == 5
        assert prediction.keys() == {"text", "score", "form"}

    outcome = run_here("predict", *arguments, "--template", "雨？", "雨雪", "-o", "decoding.strategy=greedy")
    first, second, note = outcome.stdout.rstrip("\n").split("\t")
    assert (first, second[0], note) == ("雨雪", "雨", "relaxed: no_shared_character")

    refused = run_here("predict", *arguments, "--template", "？花", "雨雪月")
    assert refused.error_line().startswith(
        "error: the template '？花' has 2 characters and the 上联 '雨雪月' 3; "
    )


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
        ({"n_best": 0}, "n_best is 0; give 1 to 1000"),
        ({"distance": 5}, "distance is 5; give a share from 0 to 1"),
        ({"lock": {0: "山"}, "template": "月？"}, "position 0 is '月' in the template and '山' in lock"),
        ({"lock": {2: "花"}}, "it has 0 to 1"),
        ({"lock": {-1: "花"}}, "it has 0 to 1"),
        ({"lock": {0: "春山"}}, "position 0 holds .*; give exactly one character"),
        ({"lock": {0: " "}}, "position 0 holds .*; give exactly one character"),
        ({"template": "？？花"}, "has 3 characters and the 上联 '春雨' 2; give one"),
    ],
)
def test_what_cannot_be_is_refused(asked, said):
    with pytest.raises(UserError, match=said):
        toy(ROOMY).predict(**{"lines": ["春雨"], **asked})
