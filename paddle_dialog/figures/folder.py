"""A folder of figures, as PNG files and for VisualDL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from paddle_dialog.errors import UserError
from paddle_dialog.figures.visualdl_log import VisualDLLog, milliseconds


class FigureFolder:
    """Takes pictures by name: `NAME.png`, and the same in `vdl` for `visualdl --logdir`.

    Args:
        folder: made where it is missing; files of the same names are replaced.

    Attributes:
        written: the files so far, in order.

    Raises:
        UserError: the folder cannot be written.
        ModuleNotFoundError: what draws is not installed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []
        import matplotlib.image as images
        from visualdl.component import base_component

        try:
            self._log = VisualDLLog(folder / "vdl")
        except OSError as error:
            raise self._unwritable(error) from error
        self._save, self._components = images.imsave, base_component

    def add(self, name: str, image: np.ndarray) -> None:
        """Write a picture, RGB uint8 [height, width, 3]."""
        path = self.folder / f"{name}.png"
        try:
            self._save(path, image)
            self._log.write(self._components.image(name, image, 0, milliseconds()))
        except OSError as error:
            raise self._unwritable(error) from error
        self.written.append(path)

    def add_json(self, name: str, values: dict[str, Any]) -> None:
        """Write the numbers behind pictures as `NAME.json`."""
        path = self.folder / f"{name}.json"
        try:
            path.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise self._unwritable(error) from error
        self.written.append(path)

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"{self.folder}: figures cannot be written there ({error.strerror})")
