"""The page in two languages, and the marks of written and reflected replies in both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from chromium import needs_chromium
from empathetic_zh_toys import chinese_predictor
from page_browser import _reply_predictor, idle, opened, say, serving

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import ByLanguage, WordFilter
from paddle_dialog.serving.models import make_card
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint
from paddle_dialog.tasks.empathetic.data.emotions import CHINESE_NAMES

pytestmark = needs_chromium


@contextmanager
def conversing(*predictors: Any) -> Iterator[str]:
    """Yield the address of a server of these models."""
    endpoint = ByLanguage(lambda: ReplyEndpoint(LimitsConfig()))

    def load() -> list[Any]:
        return [make_card(p, endpoint.path, endpoint.use(p, WordFilter()), None) for p in predictors]

    with serving(endpoint, load=load) as address:
        yield address


@pytest.fixture(scope="module")
def both() -> Iterator[str]:
    with conversing(_reply_predictor(), chinese_predictor()) as address:
        yield address


def bubbles(page: Any) -> list[str]:
    return page.locator(".bubble").all_text_contents()


def test_the_conversation_speaks_the_language_of_the_page(browser: Any, both: str) -> None:
    with opened(browser, both, locale="zh-CN") as page:
        assert page.locator("#models span").all_text_contents()[0].startswith("谈心 (en)：")
        assert page.locator(".example").first.text_content() == "昨天我的狗走丢了。"
        assert page.locator("#empathetic-turn").get_attribute("placeholder") == "例如：昨天我的狗走丢了。"
        with page.expect_request("**/v1/reply") as request, page.expect_response("**/v1/reply") as response:
            say(page, "我今天很难过")
        assert request.value.post_data_json == {"context": ["我今天很难过"], "n_best": 5, "language": "zh"}
        answer = response.value.json()
        names = [CHINESE_NAMES["zh"][label] for label in answer["emotions"]]
        page.locator(".felt summary").click()
        assert page.locator(".emotion-name").all_text_contents() == names
        assert page.locator(".emotion-choice option").count() == 1 + len(CHINESE_NAMES["zh"])
        assert page.locator(".bubble").first.get_attribute("lang") == "zh-Hans"
        with page.expect_request("**/v1/reply") as request:
            page.select_option(".emotion-choice", "anxious")
        idle(page, "#empathetic-send")
        assert request.value.post_data_json["emotion"] == "anxious"
        assert "担忧" in page.locator(".felt summary").text_content()
        chinese = bubbles(page)

        page.get_by_role("button", name="English").click()  # the talk stays
        assert [text.split(": ", 1)[1] for text in bubbles(page)] == [t.split(": ", 1)[1] for t in chinese]
        with page.expect_request("**/v1/reply") as request:
            say(page, "my dog died")
        assert request.value.post_data_json["context"] == ["my dog died"]
        assert request.value.post_data_json["language"] == "en"
        with page.expect_request("**/v1/reply") as request:
            say(
                page, "我的狗死了"
            )  # each turn goes to the model that reads it, with the turns that it has read
        assert request.value.post_data_json["language"] == "zh"
        assert request.value.post_data_json["context"][::2] == ["我今天很难过", "我的狗死了"]


@pytest.mark.parametrize(
    ("make", "locale", "only", "language"),
    [
        (_reply_predictor, "zh-CN", "这台服务器上的模型只懂英文，请用英文跟它说。", "en"),
        (
            chinese_predictor,
            "en-US",
            "The model of this server knows Chinese only; please write Chinese.",
            "zh",
        ),
    ],
)
def test_a_server_of_one_language_says_so(
    browser: Any, make: Any, locale: str, only: str, language: str
) -> None:
    with conversing(make()) as address, opened(browser, address, locale=locale) as page:
        assert page.locator("#empathetic-only").text_content() == only
        assert page.locator("#models span").text_content().count("(") == 0
        with page.expect_request("**/v1/reply") as request:
            page.locator(".example").first.click()
        idle(page, "#empathetic-send")
        assert request.value.post_data_json["language"] == language
        other = page.get_by_role("button", name="English" if locale == "zh-CN" else "中文")
        other.click()
        assert page.locator("#empathetic-only").is_hidden()
        assert page.locator(".turn").count() == 2  # the one conversation there is


@pytest.mark.parametrize(
    ("locale", "turn", "parts", "notice"),
    [
        ("zh-CN", "我不想活了", ("12356", "120"), ("语言模型", "不是心理咨询师", "12356")),
        ("en-US", "I want to die", ("988", "local emergency"), ("a language model", "no counsellor", "988")),
    ],
)
def test_who_speaks_of_self_harm_is_shown_where_there_is_help(
    browser: Any, both: str, locale: str, turn: str, parts: tuple[str, ...], notice: tuple[str, ...]
) -> None:
    with opened(browser, both, locale=locale) as page:
        told = page.locator("#empathetic [role=note]")
        assert told.is_visible() and all(part in told.text_content() for part in notice)
        say(page, turn)
        care = page.locator(".turn.care")
        assert all(part in care.locator(".bubble").text_content() for part in parts)
        assert "no model wrote it" in care.text_content() or "不是模型写的" in care.text_content()
        border = "at => getComputedStyle(at).borderTopWidth"
        assert care.locator(".bubble").evaluate(border) == "2px"
        for what in (".emotion", ".emotion-choice", ".felt", ".others", ".look"):
            assert page.locator(what).count() == 0, what
        assert all(part in page.locator("#empathetic-status").text_content() for part in parts)
        with page.expect_request("**/v1/reply") as request:
            say(page, "谢谢" if locale == "zh-CN" else "thank you")
        assert len(request.value.post_data_json["context"]) == 3
        assert page.locator(".turn.care").count() == 1 and page.locator(".look").count() == 1


def test_the_other_language_gets_a_hint_beside_the_reply(browser: Any) -> None:
    with conversing(chinese_predictor()) as address, opened(browser, address, locale="zh-CN") as page:
        say(page, "my dog died yesterday")
        assert page.locator(".speaker > .hint").text_content().startswith("This model reads Chinese")
        assert page.locator(".speaker > .hint").get_attribute("lang") == "en"
        assert page.locator(".listener .bubble").count() == 1
