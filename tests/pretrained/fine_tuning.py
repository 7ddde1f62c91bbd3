"""Fine-tunes tiny checkpoints by the train command."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from command import run_here

COUPLETS = 32
ROOT = Path(__file__).resolve().parents[2]
RECIPE = """
task: couplet
model: {{name: pretrained, pretrained: {base}, lora: {lora}}}
data: {{train: {folder}/train.tsv, dev: {folder}/train.tsv, max_length: 32, batch_size: 16}}
training:
  {{epochs: 40, optimizer: adamw, learning_rate: {rate}, schedule: cosine, save_every: 7, eval_every: 1000,
   log_every: 20}}
decoding: {{beam_size: 4, max_length: 32}}
rules: {{enabled: false}}
output_dir: {folder}/{name}
"""
ALL, LORA = "null", "{rank: 16, alpha: 32, dropout: 0.0}"


@dataclass(frozen=True)
class Tuned:
    """A tiny model that the train command fine-tuned on 32 couplets.

    Args:
        config: its recipe.
        folder: its run.
        base: the checkpoint that it began with.
        log: what the command said.
    """

    config: Path
    folder: Path
    base: Path
    log: str


def recipe(folder, name, shape, lora, rate):
    """Write a recipe of couplets for a checkpoint."""
    path = folder / f"{name}.yaml"
    text = RECIPE.format(folder=folder, name=name, base=folder / shape, lora=lora, rate=rate)
    path.write_text(text, encoding="utf-8")
    return path


def tune(folder, name, shape, lora, rate, *options):
    """Fine-tune a checkpoint."""
    config = recipe(folder, name, shape, lora, rate)
    outcome = run_here("train", "-c", config, *options)
    assert outcome.status == 0, outcome.stderr
    return Tuned(config, folder / name, folder / shape, outcome.stderr)
