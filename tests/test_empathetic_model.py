"""The network of the empathetic task, its loss by hand, and toys that each family learns."""

import json
import math
import re
from collections import Counter

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from command import ROOT, records, run_here
from empathetic_toys import (
    DIALOGUES,
    MODELS,
    make_config,
    make_network,
    make_vocabulary,
    named,
    predictor_of,
    tensors,
)

from paddle_dialog.data.batching import as_tensors
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import FIRST_EMOTION_ID, make_encoder
from paddle_dialog.tasks.empathetic.data.examples import DialogueDataset, collate
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend, EmpatheticLoss, Outputs

LEARNED = {"generator": {"context_weight": 0.5}, "data": {"mark_turns": True}}
# Two words of the first context are outside this vocabulary, so that copying has something to do.
VOCABULARY = make_vocabulary(DIALOGUES[1:])


def batch(config, emotions=False):
    """Return the collated toy dialogues: source, lengths, target, emotion, label, mask."""
    dataset = DialogueDataset(DIALOGUES, make_encoder(config, VOCABULARY), 50)
    examples = [dataset[index] for index in range(len(dataset))]
    if emotions:
        examples = [
            each._replace(source=each.source._replace(condition=np.array(each.emotion))) for each in examples
        ]
    return tensors(collate(examples))


def test_the_reference_recipe_has_the_published_size():
    task, config = load_config(ROOT / "configs" / "reference" / "empathetic.yaml")
    network = task.build_network(config, dict.fromkeys(task.vocabulary_names, 10_000))
    modules = {}
    for name, parameter in network.named_parameters():
        module = name.partition(".")[0]
        modules[module] = modules.get(module, 0) + math.prod(parameter.shape)
    assert modules == {  # 2,689,501 in all
        "embedding": 1_000_000,
        "encoder": 289_500,
        "decoder": 386_700,
        "generator": 1_010_101,
        "emotion_head": 3_200,
    }


def test_a_given_emotion_takes_the_place_of_the_prediction():
    network = make_network(make_config(), len(VOCABULARY))
    source, lengths, *_ = batch(make_config(), emotions=True)
    ids = paddle.to_tensor([FIRST_EMOTION_ID + emotion_id(d.emotion or "") for d in DIALOGUES])
    given = network._read(source, lengths).emotion
    np.testing.assert_allclose(given.numpy(), network.embedding(ids).numpy(), atol=1e-5)
    # The decoder's emotion does not change what the head predicts, whose mean it is by default.
    plain, *_ = batch(make_config())
    probabilities, same = (network.emotion_probabilities(x, lengths) for x in (source, plain))
    np.testing.assert_allclose(probabilities.numpy(), same.numpy(), atol=1e-6)
    rows = network.embedding(paddle.arange(FIRST_EMOTION_ID, FIRST_EMOTION_ID + len(EMOTIONS)))
    predicted = network._read(plain, lengths).emotion
    np.testing.assert_allclose(predicted.numpy(), (same @ rows).numpy(), atol=1e-5)


def test_the_reply_teaches_the_emotion_head_nothing():
    network = make_network(make_config(), len(VOCABULARY))
    source, lengths, target, *labels = batch(make_config())
    EmpatheticLoss(emotion_weight=0.0)(*network(*source, lengths, target), **named(labels)).backward()
    assert float(network.emotion_head.output.weight.grad.abs().sum()) == 0.0
    assert float(network.embedding.weight.grad.abs().sum()) > 0.0


@pytest.mark.parametrize("pointer", [True, False])
def test_the_loss_has_the_emotions_of_annotated_rows_and_a_smoothed_reply(pointer):
    config = make_config(generator={"pointer": pointer})
    network = make_network(config, len(VOCABULARY))
    source, lengths, target, emotion, label, mask = batch(config)
    emotion[1] = -1
    outputs = network(*source, lengths, target)
    criterion = EmpatheticLoss(emotion_weight=0.5)
    loss = float(criterion(*outputs, emotion=emotion, label=label, mask=mask))
    log_probs = paddle.log(F.softmax(outputs.emotion)).numpy()
    emotion_nll = -(log_probs[0, int(emotion[0])] + log_probs[2, int(emotion[2])]) / 2
    reply_nll = float(criterion.token_nll.sum() / mask.sum())
    assert loss == pytest.approx(reply_nll + 0.5 * emotion_nll, rel=1e-5)
    emotion[:] = -1
    alone = float(criterion(*outputs, emotion=emotion, label=label, mask=mask))
    assert alone == pytest.approx(reply_nll, rel=1e-5)
    smooth = EmpatheticLoss(0.1, 0.0)
    soft = float(smooth(*outputs, emotion=emotion, label=label, mask=mask))
    uniform = -paddle.log(F.softmax(outputs.logits)).mean(-1)  # [B, T], over the vocabulary
    expected = 0.9 * reply_nll + 0.1 * float((uniform * mask).sum() / mask.sum())
    assert soft == pytest.approx(expected, rel=1e-4)
    np.testing.assert_array_equal(criterion.token_nll.numpy(), smooth.token_nll.numpy())


