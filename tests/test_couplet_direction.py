"""上联 for 下联: the mirrored rules, the same network, and what a model of one direction says."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from couplet_toys import LEVEL, NO_RULES, OBLIQUE, toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.decoding.scoring import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.direction import MARKS, TO_FIRST, TO_SECOND, encode_sources
from paddle_dialog.tasks.couplet.evaluation import evaluate
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.text.tones import Tone
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

ROOMY = LEVEL + OBLIQUE + "，。"


@pytest.mark.parametrize(
    ("line", "second", "first"),
    [
        (
            "春雨",
            Tone.LEVEL,
            Tone.LEVEL,
        ),  # ends oblique: a 下联 level; it can be no 下联, so its 上联 takes the other
        ("雨春", Tone.OBLIQUE, Tone.OBLIQUE),
        ("雨看。", Tone.LEVEL, Tone.OBLIQUE),  # 看 can be both
        ("雨A", Tone.LEVEL, Tone.OBLIQUE),
    ],
)
def test_a_first_line_ends_oblique_and_a_second_level(line, second, first):
    assert (TO_SECOND.wanted_final_tone(line), TO_FIRST.wanted_final_tone(line)) == (second, first)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 50), direction=st.sampled_from([TO_FIRST, TO_SECOND]))
def test_marks_are_never_written(seed, direction):
    predictor = toy("春雨", seed, NO_RULES, marks=True, beam_size=20, max_length=3)
    for candidate in predictor.predict(["月"], n_best=20, direction=direction)[0]:
        assert not any(mark in candidate.text for mark in MARKS)


@pytest.mark.parametrize("direction", [TO_FIRST, TO_SECOND])
def test_the_network_itself_scores_the_other_direction(direction):
    predictor = toy(ROOMY, 5, NO_RULES, {"reverse": 2.0}, marks=True, strategy="sample")
    (candidates,) = predictor.predict(["春雨山"], n_best=8, direction=direction)
    vocabulary, network = predictor.vocabulary, predictor.network
    line = tuple(vocabulary.encode("春雨山"))
    # The toy reads only the first character of its source, with or without a mark behind the line.
    foreseen = [network.text_log_prob(vocabulary.encode(c.text)[0], line) for c in candidates]
    sums = [c.score + 2.0 * score / (len(line) + 1) for c, score in zip(candidates, foreseen, strict=True)]
    assert sums == sorted(sums, reverse=True)
    assert [c.score for c in candidates] != sorted((c.score for c in candidates), reverse=True)


def test_the_best_is_chosen_from_all_candidates_and_without_a_weight_the_search_decides():
    for weight in (0.0, 3.0):
        rerank = {"reverse": weight, "candidates": 8}
        predictor = toy(ROOMY, 4, {"final_tone": False}, rerank, marks=True, beam_size=8)
        everything, one = (predictor.predict(["雨雪月", "柳花"], n_best=n) for n in (8, 1))
        assert [[c.text for c in own] for own in one] == [[own[0].text] for own in everything]
        in_order = all(
            [c.score for c in own] == sorted((c.score for c in own), reverse=True) for own in everything
        )
        assert in_order == (weight == 0.0)


def test_a_model_of_one_direction_says_so():
    predictor = toy(ROOMY)
    message = "this bundle knows only 下联 for 上联; take the shipped pretrained/couplet"
    for ask in (predictor.predict, lambda lines, **options: predictor.check(lines[0], **options)):
        with pytest.raises(UserError, match=message):
            ask(["春雨"], direction=TO_FIRST)
    with pytest.raises(UserError, match=message):
        list(predictor.predict_records(["春雨"], second=True))
    with pytest.raises(
        UserError, match=r"rerank\.reverse: this bundle knows only 下联 for 上联; set it to 0"
    ):
        toy(ROOMY, rerank={"reverse": 0.5})


@pytest.mark.parametrize("bad", ["", "abc", "春" * 11])
def test_faults_name_the_line_that_was_given(bad):
    with pytest.raises(UserError, match="下联"):
        toy(ROOMY, marks=True).predict([bad], direction=TO_FIRST)
    with pytest.raises(UserError, match="the 下联"):
        toy(ROOMY, marks=True).predict(["春雨"], template="？", direction=TO_FIRST)


@pytest.mark.parametrize("marks", [(), MARKS])
def test_evaluation_measures_both_directions_of_a_model_that_knows_them(tmp_path, marks):
    model = LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *ROOMY, *marks])
    paddle.seed(2)
    network = Seq2Seq(model, len(vocabulary))
    for parameter in network.parameters():  # far from uniform
        parameter.set_value(parameter * 4.0)
    network.eval()
    predictor = TASK.predictor(
        CoupletConfig(task="couplet", model=model), TrainedModel.of_network(network, {"text": vocabulary})
    )
    pairs = [("春山雨水", "柳鸟江香"), ("月，雪", "霜，清"), ("客老", "江高")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{first}\t{second}\n" for first, second in pairs), encoding="utf-8")
    record = evaluate(predictor, str(path), None)
    assert ("perplexity_first" in record) == bool(marks)
    for name, direction in {"perplexity": TO_SECOND, "perplexity_first": TO_FIRST}.items():
        if name in record:
            given_, written = zip(*(direction.pair(*pair) for pair in pairs), strict=True)
            source, lengths = encode_sources(
                [np.array(direction.source(vocabulary, line)) for line in given_]
            )
            targets = [vocabulary.encode(line) for line in written]
            totals = text_log_probs(predictor.step_model, source, lengths, targets)
            tokens = sum(len(target) + 1 for target in targets)
            assert record[name] == pytest.approx(np.exp(-totals.sum() / tokens), rel=1e-4)
