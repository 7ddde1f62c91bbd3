"""What `predict` is asked for: locked characters, 上联 for 下联; what is refused; the best stays."""

import numpy as np
import paddle
import pytest
from command import records, run_here
from couplet_toys import NO_RULES, ROOMY, best, toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.prompts import MARKS, TO_FIRST, TO_SECOND, encode_sources
from paddle_dialog.tasks.couplet.rules import form_report, wanted_final_tone
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.text.characters import Tone
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary

STRATEGIES = [{"strategy": "beam"}, {"strategy": "greedy"}, {"strategy": "sample"}]


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


def test_a_character_locked_further_on_is_not_used_before():
    for seed in range(6):
        wished = best(toy(ROOMY, seed), "雨雪月").text[0]
        answer = best(toy(ROOMY, seed), "雨雪月", lock={1: wished})
        assert answer.text.count(wished) == 1 and answer.relaxed == []


def test_a_lock_wins_over_each_rule_and_this_is_told():
    predictor = toy(ROOMY, 5)
    for lock, relaxed in [
        ({2: "风"}, []),
        ({3: "绿"}, ["final_tone"]),
        ({0: "雨"}, ["no_shared_character"]),
        ({0: "风", 2: "花"}, ["mirror_repeats"]),
        ({1: "风", 3: "风"}, ["mirror_repeats"]),
        ({1: "，"}, ["copy_punctuation"]),
    ]:
        answer = best(predictor, "雨雪雨月", lock=lock)
        assert all(answer.text[place] == char for place, char in lock.items())
        assert answer.relaxed == relaxed
        if not relaxed:  # a locked character is repeated where the given line repeats, and nowhere else
            assert answer.text[0] == answer.text[2] == "风" and answer.text.count("风") == 2
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


def test_the_command_locks_and_reports_what_it_relaxed(lstm):
    command = ("predict", "-c", lstm.config, "-o", "rules.enabled=true")
    (record,) = records(run_here(*command, "--json", "--n-best", 3, "--template", "？？？去", "天天山春"))
    assert record["first"] == "天天山春" and len(record["predictions"]) == 3
    for prediction in record["predictions"]:
        text = prediction["text"]
        assert text[0] == text[1] and text[3] == "去" and len(text) == 4
        assert prediction.keys() == {"text", "score", "form"}
    outcome = run_here(*command, "--template", "天？", "天山", "-o", "decoding.strategy=greedy")
    first, second, note = outcome.stdout.rstrip("\n").split("\t")
    assert (first, second[0], note) == ("天山", "天", "relaxed: no_shared_character")


@pytest.mark.parametrize("distance", [0.0, 1 / 3])
def test_the_best_candidate_is_the_same_however_many_are_wanted(distance):
    reranked = {"candidates": 3, "reverse": 2.0}
    predictor = toy(ROOMY, 4, rerank=reranked, choice={"distance": distance}, marks=True, beam_size=12)
    firsts = {predictor.predict(["月春雨"], n_best=count)[0][0].text for count in (1, 2, 3, 5, 12)}
    assert len(firsts) == 1
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
        ({"second": True}, "this bundle knows only 下联 for 上联; take the shipped pretrained/couplet"),
    ],
)
def test_what_cannot_be_is_refused(asked, said):
    with pytest.raises(UserError, match=said):
        toy(ROOMY).predict(**{"lines": ["春雨"], **asked})


@pytest.mark.parametrize(
    ("line", "second", "first"),
    [
        # It ends oblique: a 下联 level; it can be no 下联, so its 上联 takes the other.
        ("春雨", Tone.LEVEL, Tone.LEVEL),
        ("雨春", Tone.OBLIQUE, Tone.OBLIQUE),
        ("雨看。", Tone.LEVEL, Tone.OBLIQUE),  # 看 can be both
        ("雨A", Tone.LEVEL, Tone.OBLIQUE),
    ],
)
def test_a_first_line_ends_oblique_and_a_second_level(line, second, first):
    assert [wanted_final_tone(line, direction) for direction in (TO_SECOND, TO_FIRST)] == [second, first]


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 50), second=st.booleans())
def test_marks_are_never_written(seed, second):
    predictor = toy("春雨", seed, NO_RULES, marks=True, beam_size=20, max_length=3)
    for candidate in predictor.predict(["月"], n_best=20, second=second)[0]:
        assert not any(mark in candidate.text for mark in MARKS)


@pytest.mark.parametrize("second", [True, False])
def test_the_network_itself_scores_the_other_direction(second):
    predictor = toy(ROOMY, 5, NO_RULES, {"reverse": 2.0}, marks=True, strategy="sample")
    (candidates,) = predictor.predict(["春雨山"], n_best=8, second=second)
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
        scores = [[c.score for c in own] for own in everything]
        assert all(own == sorted(own, reverse=True) for own in scores) == (weight == 0.0)


@pytest.mark.parametrize("marks", [(), MARKS])
def test_evaluation_measures_both_directions_of_a_model_that_knows_them(tmp_path, marks):
    model = LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *ROOMY, *marks])
    paddle.seed(2)
    network = Seq2Seq(model, len(vocabulary))
    for parameter in network.parameters():  # far from uniform
        parameter.set_value(parameter * 4.0)
    network.eval()
    trained = TrainedModel.of_network(network, {"text": vocabulary})
    predictor = TASK.predictor(CoupletConfig(task="couplet", model=model), trained)
    pairs = [("春山雨水", "柳鸟江香"), ("月，雪", "霜，清"), ("客老", "江高")]
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{first}\t{second}\n" for first, second in pairs), encoding="utf-8")
    record = TASK.evaluate(predictor, str(path), None)
    assert ("perplexity_first" in record) == bool(marks)
    for name, direction in {"perplexity": TO_SECOND, "perplexity_first": TO_FIRST}.items():
        if name in record:
            given_, written = zip(*(direction.pair(*pair) for pair in pairs), strict=True)
            asked = [np.array(direction.source(vocabulary, line)) for line in given_]
            source, lengths = encode_sources(asked)
            targets = [vocabulary.encode(line) for line in written]
            totals = text_log_probs(predictor.step_model, source, lengths, targets)
            tokens = sum(len(target) + 1 for target in targets)
            assert record[name] == pytest.approx(np.exp(-totals.sum() / tokens), rel=1e-4)
