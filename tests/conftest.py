"""Fixtures that test files share: one tiny trained model of each family, and the page in a browser."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import Outcome, run, run_here

# Those of pre-trained models have an environment of their own (tools/test.sh).
collect_ignore = [] if find_spec("paddleformers") else ["pretrained"]

# A shell that starts the tests in the background has them, and all commands they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter):
    """Say in one line what was skipped and why, and how to have it."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        told = "; ".join(f"{count} × {reason}" for reason, count in reasons.items())
        terminalreporter.write_line(f"skipped: {told}")


UPPER, LOWER = "天山春红风高来", "地水秋绿月低去"
RECIPES = {
    "lstm": """
model: {name: lstm_attention, embedding_size: 16, hidden_size: 24, num_layers: 1, dropout: 0.0}
""",
    "transformer": """
model:
  {name: transformer, width: 16, num_heads: 2, inner_width: 32, encoder_layers: 1, decoder_layers: 1,
   max_positions: 16, dropout: 0.0, aligned_input: true}
""",
}
COMMON = """
task: couplet
data: {{train: {folder}/train.tsv, dev: {folder}/dev.tsv, max_length: 12, batch_size: 32}}
training: {{epochs: 2, learning_rate: 0.02, log_every: 5, eval_every: 7, save_every: 5}}
decoding: {{beam_size: 4, max_length: 12}}
rules: {{enabled: false}}
output_dir: {folder}/{family}
"""


@dataclass(frozen=True)
class Trained:
    """A tiny model that the real train command made.

    Args:
        config: its recipe.
        folder: its run.
        data: its dev couplets.
        outcome: what the command printed.
    """

    config: Path
    folder: Path
    data: Path
    outcome: Outcome


def write_couplets(path, count, seed):
    """Write couplets over seven pairs of opposites: each character of 下联 is the opposite of that of 上联."""
    generator = random.Random(seed)
    opposite = str.maketrans(UPPER, LOWER)
    firsts = ["".join(generator.choices(UPPER, k=generator.randint(3, 6))) for _ in range(count)]
    path.write_text("".join(f"{first}\t{first.translate(opposite)}\n" for first in firsts), encoding="utf-8")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the models by family; the workers of one session share them."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {family: _train(folder, family) for family in RECIPES}


def _train(folder, family):
    config, log = folder / f"{family}.yaml", folder / f"{family}.outcome"
    if not log.exists():
        write_couplets(folder / "train.tsv", 320, seed=1)
        write_couplets(folder / "dev.tsv", 30, seed=2)
        config.write_text(COMMON.format(folder=folder, family=family) + RECIPES[family], encoding="utf-8")
        # One real process proves that door; the second would import PaddleNLP for ten seconds more.
        outcome = (run if family == "lstm" else run_here)("train", "-c", config, "-o", "seed=3")
        assert outcome.status == 0, outcome.stderr
        log.write_text(json.dumps(dataclasses.astuple(outcome)), encoding="utf-8")
    outcome = Outcome(*json.loads(log.read_text(encoding="utf-8")))
    return Trained(config, folder / family, folder / "dev.tsv", outcome)


@pytest.fixture(params=RECIPES)
def model(request, trained):
    """Return the model of each family in turn."""
    return trained[request.param]


@pytest.fixture
def lstm(trained):
    """Return the recurrent model."""
    return trained["lstm"]


@pytest.fixture(scope="module")
def browser():
    """Yield a headless browser."""
    from chromium import launched  # a file without a browser needs no Playwright

    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def address(request):
    """Yield the address of a server of the tasks that the test file's `SERVED` names."""
    from page_browser import served

    with served(*request.module.SERVED) as url:
        yield url


@pytest.fixture
def page(request, browser, address):
    """Yield the page in a tab of its own; the test file's `PREPARE`, if any, is called with the empty tab."""
    from page_browser import opened

    prepare = getattr(request.module, "PREPARE", lambda tab: None)
    with opened(browser, address, prepare=prepare) as tab:
        yield tab
