"""The page as a few files: each folder's modules and all style sheets are joined when the server starts.

Over a slow line a request costs more than the bytes it brings, and modules that import each other are asked for one
after the other. What is sent carries the hash of its content, so that browsers keep it.
"""

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from fastapi import FastAPI, Request
from starlette.responses import Response

from paddle_dialog.errors import UserError
from paddle_dialog.text.characters import SIMPLIFIED_TABLE

PAGE = Path(__file__).parent / "page"
TAB_FILES = ("tab.html", "tab.js", "words.js")
_TYPES = {
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
    ".json": "application/json",
    ".webmanifest": "application/manifest+json",
}
_FIRST_STYLES = ("style.css", "controls.css")  # which the others change
_YEAR, _WEEK = 365 * 86_400, 7 * 86_400
_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";$', re.M)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.M)
_MODULE_LINE = re.compile(r"^(?:import\b(?!\()|export\b).*", re.M)
_WORD = re.compile(r'^  (\w+): \[\s*("(?:[^"\\]|\\.)*"),\s*("(?:[^"\\]|\\.)*"),?\s*\],$', re.M)
_NAMED = re.compile(r'(data-text="(\w+)"[^<>]*>)(?=</)')


def add_page(app: FastAPI, tabs: Mapping[str, Path]) -> None:
    """Add the page at `/`, its files below `/page/` and those of each tab below `/tasks/<task>/`.

    Args:
        tabs: the folder of each tab by the name of its task, in the order of the tabs.

    Raises:
        UserError: a tab lacks a file, or a module is written so that it cannot be joined.
    """
    for folder in tabs.values():
        missing = [name for name in TAB_FILES if not (folder / name).is_file()]
        if missing:
            raise UserError(f"{folder}: a tab needs {', '.join(TAB_FILES)}, and this has no {missing[0]}")
    folders = {"page": PAGE, **{f"tasks/{task}": folder for task, folder in tabs.items()}}
    styles = [file.read_bytes() for folder in folders.values() for file in _styles(folder)]
    addresses = {
        "styles": _add(app, "page/all.css", "text/css", b"\n".join(styles)),
        "fonts": _add(app, "page/fonts.css", "text/css", _fonts()),
        "characters": _add(app, "page/simplified.txt", "text/plain", SIMPLIFIED_TABLE.read_bytes()),
        "pinyin": _add(app, "page/pinyin.txt", "text/plain", (PAGE / "pinyin.txt").read_bytes()),
        "page": _add(app, "page/all.js", "text/javascript", joined_modules("page", PAGE).encode("utf-8")),
    }
    for address, folder in folders.items():
        if folder is not PAGE:
            source = joined_modules(address, folder, f"../../{addresses['page']}")
            addresses[address] = _add(app, f"{address}/all.js", "text/javascript", source.encode("utf-8"))
        for file in sorted(folder.rglob("*")):
            if file.suffix in _TYPES:
                path = f"{address}/{file.relative_to(folder).as_posix()}"
                _add(app, path, _TYPES[file.suffix], file.read_bytes(), _WEEK)
    pages = {language: _html(language, tabs, addresses) for language in ("zh", "en")}

    async def send(request: Request) -> Response:
        is_chinese = request.headers.get("accept-language", "").lower().startswith("zh")
        headers = {"Vary": "Accept-Language"}
        # A picture that others show with a link needs a whole address.
        html = pages["zh" if is_chinese else "en"].replace("{base}", escape(str(request.base_url)))
        return _response(request, html.encode("utf-8"), "text/html", "no-cache", headers)

    app.add_route("/", send, include_in_schema=False)


