"""The couplet tab beyond 下联: the ways in, the 横批, changes by hand."""

from __future__ import annotations

from typing import Any

from chromium import needs_chromium
from page_browser import ask, idle, opened, served
from page_couplets import KNOWN, PAIRS, SCROLLS, choose, compose, hung, offer_all, request_of, scroll

pytestmark = needs_chromium
SERVED, PREPARE = ("couplet",), offer_all


def test_an_older_model_offers_only_what_it_can(browser: Any, address: str) -> None:
    cards = {"models": [{"task": "couplet", "path": "/v1/couplet"}]}

    def old(page: Any) -> None:
        page.route("**/v1/models", lambda route: route.fulfill(json=cards))

    with opened(browser, address, prepare=old) as page:
        assert page.locator("#couplet-ways").is_hidden()
        assert page.locator("#couplet-form input:visible").count() == 1
        ask(page, "雨水月")
        assert page.locator("#couplet-scrolls button").count() == 0 and scroll(page) == []


def test_each_way_asks_for_what_was_chosen(page: Any) -> None:
    choose(page, "From a theme")
    body = request_of(page, "compose", lambda: page.get_by_role("button", name="茶").click())
    assert body == {"theme": "茶", "count": 5}
    page.fill("#couplet-theme", "")
    page.select_option("#couplet-shape", "4+7")
    page.select_option("#couplet-count", "3")
    assert request_of(page, "compose", lambda: page.click("#couplet-ask")) == {"pattern": "4+7", "count": 3}
    again = request_of(page, "compose", lambda: page.click("#couplet-ask"))
    assert 0 <= again.pop("seed") < 2**32 and again == {"pattern": "4+7", "count": 3}  # others
    choose(page, "With a name")
    page.select_option("#couplet-shape", "5")
    assert page.locator("#couplet-place option").count() == 5
    page.select_option("#couplet-place", "5")
    body = request_of(page, "compose", lambda: page.get_by_role("button", name="李明").click())
    assert body == {"name": "李明", "place": 5, "pattern": "5", "count": 3}
    page.fill("#couplet-name", "Li")
    page.click("#couplet-ask")
    assert "no Chinese character" in page.locator("#couplet-error").text_content()
    choose(page, "My own pair")
    page.fill("#couplet-first", "雨水月")
    page.click("#couplet-ask")
    assert page.locator("#couplet-error").text_content() == "Write a second line, please."
    page.fill("#couplet-second", "山 花春")
    assert hung(page) == ("雨水月", "山花春")  # while it is being written
    body = request_of(page, "form", lambda: page.click("#couplet-ask"))
    assert body == {"first": "雨水月", "second": "山 花春"}
    assert page.locator(".candidate .mark").all_text_contents() == ["●"] * 3 + ["○"] * 3
    assert page.locator(".bar").count() == 0 and page.locator(".rules-kept .broken").count() == 2


def test_a_composed_couplet_hangs_whole_and_says_what_is_known(page: Any) -> None:
    compose(page)
    assert hung(page) == PAIRS[0] and scroll(page) == [SCROLLS[0]]
    above, door = (page.locator(f"#couplet-pair .{part}").bounding_box() for part in ("scroll", "door"))
    assert above["y"] + above["height"] <= door["y"]
    cards = page.locator(".candidate")
    assert cards.locator(".candidate-text").all_inner_texts() == ["\n".join(pair) for pair in PAIRS]
    notes = cards.locator(".known").all_text_contents()
    assert notes[0].startswith("Nearest in the corpus (2 ") and KNOWN["first"] in notes[0]
    assert notes[1].startswith("The couplet stands in the corpus")
    assert "given up here" in cards.nth(1).text_content()
    cards.locator(".candidate-text").nth(1).click()
    assert hung(page) == PAIRS[1]


def test_a_first_line_is_written_for_a_second_and_locked(page: Any) -> None:
    choose(page, "From a second line")
    body = request_of(page, "couplet", lambda: page.get_by_role("button", name="天涯若比邻").click())
    assert body == {"second": "天涯若比邻"} and hung(page) == ("天天天天天", "天涯若比邻")
    assert page.locator(".candidate-text").all_text_contents() == ["天天天天天", "海海海海海"]
    assert page.locator(".known").text_content().startswith("The line stands in the corpus")
    assert page.locator("#couplet-pair .second button").count() == 0
    page.locator("#couplet-pair .first [data-place='1']").click()
    body = request_of(page, "couplet", lambda: page.click("#couplet-again"))
    assert body == {"second": "天涯若比邻", "lock": "？天？？？"}


def test_a_composed_second_line_is_locked_and_written_anew(page: Any) -> None:
    compose(page)
    page.locator("#couplet-pair .second [data-place='0']").click()
    with page.expect_request("**/v1/couplet") as request:
        page.click("#couplet-again")
    assert request.value.post_data_json == {"first": PAIRS[0][0], "lock": "明？？？？？？"}
    assert page.locator("#couplet-first").input_value() == PAIRS[0][0]


