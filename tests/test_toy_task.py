"""The whole pipeline on a task that can be learnt perfectly: write the line backwards."""

import json
import random
import re

import pytest
from command import run_here

HANZI = "山水云月花鸟风松"
RECIPES = {
    "lstm_attention": """
model: {name: lstm_attention, embedding_size: 32, hidden_size: 64, num_layers: 1, dropout: 0.0}
training: {epochs: 12, learning_rate: 0.01, schedule: cosine, warmup_steps: 20, save_every: 1000}
""",
    "transformer": """
model:
  {name: transformer, width: 64, num_heads: 4, inner_width: 128, encoder_layers: 1, decoder_layers: 2,
   max_positions: 16, dropout: 0.0}
training:
  {epochs: 24, learning_rate: 0.003, schedule: cosine, warmup_steps: 50, clip_norm: 1.0, eval_every: 768,
   save_every: 1000}
""",
    "transformer with Muon": """
model:
  {name: transformer, width: 64, num_heads: 4, inner_width: 128, encoder_layers: 1, decoder_layers: 2,
   max_positions: 16, dropout: 0.0}
training:
  {epochs: 16, optimizer: muon, learning_rate: 0.003, schedule: cosine, warmup_steps: 50, clip_norm: 1.0,
   eval_every: 512, save_every: 1000}
""",
}
COMMON = """
task: couplet
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 8, batch_size: 64}}
decoding: {{beam_size: 4, max_length: 8}}
rules: {{enabled: false}}
output_dir: {folder}/run
"""


@pytest.fixture(scope="module")
def lines():
    """Return 2,000 different lines to learn from, and 100 others."""
    generator = random.Random(7)
    found = {"".join(generator.choices(HANZI, k=generator.randint(3, 6))): None for _ in range(4000)}
    found = list(found)
    return found[:2000], found[2000:2100]


@pytest.mark.parametrize("recipe", RECIPES)
def test_lines_are_written_backwards(recipe, lines, tmp_path):
    train, dev = lines
    assert len(dev) == 100 and not set(train) & set(dev)
    for name, part in (("train", train), ("dev", dev)):
        text = "".join(f"{line}\t{line[::-1]}\n" for line in part)
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    config = tmp_path / "toy.yaml"
    config.write_text(COMMON.format(folder=tmp_path) + RECIPES[recipe], encoding="utf-8")

    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.05

    for strategy in ("greedy", "beam"):
        answered = run_here("predict", "-c", config, "--json", "-o", f"decoding.strategy={strategy}", *dev)
        answers = [json.loads(line)["predictions"][0]["text"] for line in answered.stdout.splitlines()]
        assert answers == [line[::-1] for line in dev], strategy
