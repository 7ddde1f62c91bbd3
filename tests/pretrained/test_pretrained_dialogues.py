"""Pre-trained models that name the emotion and reply: the tree of labels, 32 dialogues learned, overridden, saved."""

import json
from pathlib import Path

import numpy as np
import pytest
from checkpoints import write_checkpoint
from command import records, run_here
from fine_tuning import ALL, LORA, ROOT

from paddle_dialog.recipes import load_model

RECIPE = """
task: empathetic
language: {language}
model: {{name: pretrained, pretrained: {base}, lora: {lora}}}
emotion: {{prepend_form: argmax, hints: false, weight: 1.0}}
generator: {{pointer: false}}
data:
  {{train: {data}, dev: {data}, mark_turns: true, max_length: 96, max_target_length: 64, unknown_rate: 0.0,
   batch_size: 16}}
training:
  {{epochs: {epochs}, optimizer: adamw, learning_rate: {rate}, schedule: cosine, save_every: 50, eval_every: 1000,
   log_every: 20, clip_norm: 1.0, warmup_steps: 10}}
decoding: {{beam_size: 2, max_length: 64, no_repeat_ngram: 0}}
output_dir: {run}
"""
CASES = {"en": ("llama", ALL, 0.01, 50), "zh": ("ernie", LORA, 0.012, 90)}


@pytest.fixture(scope="module", params=CASES)
def tuned(request, tmp_path_factory):
    """Return the recipe, the run and the examples of a model that learned 32 dialogues in each language."""
    language = request.param
    shape, lora, rate, epochs = CASES[language]
    folder = tmp_path_factory.mktemp(language)
    name = "sample.jsonl" if language == "en" else "sample_zh.jsonl"
    examples = _examples((ROOT / "tasks/empathetic" / name).read_text(encoding="utf-8"))
    data = folder / "dialogues.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in examples), encoding="utf-8")
    texts = [text for one in examples for text in (*one["context"], one["target"], one["emotion"])]
    base = write_checkpoint(folder / "base", shape, texts, size=1500)
    recipe, run = folder / "recipe.yaml", folder / "run"
    values = {"language": language, "base": base, "lora": lora, "data": data, "rate": rate, "run": run}
    recipe.write_text(RECIPE.format(**values, epochs=epochs), encoding="utf-8")
    outcome = run_here("train", "-c", recipe)
    assert outcome.status == 0, outcome.stderr
    return recipe, run, examples, outcome.stderr


def _examples(text):
    """Return 32 examples of the lines of a sample, each with its context, target and emotion."""
    found = []
    for line in map(json.loads, text.splitlines()):
        turns = line.get("turns") or [*line["context"], line["target"]]
        for size in range(2, len(turns) + 1, 2) if "turns" in line else [len(turns)]:
            found.append(
                {"context": turns[: size - 1], "target": turns[size - 1], "emotion": line["emotion"]}
            )
    return found[:32]


def test_learns_32_dialogues(tuned):
    recipe, _, examples, log = tuned
    assert float(log.rsplit("dev perplexity ", 1)[1].split()[0]) < 1.1
    asked = [json.dumps({"context": one["context"]}) for one in examples]
    answers = records(run_here("predict", "-c", recipe, "--json", *asked))
    named = [answer["emotion"] == one["emotion"] for answer, one in zip(answers, examples, strict=True)]
    same = [
        answer["predictions"][0]["text"] == one["target"]
        for answer, one in zip(answers, examples, strict=True)
    ]
    assert sum(named) >= 31 and sum(same) >= 30
    assert all(abs(sum(answer["emotions"].values()) - 1) < 2e-2 for answer in answers)


def test_the_emotion_can_be_overridden(tuned):
    _, run, examples, _ = tuned
    predictor = load_model(Path(run) / "best").predictor
    context = examples[0]["context"]
    emotions = predictor.emotions
    given = [predictor.answer([context], emotions=[emotion])[0] for emotion in emotions[:4]]
    assert [answer.emotion for answer in given] == list(emotions[:4])
    assert len({answer.predictions[0].score for answer in given}) > 1  # the reply depends on it


