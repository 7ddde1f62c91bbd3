"""The mark of a reply from the store, on the page in both languages."""

from __future__ import annotations

from typing import Any

import pytest
from chromium import needs_chromium
from page_browser import opened, say, served

pytestmark = needs_chromium


@pytest.mark.parametrize(
    ("origin", "locale", "mark"),
    [
        ("people", "en-US", "from a person · similarity {}"),
        ("people", "zh-CN", "取自语料 · 相似度 {}"),
        ("written", "en-US", "written for this project · similarity {}"),
        ("written", "zh-CN", "为本项目所写 · 相似度 {}"),
    ],
)
def test_a_stored_reply_is_marked_with_its_similarity(
    browser: Any, origin: str, locale: str, mark: str
) -> None:
    with served(origin) as address, opened(browser, address, locale=locale) as page:
        page.click("#tab-empathetic")
        assert page.locator("#empathetic-people").is_visible()
        with page.expect_response("**/v1/reply") as response:
            say(page, "my dog died")
        replies = response.value.json()["predictions"]
        marks = [_mark(mark, reply) for reply in replies]
        assert None in marks and any(marks)  # both kinds are there
        tags = page.locator(".listener .origin").all_text_contents()
        assert tags == [one for one in marks if one]
        place = next(
            place for place, one in enumerate(marks) if place and (one is None) == (marks[0] is not None)
        )
        page.locator(".others summary").click()
        page.locator(".other").nth(place - 1).click()
        own = page.locator(".turn.listener > .origin").all_text_contents()
        assert own == ([marks[place]] if marks[place] else [])


def _mark(mark: str, reply: dict[str, Any]) -> str | None:
    return mark.format(f"{reply['similarity']:.2f}".replace("-", "−")) if reply["origin"] != "model" else None


@pytest.mark.parametrize(("locale", "mark"), [("en-US", "in your own words"), ("zh-CN", "用你自己的话")])
def test_a_reply_in_the_speakers_words_is_marked(browser: Any, locale: str, mark: str) -> None:
    with served("reflected") as address, opened(browser, address, locale=locale) as page:
        page.click("#tab-empathetic")
        with page.expect_response("**/v1/reply") as response:
            say(page, "my dog died last night")
        first = response.value.json()["predictions"][0]
        assert first["origin"] == "reflected" and "similarity" not in first
        assert "your dog died last night" in first["text"].lower()
        assert page.locator(".turn.listener > .origin").all_text_contents() == [mark]
