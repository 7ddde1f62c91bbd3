"""A made-up task's tab, the example of docs/tabs.md, in a browser: the page needs no change for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from chromium import needs_chromium
from command import ROOT
from page_browser import opened, serving
from serving_toys import EchoEndpoint

from paddle_dialog.serving.models import ModelCard

pytestmark = needs_chromium
CARD = ModelCard(task="echo", path="/v1/echo", family="cave", parameters=7, decoding="", details={}, card="")


def echo(folder: Path) -> EchoEndpoint:
    """Return the example in a folder."""
    text = (ROOT / "docs" / "tabs.md").read_text(encoding="utf-8")
    files = re.findall(r"\n`(\S+)`\n\n```\w+\n(.*?)```\n", text, re.S)
    assert [name for name, _ in files] == ["tab.html", "words.js", "tab.js", "tab.css"]
    for name, content in files:
        (folder / name).write_text(content, encoding="utf-8")
    endpoint = EchoEndpoint()
    endpoint.page = folder  # type: ignore[misc]
    return endpoint


def test_it_answers_in_both_languages(browser: Any, tmp_path: Path) -> None:
    endpoint = echo(tmp_path)
    with serving(endpoint, load=lambda: [CARD]) as address, opened(browser, address) as page:
        assert page.get_by_role("tab").all_text_contents() == ["Echo"]
        assert page.locator("#models span").text_content() == "Echo: cave, 7 parameters"
        status = page.locator("#echo-status")
        assert "Kaiti" in status.evaluate("at => getComputedStyle(at).fontFamily")
        call(page, "hello")
        assert status.text_content() == "Heard: hello"
        page.get_by_role("button", name="中文").click()
        assert status.text_content() == "听到：hello"
        assert page.get_by_role("tab").all_text_contents() == ["回声"]
        call(page, "bad")
        assert "bad is not a text; give a good one" in page.locator("#echo-error").text_content()
        assert status.text_content() == ""


@pytest.mark.parametrize("script", ["export function start() { nowhere(); }", "no script"])
def test_a_broken_tab_leaves_the_others_alone(browser: Any, tmp_path: Path, script: str) -> None:
    good, bad = (tmp_path / name for name in ("good", "bad"))
    good.mkdir()
    bad.mkdir()
    broken = echo(bad)
    markup = (bad / "tab.html").read_text(encoding="utf-8")
    (bad / "tab.html").write_text(markup.replace("echo-", "broken-"), encoding="utf-8")  # no id stands twice
    (bad / "tab.js").write_text(script, encoding="utf-8")
    broken.task, broken.path = "broken", "/v1/broken"  # type: ignore[misc]
    endpoints = (broken, echo(good))
    with serving(*endpoints, load=lambda: [CARD]) as address, browser.new_page(locale="en-US") as page:
        page.goto(address)
        page.get_by_text("This tab could not be loaded").wait_for()
        page.locator("#tab-echo", has_text="Echo").wait_for()  # named when all tabs are loaded
        page.click("#tab-echo")
        call(page, "hello")
        assert page.locator("#echo-status").text_content() == "Heard: hello"


def call(page: Any, text: str) -> None:
    page.fill("#echo-text", text)
    with page.expect_response("**/v1/echo"):
        page.press("#echo-text", "Enter")
    page.locator("#echo-ask:not([aria-busy])").wait_for()
