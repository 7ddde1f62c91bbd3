"""VisualDL's log, and a folder of figures as PNG files and for VisualDL."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from paddle_dialog.errors import UserError

LOG_FILE = "vdlrecords.run.log"  # VisualDL knows its files by the first word


def open_log(folder: Path) -> Any:
    """Return VisualDL's writer to the one log file of a folder, which is continued where it exists."""
    from visualdl import LogWriter

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOG_FILE).open("ab"):
        pass  # the writer's thread would only print an error
    with contextlib.redirect_stdout(io.StringIO()):  # it prints that the file exists
        return LogWriter(str(folder), file_name=LOG_FILE)


class FigureFolder:
    """Takes pictures by name: `NAME.png`, and the same in `vdl` for `visualdl --logdir`.

    Args:
        folder: made where it is missing; files of the same names are replaced.

    Attributes:
        written: the files so far, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[Path] = []
        import matplotlib.image as images

        try:
            self._log = open_log(folder / "vdl")
        except OSError as error:
            raise self._unwritable(error) from error
        self._save = images.imsave

    def add(self, name: str, image: np.ndarray) -> None:
        """Write a picture, RGB uint8 [height, width, 3]."""
        path = self.folder / f"{name}.png"
        try:
            self._save(path, image)
            self._log.add_image(name, image, 0)
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

    def close(self) -> None:
        """Write what VisualDL's writer still holds."""
        self._log.close()

    def _unwritable(self, error: OSError) -> UserError:
        return UserError(f"{self.folder}: figures cannot be written there ({error.strerror})")
