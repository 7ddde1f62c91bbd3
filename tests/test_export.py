"""A bundle that ships, made from a run's model; and a run that starts from the weights of another."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from command import run_here
from safetensors.numpy import load_file

import paddle_dialog
from paddle_dialog.bundle.export import export_bundle
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.errors import UserError


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
    texts = [
        [[p.text for p in row] for row in paddle_dialog.load(f).predict(lines)] for f in (source, target)
    ]
    assert texts[0] == texts[1]
    config = (target / "config.yaml").read_text(encoding="utf-8")
    assert str(trained["transformer"].data.parent) not in config
    card = (target / "README.md").read_text(encoding="utf-8")
    assert card.startswith("## Use") and "train.tsv: 320 couplets" in card
    told = re.search(r"(\d+) steps, ([\d.]+) epochs", card)
    assert told and float(told[2]) == pytest.approx(
        int(told[1]) / 10, abs=0.01
    )  # 320 couplets in batches of 32
    assert "| perplexity | 1.2500 |" in card and "| form.length_equal | 1.0000 |" in card


def test_only_what_the_task_names_ships(trained, tmp_path):
    source = trained["transformer"].folder / "last"
    assert "optimizer.safetensors" in load_bundle(source).extra
    export_bundle(source, tmp_path / "shipped")
    assert {path.name for path in (tmp_path / "shipped").iterdir()} == {
        *("bundle.json", "config.yaml", "model.safetensors", "README.md", "text.vocabulary.txt")
    }


def test_weights_beyond_float16_are_refused(trained, tmp_path):
    bundle = load_bundle(trained["transformer"].folder / "best")
    weights = {name: values * np.float32(1e9) for name, values in bundle.weights.items()}
    save_bundle(Bundle(bundle.task, bundle.config_text, bundle.vocabularies, weights), tmp_path / "big")
    with pytest.raises(UserError, match="float16 cannot hold"):
        export_bundle(tmp_path / "big", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_starts_from_the_weights_of_another(trained, tmp_path):
    first = trained["transformer"]
    options = [
        *("-o", f"training.start_from={first.folder}/best", "-o", f"output_dir={tmp_path}/second"),
        *("-o", "training.max_steps=1", "-o", "training.learning_rate=1e-12", "-o", "data.min_count=1000"),
    ]
    outcome = run_here("train", "-c", first.config, *options)
    assert outcome.status == 0, outcome.stderr
    before, after = (load_bundle(folder) for folder in (first.folder / "best", tmp_path / "second" / "last"))
    assert list(before.vocabularies["text"]) == list(after.vocabularies["text"])
    for name, values in before.weights.items():
        np.testing.assert_allclose(after.weights[name], values, atol=1e-6)
    options = ("-o", "training.start_from=nowhere", "-o", f"output_dir={tmp_path}/third")
    line = run_here("train", "-c", first.config, *options).error_line()
    assert "nowhere: is not a bundle" in line


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
    target = tmp_path / "out"
    for name in ("out.partial", "out.previous"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.txt").write_text(name, encoding="utf-8")
    for number in range(3):
        assert (
            run_here("export", "--output", target, "--weights", trained["lstm"].folder / "last").status == 0
        )
        (target / f"notes{number}.txt").write_text("notes", encoding="utf-8")
    kept = {path.name for path in tmp_path.rglob("*.txt") if "vocabulary" not in path.name}
    assert kept == {"mine.txt", "notes0.txt", "notes1.txt", "notes2.txt"}
    assert len(list(tmp_path.rglob("mine.txt"))) == 2