def test_a_labels_probability_is_that_of_its_tokens(tuned):
    """The tree beside each label read alone behind the prompt; the reply beside one behind prompt and label."""
    import paddle

    _, run, examples, _ = tuned
    predictor = load_model(Path(run) / "best").predictor
    network, encoder = predictor.network, predictor.encoder
    tokenizer, column = network._tokenizer, network.columns.tolist()
    contexts = [one["context"] for one in examples[:3]]
    read = predictor.read(predictor.encode(contexts, [None, predictor.emotions[1], None]))
    labels = [tokenizer.encode(e, add_special_tokens=False) + network._before_end for e in predictor.emotions]
    end = column[network.vocabulary.bos_id]
    for context in read:
        prompt = network._prompt(context.packed[0].words[1:].tolist())
        rows = []
        with paddle.no_grad():
            for label in labels:
                hidden, _ = network.begin([[*prompt, *label]])
                scores = paddle.nn.functional.log_softmax(network.all_logits(hidden)[0].astype("float64"), -1)
                steps = zip(range(len(prompt) - 1, len(prompt) + len(label)), [*label, end], strict=True)
                rows.append(sum(float(scores[place, token]) for place, token in steps))
        alone = np.exp(rows - np.logaddexp.reduce(rows))
        np.testing.assert_allclose(context.predicted, alone, atol=1e-5)

        chosen = labels[context.given if context.given is not None else int(alone.argmax())]
        reply = encoder.vocabulary.encode(encoder.language.tokens_of(examples[0]["target"]))[:5]
        with paddle.no_grad():
            hidden, _ = network.begin([[*prompt, *chosen, end, *(column[index] for index in reply)]])
            whole = network.logits(hidden)[0, -len(reply) - 1 :].numpy()
            state = context.state
            for place, token in enumerate([network.vocabulary.bos_id, *reply]):
                logits, state = network.step(np.array([token]), state)
                np.testing.assert_allclose(logits[0], whole[place], atol=2e-4)


def test_it_chats_and_is_evaluated(tuned):
    recipe, _, examples, _ = tuned
    chat = run_here("chat", "-c", recipe, stdin=f"{examples[0]['context'][0]}\n".encode())
    assert chat.status == 0, chat.stderr
    figures = json.loads(run_here("evaluate", "-c", recipe, "--json").stdout)
    assert figures["emotion_accuracy"] > 0.95 and figures["perplexity"] < 1.1


@pytest.mark.parametrize(("shape", "language"), [("llama", "en"), ("ernie", "zh")])
def test_a_model_that_is_not_tuned_is_evaluated(shape, language, tmp_path):
    name = "sample.jsonl" if language == "en" else "sample_zh.jsonl"
    lines = (ROOT / "tasks/empathetic" / name).read_text(encoding="utf-8").splitlines()
    examples = _examples("\n".join(lines))[:6]
    data = tmp_path / "dev.jsonl"
    data.write_text("".join(json.dumps(one) + "\n" for one in examples), encoding="utf-8")
    base = write_checkpoint(tmp_path / "base", shape, lines, size=900)
    ask = ["evaluate", "--weights", base, "--data", data, "--json", "-o", f"language={language}"]
    ask += ["-o", "decoding.max_length=4", "-o", "decoding.beam_size=2"]
    outcome = run_here(*ask, "-c", "configs/empathetic_ernie.yaml")
    assert outcome.status == 0 and f"weights: {base}" in outcome.stderr, outcome.stderr
    figures = json.loads(outcome.stdout)
    assert figures["perplexity"] > 50 and 0 <= figures["emotion_accuracy"] <= 1
    counted = run_here(
        "summary", "-c", "configs/empathetic_ernie.yaml", "-o", f"model.pretrained={base}", "--json"
    )
    assert json.loads(counted.stdout)["total"] > 0, counted.stderr
    for wrong in (["-c", "configs/empathetic.yaml"], []):
        line = run_here(*ask[:6], *wrong).error_line()
        assert (
            f"{base}: is a pre-trained model that is not tuned; name a recipe of model.name: pretrained"
            in line
        )
