"""What is learned from rated couplets: preferences, and a judge."""

import dataclasses
import json
import math
from collections import Counter
from functools import partial

import numpy as np
import paddle
import pytest
from command import run_here
from couplet_toys import CHARACTERS, LEVEL, OBLIQUE, Table
from hypothesis import given, settings
from hypothesis import strategies as st

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.data.batching import EncodedData
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.models.numpy_seq2seq import numpy_seq2seq
from paddle_dialog.recipes import load_model
from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.couplet.preferences import (
    STRENGTH,
    PreferenceLoss,
    RatedAnswer,
    RatedBatches,
    RatedDataset,
    collate_rated,
    preference_nll,
    read_ratings,
    with_own,
)
from paddle_dialog.tasks.couplet.prompts import TO_FIRST, collate, encode_sources, with_marks
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.tasks.couplet.training_data import CoupletDataset
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from paddle_dialog.training.losses import SequenceCrossEntropy
from tools.weights.couplet.judge_fitting import measured

VOCABULARY = with_marks(Vocabulary([*SPECIAL_TOKENS, "，", *LEVEL, *OBLIQUE]))
ANSWERED = [RatedAnswer("春雨", "秋霜", 7), RatedAnswer("春雨", "江山", 2)]
COMPOSED = [RatedAnswer("春月", "秋江", 6, "春？", "柳"), RatedAnswer("高柳", "清溪", 4, "？柳")]


def dataset(inputs=None):
    pairs = CoupletDataset([Couplet("春山雨", "秋水天"), Couplet("月", "霜")], VOCABULARY)
    model = Table(1, vocab_size=len(VOCABULARY), steps=12, sources=len(VOCABULARY))
    return RatedDataset(EncodedData(pairs, pairs.lengths), inputs or [ANSWERED, COMPOSED], VOCABULARY, model)


def write(path, *records):
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_file_names_the_first_line_once_or_with_each_answer(tmp_path):
    answered = {"first": "春雨", "answers": [{"second": a.second, "rating": a.rating} for a in ANSWERED]}
    composed = {"answers": [{key: value for key, value in vars(a).items() if value} for a in COMPOSED]}
    assert read_ratings(write(tmp_path / "ratings.jsonl", answered, "", composed)) == [ANSWERED, COMPOSED]


def test_the_corpus_answers_too_where_it_is_given_a_rating():
    known, other = RatedAnswer("春山雨", "秋水天", 3), RatedAnswer("春山雨", "秋水霜", 3)
    short, unknown = RatedAnswer("月", "江", 3), RatedAnswer("柳山雨", "秋水天", 3)
    composed = RatedAnswer("春山雨", "秋水霜", 3, "？？？")
    rated = [[other], [known], [short], [unknown], [composed]]
    corpus = [Couplet("春山雨", "秋水天"), Couplet("月", "霜")]
    assert with_own(rated, corpus, 7, 2) == 1
    assert rated == [[other, RatedAnswer("春山雨", "秋水天", 7)], [known], [short], [unknown], [composed]]


def test_the_log_probabilities_before_are_those_of_all_texts():
    found, model = dataset(), Table(1, vocab_size=len(VOCABULARY), steps=12, sources=len(VOCABULARY))
    for rated, answers in zip((found[2], found[3]), (ANSWERED, COMPOSED), strict=True):
        for before, answer in zip(rated.before, answers, strict=True):
            single = 0.0
            for asked, text in answer.texts(VOCABULARY):
                source, lengths = encode_sources([np.array(asked)])
                single += float(text_log_probs(model, source, lengths, [text])[0])
            assert before == pytest.approx(single, rel=1e-5)


def test_a_batch_has_the_examples_first_and_tells_what_belongs_to_what():
    found = dataset()
    batch = collate_rated([found[2], found[0], found[3]])
    source, _, _, label, mask, text_mask, answers, inputs, ratings, before = batch
    assert source.shape[0] == 1 + 2 + 4 == label.shape[0]
    assert mask.tolist() == [[1, 1, 1, 1]] and text_mask.sum(1).tolist() == [3] * 6
    assert answers.tolist() == [0, 1, 2, 2, 3, 3] and inputs.tolist() == [0, 0, 1, 1]
    assert ratings.tolist() == [7, 2, 6, 4] and before.shape == (4,)
    plain = [found[0], found[1]]
    for ours, usual in zip(collate_rated(plain)[:5], collate(plain), strict=True):
        assert np.array_equal(ours, usual)


