"""Count the files of the project that a way through it enters, and how deep it goes.

python tools/count_files.py command predict -c configs/couplet.yaml 晚风摇树树还挺
python tools/count_files.py post /v1/couplet '{"first": "晚风摇树树还挺"}'
python tools/count_files.py step train -c configs/couplet_sample.yaml -o output_dir=runs/counted
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from paddle_dialog.commands.console import run_script

ROOT = Path(__file__).resolve().parent.parent
STEP = "train_batch"  # the method of `paddle.Model` that computes a training step


class FileCounter:
    """Counts the files whose functions are called, in all threads; what an import runs does not count.

    Attributes:
        files: entered, with their numbers of calls, in the order of the first ones.
        deepest: the longest chain of files that called each other, the same file twice in a row counted once.
    """

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.deepest: list[str] = []
        self.is_counting = False
        self.steps_left: int | None = None  # training steps after which counting ends; None never ends it
        self._names: dict[CodeType, str | None] = {}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch this thread and those that are started inside."""
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        caller = frame.f_back.f_code.co_name if frame.f_back is not None else ""
        begins_step = frame.f_code.co_name == STEP != caller  # an override calls Paddle's own
        if self.steps_left is not None and begins_step:
            self.is_counting = self.steps_left > 0
            self.steps_left -= 1
        name = self._name(frame.f_code) if self.is_counting else None
        chain = [] if name is None else self._chain(frame)
        if name is not None and chain:
            self.files[name] = self.files.get(name, 0) + 1
            self.deepest = max(self.deepest, chain, key=len)

    def _chain(self, frame: FrameType) -> list[str]:
        """Return the files from the outermost call to this one; none inside an import."""
        chain: list[str] = []
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_code.co_name == "<module>" and caller.f_globals.get("__name__") != "__main__":
                return []
            name = self._name(caller.f_code)
            if name is not None and chain[-1:] != [name]:
                chain.append(name)
            caller = caller.f_back
        return chain[::-1]

    def _name(self, code: CodeType) -> str | None:
        """Return the file of a function of the project; None for another's."""
        if code not in self._names:
            path = Path(code.co_filename)
            inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] == "paddle_dialog"
            self._names[code] = str(path.relative_to(ROOT)) if inside else None
        return self._names[code]

    def __str__(self) -> str:
        rows = [f"{calls:9,}  {name}" for name, calls in self.files.items()]
        depth = f"{len(self.files)} files entered, {len(self.deepest)} deep: {' > '.join(self.deepest)}"
        return "\n".join([*rows, depth])


def count_command(name: str, arguments: Sequence[str], step: bool = False) -> FileCounter:
    """Count a command.

    Args:
        name: of the command, e.g. `predict`.
        arguments: of its command line.
        step: whether to count from the start to the end of the first training step alone; the run needs two.
    """
    counter = FileCounter()
    counter.is_counting, counter.steps_left = True, 1 if step else None
    sys.argv = [f"tools/{name}.py", *arguments]
    with counter.watching():
        run_script(name)
    return counter


def count_post(path: str, body: object, config: str = "configs/serve.yaml") -> FileCounter:
    """Count one request to a server whose models are loaded; an equal one came before.

    Args:
        path: e.g. `/v1/couplet`.
        body: what is sent as JSON.
        config: of the server.
    """
    from fastapi.testclient import TestClient

    from paddle_dialog.serving.app import create_app
    from paddle_dialog.serving.models import endpoints_of, find_models, load_models, load_serve_config
    from paddle_dialog.serving.word_filter import WordFilter

    settings, words, counter = load_serve_config(config, []), WordFilter(), FileCounter()
    found, _ = find_models(settings)
    served = [model for model in found if path in {endpoint.path for endpoint in endpoints_of([model])}]
    cards = load_models(served, words, "cpu")
    app = create_app(settings, endpoints_of(served), lambda: cards, words)
    with counter.watching(), TestClient(app) as client:
        while client.get("/readyz").status_code != 200:
            pass
        for counter.is_counting in (False, True):
            client.post(path, json=body).raise_for_status()
    return counter


def main() -> None:
    """Print the files that a command, a request or a training step enters."""
    kind, name, *arguments = sys.argv[1:] or ["--help", ""]
    if kind == "post":
        print(count_post(name, json.loads(arguments[0]), *arguments[1:]))
    elif kind in ("command", "step"):
        print(count_command(name, arguments, kind == "step"), file=sys.stderr)
    else:
        print(__doc__)


if __name__ == "__main__":
    main()
