"""Write docs/settings.md, the reference of all keys, from where they are declared.

Example: python tools/write_settings.py
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from paddle_dialog.config.explain import sections  # noqa: E402
from paddle_dialog.config.schema import ExperimentConfig, GenerationConfig  # noqa: E402
from paddle_dialog.recipes import find_task, task_names  # noqa: E402
from paddle_dialog.serving.config import ServeConfig  # noqa: E402

SIGNS = {
    r"\ban? (integer|number)": r"\1",
    r"one of ": "",
    r" \(at least (\S+) and at most (\S+)\)": r" \1 to \2",
    r" \(above (\S+) and at most (\S+)\)": r" > \1, ≤ \2",
    r" \(at least (\S+)\)": r" ≥ \1",
    r" 2147483647": " 2³¹ − 1",
    r" \(above (\S+)\)": r" > \1",
}
PAGE = ROOT / "docs" / "settings.md"
INTRODUCTION = """\
# Settings

All keys of a recipe. `python tools/train.py -c configs/couplet.yaml --help-config training` prints those of a
section, and `-o training.epochs=3` sets one. This page is made from the declarations by `python
tools/write_settings.py`. Keys stand under their section: `epochs` under `training` is `training.epochs`.

A key that a recipe leaves out has its default; `null` is no value. No number is above 65,536 where nothing else
is said. The `name` of a `model` chooses the family, and with it the keys of the section. A task also has the keys
of every task and those of the task it builds on. It lists them again only where their default or their meaning
differs."""


def as_markdown(cls: Any, known: Any = None) -> str:
    """Explain the keys of a configuration as Markdown tables, a section each.

    Args:
        cls: the configuration's dataclass.
        known: a base class whose keys are explained elsewhere; only differences from it are listed.
    """
    told = {(each.name, each.tag, key) for each in sections(known) for key in each.keys} if known else set()
    blocks = []
    for section in sections(cls):
        keys = [key for key in section.keys if (section.name, section.tag, key) not in told]
        if keys:
            title = f"`{section.name}`" if section.name else "Top level"
            title += f" with `name: {section.tag}`" if section.tag else ""
            rows = [
                _table_row(
                    f"`{key.name.removeprefix(f'{section.name}.')}`",
                    key.default,
                    _shortened(key.accepts),
                    key.help,
                )
                for key in keys
            ]
            head = ["| key | default | accepts | what it does |", "|---|---|---|---|"]
            blocks.append("\n".join([f"### {title}", "", section.help, "", *head, *rows]))
    return "\n\n".join(blocks)


def _shortened(accepts: str) -> str:
    """Write bounds as signs, so that the tables stay narrow."""
    for pattern, short in SIGNS.items():
        accepts = re.sub(pattern, short, accepts)
    return accepts


def _table_row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


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
