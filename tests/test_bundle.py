"""Bundles: the round trip, every kind of damage named in a sentence, and saves that are cut short."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_dialog.bundle import folder as bundle_module
from paddle_dialog.bundle.folder import Bundle, load_bundle, read_weights, save_bundle, set_weights
from paddle_dialog.config.models import LstmAttentionConfig, TransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import Vocabulary

WORDS = Vocabulary.build(["春风", "秋月"])
CONFIG = TransformerConfig(width=8, num_heads=2, inner_width=8, encoder_layers=1, decoder_layers=1)


def make_bundle(value: float = 1.0) -> Bundle:
    weights = {"a.weight": np.full([2, 3], value, dtype="float32"), "a.bias": np.zeros(3, dtype="float32")}
    return Bundle(
        "couplet", "task: couplet\n# 上联\n", {"text": WORDS}, weights, "# card\n", {"x.bin": b"\x00\x01"}
    )


def value_of(folder: Path) -> float:
    return float(load_bundle(folder).weights["a.weight"][0, 0])


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_bundle(make_bundle(), tmp_path / "best")
    return tmp_path / "best"


def test_what_is_saved_is_loaded(saved: Path) -> None:
    loaded, original = load_bundle(str(saved)), make_bundle()
    assert loaded.task == original.task
    assert loaded.config_text == original.config_text
    assert loaded.vocabularies == original.vocabularies
    assert loaded.card == original.card
    assert loaded.extra == original.extra
    assert loaded.weights.keys() == original.weights.keys()
    for name, array in original.weights.items():
        np.testing.assert_array_equal(loaded.weights[name], array)
        assert loaded.weights[name].dtype == array.dtype


def test_the_folder_holds_plain_files_and_nothing_else_stays(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == [
        "README.md",
        "bundle.json",
        "config.yaml",
        "model.safetensors",
        "text.vocabulary.txt",
        "x.bin",
    ]
    assert [path.name for path in saved.parent.iterdir()] == ["best"]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.yaml", "text.vocabulary.txt", "README.md", "x.bin"]
)
def test_a_damaged_file_is_named(saved: Path, name: str) -> None:
    content = bytearray((saved / name).read_bytes())
    content[-1] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name}: is damaged"):
        load_bundle(saved)


@pytest.mark.parametrize("name", ["model.safetensors", "text.vocabulary.txt"])
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(UserError, match=f"{name}: cannot be read .*incomplete"):
        load_bundle(saved)


def test_a_truncated_file_is_named(saved: Path) -> None:
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5])
    with pytest.raises(UserError, match=r"model\.safetensors: is damaged"):
        load_bundle(saved)


def test_a_foreign_or_absent_folder_is_no_bundle(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="is not a bundle"):
            load_bundle(folder)


def change_manifest(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    path = folder / "bundle.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_a_format_of_the_future_is_refused_by_its_number(saved: Path) -> None:
    change_manifest(saved, lambda manifest: manifest.update(format=2, sha256="moved elsewhere"))
    with pytest.raises(UserError, match="has format 2, and this version reads format 1"):
        load_bundle(saved)


@pytest.mark.parametrize("key", ["format", "task", "sha256"])
def test_a_manifest_without_a_key_is_damaged(saved: Path, key: str) -> None:
    change_manifest(saved, lambda manifest: manifest.pop(key))
    with pytest.raises(UserError, match=f"bundle.json: is damaged.*{key}"):
        load_bundle(saved)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '"x"', "\xff"])
def test_a_manifest_that_is_no_manifest_is_damaged(saved: Path, text: str) -> None:
    (saved / "bundle.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=r"bundle\.json: is damaged"):
        load_bundle(saved)


def test_a_manifest_that_lists_no_weights_is_refused(saved: Path) -> None:
    change_manifest(saved, lambda manifest: manifest["sha256"].pop("model.safetensors"))  # type: ignore[attr-defined]
    with pytest.raises(UserError, match=r"not a bundle .*model\.safetensors"):
        load_bundle(saved)


def test_a_second_save_keeps_the_first_as_previous(saved: Path) -> None:
    for value in (2.0, 3.0):
        save_bundle(make_bundle(value), saved)
    assert value_of(saved) == 3.0
    assert value_of(saved.with_name("best.previous")) == 2.0
    assert not saved.with_name("best.partial").exists()


@pytest.mark.parametrize("written", range(6))
def test_a_save_cut_short_leaves_the_old_bundle(
    saved: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Stopped before each of its files by what no handler of ours catches, as by a second Ctrl-C."""
    names: list[str] = []
    write = bundle_module.write_durably

    def failing(path: Path, content: bytes) -> None:
        if len(names) == written:
            path.write_bytes(content[: len(content) // 2])
            raise KeyboardInterrupt
        names.append(path.name)
        write(path, content)

    monkeypatch.setattr(bundle_module, "write_durably", failing)
    with pytest.raises(KeyboardInterrupt):
        save_bundle(make_bundle(2.0), saved)
    assert value_of(saved) == 1.0
    with pytest.raises(UserError):
        load_bundle(saved.with_name("best.partial"))
    monkeypatch.undo()
    save_bundle(make_bundle(3.0), saved)
    assert value_of(saved) == 3.0
    assert not saved.with_name("best.partial").exists()


def test_a_full_disk_is_a_user_error_and_leaves_the_old_bundle(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle_module, "write_durably", failing)
    with pytest.raises(UserError, match="best: cannot write the bundle: No space left on device"):
        save_bundle(make_bundle(2.0), saved)
    assert value_of(saved) == 1.0


def test_a_bundle_that_cannot_take_its_place_gives_the_old_one_back(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name == "best.partial":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(UserError, match="Permission denied"):
        save_bundle(make_bundle(2.0), saved)
    assert value_of(saved) == 1.0


def test_a_folder_that_cannot_be_made_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(UserError, match="cannot write the bundle"):
        save_bundle(make_bundle(), tmp_path / "file" / "best")


def network(vocab_size: int = 20) -> nn.Layer:
    return Seq2Seq(CONFIG, vocab_size)


def test_weights_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(UserError, match=r"here: source_embedding.* \[20, 8\].* \[21, 8\].* vocabulary"):
        set_weights(network(21), read_weights(network(20)), "here")


def test_weights_of_another_model_are_refused_by_a_name() -> None:
    weights = read_weights(network())
    with pytest.raises(UserError, match=r"here: .*another model \(encoder.stack.layers.0.self_attention"):
        set_weights(
            network(), {k: v for k, v in weights.items() if "encoder.stack.layers.0.self" not in k}, "here"
        )
    with pytest.raises(UserError, match=r"another model \(odd\.weight is unknown\)"):
        set_weights(network(), {**weights, "odd.weight": np.zeros(1)}, "here")


def test_refused_weights_change_nothing() -> None:
    target = network(21)
    before = read_weights(target)
    with pytest.raises(UserError):
        set_weights(target, {name: array + 1 for name, array in read_weights(network(20)).items()}, "here")
    for name, array in read_weights(target).items():
        np.testing.assert_array_equal(array, before[name])


def test_half_precision_weights_fill_a_single_precision_network(tmp_path: Path) -> None:
    source, target = network(), network()
    halves = {name: array.astype("float16") for name, array in read_weights(source).items()}
    save_bundle(Bundle("couplet", "", {}, halves), tmp_path / "half")
    loaded = load_bundle(tmp_path / "half")
    set_weights(target, loaded.weights, tmp_path)
    for name, tensor in target.state_dict().items():
        assert loaded.weights[name].dtype == np.float16
        assert tensor.dtype == paddle.float32
        np.testing.assert_array_equal(tensor.numpy(), halves[name].astype("float32"))


def test_a_parameter_of_several_layers_is_stored_once_and_found_under_any_name() -> None:
    config = LstmAttentionConfig(embedding_size=8, hidden_size=8)
    source = Seq2Seq(config, 20)
    weights = read_weights(source)
    assert sum(array.size for array in weights.values()) == sum(
        int(np.prod(parameter.shape)) for parameter in source.parameters()
    )
    every_name = {name: tensor.numpy() for name, tensor in source.state_dict().items()}
    other_names = {name: array for name, array in every_name.items() if not name.endswith(("_l0", "_l1"))}
    assert other_names.keys() != weights.keys() and len(other_names) < len(every_name)
    for stored in (weights, every_name, other_names):
        target = Seq2Seq(config, 20)
        set_weights(target, stored, "here")
        for one, other in zip(target.parameters(), source.parameters(), strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
