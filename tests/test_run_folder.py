"""The folder of a run, and what a resumed run changes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from command import run_here

from paddle_dialog.bundle.folder import Bundle, TrainedModel, load_bundle, save_bundle
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.config.schema import DecodingConfig, TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.couplet.config import CoupletConfig, CoupletDataConfig
from paddle_dialog.tasks.couplet.task import TASK
from paddle_dialog.training.progress import Progress, Stop
from paddle_dialog.training.run import Run


@pytest.fixture
def couplets(tmp_path):
    """Return four training pairs; the dev pair has a character that none of them has."""
    (tmp_path / "train.tsv").write_text("春風秋月\t山水花鳥\n" * 4, encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("春風春月\t山水龍\n", encoding="utf-8")
    return tmp_path


def recipe(folder, run="run"):
    return CoupletConfig(
        task="couplet",
        output_dir=str(folder / run),
        model=LstmAttentionConfig(embedding_size=4, hidden_size=4, num_layers=1),
        data=CoupletDataConfig(str(folder / "train.tsv"), str(folder / "dev.tsv"), batch_size=2),
        training=TrainingConfig(max_steps=2),
        decoding=DecodingConfig(max_length=8, beam_size=2),
    )


def leave_run(folder):
    """Return a run that saved its best model, and its state at steps 1 and 2."""
    run = Run.begin(TASK, recipe(folder))
    for step in (1, 2):
        run.progress.step = run.progress.skipped = step  # none was taken
        run._save("last")
    run._save("best")
    return run


def test_a_run_stopped_after_its_last_step_takes_no_further_one(couplets):
    before = leave_run(couplets)
    assert not before.progress.finished
    resumed = Run.resume(TASK, recipe(couplets))
    progress = resumed.train()
    assert (progress.step, progress.finished) == (2, True)
    for one, other in zip(before.network.parameters(), resumed.network.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("left", ["last", "last.previous", "last.partial"])
def test_a_folder_with_a_run_is_not_written_over_unasked(couplets, left):
    leave_run(couplets)
    folder = couplets / "run"
    (folder / "last.previous").rename(folder / "elsewhere")
    (folder / "last").rename(folder / left)
    with pytest.raises(UserError, match="already holds a run"):
        Run.begin(TASK, recipe(couplets))
    assert Run.resume(TASK, recipe(couplets)).progress.step == 2
    assert Run.begin(TASK, recipe(couplets), overwrite=True).progress.step == 0
    assert [path.name for path in folder.iterdir() if path.name.startswith(("last", "best"))] == []


def test_resuming_takes_the_bundle_that_is_named(couplets):
    leave_run(couplets)
    folder, other = couplets / "run", recipe(couplets, "other")
    assert Run.resume(TASK, other, str(folder / "last.previous")).progress.step == 1
    assert Run.resume(TASK, other, str(folder / "last")).progress.step == 2
    assert Run.resume(TASK, other, str(folder)).progress.step == 2
    with pytest.raises(UserError, match="holds no checkpoint"):
        Run.resume(TASK, other, str(couplets))


def test_a_checkpoint_of_another_task_is_refused(couplets):
    leave_run(couplets)
    last = couplets / "run" / "last"
    bundle = load_bundle(last)
    save_bundle(Bundle("other", bundle.config_text, {}, bundle.weights, "", bundle.extra), last)
    with pytest.raises(UserError, match="is of the task 'other'"):
        Run.resume(TASK, recipe(couplets))


PAIRS = "春风\t秋雨\n天高\t地远\n山红\t水绿\n月明\t星暗\n"


def train(trained, folder, *more):
    """Train the toy recipe on four couplets, two steps an epoch."""
    settings = [f"output_dir={folder}", "data.batch_size=2", "data.min_count=1", "training.warmup_steps=0"]
    options = [word for setting in settings for word in ("-o", setting)]
    return run_here("train", "-c", trained["lstm"].config, *options, *more)


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS, encoding="utf-8")
    return path


def data(path):
    return ["-o", f"data.train={path}", "-o", f"data.dev={path}"]


def test_a_resumed_run_tells_what_it_changes_and_ends_with_its_new_epochs(trained, tmp_path, pairs):
    folder, more = tmp_path / "run", tmp_path / "more.tsv"
    assert train(trained, folder, *data(pairs), "-o", "training.epochs=1").status == 0
    before = (folder / "config.yaml").read_bytes()
    sample = ["-o", "data.train=sample", "-o", "data.dev=sample"]  # as where the data are forgotten
    line = train(trained, folder, *sample, "-o", "training.epochs=1", "--resume", "auto").error_line()
    assert f"was trained with data.train {pairs}, and is to continue with sample" in line
    assert (folder / "config.yaml").read_bytes() == before
    # Three steps an epoch instead of two.
    more.write_text(PAIRS + "花香\t鸟语\n云淡\t雨浓\n", encoding="utf-8")
    changed = ["-o", f"data.train={more}", "-o", f"data.dev={pairs}", "-o", "training.epochs=2"]
    resumed = train(trained, folder, *changed, "--resume", "auto")
    assert resumed.status == 0, resumed.stderr
    assert f"changed since the checkpoint: data.train {pairs} → {more}" in resumed.stderr
    assert "changed since the checkpoint: training.epochs 1 → 2" in resumed.stderr
    assert "parameters, 5 steps in all" in resumed.stderr
    progress = json.loads((folder / "last" / "progress.json").read_text())
    assert progress["finished"] and progress["step"] == 5 and progress["curve"][-1][0] == 5
    again = train(trained, folder, *changed, "--resume", "auto")
    assert again.status == 0 and "the run has already finished, at step 5" in again.stderr


def test_a_resumed_run_reports_changed_data_and_measures_its_best_anew(trained, tmp_path, pairs):
    folder, dev = tmp_path / "run", tmp_path / "dev.tsv"
    dev.write_text(PAIRS, encoding="utf-8")
    named = ["-o", f"data.train={pairs}", "-o", f"data.dev={dev}"]
    assert train(trained, folder, *named, "-o", "training.epochs=2").status == 0
    before = json.loads((folder / "last" / "progress.json").read_text())
    pairs.write_text(PAIRS + "花香\t鸟语\n云淡\t雨浓\n", encoding="utf-8")
    dev.write_text("春山\t秋水\n", encoding="utf-8")
    more = [*named, "-o", "training.epochs=3", "-o", "training.learning_rate=1e-9", "--resume", "auto"]
    resumed = train(trained, folder, *more)
    assert resumed.status == 0, resumed.stderr
    for key in ("data.train", "data.dev"):
        assert f"changed since the checkpoint: the content of {key}\n" in resumed.stderr
    found = re.search(r"the best model so far, of step (\d+), has the perplexity (\S+) on it", resumed.stderr)
    assert found and int(found[1]) == before["best_step"]
    after = json.loads((folder / "last" / "progress.json").read_text())
    assert after["best_figure"] != before["best_figure"]
    assert after["curve"][-1][1] == pytest.approx(float(found[2]), rel=1e-3)  # the weights hardly move
    again = train(trained, folder, *more)
    assert "the content of" not in again.stderr and "already finished" in again.stderr


def test_an_evaluation_uses_a_sample_of_the_dev_set(trained, tmp_path, pairs):
    short, lines, curves = tmp_path / "short.tsv", PAIRS.splitlines(keepends=True), []
    short.write_text(lines[0] + lines[-1], encoding="utf-8")
    settings = ["-o", f"data.train={pairs}", "-o", "training.max_steps=1", "-o", "training.max_dev=2"]
    for dev in (pairs, short):
        folder = tmp_path / dev.stem / "run"
        assert train(trained, folder, *settings, "-o", f"data.dev={dev}").status == 0
        curves.append(json.loads((folder / "last" / "progress.json").read_text())["curve"])
    assert curves[0] == curves[1] and len(curves[0]) == 1


def test_a_model_whose_two_forms_differ_answers_through_paddle(trained, tmp_path, pairs, monkeypatch):
    """As where a part of the network was varied in Paddle alone: here the steps take other weights."""
    message = "the network's answers to dev examples differ from those of its steps"
    settings = ["-o", "training.max_steps=4", "-o", "training.learning_rate=0.1"]
    same = train(trained, tmp_path / "same", *data(pairs), *settings)
    assert same.status == 0 and message not in same.stderr, same.stderr
    assert not (tmp_path / "same" / "best" / "through_paddle.txt").exists()

    whole = TrainedModel.fastest

    def varied(self, make, through_paddle=None):
        return whole(
            self, lambda weights: make({name: 1.5 * weights[name] for name in weights}), through_paddle
        )

    with monkeypatch.context() as patch:
        patch.setattr(TrainedModel, "fastest", varied)
        other = train(trained, tmp_path / "other", *data(pairs), *settings)
    assert other.status == 0 and other.stderr.count(message) == 1, other.stderr
    best = tmp_path / "other" / "best"
    assert load_bundle(best).weights.keys() == load_bundle(tmp_path / "same" / "best").weights.keys()
    answer = run_here("predict", "--weights", best, "春风", "--json")
    assert f"{best}: {message} in NumPy; answering through Paddle" in answer.stderr
    expected = run_here("predict", "--weights", tmp_path / "same" / "best", "春风", "--json")
    assert answer.stdout == expected.stdout and answer.status == 0


def test_the_steps_of_a_run_whose_epochs_have_another_length_now():
    settings, later = TrainingConfig(epochs=3, accumulate=2), Progress(epoch=1, batch=2, step=4)
    assert Progress().total_steps(settings, 5) == 9  # two whole steps an epoch, and a rest
    assert later.total_steps(settings, 5) == 9
    assert later.total_steps(settings, 10) == 4 + 4 + 5  # what is left of the second epoch, and the third
    assert Progress(epoch=3, step=9).total_steps(settings, 3) == 9
    assert Progress(step=9).completion(9, None) is Stop.FINISHED


def test_what_is_wrong_with_tiny_data_is_told_once_with_the_remedy(trained, tmp_path, pairs):
    rare = train(trained, tmp_path / "run", *data(pairs), "-o", "data.min_count=1000").error_line()
    assert "a vocabulary of 4 tokens has none of its 16; set -o data.min_count=1" in rare
    dev = tmp_path / "dev.tsv"
    dev.write_text("山红\t水绿\n云淡\t雨浓\n", encoding="utf-8")
    pairs.write_text(PAIRS + "春红\t秋绿\n", encoding="utf-8")
    files = ("-o", f"data.train={pairs}", "-o", f"data.dev={dev}", "-o", "training.epochs=1")
    more = ("-o", "data.min_count=2", "-o", "training.warmup_steps=9")
    told = train(trained, tmp_path / "run", *files, *more).stderr
    for once in (
        "data.train: 60 % of its tokens are not in the vocabulary; set -o data.min_count=1",
        "data.dev: 50 % of it is in data.train, so its figures measure what was learnt by heart",
        "training.warmup_steps is 9 and the run has 3 steps: the rate never reaches its height; set -o training.warm",
    ):
        assert told.count(once) == 1, told
    assert "data.dev: 50 % of it is in data.train" in run_here("evaluate", "-c", tmp_path / "run").stderr
    other = train(trained, tmp_path / "other", *files, "-o", "data.dev=null").stderr
    assert "data.dev" not in other and "not in the vocabulary" not in other


def test_a_run_that_begins_with_weights_names_them_and_what_it_does_not_keep(
    trained, tmp_path, pairs, monkeypatch
):
    monkeypatch.setattr("paddle_dialog.recipes.MODELS", tmp_path)
    best = load_bundle(trained["lstm"].folder / "best")
    card = "# A card\n## Data and licence\nOnly for the test, CC BY.\n\n## Limits\nMany.\n"
    parts = best.config_text, best.vocabularies, best.weights, card
    whole = Bundle("couplet", *parts, {"judge.safetensors": b"x"})
    save_bundle(whole, tmp_path / "shipped")
    begun = ["-o", "training.start_from=shipped", "-o", "training.max_steps=1"]
    told = train(trained, tmp_path / "run", *data(pairs), *begun, "-o", "training.learning_rate=1e-12")
    assert told.status == 0 and "not kept of shipped, as they were made for its" in told.stderr, told.stderr
    last = load_bundle(tmp_path / "run" / "last")
    assert list(best.vocabularies["text"]) == list(last.vocabularies["text"])
    for name, values in best.weights.items():
        np.testing.assert_allclose(last.weights[name], values, atol=1e-6)
    longer = ["-o", "training.start_from=shipped", "-o", "training.max_steps=2", "--resume", "auto"]
    assert train(trained, tmp_path / "run", *data(pairs), *longer).status == 0
    card = (tmp_path / "run" / "last" / "README.md").read_text(encoding="utf-8")
    _, _, section = card.partition("## Began with\nThe weights `shipped`, of which their card says:\n")
    assert "> Data and licence\n> Only for the test, CC BY.\n" in section and "Limits" not in section
    assert "of its data: judge.safetensors\n" in section


def test_training_without_paddlenlp_says_so_and_has_the_same_perplexity(
    trained, tmp_path, pairs, monkeypatch
):
    """As on Python 3.13, for which it has no packages."""
    outcomes = []
    for place, has in (("with", True), ("without", False)):
        for module in ("metrics", "training.start"):
            monkeypatch.setattr(f"paddle_dialog.{module}.has_paddlenlp", lambda has=has: has)
        told = train(trained, tmp_path / place, *data(pairs), "-o", "training.max_steps=2")
        assert told.status == 0, told.stderr
        assert ("PaddleNLP is not installed: a perplexity is computed" in told.stderr) is not has
        outcomes.append(told.stdout.partition(":")[2])
    assert "best dev perplexity" in outcomes[0] and outcomes[0] == outcomes[1]