@pytest.mark.parametrize(("processes", "inputs", "together"), [(1, 7, 2), (2, 7, 2), (3, 7, 2), (2, 3, 1)])
def test_an_epoch_has_every_rated_input_once_and_no_process_is_without(processes, inputs, together):
    found = dataset([ANSWERED] * inputs)
    samplers = [RatedBatches(found, 3, together, 5, processes, rank) for rank in range(processes)]
    batches = [list(sampler.batches(0)) for sampler in samplers]
    assert {len(own) for own in batches} == {len(samplers[0])}
    rated = [[index for index in batch if index >= 2] for own in batches for batch in own]
    assert all(rated) and all(len(batch) <= together for batch in rated)
    once = Counter(index for batch in rated for index in batch)
    assert {*once} == {*found.rated} and once.total() == max(inputs, len(rated))
    assert all(sum(index < 2 for index in batch) == 3 for own in batches for batch in own)
    assert list(samplers[0].batches(0, skip=1)) == batches[0][1:]
    assert list(samplers[0].batches(1)) != batches[0]


def of_order(rewards, ratings, inputs, gap=1.0):
    total, count = preference_nll(
        *(paddle.to_tensor(values, "float32") for values in (rewards, ratings)),
        paddle.to_tensor(inputs, "int64"),
        gap,
    )
    return [float(total), float(count)]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 5), st.floats(-3, 3)), min_size=1, max_size=12))
def test_it_is_the_mean_over_the_pairs_of_each_input(answers):
    total, count = 0.0, 0
    for wanted in range(4):
        own = [(rating, reward) for number, rating, reward in answers if number == wanted]
        pairs = [math.log1p(math.exp(s - r)) for a, r in own for b, s in own if a - b >= 2]
        total, count = total + (sum(pairs) / len(pairs) if pairs else 0.0), count + bool(pairs)
    inputs, ratings, rewards = (list(column) for column in zip(*answers, strict=True))
    assert of_order(rewards, ratings, inputs, 2.0) == pytest.approx([total, count], abs=1e-4)


def test_the_loss_is_that_of_the_examples_and_of_the_order():
    """One example of two tokens, and an input with two answers, the first of which has two texts."""
    draws = np.random.default_rng(3)
    logits = draws.normal(size=(4, 2, 5)).astype(np.float32)
    label = draws.integers(5, size=(4, 2))
    text_mask = np.array([[1, 1], [1, 0], [1, 1]], np.float32)
    before = np.array([-1.5, -2.5], np.float32)
    criterion = PreferenceLoss(SequenceCrossEntropy(), least_gap=1.0)
    mask, ratings = np.ones((1, 2), np.float32), np.array([7, 3], np.float32)
    arrays = logits, label, mask, text_mask, np.array([0, 0, 1]), np.array([0, 0]), ratings, before
    tensors = [paddle.to_tensor(array) for array in arrays]
    tensors[0].stop_gradient = False
    loss = criterion(*tensors)

    exponentials = np.exp(logits.astype(np.float64))
    log_probs = np.log(exponentials / exponentials.sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, label[..., None], -1)[..., 0]  # [4, 2]
    texts = (chosen[1:] * text_mask).sum(-1)
    rewards = STRENGTH * (np.array([texts[0] + texts[1], texts[2]]) - before)
    order = math.log1p(math.exp(rewards[1] - rewards[0]))
    assert float(loss) == pytest.approx(-chosen[0].mean() + order, rel=1e-5)
    assert criterion.token_nll.numpy() == pytest.approx(-chosen[:1], rel=1e-5)
    loss.backward()
    assert all(np.abs(tensors[0].grad.numpy()[row]).sum() > 0 for row in range(4))