def test_a_vocabulary_without_room_for_the_reserved_entries_is_refused():
    with pytest.raises(UserError, match="a vocabulary of 39 is too small: 40 entries are reserved"):
        EmoPrepend(make_config(), 39)


@pytest.mark.parametrize("family", MODELS)
def test_a_model_learns_replies_emotions_and_copying(family):
    # "rex" is outside the vocabulary and stands in the first context and its reply.
    vocabulary = make_vocabulary([*DIALOGUES[1:], Dialogue(["was a good dog"], "was a good dog .")])
    config = make_config(
        family, model={"num_heads": 1} if family != "lstm" else {}, decoding={"max_length": 8}
    )
    paddle.seed(3)
    network = EmoPrepend(config, len(vocabulary))
    optimizer = paddle.optimizer.Adam(0.02, parameters=network.parameters())
    dataset = DialogueDataset(DIALOGUES, make_encoder(config, vocabulary), 50)
    source, lengths, target, *labels = tensors(collate([dataset[index] for index in range(3)]))
    criterion = EmpatheticLoss()
    for _ in range(250 if family == "lstm" else 80):
        loss = criterion(*network(*source, lengths, target), **named(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    answers = predictor_of(config, network, vocabulary).answer([d.context for d in DIALOGUES])
    assert "rex" not in vocabulary
    assert [answer.emotion for answer in answers] == [d.emotion for d in DIALOGUES]
    for answer, dialogue in zip(answers, DIALOGUES, strict=True):
        assert " ".join(answer.predictions[0].tokens) == dialogue.target.lower()
        assert answer.predictions[0].text[0].isupper()


LOG2 = math.log(2)


def peaked(shape, label, odds):
    """Return logits of two classes a row by which the label has `odds` to 1."""
    logits = np.zeros([*shape, 2], dtype="float32")
    np.put_along_axis(logits, label[..., None], math.log(odds), -1)
    return paddle.to_tensor(logits)


@pytest.mark.parametrize("learns", [False, True])
def test_context_words_count_in_the_mean(learns):
    label = np.array([[1, 0], [1, 0]])
    mask = paddle.to_tensor([[1.0, 1.0], [1.0, 0.0]])
    others = {}
    if learns:  # two words of log(4/3) that count a half
        ids = np.array([0, 1])
        others = {"context_logits": peaked([2], ids, 3.0), "context_ids": paddle.to_tensor(ids)}
    criterion = EmpatheticLoss(0.0, 2.0, context_weight=0.5)
    logits = peaked([2, 2], label, 1.0)  # log 2 each, three of them
    outputs = Outputs.of(logits, paddle.zeros([2, 32]), **others)
    loss = criterion(*outputs, **named([paddle.to_tensor([3, -1]), paddle.to_tensor(label), mask]))
    expected = (3 * LOG2 + 0.5 * 2 * math.log(4 / 3)) / (3 + 0.5 * 2) if learns else LOG2
    assert float(loss) == pytest.approx(expected + 2.0 * math.log(32), rel=1e-5)
    np.testing.assert_allclose(criterion.token_nll.numpy(), [[LOG2, LOG2], [LOG2, 0.0]], rtol=1e-6)


def learned(config):
    """Return the collated toys as training data: what the network takes, and what the criterion does."""
    vocabulary = make_vocabulary(DIALOGUES)
    dataset = DialogueDataset(DIALOGUES, make_encoder(config, vocabulary), 50, Counter(i=2))
    made = as_tensors(collate([dataset[row] for row in range(3)]))
    inputs = [*made[:5], made.source_lengths, made.target, made.next_words]
    return inputs, {"emotion": made.emotion, "label": made.label, "mask": made.mask}


@pytest.mark.parametrize("pointer", [True, False])
def test_the_loss_of_a_network_in_training_has_all_its_parts(pointer):
    generator = {**LEARNED["generator"], "pointer": pointer}
    config = make_config("causal", generator=generator, data=LEARNED["data"])
    network = make_network(config, len(make_vocabulary(DIALOGUES)))
    inputs, labels = learned(config)
    criterion = EmpatheticLoss(0.0, 0.25, 0.5)
    answered = float(criterion(*network(*inputs), **labels))
    reply = float((criterion.token_nll).sum())
    network.train()
    outputs = network(*inputs)
    logits, following = outputs.context_logits, outputs.context_ids
    # the three turns that are new, a mark before each and the end token after it
    assert following.shape == [sum(len(d.context[-1].split()) + 1 for d in DIALOGUES)]
    normalised = logits.numpy().astype("float64")
    normalised -= np.log(np.exp(normalised).sum(-1, keepdims=True))
    context = -normalised[np.arange(len(normalised)), following.numpy()].sum()
    words = float(labels["mask"].sum())
    expected = (reply + 0.5 * context) / (words + 0.5 * len(normalised))
    expected += answered - reply / words
    assert float(criterion(*outputs, **labels)) == pytest.approx(expected, rel=1e-4)


def test_a_context_word_is_learned_from_what_stands_before_it():
    config = make_config("causal", **LEARNED)
    network = make_network(config, len(make_vocabulary(DIALOGUES)))
    network.train()
    inputs, _ = learned(config)
    before = network(*inputs).context_logits.numpy()
    inputs[0][:, -1] = 50  # the last word of the longest context
    after = network(*inputs).context_logits.numpy()
    differs = np.abs(before - after).max(-1) > 1e-6
    assert differs.sum() == 1  # where the end token follows it


TOY = """
task: empathetic
model: {{name: causal_transformer, width: 32, num_heads: 2, inner_width: 64, num_layers: 2, copy_size: 8,
  max_positions: 40, dropout: 0.0}}
emotion: {{hints: false, weight: 0.2}}
generator: {{context_weight: 1.0}}
data: {{train: {folder}/train.jsonl, dev: {folder}/train.jsonl, more: {folder}/more.jsonl, more_min_count: 1,
  mark_turns: true, max_length: 20, max_target_length: 8, batch_size: 8, unknown_rate: 0.0}}
training: {{epochs: 60, learning_rate: 0.01, schedule: cosine, warmup_steps: 10, clip_norm: 1.0, eval_every: 1000,
  log_every: 20}}
decoding: {{max_length: 8, strategy: greedy}}
output_dir: {folder}/run
"""
ANSWERS = {
    "my dog died": ("he was a good dog", "sad"),
    "i won a prize": ("well done , you", "proud"),
    "they stole my bike": ("how mean of them", "angry"),
    "my exam is soon": ("you will pass it", "anxious"),
}
TALK = [
    ["hello there", "hello to you", "how is it going", "it goes well", "good to hear", "see you soon"],
    ["what is the time", "it is past nine", "so late", "yes , so late"],
]


def test_a_toy_with_further_conversations_is_learned_by_heart(tmp_path):
    examples = [
        {"context": [said], "target": answer, "emotion": emotion}
        for said, (answer, emotion) in ANSWERS.items()
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(example) + "\n" for example in examples))
    (tmp_path / "more.jsonl").write_text("".join(json.dumps({"turns": turns}) + "\n" for turns in TALK))
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(TOY.format(folder=tmp_path))
    trained = run_here("train", "-c", recipe)
    assert trained.status == 0, trained.stderr
    assert "further conversations" in trained.stderr and "more.jsonl: 2 pieces" in trained.stderr
    losses = [float(found) for found in re.findall(r"\bloss ([\d.]+)", trained.stderr)]
    # Which of the six conversations begins cannot be known, and every turn and its end is learned once.
    turns = [turn for said, (answer, _) in ANSWERS.items() for turn in (said, answer)] + [*TALK[0], *TALK[1]]
    least = 6 * math.log(6) / sum(len(turn.split()) + 1 for turn in turns)
    assert losses[0] > 1 and least < losses[-1] < least + 0.1, (losses, least)
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.1

    contexts = [[said] for said in ANSWERS] + [turns[:-1] for turns in TALK]
    texts = [json.dumps({"context": context}) for context in contexts]
    answered = records(run_here("predict", "-c", recipe, "--json", *texts))
    replies = [record["predictions"][0]["text"].lower().rstrip(".") for record in answered]
    expected = [answer for answer, _ in ANSWERS.values()] + [turns[-1] for turns in TALK]
    assert replies == [reply.replace(" ,", ",") for reply in expected]
    assert [record["emotion"] for record in answered[:4]] == [emotion for _, emotion in ANSWERS.values()]
