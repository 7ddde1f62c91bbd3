"""The best models of a run, by their objective on the dev set, as folders."""

from __future__ import annotations

import logging
import math
import shutil
from collections.abc import Callable
from pathlib import Path

from paddle_dialog.objective import Objective
from paddle_dialog.training.distributed import is_main
from paddle_dialog.training.progress import Progress

logger = logging.getLogger("paddle_dialog")


class BestModels:
    """Keeps `best`, and if more than one is wanted also the `count` best ones as `best-STEP`.

    Args:
        folder: the run's.
        progress: records the kept models for a resumed run.
        objective: compares figures.
        count: number of models to keep.
        save: writes the current model into the folder of a name.
    """

    def __init__(
        self, folder: Path, progress: Progress, objective: Objective, count: int, save: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._progress = progress
        self._objective = objective
        self._count = count
        self._save = save

    def consider(self, figure: float) -> bool:
        """Save the model if it is one of the best; a figure that is not finite never is.

        Returns:
            Whether it is the best so far.
        """
        progress, rank = self._progress, self._objective.rank
        if not math.isfinite(figure):
            return False
        best = progress.best_figure is None or rank(figure) < rank(progress.best_figure)
        if best:
            progress.best_figure, progress.best_step = figure, progress.step
            self._save("best")
        if self._count > 1:
            models = [*progress.kept, (figure, progress.step)]
            ranked = sorted(models, key=lambda model: (rank(model[0]), model[1]))[: self._count]
            if (figure, progress.step) in ranked:
                self._save(f"best-{progress.step}")
            progress.kept = ranked
            if is_main():
                self._remove_others({f"best-{step}" for _, step in ranked})
        return best

    def _remove_others(self, kept: set[str]) -> None:
        for other in numbered_models(self._folder):
            if other.name.split(".")[0] not in kept:
                shutil.rmtree(other, ignore_errors=True)


def numbered_models(folder: Path) -> list[Path]:
    """Return the `best-STEP` folders of a run, including those that a save killed midway has left."""
    return [path for path in sorted(folder.glob("best-*")) if path.name.split(".")[0][5:].isdecimal()]
