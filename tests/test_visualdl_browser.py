"""A run's log in VisualDL's page, as a browser shows it."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import PATIENCE, needs_chromium

from paddle_dialog.objective import Perplexity
from paddle_dialog.task import Display
from paddle_dialog.training.report import Curves, Evaluation, StepReport

VISUALDL = Path(sys.executable).with_name("visualdl")
pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not VISUALDL.exists(), reason="there is no visualdl command beside this Python"),
]


@dataclasses.dataclass
class Model:
    dropout: float = 0.375


@dataclasses.dataclass
class Settings:
    model: Model = dataclasses.field(default_factory=Model)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a VisualDL server on a small log."""
    folder = tmp_path_factory.mktemp("runs")
    sink = Curves(folder / "toy" / "vdl", Settings(), Perplexity(), "tokens")
    for step in range(1, 6):
        sink.step(StepReport(step, 5, step / 5, 4.0 / 2**step, 20.0 / step, 1e-3, 1.0, 1e3, 0.1, 0.0))
    display = Display(["春风 → 秋雨"], {"attention": np.eye(2)}, ["秋", "雨"], ["春", "风"])
    sink.evaluation(Evaluation(5, 4.125, True, display))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "server.txt").open("w") as output:
        server = subprocess.Popen(
            [str(VISUALDL), "--logdir", str(folder), "--host", "127.0.0.1", "--port", str(port)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/alive", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    """Return a tab that reaches nothing but the server, although the page asks elsewhere."""
    tab = browser.new_page(locale="en-US", viewport={"width": 1400, "height": 1000})
    tab.set_default_timeout(PATIENCE)
    tab.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith(address) else route.abort(),
    )
    return tab


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url)
            return
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"the visualdl server did not come up (exit status {server.poll()})")


def test_curves_are_drawn(page: Any, address: str) -> None:
    page.goto(f"{address}/app/scalar")
    page.locator("canvas").first.wait_for()  # the dev perplexity; titles are part of the drawing
    with page.expect_response(lambda response: "tag=train%2Floss" in response.url) as answer:
        page.get_by_text("train", exact=True).first.click()  # unfolds the group
    points = answer.value.json()["data"]
    assert [(step, value) for _, step, value in points] == [(step, 4.0 / 2**step) for step in range(1, 6)]
    page.locator("canvas").nth(6).wait_for()  # six training curves beside the dev perplexity


def test_examples_are_readable(page: Any, address: str) -> None:
    page.goto(f"{address}/app/sample/text")
    page.get_by_text("春风 → 秋雨").wait_for()


def test_heat_map_is_shown(page: Any, address: str) -> None:
    page.goto(f"{address}/app/sample/image")
    page.wait_for_function(
        "() => [...document.images].some(image => image.src.startsWith('blob:') && image.naturalWidth > 200)"
    )


def test_settings_and_result_are_in_one_row(page: Any, address: str) -> None:
    page.goto(f"{address}/app/hyper-parameter")
    for cell in ("model/dropout", "0.375", "dev/perplexity", "4.125"):
        page.get_by_text(cell).first.wait_for(state="attached")  # a hidden panel names them too
