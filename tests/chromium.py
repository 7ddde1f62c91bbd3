"""Headless Chromium; tests marked with `needs_chromium` are skipped where it or Playwright is not installed."""

import shutil
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
PATIENCE = 120_000  # ms; an answer is there in a moment on an idle machine

needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or find_spec("playwright") is None,
    reason="no browser for the page: apt-get install chromium fonts-noto-cjk, and tools/setup_env.sh --dev",
)


@contextmanager
def launched():
    """Yield a browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()
