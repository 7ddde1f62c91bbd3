"""The empathetic task as a user meets it, on good input and bad, and its metrics against values by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from command import records, run, run_here
from empathetic_toys import (
    DIALOGUES,
    judged_predictor,
    make_config,
    make_network,
    make_vocabulary,
    predictor_of,
    save_model,
)

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.data.batching import EncodedData, TrainingData
from paddle_dialog.errors import UserError
from paddle_dialog.metrics import has_phrase, has_repeated_ngram
from paddle_dialog.tasks.empathetic.data.dialogue import (
    Dialogue,
    _emoji_sentences,
    in_words,
    read_dialogues,
    reply_to_emoji,
)
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.encoding import make_encoder
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.evaluation import evaluate, glance_accuracy, reply_metrics
from paddle_dialog.tasks.empathetic.task import TASK

CONFIG = """
task: empathetic
model: {{name: transformer, width: 16, num_heads: 2, inner_width: 32, encoder_layers: 1, decoder_layers: 1,
  dropout: 0.1, max_positions: 128}}
emotion: {{ngram_buckets: 512, situations: true}}
data: {{max_length: 60, batch_size: 16}}
training: {{max_steps: 6, learning_rate: 0.01, log_every: 2, eval_every: 3, save_every: 3,
  label_smoothing: 0.1}}
decoding: {{beam_size: 2, max_length: 8}}
output_dir: {folder}/run
"""
METRICS = (
    "n perplexity perplexity_per_example emotion_accuracy calibration_error bleu distinct_1 distinct_2 "
    "unique_replies stock_replies repeated_4grams mean_length unknown_rate decoding"
)


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Return the recipe of a model that the train command has made on the sample."""
    folder = tmp_path_factory.mktemp("empathetic")
    path = folder / "tiny.yaml"
    path.write_text(CONFIG.format(folder=folder), encoding="utf-8")
    outcome = run("train", "-c", path)
    assert outcome.status == 0, outcome.stderr
    assert "step 6 dev perplexity" in outcome.stderr
    assert "(reference [afraid] That would keep me up too." in outcome.stderr
    return path


def test_a_run_from_other_weights_fits_the_ngrams_anew_and_a_resumed_one_does_not(config, tmp_path):
    best = config.parent / "run" / "best"
    own = (f"output_dir={tmp_path}", "emotion.ngram_buckets=300", f"training.start_from={best}")
    arguments = ["-c", config, *(part for setting in own for part in ("-o", setting))]
    begun = run_here("train", *arguments, "-o", "training.max_steps=1")
    assert begun.status == 0 and "fitting the emotions' n-gram classifier" in begun.stderr, begun.stderr
    before, after = load_bundle(best).weights, load_bundle(tmp_path / "last").weights
    assert before["emotion_head.ngram_table"].shape == (512, 32)
    assert after["emotion_head.ngram_table"].shape == (300, 32) and after["emotion_head.ngram_table"].any()
    steps = np.abs(after["embedding.table.weight"] - before["embedding.table.weight"])
    assert 0 < steps.max() < 0.011  # one of Adam's, of a rate of 0.01
    resumed = run_here("train", *arguments, "-o", "training.max_steps=2", "--resume", "auto")
    assert resumed.status == 0 and "fitting" not in resumed.stderr, resumed.stderr
    np.testing.assert_array_equal(
        load_bundle(tmp_path / "last").weights["emotion_head.ngram_table"], after["emotion_head.ngram_table"]
    )


def test_no_emotion_is_named_where_none_is_likely_enough(config):
    command = ("predict", "-c", config, "I lost my dog.", "-o")
    (named,) = records(run_here(*command, "decoding.min_confidence=0.01", "--json"))
    (unclear,) = records(run_here(*command, "decoding.min_confidence=1", "--json"))
    assert unclear["emotion"] is None and named["emotion"] in EMOTIONS
    assert unclear == {**named, "emotion": None}  # probabilities and replies are the same
    printed = run_here(*command, "decoding.min_confidence=1").stdout
    assert printed.startswith("[no clear emotion] ")


def test_evaluate_reports_every_metric_and_writes_the_replies(config, tmp_path):
    dialogues = (Path("tasks/empathetic/sample.jsonl")).read_text(encoding="utf-8").splitlines()[:9]
    data, replies = tmp_path / "some.jsonl", tmp_path / "replies.jsonl"
    data.write_text("\n".join(dialogues), encoding="utf-8")
    command = ("evaluate", "-c", config, "--data", data, "--json")
    (result,) = records(run_here(*command, "--predictions", replies))
    assert set(result) == {*METRICS.split()}
    assert result["n"] == 9 and result["unknown_rate"] == 0.0
    assert 1 < result["perplexity"] < 1e4 and result["mean_length"] <= 8
    written = [json.loads(line) for line in replies.read_text(encoding="utf-8").splitlines()]
    assert [r["reference"] for r in written] == [d.target for d in read_dialogues(str(data))]
    assert all(r["generated"] == r["predictions"][0]["text"] for r in written)  # there is no judge
    right = sum(r["emotion"] == r["gold_emotion"] for r in written)
    assert result["emotion_accuracy"] == pytest.approx(right / 9)
    assert "beam 2" in result["decoding"]
    # What is measured is the likeliest emotion.
    assert records(run_here(*command, "-o", "decoding.min_confidence=1")) == [result]
    (likely,) = records(run_here(*command, "--no-answers"))
    assert {"perplexity", "emotion_accuracy"} <= likely.keys() and "mean_length" not in likely
    assert likely == {name: result[name] for name in likely}


