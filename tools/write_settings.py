"""Write docs/settings.md, the reference of all keys, from where they are declared.

Example: python tools/write_settings.py
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from paddle_dialog.config.explain import as_markdown  # noqa: E402
from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig  # noqa: E402
from paddle_dialog.serving.config import ServeConfig  # noqa: E402
from paddle_dialog.task_folders import find_task, task_names  # noqa: E402

PAGE = ROOT / "docs" / "settings.md"
INTRODUCTION = """\
# Settings

All keys of a recipe. `python tools/train.py -c configs/couplet.yaml --help-config training` prints those of a
section, and `-o training.epochs=3` sets one. This page is made from the declarations by `python
tools/write_settings.py`.

A key that a recipe leaves out has its default; `null` is no value. The `name` of a `model` chooses the family,
and with it the keys of the section. A task also has the keys of every task and those of the task it builds on.
It lists them again only where their default or their meaning differs."""


def page() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION, "## Every task", as_markdown(ExperimentConfig)]
    parts += ["## Every task that writes text", as_markdown(GenerationConfig, ExperimentConfig)]
    for name in task_names():
        cls = find_task(name).config_class
        base = cls.__base__
        builds_on = [other for other in task_names() if find_task(other).config_class is base]
        parts.append(f"## {name}" + (f" (builds on {builds_on[0]})" if builds_on else ""))
        parts.append(as_markdown(cls, base))
    return "\n\n".join([*parts, "## The server", as_markdown(ServeConfig)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
