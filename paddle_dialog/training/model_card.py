"""The model card that a run writes beside its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddle_dialog.task import Task
from paddle_dialog.training.progress import Progress


def model_card(
    task: Task, config: Any, progress: Progress, batches_per_epoch: int, notes: Sequence[str]
) -> str:
    """Write a short Markdown page: data, recipe, and the dev curve.

    Args:
        task: whose name and objective are shown.
        config: the run's configuration.
        progress: the run's counters.
        batches_per_epoch: of this process.
        notes: what was read, skipped and cut.
    """
    epochs = progress.epoch + progress.batch / batches_per_epoch
    curve = "\n".join(f"| {step:,} | {task.objective.show(figure)} |" for step, figure in progress.curve)
    read = "\n".join(f"- {note}" for note in notes)
    return f"""# {task.name}, {config.model.name}

Trained by paddle_dialog; the whole recipe stands in `config.yaml` beside this file.

## Data
{read}

## Training
{progress.step:,} steps, {epochs:.2f} epochs, {progress.seconds / 60:.0f} minutes.

| step | dev {task.objective.name} |
|---|---|
{curve}
"""
