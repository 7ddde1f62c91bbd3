"""What a run finds and leaves in its folder before and after the training itself, which is not run here."""

from pathlib import Path

import numpy as np
import pytest

from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.config.schema import DecodingConfig, TrainingConfig
from paddle_dialog.errors import UserError
from paddle_dialog.training.run import Run
from tasks.couplet.config import CoupletConfig, CoupletDataConfig
from tasks.couplet.task import TASK


@pytest.fixture
def couplets(tmp_path: Path) -> Path:
    """Return four training pairs; the dev pair has a character that none of them has."""
    (tmp_path / "train.tsv").write_text("春風秋月\t山水花鳥\n" * 4, encoding="utf-8")
    (tmp_path / "dev.tsv").write_text("春風春月\t山水龍\n", encoding="utf-8")
    return tmp_path


def recipe(folder: Path, run: str = "run") -> CoupletConfig:
    return CoupletConfig(
        task="couplet",
        output_dir=str(folder / run),
        model=LstmAttentionConfig(embedding_size=4, hidden_size=4, num_layers=1),
        data=CoupletDataConfig(str(folder / "train.tsv"), str(folder / "dev.tsv"), batch_size=2),
        training=TrainingConfig(max_steps=2),
        decoding=DecodingConfig(max_length=8, beam_size=2),
    )


def leave_run(folder: Path) -> Run:
    """Return a run that saved its best model, and its state at steps 1 and 2."""
    run = Run.begin(TASK, recipe(folder))
    for step in (1, 2):
        run.progress.step = step
        run._save_checkpoint()
    run._save("best")
    return run


def test_a_run_stopped_after_its_last_step_takes_no_further_one(couplets: Path) -> None:
    before = leave_run(couplets)
    assert not before.progress.finished
    resumed = Run.resume(TASK, recipe(couplets))
    progress = resumed.train()
    assert (progress.step, progress.finished) == (2, True)
    for one, other in zip(before.model.network.parameters(), resumed.model.network.parameters(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("left", ["last", "last.previous", "last.partial"])
def test_a_folder_with_a_run_is_not_written_over_unasked(couplets: Path, left: str) -> None:
    leave_run(couplets)
    folder = couplets / "run"
    (folder / "last.previous").rename(folder / "elsewhere")
    (folder / "last").rename(folder / left)
    with pytest.raises(UserError, match="already holds a run"):
        Run.begin(TASK, recipe(couplets))
    assert Run.resume(TASK, recipe(couplets)).progress.step == 2
    assert Run.begin(TASK, recipe(couplets), overwrite=True).progress.step == 0
    assert [path.name for path in folder.iterdir() if path.name.startswith(("last", "best"))] == []


def test_resuming_takes_the_bundle_that_is_named(couplets: Path) -> None:
    leave_run(couplets)
    folder, other = couplets / "run", recipe(couplets, "other")
    assert Run.resume(TASK, other, str(folder / "last.previous")).progress.step == 1
    assert Run.resume(TASK, other, str(folder / "last")).progress.step == 2
    assert Run.resume(TASK, other, str(folder)).progress.step == 2
    with pytest.raises(UserError, match=r"best: .*no training state"):
        Run.resume(TASK, other, str(folder / "best"))
    with pytest.raises(UserError, match="no such folder"):
        Run.resume(TASK, other, str(couplets / "nowhere"))
    with pytest.raises(UserError, match="holds no checkpoint"):
        Run.resume(TASK, other, str(couplets))


def test_a_checkpoint_of_another_task_is_refused(couplets: Path) -> None:
    leave_run(couplets)
    last = couplets / "run" / "last"
    bundle = load_bundle(last)
    save_bundle(Bundle("other", bundle.config_text, {}, bundle.weights, "", bundle.extra), last)
    with pytest.raises(UserError, match="is of the task 'other'"):
        Run.resume(TASK, recipe(couplets))


def test_unknown_characters_have_one_label_each_in_the_heat_map(couplets: Path) -> None:
    run = Run.begin(TASK, recipe(couplets))
    run.model.network.eval()
    display = TASK.display(run.config, run.model.network, run.data, 2)
    assert list(display.rows) == ["山", "水", "<unk>", "<eos>"]
    assert list(display.columns) == ["春", "風", "春", "月", "<eos>"]
    assert {name: weights.shape for name, weights in display.heat_maps.items()} == {"attention": (4, 5)}
    assert [text.endswith("(reference 山水<unk>)") for text in display.texts] == [True]
