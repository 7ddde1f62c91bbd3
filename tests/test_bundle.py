"""Bundles: the round trip, damage named in a sentence, saves that are cut short, weights in other forms."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import paddle
import pytest
from command import run_here
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file

import paddle_dialog
from paddle_dialog.bundle.export import export_bundle
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import grow_weights, read_weights, set_weights
from paddle_dialog.config.models import LstmAttentionConfig, TransformerConfig
from paddle_dialog.data.eight_bits import SCALE, EightBitWeights, quantize
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import Vocabulary

WORDS = Vocabulary.build(["春风", "秋月"])
CONFIG = TransformerConfig(width=8, num_heads=2, inner_width=8, encoder_layers=1, decoder_layers=1)


def make_bundle(value=1.0):
    weights = {"a.weight": np.full([2, 3], value, dtype="float32"), "a.bias": np.zeros(3, dtype="float32")}
    parts = {"text": WORDS}, weights, "# card\n", {"x.bin": b"\x00\x01"}
    return Bundle("couplet", "task: couplet\n# 上联\n", *parts)


def value_of(folder):
    return float(load_bundle(folder).weights["a.weight"][0, 0])


@pytest.fixture
def saved(tmp_path):
    save_bundle(make_bundle(), tmp_path / "best")
    return tmp_path / "best"


def test_what_is_saved_is_loaded(saved):
    loaded, original = load_bundle(str(saved)), make_bundle()
    assert dataclasses.replace(loaded, weights={}) == dataclasses.replace(original, weights={})
    assert loaded.weights.keys() == original.weights.keys()
    for name, array in original.weights.items():
        np.testing.assert_array_equal(loaded.weights[name], array)
        assert loaded.weights[name].dtype == array.dtype
    assert {path.name for path in saved.iterdir()} == {*FILES, "bundle.json"}
    assert [path.name for path in saved.parent.iterdir()] == ["best"]


FILES = ["model.safetensors", "config.yaml", "text.vocabulary.txt", "README.md", "x.bin"]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_or_missing_file_is_named(saved, name):
    content = bytearray((saved / name).read_bytes())
    content[-1] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name}: is damaged"):
        load_bundle(saved)
    (saved / name).unlink()
    with pytest.raises(UserError, match=f"{name}: cannot be read .*incomplete"):
        load_bundle(saved)


def test_a_foreign_or_absent_folder_is_no_bundle(tmp_path):
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="is not a bundle"):
            load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: m.update(format=2, sha256="moved"), "has format 2, and this version reads format 1"),
        (lambda manifest: manifest.pop("format"), "bundle.json: is damaged.*format"),
        (lambda manifest: manifest.pop("task"), "bundle.json: is damaged.*task"),
        (lambda manifest: manifest.pop("sha256"), "bundle.json: is damaged.*sha256"),
        (lambda manifest: manifest["sha256"].pop("model.safetensors"), r"not a bundle .*model\.safetensors"),
    ],
)
def test_a_manifest_of_another_format_or_without_a_part_is_refused(saved, change, said):
    path = saved / "bundle.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(UserError, match=said):
        load_bundle(saved)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '"x"', "\xff"])
def test_a_manifest_that_is_no_manifest_is_damaged(saved, text):
    (saved / "bundle.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"bundle\.json: is damaged"):
        load_bundle(saved)


def test_a_bundle_that_cannot_take_its_place_gives_the_old_one_back(saved, monkeypatch):
    rename = Path.rename

    def failing(self, target):
        if self.name == "best.partial":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(UserError, match="Permission denied"):
        save_bundle(make_bundle(2.0), saved)
    assert value_of(saved) == 1.0


def test_a_folder_that_cannot_be_made_is_a_user_error(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(UserError, match="cannot write the bundle"):
        save_bundle(make_bundle(), tmp_path / "file" / "best")


def network(vocab_size=20):
    return Seq2Seq(CONFIG, vocab_size)


def test_weights_of_another_model_are_refused_by_a_name():
    weights = read_weights(network())
    fewer = {k: v for k, v in weights.items() if "encoder.stack.layers.0.self" not in k}
    with pytest.raises(UserError, match=r"here: .*another model \(encoder.stack.layers.0.self_attention"):
        set_weights(network(), fewer, "here")
    with pytest.raises(UserError, match=r"another model \(odd\.weight is unknown\)"):
        set_weights(network(), {**weights, "odd.weight": np.zeros(1)}, "here")


def test_weights_of_another_vocabulary_are_refused_and_change_nothing():
    target = network(21)
    before = read_weights(target)
    with pytest.raises(UserError, match=r"here: source_embedding.* \[20, 8\].* \[21, 8\].* vocabulary"):
        set_weights(target, {name: array + 1 for name, array in read_weights(network(20)).items()}, "here")
    for name, array in read_weights(target).items():
        np.testing.assert_array_equal(array, before[name])


def test_half_precision_weights_fill_a_single_precision_network(tmp_path):
    source, target = network(), network()
    halves = {name: array.astype("float16") for name, array in read_weights(source).items()}
    save_bundle(Bundle("couplet", "", {}, halves), tmp_path / "half")
    loaded = load_bundle(tmp_path / "half")
    set_weights(target, loaded.weights, tmp_path)
    for name, tensor in target.state_dict().items():
        assert loaded.weights[name].dtype == np.float16
        assert tensor.dtype == paddle.float32
        np.testing.assert_array_equal(tensor.numpy(), halves[name].astype("float32"))


def test_a_parameter_of_several_layers_is_stored_once_and_found_under_any_name():
    config = LstmAttentionConfig(embedding_size=8, hidden_size=8)
    source = Seq2Seq(config, 20)
    weights = read_weights(source)
    numbers = sum(int(np.prod(parameter.shape)) for parameter in source.parameters())
    assert sum(array.size for array in weights.values()) == numbers
    every_name = {name: tensor.numpy() for name, tensor in source.state_dict().items()}
    other_names = {name: array for name, array in every_name.items() if not name.endswith(("_l0", "_l1"))}
    assert other_names.keys() != weights.keys() and len(other_names) < len(every_name)
    for stored in (weights, every_name, other_names):
        target = Seq2Seq(config, 20)
        set_weights(target, stored, "here")
        for one, other in zip(target.parameters(), source.parameters(), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())


@settings(max_examples=30)
@given(seed=st.integers(0, 999), rows=st.integers(1, 5), size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_a_number_comes_back_within_half_a_step_of_its_row(seed, rows, size):
    draws = np.random.default_rng(seed)
    weights = {
        "table": (size * draws.normal(size=(rows, 6))).astype(np.float32),
        "column": draws.normal(size=(rows, 1)).astype(np.float32),
        "norm.scale": draws.normal(size=4).astype(np.float32),
        "kernel": draws.normal(size=(2, 3, 4)).astype(np.float32),
        "number": np.array(draws.normal(), np.float32),
    }
    found = EightBitWeights(quantize(weights))
    assert found.keys() == weights.keys()
    step = np.abs(weights["table"]).max(axis=1, keepdims=True) / 127
    assert (np.abs(found["table"] - weights["table"]) <= 0.5001 * step).all()
    assert all((found[name] == weights[name]).all() for name in weights.keys() - {"table"})


def test_the_numbers_of_a_matrix_by_hand():
    tensors = quantize({"table": np.array([[1.27, -0.634], [0.0, 0.0]], np.float32)})
    assert tensors["table"].dtype == np.int8 and tensors["table"].tolist() == [[127, -63], [0, 0]]
    assert tensors["table" + SCALE][0, 0] == pytest.approx(0.01)
    assert EightBitWeights(tensors)["table"] == pytest.approx(np.array([[1.27, -0.63], [0.0, 0.0]]))


def test_a_bundle_that_is_saved_again_keeps_its_8_bits(trained, tmp_path):
    bundle = dataclasses.replace(load_bundle(trained["lstm"].folder / "last"), eight_bits=True)
    save_bundle(bundle, tmp_path / "once")
    save_bundle(load_bundle(tmp_path / "once"), tmp_path / "twice")
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("once", "twice")]
    assert files[0] == files[1]


SMALL = TransformerConfig(
    width=8, num_heads=2, inner_width=16, encoder_layers=1, decoder_layers=2, dropout=0.0,
    bias=False, share_embeddings=True, tie_output=True, aligned_input=True, max_positions=16,
)  # fmt: skip


def logits(network):
    source, lengths = paddle.to_tensor([[5, 6, 7, 3], [8, 9, 3, 0]]), paddle.to_tensor([4, 3])
    return network(source, lengths, paddle.to_tensor([[2, 4, 5], [2, 6, 7]])).numpy()


def test_more_layers_and_rows_change_nothing_at_first_and_then_learn():
    small = Seq2Seq(SMALL, 12)
    large = Seq2Seq(dataclasses.replace(SMALL, encoder_layers=3, decoder_layers=3), 14)
    first = read_weights(large)
    set_weights(large, grow_weights(first, read_weights(small)), "small")
    np.testing.assert_allclose(logits(large)[..., :12], logits(small), atol=1e-5)
    table = read_weights(large)["source_embedding.table.weight"]
    np.testing.assert_array_equal(table[12:], first["source_embedding.table.weight"][12:])

    batch = [paddle.to_tensor(part) for part in ([[5, 3]], [2], [[2, 6]])]
    large(*batch).square().sum().backward()
    ends = [weight for name, weight in large.named_parameters() if name.endswith("contract.weight")]
    assert len(ends) == 6 and all(float(weight.grad.abs().sum()) > 0 for weight in ends)


def test_a_network_of_the_same_size_takes_the_weights_as_they_are():
    given = read_weights(Seq2Seq(SMALL, 12))
    found = grow_weights(read_weights(Seq2Seq(SMALL, 12)), given)
    assert found.keys() == given.keys() and all(found[name] is given[name] for name in given)


@pytest.mark.parametrize("eight_bits", [False, True])
def test_exported_bundle_answers_alike_in_half_the_size(trained, tmp_path, eight_bits):
    source = trained["transformer"].folder / "last"
    about, metrics = tmp_path / "about.md", tmp_path / "metrics.json"
    about.write_text("## Use\nFor verse.\n", encoding="utf-8")
    metrics.write_text(json.dumps({"perplexity": 1.25, "form": {"length_equal": 1.0}}), encoding="utf-8")
    target = tmp_path / "shipped"
    options = ("--about", about, "--metrics", metrics, *["--eight-bits"] * eight_bits)
    outcome = run_here("export", "--weights", source, "--output", target, *options)
    assert outcome.status == 0, outcome.stderr
    whole, small = load_bundle(source), load_bundle(target)
    assert "optimizer.safetensors" in whole.extra and small.extra == {}
    assert whole.weights.keys() == small.weights.keys()
    assert small.eight_bits is eight_bits and not whole.eight_bits
    for name, values in whole.weights.items():
        assert small.weights[name] == pytest.approx(values, abs=float(np.abs(values).max()) / 127)
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (source, target)]
    # Of a large network a half and a quarter; a small one is mostly vectors and names.
    assert sizes[1] < (0.55 if eight_bits else 0.6) * sizes[0]
    stored = {values.dtype for values in load_file(target / "model.safetensors").values()}
    assert eight_bits or stored == {np.dtype(np.float16)}
    lines = ["天山春红", "风高来"]
    both = [paddle_dialog.load(folder).predict(lines) for folder in (source, target)]
    assert [[p.text for p in row] for row in both[0]] == [[p.text for p in row] for row in both[1]]
    config = (target / "config.yaml").read_text(encoding="utf-8")
    assert str(trained["transformer"].data.parent) not in config
    card = (target / "README.md").read_text(encoding="utf-8")
    assert card.startswith("## Use") and "train.tsv: 320 couplets" in card
    told = re.search(r"(\d+) steps, ([\d.]+) epochs", card)
    # 320 couplets in batches of 32
    assert told and float(told[2]) == pytest.approx(int(told[1]) / 10, abs=0.01)
    assert "| perplexity | 1.2500 |" in card and "| form.length_equal | 1.0000 |" in card


def test_weights_beyond_float16_are_refused(trained, tmp_path):
    bundle = load_bundle(trained["transformer"].folder / "best")
    weights = {name: values * np.float32(1e9) for name, values in bundle.weights.items()}
    save_bundle(Bundle(bundle.task, bundle.config_text, bundle.vocabularies, weights), tmp_path / "big")
    with pytest.raises(UserError, match="float16 cannot hold"):
        export_bundle(tmp_path / "big", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_but_a_bundle_is_written_over(trained, tmp_path):
    source = trained["lstm"].folder / "last"
    file, folder = tmp_path / "couplets.tsv", tmp_path / "notes"
    file.write_text("春\t秋\n", encoding="utf-8")
    folder.mkdir()
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    for place in (file, folder):
        with pytest.raises(UserError, match="is no bundle, and writing one would replace it"):
            save_bundle(load_bundle(source), place)
    assert file.is_file() and (folder / "notes.txt").read_text(encoding="utf-8") == "mine"
    for _ in range(2):  # into an empty folder, and over a bundle
        (tmp_path / "new").mkdir(exist_ok=True)
        assert run_here("export", "--weights", source, "--output", tmp_path / "new").status == 0


def test_another_model_is_replaced_where_that_is_asked_for(trained, tmp_path):
    target, sources = tmp_path / "out", [trained[name].folder / "last" for name in ("lstm", "transformer")]
    export = ("export", "--output", target, "--weights")
    assert run_here(*export, sources[0]).status == run_here(*export, sources[0]).status == 0
    line = run_here(*export, sources[1]).error_line()
    assert f"{target}: is the bundle of another model; name a new folder, or add --overwrite" in line
    assert run_here(*export, sources[1], "--overwrite").status == 0


def test_what_is_not_ours_is_kept(trained, tmp_path):
    target, source = tmp_path / "out", trained["lstm"].folder / "last"
    for name in ("out.partial", "out.previous"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text(name, encoding="utf-8")
    for number in range(3):
        assert run_here("export", "--output", target, "--weights", source).status == 0
        (target / f"notes{number}.txt").write_text("notes", encoding="utf-8")
    kept = {path.name for path in tmp_path.rglob("*.txt") if "vocabulary" not in path.name}
    assert kept == {"mine.txt", "notes0.txt", "notes1.txt", "notes2.txt"}
    assert len(list(tmp_path.rglob("mine.txt"))) == 2
