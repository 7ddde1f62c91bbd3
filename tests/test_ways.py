"""How many files a reader enters on the way from a request, a reply or a training step, and how deep the calls go."""

import json
import subprocess
import sys

import pytest
from command import ROOT

from paddle_dialog.recipes import MODELS

REPLY = ("command", "predict", "-c", "configs/empathetic.yaml", "I lost my dog yesterday.")
COUPLET = ("post", "/v1/couplet", json.dumps({"first": "晚风摇树树还挺"}))


def count(*arguments):
    """Return the files that are entered, and the depth."""
    command = [sys.executable, "tools/count_files.py", *arguments]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    (last,) = [line for line in (ended.stdout + ended.stderr).splitlines() if " files entered, " in line]
    files, _, rest = last.partition(" files entered, ")
    return int(files), int(rest.partition(" deep")[0])


@pytest.mark.parametrize(("way", "most", "deepest"), [(REPLY, 53, 15), (COUPLET, 33, 12)])
def test_a_way_through_the_house_is_short(way, most, deepest):
    if not MODELS.is_dir():
        pytest.skip("no shipped weights")
    files, depth = count(*way)
    assert files <= most and depth <= deepest


def test_a_training_step_is_short(tmp_path):
    options = [f"output_dir={tmp_path / 'run'}", "training.max_steps=2", "training.eval_every=0"]
    recipe = ["-c", "configs/couplet_sample.yaml", *(part for one in options for part in ("-o", one))]
    assert count("step", "train", *recipe)[0] <= 45