def test_the_command_learns_the_order(trained, tmp_path):
    """From ratings of the session's tiny model by which it is to prefer the last answer."""
    before = trained["transformer"]
    train = (before.folder.parent / "train.tsv").read_text(encoding="utf-8").splitlines()
    firsts = [line.split("\t")[0] for line in train[:12]]
    seconds = [line.split("\t")[1] for line in train[:12]]
    rated = [
        {"first": first, "answers": [{"second": seconds[n], "rating": 1}, {"second": seconds[n - 1], "rating": 9}]}
        for n, first in enumerate(firsts)
    ]  # fmt: skip
    write(tmp_path / "ratings.jsonl", *rated)
    recipe = tmp_path / "rated.yaml"
    recipe.write_text(
        f"""base: {before.config}
preferences: {{ratings: {tmp_path}/ratings.jsonl, own_rating: 5}}
training: {{start_from: {before.folder}/best, learning_rate: 3.0e-3, epochs: 60, eval_every: 0}}
output_dir: {tmp_path}/run
""",
        encoding="utf-8",
    )
    outcome = run_here("train", "-c", recipe)
    assert outcome.status == 0, outcome.stderr
    assert "24 to 12 inputs" in outcome.stderr and "own answers to 0 of them" in outcome.stderr
    assert "dev perplexity" in outcome.stderr

    def margin(folder):
        """Return by how much the better answers are likelier, in the mean."""
        loaded = load_model(folder, TASK)
        vocabulary = loaded.trained.vocabularies["text"]
        model = loaded.trained.fastest(partial(numpy_seq2seq, loaded.config.model, len(vocabulary)))
        inputs = read_ratings(tmp_path / "ratings.jsonl")
        texts = [text for answers in inputs for answer in answers for text in answer.texts(vocabulary)]
        source, lengths = encode_sources([np.array(asked) for asked, _ in texts])
        found = text_log_probs(model, source, lengths, [text for _, text in texts]).reshape(-1, 2)
        return float((found[:, 1] - found[:, 0]).mean())

    assert margin(tmp_path / "run" / "last") > margin(before.folder / "best") + 5.0
    assert "already finished" in run_here("train", "-c", recipe, "--resume", "auto").stderr


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Return the folder of an untrained Transformer with the marks."""
    folder = tmp_path_factory.mktemp("judge")
    half = len(CHARACTERS) // 2
    line = f"{CHARACTERS[:half]}\t{CHARACTERS[half : 2 * half]}\n"
    (folder / "couplets.tsv").write_text(line * 8, encoding="utf-8")
    chosen = {
        "data.train": folder / "couplets.tsv", "data.dev": "null", "data.batch_size": 4, "output_dir": folder / "run",
        "model.width": 16, "model.inner_width": 16, "model.num_heads": 2, "model.encoder_layers": 1,
        "model.decoder_layers": 1, "training.max_steps": 1, "training.optimizer": "adamw",
    }  # fmt: skip
    overrides = [part for key, value in chosen.items() for part in ("-o", f"{key}={value}")]
    outcome = run_here("train", "-c", "configs/couplet.yaml", *overrides)
    assert outcome.status == 0, outcome.stderr
    return folder / "run" / "last"


def composed(count, seed=1):
    """Return couplets of five characters."""
    draws = np.random.default_rng(seed)
    lines = ["".join(draws.choice([*CHARACTERS], 5, replace=False)) for _ in range(2 * count)]
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return [RatedAnswer(a, b, 0.0, "？" * 5) for a, b in pairs]


def taste(predictor, answers):
    """Return ratings by a reader who likes likely lines and one side of the states, [N]."""
    rows = measured(predictor, answers)
    return 5 + 50 * rows[:, 0] + 100 * rows[:, 4]


def test_what_is_read_back_is_what_the_scores_are_of(bundle):
    predictor = paddle_dialog.load(bundle)
    answers = composed(3)
    lines, found = [a.first for a in answers], [a.second for a in answers]
    scores, states = predictor.reverse.read(lines, found)
    alone = predictor.reverse.scores(lines, [[text] for text in found])
    assert scores == pytest.approx(np.concatenate(alone), rel=1e-5)
    rows = measured(predictor, answers)
    assert rows.shape == (3, 1 + 16) and rows[:, 1:] == pytest.approx(states)
    source, lengths = encode_sources([np.array(TO_FIRST.source(predictor.vocabulary, answers[0].second))])
    single = text_log_probs(predictor.step_model, source, lengths, [predictor.vocabulary.encode(lines[0])])
    assert scores[0] == pytest.approx(single[0] / 6, rel=1e-5)


def test_the_command_fits_a_judge_that_composing_heeds(bundle, tmp_path):
    reader = paddle_dialog.load(bundle)
    records = []
    for seed in range(40):
        answers = composed(12, seed)
        rated = zip(answers, taste(reader, answers).tolist(), strict=True)
        records.append({"answers": [{**vars(answer), "rating": rating} for answer, rating in rated]})
    ratings = tmp_path / "ratings.jsonl"
    ratings.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    files = ("--weights", bundle, "--ratings", ratings, "--output", tmp_path / "judged")
    outcome = run_here("weights/couplet/judge_fitting", "-c", "couplet", *files)
    assert outcome.status == 0, outcome.stderr
    judged = paddle_dialog.load(tmp_path / "judged")
    assert judged.judge is not None and reader.judge is None
    held_out = composed(200, seed=99)
    rows = measured(judged, held_out)
    values = rows[:, 0] + judged.judge(rows[:, 1:].astype(np.float32))
    assert np.corrcoef(values, taste(reader, held_out))[0, 1] > 0.8
    before = paddle_dialog.load(bundle).compose(count=3, length=5, seed=4)
    assert [str(p) for p in judged.compose(count=3, length=5, seed=4)] != [str(p) for p in before]
    assert run_here("export", "--weights", tmp_path / "judged", "--output", tmp_path / "out").status == 0
    assert JUDGE in load_bundle(tmp_path / "out").extra


def test_a_damaged_judge_is_told(bundle, tmp_path):
    other = load_bundle(bundle)
    wrong = {**other.extra, JUDGE: Judge(np.zeros(3)).to_bytes()}
    save_bundle(dataclasses.replace(other, extra=wrong), tmp_path / "wrong")
    outcome = run_here("compose", "-c", "configs/couplet.yaml", "--weights", tmp_path / "wrong")
    assert "reads 3 numbers of a text, and this model has 16" in outcome.error_line()
