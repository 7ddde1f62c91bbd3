"""The page in headless Chromium, over a server with tiny models that runs in this process."""

import socket
import threading
from contextlib import contextmanager

import uvicorn
from chromium import PATIENCE
from couplet_toys import LEVEL, OBLIQUE, composing_toy, toy
from empathetic_toys import make_config, make_network, make_vocabulary, predictor_of
from serving_toys import app_of

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.couplet.api import CoupletEndpoint
from paddle_dialog.tasks.couplet.task import TASK as COUPLET
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint

# The characters of drawings that stand out too little from their card (WCAG 2.2, 1.4.3); axe reads no drawing.
_FAINT = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll(".candidate text")].filter((at) => {
    const ground = getComputedStyle(at.closest(".candidate")).backgroundColor;
    const lights = [getComputedStyle(at).fill, ground].map(light);
    return (Math.max(...lights) + 0.05) / (Math.min(...lights) + 0.05) < 4.5;
  }).map((at) => at.outerHTML);
}"""


@contextmanager
def served(*tasks, **settings):
    """Yield the address of a server of the tasks; `settings` are those of `ServeConfig`."""
    limits = LimitsConfig(turns=9, characters=200)
    made = {
        "couplet": (lambda: toy(LEVEL + OBLIQUE), [CoupletEndpoint(limits)]),
        "composing": (composing_toy, COUPLET.endpoints(limits)),
        "empathetic": (_reply_predictor, [ReplyEndpoint(limits)]),
    }
    chosen = [made[task] for task in tasks]
    with serving(app_of(*((make(), endpoints) for make, endpoints in chosen), **settings)) as address:
        yield address


@contextmanager
def serving(app):
    """Yield the address of a server of an application."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def opened(browser, address, path="/", ready="#models:not([hidden])", prepare=lambda page: None, **context):
    """Yield the page in a tab of its own; it must ask for nothing elsewhere, break no policy and throw no error.

    Args:
        browser: from `chromium.launched`.
        address: of the server.
        path: and fragment.
        ready: what must be there first.
        prepare: called with the empty tab, before it goes there.
        context: settings of the tab, e.g. its viewport; English by default.
    """
    with browser.new_context(**{"locale": "en-US", "reduced_motion": "reduce", **context}) as window:
        page = window.new_page()
        page.set_default_timeout(PATIENCE)
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda message: faults.append(message.text) if "Content Security" in message.text else None,
        )
        page.on(
            "request",
            lambda r: None if r.url.startswith((address, "blob:", "data:")) else faults.append(r.url),
        )
        prepare(page)
        page.goto(address + path)
        page.locator(ready).wait_for()
        yield page
        assert faults == []


def ask(page, first):
    """Write a 上联 and have it answered."""
    page.locator("#couplet-ways [value=first]").check(force=True)
    page.fill("#couplet-first", first)
    with page.expect_response("**/v1/couplet"):
        page.press("#couplet-first", "Enter")
    idle(page, "#couplet-ask")


def say(page, text):
    """Say a turn and have it answered."""
    page.fill("#empathetic-turn", text)
    with page.expect_response("**/v1/reply"):
        page.press("#empathetic-turn", "Enter")
    idle(page, "#empathetic-send")


def idle(page, button):
    """Wait until nothing runs any more."""
    page.locator(f"{button}:not([aria-busy])").wait_for()


def faint(page):
    """Return the characters of drawings that stand out too little."""
    return page.evaluate(_FAINT)


def _reply_predictor():
    config = make_config(decoding={"max_length": 8, "beam_size": 5})
    vocabulary = make_vocabulary()
    # With these weights the replies to most of the 32 emotions differ.
    return predictor_of(config, make_network(config, len(vocabulary), seed=4), vocabulary)