def test_perplexities_are_those_of_single_dialogues(config):
    from paddle_dialog.tasks.empathetic.evaluation import measure_likelihood

    predictor = paddle_dialog.load(config.parent / "run" / "best")
    dialogues = read_dialogues("sample")[:5]
    together = measure_likelihood(predictor, dialogues)
    for row, dialogue in enumerate(dialogues):
        alone = measure_likelihood(predictor, [dialogue])
        assert alone.tokens[0] == together.tokens[row]
        np.testing.assert_allclose(alone.nll[0], together.nll[row], rtol=1e-4)
    result = TASK.evaluate(predictor, "sample", None)
    assert result["perplexity_per_example"] != result["perplexity"]
    whole = measure_likelihood(predictor, read_dialogues("sample"))
    expected = math.exp(float(np.mean(whole.nll / whole.tokens)))
    assert result["perplexity_per_example"] == pytest.approx(expected)


def test_the_python_interface_answers_turns_and_conversations(config):
    predictor = paddle_dialog.load(config.parent / "run" / "best")
    answers = predictor.predict(["I won!", ["I won!", "What?", "A car."]], n_best=2)
    assert [len(replies) for replies in answers] == [2, 2]
    alone = predictor.predict(["I won!"], n_best=2)[0]  # the batch changes nothing but rounding
    assert [reply.text for reply in alone] == [reply.text for reply in answers[0]]
    assert alone[0].score == pytest.approx(answers[0][0].score, abs=1e-4)
    given, free = predictor.answer([["I won!"]], emotions=["Proud"]), predictor.answer([["I won!"]])
    assert given[0].emotion == "proud"
    assert given[0].predicted_emotion == free[0].emotion
    assert given[0].predictions[0].score != free[0].predictions[0].score


def test_emoji_alone_are_read_as_words():
    codes = (*range(0x1F600, 0x1F650), *range(0x1F910, 0x1F930), *range(0x1F970, 0x1F97B))
    for language in ("en", "zh"):
        assert [chr(code) for code in codes if in_words(chr(code), language) == chr(code)] == []
    assert in_words("👍🏽 ❤️❤️", "en") == "I feel so much love today."
    assert [in_words(turn, "en") for turn in ("so 😭", "!?", "5")] == ["so 😭", "!?", "5"]
    for model, sad in (("empathetic", ("devastated", "sad")), ("empathetic_zh", ("sad",))):
        reader = paddle_dialog.load(model)
        turns = ["😭😭😭", "😀👍", "😡", in_words("😭", reader.language.name)]
        answers = reader.answer([[turn] for turn in turns])
        assert answers[0].context == ["😭😭😭"] and answers[0].predictions == answers[3].predictions
        assert {answer.act for answer in answers} == {"statement"} and answers[0].emotion in sad
        assert answers[1].emotion in ("joyful", "happy") and answers[2].emotion in ("furious", "angry")


@pytest.mark.parametrize(
    ("model", "opening", "smile", "tears"),
    [
        ("empathetic", "My dog died yesterday.", "see you smile", "Let it out"),
        ("empathetic_zh", "我的狗昨天死了。", "笑容", "哭出来"),
    ],
)
def test_emoji_alone_after_other_turns_get_what_suits_every_mood(model, opening, smile, tears):
    reader = paddle_dialog.load(model)
    name = reader.language.name
    known = _emoji_sentences(name)
    assert known.keys() >= {*"😀😭❤👍😡🙏"} and all(map(all, known.values()))
    (first,) = reader.predict([opening])
    before, turns = [opening, first[0].text], ["😀", "😭😭", "❤️", "👍🏽"]
    answers = [replies[0] for replies in reader.predict([[*before, turn] for turn in turns])]
    assert smile in answers[0].text and tears in answers[1].text
    assert [one.text for one in answers] == [reply_to_emoji(turn, name) for turn in turns]
    assert {one.origin for one in answers} == {"written"}
    (again,) = reader.predict([[*before, "😀", answers[0].text, "😀"]])
    assert again[0].text != answers[0].text
    assert reply_to_emoji("so 😭", name) is None and reply_to_emoji("?!", name) is None


