"""Runs the code cells of a notebook; as a command it saves what they show: python tests/notebooks.py NOTEBOOK …"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

DPI = 64  # small pictures keep notebooks small


def run(path, replacements=None):
    """Run a notebook in the current folder.

    Args:
        replacements: texts of the source that are replaced before, so that a test is quicker.

    Returns:
        What each cell shows, as a notebook has it.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        for old, new in (replacements or {}).items():
            source = source.replace(old, new)
        shown.append(_run_cell(source, names) if cell["cell_type"] == "code" else [])
    return shown


def _run_cell(source, names):
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        outputs.append(_data("execute_result", {"text/plain": repr(value)}) | {"execution_count": None})
    return outputs + [_data("display_data", {"image/png": picture}) for picture in _pictures()]


def _data(kind, data):
    return {"output_type": kind, "data": data, "metadata": {}}


def _pictures():
    """Return the figures that a cell has left open, as PNG in base64, and close them."""
    if "matplotlib.pyplot" not in sys.modules:
        return []
    from matplotlib import pyplot

    pictures = []
    for number in pyplot.get_fignums():
        written = io.BytesIO()
        pyplot.figure(number).savefig(written, format="png", dpi=DPI, bbox_inches="tight")
        pictures.append(base64.b64encode(written.getvalue()).decode())
    pyplot.close("all")
    return pictures


def save(path):
    """Run a notebook in an empty folder, and write what its cells show into it."""
    notebook, here = json.loads(path.read_text(encoding="utf-8")), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            shown = run(path)
        finally:
            os.chdir(here)
    for cell, outputs in zip(notebook["cells"], shown, strict=True):
        if cell["cell_type"] == "code":
            cell["outputs"] = outputs
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    for name in sys.argv[1:]:
        save(Path(name).resolve())
