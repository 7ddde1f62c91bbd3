"""Runs with adversarial training: how they resume, what they ship, and settings that are refused."""

from pathlib import Path

import pytest
from command import run_here

from paddle_dialog.bundle.folder import load_bundle

RUN = """
task: empathetic
model: {{name: causal_transformer, width: 16, num_heads: 2, inner_width: 24, num_layers: 1, dropout: 0.1}}
generator: {{context_weight: 0.5}}
adversarial: {{semantic: 0.2, emotional: 0.3, size: 8}}
data: {{max_length: 60, batch_size: 16, mark_turns: true}}
training: {{max_steps: 4, learning_rate: 0.01, eval_every: 2, save_every: 2, show_examples: 1, ema_decay: 0.5}}
decoding: {{strategy: greedy, max_length: 5}}
output_dir: {folder}/run
"""


def run_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "run" / "last").glob("*.safetensors")}


def test_a_run_resumes_to_the_bit_and_ships_no_discriminator(tmp_path: Path) -> None:
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "toy.yaml").write_text(RUN.format(folder=tmp_path / name), encoding="utf-8")
    whole, parts = (tmp_path / name / "toy.yaml" for name in ("whole", "parts"))
    outcome = run_here("train", "-c", whole)
    assert outcome.status == 0, outcome.stderr
    assert run_here("train", "-c", parts, "-o", "training.max_steps=2").status == 0
    resumed = run_here("train", "-c", parts, "--resume", "auto")
    assert resumed.status == 0, resumed.stderr
    one, other = run_files(tmp_path / "whole"), run_files(tmp_path / "parts")
    assert "training_only.safetensors" in one and one == other

    for name in ("best", "last"):
        bundle = load_bundle(tmp_path / "whole" / "run" / name)
        assert not any("adversary" in key for key in bundle.weights)
        assert ("training_only.safetensors" in bundle.extra) == (name == "last")
        weights = ["-c", whole, "--weights", tmp_path / "whole" / "run" / name]
        assert run_here("predict", *weights, "I won.", "--json").status == 0
        evaluated = run_here("evaluate", *weights, "--data", "sample", "--json")
        assert evaluated.status == 0, evaluated.stderr

    begun = run_here(
        "train", "-c", parts, "-o", f"training.start_from={tmp_path}/whole/run/best", "--overwrite"
    )
    assert begun.status == 0, begun.stderr
    off = ["-o", "adversarial.semantic=0", "-o", "adversarial.emotional=0", "-o", "training.max_steps=6"]
    refused = run_here("train", "-c", whole, "--resume", "auto", *off)
    assert refused.status == 2 and "adversary." in refused.stderr and "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("semantic: -1", "adversarial.semantic"),
        ("temperature: 0", "adversarial.temperature"),
        ("size: 0", "adversarial.size"),
        ("meaning: 1", "adversarial.meaning"),
    ],
)
def test_a_wrong_setting_is_told_in_one_line(setting: str, told: str, tmp_path: Path) -> None:
    recipe = tmp_path / "toy.yaml"
    recipe.write_text(f"task: empathetic\nadversarial: {{{setting}}}\n", encoding="utf-8")
    outcome = run_here("train", "-c", recipe, "-o", f"output_dir={tmp_path}/run")
    assert outcome.status == 2 and told in outcome.stderr and len(outcome.stderr.strip().splitlines()) == 1