def joined_modules(address: str, folder: Path, page: str | None = None) -> str:
    """Return the modules of a folder as one, each as an object of what it exports, those it needs before it.

    Args:
        address: of the folder from the root, as imports between folders name it.
        page: the address of the page's joined modules, for a folder that imports from them.

    Raises:
        UserError: an import or export is written in another way than `import { a, b } from "./c.js";` and
            `export function`, `class` or `const`, or modules import each other in a circle.
    """
    sources = {f"{address}/{file.name}": file for file in sorted(folder.glob("*.js"))}
    parts: list[str] = []
    done: dict[str, bool] = {}  # False while it is being read
    outside: set[str] = set()

    def read(path: str) -> None:
        if path not in sources or done.get(path) is False:
            reason = "modules import each other in a circle" if path in sources else "there is no such module"
            raise UserError(f"{folder}: {path}: {reason}")
        if path in done:
            return
        done[path] = False
        text = sources[path].read_text(encoding="utf-8")

        def take(found: re.Match[str]) -> str:
            needed = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[2]))
            if page is not None and needed.startswith("page/"):
                outside.add(_name(needed))
            else:
                read(needed)
            return f"const {{{re.sub(r' as ', ': ', found[1])}}} = {_name(needed)};"

        body = _IMPORT.sub(take, text)
        names = _EXPORT.findall(body)
        body = _EXPORT.sub("", body)
        wrong = _MODULE_LINE.search(body)
        if wrong is not None:
            raise UserError(f'{sources[path]}: {wrong[0]!r}: write `import {{ a }} from "./b.js";`')
        parts.append(f"const {_name(path)} = (() => {{\n{body}\nreturn {{ {', '.join(names)} }};\n}})();\n")
        done[path] = True

    for path in sources:
        read(path)
    head = f"import {{ {', '.join(sorted(outside))} }} from {json.dumps(page)};\n" if outside else ""
    return head + "".join(parts) + f"export {{ {', '.join(map(_name, sources))} }};\n"


def _name(path: str) -> str:
    """Return the name of a module in the joined one."""
    return re.sub(r"\W", "_", path.removesuffix(".js"))


def _styles(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.css"), key=lambda file: (file.name not in _FIRST_STYLES, file.name))


def _fonts() -> bytes:
    rule, *rows = (PAGE / "fonts.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(rule.format(*row.split("\t")) for row in rows).encode("utf-8")


def _html(language: str, tabs: Mapping[str, Path], addresses: Mapping[str, str]) -> str:
    """Return the frame with its tabs, its texts in a language: they are read before any script has come."""
    own = _words(PAGE, language)
    buttons, panels = [], []
    for place, (task, folder) in enumerate(tabs.items()):
        words = own | _words(folder, language)
        name, label = escape(task), escape(words.get("tab", task))
        markup = _filled((folder / "tab.html").read_text(encoding="utf-8"), words)
        buttons.append(
            f'<button type="button" role="tab" id="tab-{name}" aria-controls="{name}">{label}</button>'
        )
        panels.append(
            f'<section id="{name}" role="tabpanel" aria-labelledby="tab-{name}" tabindex="-1"'
            f' data-module="{addresses[f"tasks/{task}"]}"{" hidden" if place else ""}>\n{markup}</section>'
        )
    # Of the tab that is shown first alone: the style is waited for, and shares the line with what else is loaded.
    shown = [addresses[f"tasks/{task}"] for task in tabs][:1]
    preloads = [f'<link rel="modulepreload" href="{script}">' for script in shown]
    html = _filled((PAGE / "index.html").read_text(encoding="utf-8"), own)
    parts = {"preloads": preloads, "tabs": buttons, "panels": panels}
    for place_name, found in parts.items():
        html = html.replace(f"<!-- {place_name} -->", "\n".join(found))
    for what in ("title", "description"):
        html = html.replace(f"{{{what}}}", escape(own[what]))
    for what in ("styles", "fonts", "page", "characters", "pinyin"):
        html = html.replace(f"{{{what}}}", addresses[what])
    return html.replace('lang="en"', 'lang="zh-Hans"', 1) if language == "zh" else html


def _words(folder: Path, language: str) -> dict[str, str]:
    """Return the words of a folder in a language."""
    found = _WORD.findall((folder / "words.js").read_text(encoding="utf-8"))
    return {name: json.loads(chinese if language == "zh" else english) for name, chinese, english in found}


def _filled(html: str, words: Mapping[str, str]) -> str:
    return _NAMED.sub(lambda found: found[1] + escape(words.get(found[2], "")), html)


def _add(app: FastAPI, path: str, kind: str, content: bytes, seconds: int = _YEAR) -> str:
    """Have the server send a content; return its address, which changes with the content."""

    async def send(request: Request) -> Response:
        return _response(request, content, kind, f"public, max-age={seconds}, immutable")

    app.add_route(f"/{path}", send, include_in_schema=False)
    return f"{path}?v={hashlib.sha256(content).hexdigest()[:12]}"


def _response(
    request: Request, content: bytes, kind: str, caching: str, headers: Mapping[str, str] | None = None
) -> Response:
    tag = f'W/"{hashlib.sha256(content).hexdigest()[:16]}"'
    sent = {"ETag": tag, "Cache-Control": caching, **(headers or {})}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=sent)
    return Response(content, media_type=kind, headers=sent)