def test_odd_input_is_answered_or_refused_in_one_line(config):
    predictor = paddle_dialog.load(config.parent / "run" / "best")
    with pytest.raises(UserError, match="did you mean 'proud'"):
        predictor.answer([["hello"]], emotions=["prowd"])
    with pytest.raises(UserError, match="input 2 is None, and must be a text"):
        list(predictor.predict_records(["a", None]))
    for context, message in (
        (math.nan, "conversation 2 is nan, and must be a list of turns"),
        (["a", None, "b"], "turn 2 of conversation 2 is None, and must be a text"),
    ):
        with pytest.raises(UserError, match=message):
            predictor.predict(["hello", context])


def test_odd_turns_are_answered(tmp_path):
    recipe = save_model(tmp_path, decoding={"beam_size": 2, "max_length": 3})
    turns = {
        "x" * 10_000: "x" * 10_000,
        "dog " * 2500: ("dog " * 2500).strip(),
        "😭 🏝": "😭 🏝",
        "qwrtz zxcvb": "qwrtz zxcvb",
        "\x1b[31mred\x00": "[31mred",
        ' {"emotion": "sad", "context": ["my  dog"]}': "my dog",
        '{"a": 1}': '{"a": 1}',
    }
    found = records(run_here("predict", "-c", recipe, *turns, "--json"))
    assert [record["context"] for record in found] == [[turn] for turn in turns.values()]
    assert all(record["predictions"][0]["text"] for record in found)


def _replies(*texts):
    return [text.split() for text in texts]


def test_a_stock_phrase_has_its_words_in_a_row_and_repeated_ngrams_may_overlap():
    replies = _replies(
        "i am so sorry to hear that .", "sorry , to hear it hurts", "great", "sorry to heart", ""
    )
    found = [has_phrase(reply, ("sorry", "to", "hear")) for reply in replies]
    assert found == [True, False, False, False, False]
    replies = _replies("a b c d a b c d a b c d", "a a a a a", "a a a a", "a b c d e", "a b c a b c", "")
    # The first has abcd three times, the second aaaa twice; the fifth repeats only abc.
    assert [has_repeated_ngram(reply, 4) for reply in replies] == [True, True, False, False, False, False]
    assert sum(has_repeated_ngram(reply, 3) for reply in replies) == 4


def test_reply_metrics_together():
    hypotheses = _replies("the cat sat on a mat", "the dog ran")
    references = _replies("the cat sat on the mat", "the dog ran")
    scores = reply_metrics(hypotheses, references)
    # Matching n-grams by hand: 8/9, 5/7, 3/5 and 1/3; nine tokens on both sides, so no brevity penalty.
    assert scores.pop("bleu") == pytest.approx(100 * (8 / 9 * 5 / 7 * 3 / 5 * 1 / 3) ** 0.25)
    assert scores == {
        "distinct_1": 8 / 9,
        "distinct_2": 1.0,
        "unique_replies": 1.0,
        "stock_replies": 0.0,
        "repeated_4grams": 0.0,
        "mean_length": 4.5,
    }


def test_accuracy_counts_the_annotated_dialogues_alone_and_a_run_shows_it():
    config, vocabulary = make_config(), make_vocabulary()
    network = make_network(config, len(vocabulary))
    dataset = DialogueDataset(DIALOGUES, make_encoder(config, vocabulary), 20)
    predictor = predictor_of(config, network, vocabulary)
    guesses = np.stack(predictor.predict_emotions([d.context for d in DIALOGUES])).argmax(-1)
    labels = [EMOTIONS[guesses[0]], EMOTIONS[(guesses[1] + 1) % 32], None]
    judged = [Dialogue(d.context, d.target, e) for d, e in zip(DIALOGUES, labels, strict=True)]
    assert glance_accuracy(predictor, judged) == 0.5
    assert glance_accuracy(predictor, [Dialogue(["hello"], "hi")]) is None
    encoded = EncodedData(dataset, dataset.lengths)
    data = TrainingData(encoded, encoded, {"text": vocabulary}, collate)
    for count in (0, 2):
        shown = TASK.display(config, network, data, count)
        assert len(shown.texts) == count
        assert shown.scalars == {"emotion_accuracy": glance_accuracy(predictor, DIALOGUES)}


def test_no_switch_of_the_replies_moves_the_protocol():
    judged = judged_predictor()
    found = evaluate(judged, "sample", None)
    judged.judge = None
    protocol = evaluate(judged, "sample", None)
    answers = found.pop("answers")
    assert found == protocol and "beam" in found["decoding"]
    assert answers["bleu"] != found["bleu"] and answers["emotion_accuracy"] is not None
    assert set(answers["origins"]) <= {"written", "reflected", "model", "care"}
    assert sum(answers["origins"].values()) == pytest.approx(1)
    assert "by the judge" in answers["decoding"]
