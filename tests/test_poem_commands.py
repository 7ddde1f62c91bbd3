"""The poem task as a user meets it: train, evaluate and predict on tiny texts, and what is told of bad input."""

import json
import re

import pytest
from command import run_here
from test_light_imports import HEAVY, without

POEM = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
COMMON = """
task: poem
model: {{name: causal_lm, width: 32, num_heads: 2, inner_width: 64, num_layers: 1, max_positions: 120}}
data: {{train: {folder}/train.txt, dev: {folder}/train.txt, window: 52, max_length: 60, batch_size: 4}}
training: {{epochs: 40, learning_rate: 0.02, schedule: cosine, warmup_steps: 5, clip_norm: 1.0, save_every: 1000}}
decoding: {{strategy: greedy, max_length: 60}}
verse: {{samples: 1, tones: false, rhyme: false}}
output_dir: {folder}/run
"""


def recipe(folder, text):
    (folder / "train.txt").write_text(text, encoding="utf-8")
    config = folder / "toy.yaml"
    config.write_text(COMMON.format(folder=folder), encoding="utf-8")
    return config


@pytest.fixture(scope="module")
def poem_model(tmp_path_factory):
    """Return a model that has read one poem, often."""
    config = recipe(tmp_path_factory.mktemp("poem"), f"登鹳雀楼\t{POEM}\n" * 36)
    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.02
    return config


def predictions(config, *arguments):
    answered = run_here("predict", "-c", config, "--json", *arguments)
    assert answered.status == 0, answered.stderr
    return [json.loads(line) for line in answered.stdout.splitlines()]


def test_a_beginning_is_continued_and_what_it_keeps_is_told(poem_model):
    (record,) = predictions(poem_model, "白日")
    (prediction,) = record["predictions"]
    assert record["begin"] == "白日" and prediction["text"] == POEM and prediction["score"] > -0.1
    assert prediction["form"] == {"name": "五绝", "lengths": True, "tones": True, "rhyme": True}
    assert predictions(poem_model, "-o", "verse.form=五绝", "")[0]["predictions"][0]["text"] == POEM
    shown = run_here("predict", "-c", poem_model, "白日")
    assert shown.stdout.splitlines()[:2] == [POEM[:12], POEM[12:]]


def test_characters_that_the_model_has_never_seen_stand_as_they_were_given(poem_model):
    for arguments in ((), ("--form", "五绝")):
        text = predictions(poem_model, *arguments, "白龘")[0]["predictions"][0]["text"]
        assert text.startswith("白龘") and len(text) > 2


def test_given_characters_begin_the_lines_of_a_longer_form(poem_model):
    arguments = ("-o", "verse.form=七律", "-o", "verse.input=acrostic", "山水日月花鸟风云")
    (record,) = predictions(poem_model, *arguments)
    lines = re.split("[，。]", record["predictions"][0]["text"])[:-1]
    assert "".join(line[0] for line in lines) == "山水日月花鸟风云" and {len(line) for line in lines} == {7}


def test_a_vocabulary_that_cannot_rhyme_is_told_as_relaxed(poem_model):
    (record,) = predictions(
        poem_model, "-o", "verse.form=七绝", "-o", "verse.rhyme=true", "-o", "verse.tones=true", ""
    )
    prediction = record["predictions"][0]
    assert prediction["form"]["lengths"] and "rhyme" in prediction["relaxed"]


def test_an_evaluation_measures_characters_and_forms(poem_model, tmp_path):
    written = tmp_path / "poems.jsonl"
    measured = run_here("evaluate", "-c", poem_model, "--json", "--predictions", written)
    assert measured.status == 0, measured.stderr
    result = json.loads(measured.stdout)
    assert result["n"] == 36 and 1.0 <= result["perplexity"] < 1.02 and result["perplexity_titled"] < 1.05
    assert 2 ** result["bits_per_character"] == pytest.approx(result["perplexity"])
    assert result["form"]["lengths"] == 1.0 and result["unknown_rate"] == 0.0
    assert len(written.read_text(encoding="utf-8").splitlines()) == 4  # one of each form


def test_running_text_is_learned_and_continued(tmp_path):
    config = recipe(tmp_path, "one two\nthree " * 60)
    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    (record,) = predictions(config, "-o", "decoding.max_length=20", "one two\nth")
    assert (
        record["predictions"][0]["text"] == "one two\nthree one two"[:20]
        and record["predictions"][0]["form"] is None
    )
    measured = json.loads(run_here("evaluate", "-c", config, "--json").stdout)
    assert measured["perplexity"] < 1.3 and "form" not in measured
    error = run_here("predict", "-c", config, "-o", "verse.form=七绝", "one").error_line()
    assert "trained on running text" in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "verse.form=七绝", "-o", "verse.input=acrostic", "春夏"), "give 4 hanzi, one for each line"),
        (("-o", "verse.input=acrostic", "春夏"), "verse.form: must be named"),
        (("-o", "verse.form=五绝", "春" * 21), "has 21 hanzi, and a 五绝 has 20; shorten it"),
        (("-o", "verse.form=词", "春"), "verse.form: must be one of 五绝, 七绝, 五律, 七律"),
        (("春" * 61,), "has 61 characters, and texts of up to 60 are written"),
    ],
)
def test_what_cannot_be_written_is_told_in_one_line(poem_model, arguments, message):
    assert message in run_here("predict", "-c", poem_model, *arguments).error_line()


def test_settings_that_do_not_fit_are_told(tmp_path):
    config = recipe(tmp_path, f"题\t{POEM}\n")
    small = ("-o", "model.max_positions=80", "-o", "data.max_length=50", "-o", "decoding.max_length=50")
    assert run_here("train", "-c", config, "-o", "training.max_steps=1", *small).status == 0
    error = run_here(
        "predict", "-c", config, "--form", "七律", "-o", "decoding.max_length=50", ""
    ).error_line()
    assert "needs 90 positions, and this model has 80" in error
    error = run_here("train", "-c", config, "-o", "data.window=200").error_line()
    assert "model.max_positions: must be at least 200" in error


def test_answers_need_no_training_stack(poem_model):
    outcome = without(HEAVY, "predict", "-c", str(poem_model), "--form", "五绝", "白日")
    assert outcome.stdout.startswith("白日") and outcome.stderr.endswith("tried:\n"), outcome.stderr
