"""The recurrent language model: the state it carries, word vectors, and the sampled softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
from command import records, run_here

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.config.models import LstmAttentionConfig, RecurrentLmConfig, TransformerConfig
from paddle_dialog.data.batching import ContiguousBatches
from paddle_dialog.errors import UserError
from paddle_dialog.layers.embeddings import TiedProjection, TokenEmbedding
from paddle_dialog.layers.sampled_softmax import sampled_logits
from paddle_dialog.models.networks import RecurrentLm
from paddle_dialog.models.seq2seq import PointerSeq2Seq, Seq2Seq
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from paddle_dialog.training.losses import PointerCrossEntropy, SequenceCrossEntropy
from paddle_dialog.training.start import read_vectors

VOCABULARY = 30
SAMPLED: dict[str, Any] = {"dropout": 0.0, "sampled_words": 50_000}
LSTM = LstmAttentionConfig(embedding_size=8, hidden_size=8, **SAMPLED)
TRANSFORMER = TransformerConfig(width=8, num_heads=2, inner_width=8, **SAMPLED)


def window(begin, end):
    return paddle.arange(begin, end).unsqueeze(0).expand([3, end - begin])


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_two_windows_with_the_state_carried_over_read_as_one(cell):
    paddle.seed(2)
    network = RecurrentLm(RecurrentLmConfig(cell=cell, width=8), VOCABULARY, 4)  # type: ignore[arg-type]
    ids = paddle.randint(4, VOCABULARY, [3, 11])
    network.eval()
    whole = network(ids, window(0, 11)).numpy()
    first, state = network.read(ids[:, :4])
    parts = paddle.concat([first, network.read(ids[:, 4:], state)[0]], axis=1)
    np.testing.assert_allclose(parts.numpy(), whole, atol=1e-6)
    network.train()
    for _ in range(2):  # the second time each row begins a text again, from zero
        parts = paddle.concat([network(ids[:, a:b], window(a, b)) for a, b in ((0, 4), (4, 11))], axis=1)
        np.testing.assert_allclose(parts.numpy(), whole, atol=1e-6)
    parts.mean().backward()
    assert network.carried.state.stop_gradient and network.embedding.weight.grad is not None


@pytest.mark.parametrize(("windows", "rows", "processes"), [(23, 4, 1), (23, 3, 2), (2, 8, 1)])
def test_each_row_of_a_batch_continues_that_of_the_batch_before(windows, rows, processes):
    samplers = [ContiguousBatches(windows, rows, processes, rank) for rank in range(processes)]
    batches = [list(sampler.batches(0)) for sampler in samplers]
    together = np.concatenate(batches, axis=1)  # [steps, rows of all]
    assert (np.diff(together, axis=0) == 1).all()
    assert len(set(together.ravel().tolist())) == together.size > windows - rows * processes
    assert together.max() < windows


def train_with(recipe, settings, *more):
    """Train with settings of a recipe, separated by spaces; return the last bundle."""
    options = [part for setting in settings.split() for part in ("-o", setting)]
    outcome = run_here("train", "-c", recipe, *options, *more)
    assert outcome.status == 0, outcome.stderr
    return load_bundle(settings.rpartition("output_dir=")[2] + "/last")


def test_a_resumed_run_carries_the_state_on(tmp_path):
    def train(name, steps, *more):
        sizes = "model.width=8 data.min_count=1 data.window=8 data.batch_size=4 training.eval_every=9"
        run = f"training.max_steps={steps} training.schedule=constant output_dir={tmp_path}/{name}"
        return dict(train_with("configs/reference/poem_lstm.yaml", f"{sizes} {run}", *more).weights)

    whole = train("whole", 4)
    train("cut", 2)
    for name, array in train("cut", 4, "--resume", "auto").items():
        np.testing.assert_array_equal(array, whole[name], err_msg=name)


VECTORS = "天 0.5 -0.25 1 2\n地 1.5 0.125 -1 0\n龘 9 9 9 9\n天 3 3 3 3\n"


@pytest.mark.parametrize("header", ["", "4 4\n"])
def test_vectors_are_read_with_and_without_word2vecs_first_line(tmp_path, header):
    path = tmp_path / "vectors.txt"
    path.write_text(header + VECTORS, encoding="utf-8")
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "地", "天", "人"])
    rows, found = read_vectors(path, vocabulary, 4)
    assert found == 2 and rows.shape == (len(vocabulary), 4) and rows.dtype == np.float32
    assert rows[vocabulary.id("天")].tolist() == [0.5, -0.25, 1, 2]
    with pytest.raises(UserError, match=r"vectors.txt:1: 4 numbers .* have 6"):
        read_vectors(path, vocabulary, 6)
    with pytest.raises(UserError, match="none of the vocabulary's tokens"):
        read_vectors(path, Vocabulary(list(SPECIAL_TOKENS)), 4)


@pytest.mark.parametrize("frozen", [True, False])
def test_a_run_begins_with_the_vectors_and_trains_them_unless_frozen(tmp_path, frozen):
    (tmp_path / "vectors.txt").write_text(VECTORS, encoding="utf-8")
    model = f"model.hidden_size=8 model.vectors={tmp_path}/vectors.txt model.freeze_vectors={frozen}"
    run = f"data.train=sample training.max_steps=2 output_dir={tmp_path}/run"
    bundle = train_with("configs/couplet_lstm.yaml", f"model.embedding_size=4 {model} {run}")
    row = bundle.weights["source_embedding.table.weight"][bundle.vocabularies["text"].id("天")]
    assert np.array_equal(row, np.array([0.5, -0.25, 1, 2], np.float32)) is frozen
    np.testing.assert_allclose(row, [0.5, -0.25, 1, 2], atol=0.02)


@pytest.mark.parametrize("tied", [True, False])
def test_the_sampled_sum_has_the_vocabularys_expectation(tied):
    paddle.seed(5)
    output = TiedProjection(TokenEmbedding(VOCABULARY, 6)) if tied else paddle.nn.Linear(6, VOCABULARY)
    output.bias.set_value(paddle.randn([VOCABULARY]))
    hidden, label = paddle.randn([2, 3, 6]), paddle.randint(0, VOCABULARY, [2, 3])
    full = output(hidden)  # [2, 3, V]
    drawn = sampled_logits(output, hidden, label, 1_000_000)  # the mean over many draws
    own = paddle.take_along_axis(full, label.unsqueeze(-1), axis=-1)
    np.testing.assert_allclose(drawn[..., :1].numpy(), own.numpy(), rtol=1e-5)
    np.testing.assert_allclose(drawn.exp().sum(-1).numpy(), full.exp().sum(-1).numpy(), rtol=0.02)
    beyond = sampled_logits(output, hidden, label + VOCABULARY, 5)
    assert (beyond[..., 0].numpy() == -1e4).all()


@pytest.mark.parametrize("pointer", [True, False])
@pytest.mark.parametrize("model", [LSTM, TRANSFORMER], ids=["lstm", "transformer"])
def test_the_sampled_loss_estimates_the_full_one_in_training_alone(model, pointer):
    paddle.seed(1)
    network: Any = (PointerSeq2Seq if pointer else Seq2Seq)(model, VOCABULARY)
    criterion: Any = (PointerCrossEntropy if pointer else SequenceCrossEntropy)(sampled=True)
    source, target, label = (paddle.randint(4, VOCABULARY, [2, 5]) for _ in range(3))
    losses = []
    for training in (True, False):
        (network.train if training else network.eval)()
        (criterion.train if training else criterion.eval)()
        outputs = network(source, paddle.to_tensor([5, 3]), target, label)
        outputs = outputs if pointer else (outputs,)
        assert outputs[0].shape[-1] == (1 + model.sampled_words if training else VOCABULARY)
        losses.append(float(criterion(*outputs, label, paddle.ones([2, 5]))))
    assert losses[0] == pytest.approx(losses[1], abs=0.02)


def test_poems_by_the_reference_engine(tmp_path):
    settings = [f"output_dir={tmp_path}/run", "training.max_steps=2", "model.width=8", "data.min_count=1"]
    options = [part for setting in settings for part in ("-o", setting)]
    assert run_here("train", "-c", "configs/reference/poem_lstm.yaml", *options).status == 0
    beam = ["--weights", str(tmp_path / "run"), "-o", "decoding.strategy=beam", "-o", "decoding.max_length=6"]
    beam += ["-o", "verse.title_weight=0", "--texts-are", "title", "--json", "春夜"]
    for engine in ("fast", "reference"):
        assert records(run_here("predict", *beam, "-o", f"decoding.engine={engine}"))[0]["predictions"]
    refused = run_here("predict", *beam, "-o", "decoding.engine=reference", "--form", "五绝")
    assert refused.status == 2 and "neither a form nor a beginning" in refused.stderr
