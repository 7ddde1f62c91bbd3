"""The page: a frame of the library's, and in it a tab of each task that brings one (see docs/tabs.md)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import FileResponse, HTMLResponse, Response

from paddle_dialog.errors import UserError

PAGE = Path(__file__).parent / "page"
TAB_FILES = ("tab.html", "tab.js", "words.js")
# The machine's own table may differ, and `nosniff` makes browsers trust the type that we send.
_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


def add_page(app: FastAPI, tabs: Mapping[str, Path]) -> None:
    """Add the page at `/`, its files below `/page/` and those of each tab below `/tasks/<task>/`.

    Args:
        app: the application.
        tabs: the folder of each tab by the name of its task, in the order of the tabs.

    Raises:
        UserError: a tab lacks a file.
    """
    html = _with_tabs((PAGE / "index.html").read_text(encoding="utf-8"), tabs)

    async def send(_: Request) -> Response:
        return HTMLResponse(html)

    app.add_route("/", send, include_in_schema=False)
    for address, folder in {
        "page": PAGE,
        **{f"tasks/{task}": folder for task, folder in tabs.items()},
    }.items():
        for file in sorted(folder.rglob("*")):
            if file.suffix in _TYPES:
                _add_file(app, f"/{address}/{file.relative_to(folder).as_posix()}", file)


def _with_tabs(html: str, tabs: Mapping[str, Path]) -> str:
    """Return the frame with the style sheets, buttons and panels of its tabs."""
    styles, buttons, panels = [], [], []
    for task, folder in tabs.items():
        missing = [name for name in TAB_FILES if not (folder / name).is_file()]
        if missing:
            raise UserError(f"{folder}: a tab needs {', '.join(TAB_FILES)}, and this has no {missing[0]}")
        name, markup = escape(task), (folder / "tab.html").read_text(encoding="utf-8")
        styles += [
            f'<link rel="stylesheet" href="tasks/{name}/{style.name}">'
            for style in sorted(folder.glob("*.css"))
        ]
        buttons.append(f'<button type="button" role="tab" id="tab-{name}" aria-controls="{name}"></button>')
        panels.append(
            f'<section id="{name}" role="tabpanel" aria-labelledby="tab-{name}" tabindex="-1">\n{markup}</section>'
        )
    for place, parts in (("styles", styles), ("tabs", buttons), ("panels", panels)):
        html = html.replace(f"<!-- {place} -->", "\n".join(parts))
    return html


def _add_file(app: FastAPI, address: str, file: Path) -> None:
    async def send(_: Request) -> Response:
        return FileResponse(file, media_type=_TYPES[file.suffix])

    app.add_route(address, send, include_in_schema=False)