def test_the_scroll_is_chosen_taken_down_and_written(page: Any) -> None:
    ask(page, "雨水月")
    choices = page.locator("#couplet-scrolls button")
    choices.first.wait_for()
    assert choices.all_text_contents() == SCROLLS and scroll(page) == [SCROLLS[0]]
    choices.nth(2).click()
    assert scroll(page) == [SCROLLS[2]]
    assert page.locator("#couplet-scrolls [aria-pressed=true]").all_text_contents() == [SCROLLS[2]]
    choices.nth(2).click()
    assert scroll(page) == []
    page.fill("#couplet-scroll", "笔 底春风")
    assert scroll(page) == ["笔底春风"]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#couplet-copy")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").endswith("\n横批：笔底春风")


def test_characters_are_written_over_and_the_form_follows(page: Any) -> None:
    compose(page)
    page.click("#couplet-edit")
    assert page.evaluate("document.activeElement.dataset.place") == "0"
    page.locator("#couplet-pair .first [data-place='2']").click()
    with page.expect_request("**/v1/form") as request:
        page.keyboard.insert_text("花")
    changed = ("李白花红春色好", PAIRS[0][1])
    assert (
        request.value.post_data_json == {"first": changed[0], "second": changed[1]} and hung(page) == changed
    )
    page.get_by_text("✗ repeats mirrored").wait_for()
    card = page.locator(".candidate").first
    assert "changed by hand" in card.text_content() and card.locator(".bar, .known").count() == 0
    assert page.evaluate("document.activeElement.dataset.place") == "3"  # the next one
    page.keyboard.press("ArrowLeft")
    page.keyboard.insert_text("青山绿水多")  # over the end of the line: the last is dropped
    assert hung(page) == (changed[0], "明山秀青山绿水")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Delete")
    page.keyboard.press("Home")
    assert hung(page) == (changed[0], "明山秀青山绿水")  # nothing came instead
    assert page.locator(".candidate-text").nth(1).inner_text() == "\n".join(PAIRS[1])
    page.click("#couplet-restore")
    assert hung(page) == PAIRS[0] and page.locator("#couplet-restore").is_hidden()
    page.click("#couplet-edit")
    assert page.locator("#couplet-pair input").count() == 0


def test_an_input_method_composes_in_the_pair(page: Any) -> None:
    compose(page)
    page.click("#couplet-edit")
    page.locator("#couplet-pair .first [data-place='4']").click()
    keyboard = page.context.new_cdp_session(page)
    for letters in ("q", "qi", "qiu"):
        keyboard.send("Input.imeSetComposition", {"text": letters, "selectionStart": 3, "selectionEnd": 3})
    assert page.locator(".candidate-text").first.inner_text() == "\n".join(PAIRS[0])  # not yet written
    keyboard.send("Input.insertText", {"text": "秋光"})
    assert hung(page)[0] == "李白桃红秋光好"


def test_the_server_composes_and_judges(browser: Any) -> None:
    """Everything through the server's own addresses, with a tiny model."""
    with served("composing") as address, opened(browser, address) as page:
        choose(page, "With a name")
        page.fill("#couplet-name", "山月")
        page.fill("#couplet-theme", "茶")
        page.select_option("#couplet-place", "3")
        with page.expect_response("**/v1/compose") as response:
            page.click("#couplet-ask")
        idle(page, "#couplet-ask")
        couplets = response.value.json()["couplets"]
        assert page.locator(".candidate").count() == len(couplets) > 0
        first, second = hung(page)
        assert (first, second) == (couplets[0]["first"], couplets[0]["second"])
        assert (first[2], second[2]) == ("山", "月") and len(first) == len(second) == 7
        assert (
            scroll(page) == [couplets[0]["scroll"]] and page.locator("#couplet-scrolls button").count() == 5
        )
        assert page.locator("#couplet-themes option").count() > 20
        page.click("#couplet-edit")
        page.locator("#couplet-pair .second [data-place='6']").click()
        with page.expect_response("**/v1/form") as response:
            page.keyboard.insert_text("柳")
        assert response.value.json()["form"]["final_level"] is False
        page.get_by_text("✗ ends 仄 / 平").wait_for()
        page.fill("#couplet-name", "一二三四五六七八九")
        page.click("#couplet-ask")
        page.get_by_text("up to 8 can be placed").wait_for()
        choose(page, "From a second line")
        page.fill("#couplet-second", "雨水山")
        with page.expect_response("**/v1/couplet") as response:
            page.click("#couplet-ask")
        idle(page, "#couplet-ask")
        assert hung(page) == (response.value.json()["predictions"][0]["text"], "雨水山")
        choose(page, "My own pair")
        page.fill("#couplet-first", "天上月")
        page.fill("#couplet-second", "山中云")
        with page.expect_response("**/v1/scroll") as response:
            page.click("#couplet-ask")
        page.locator("#couplet-pair .scroll").wait_for()
        assert scroll(page) == [response.value.json()["scrolls"][0]["text"]]
