"""The page as people use it: couplets asked for, locked, kept; a conversation led and corrected."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from chromium import needs_chromium
from page_browser import ask, idle, say

pytestmark = needs_chromium
SERVED = ("couplet", "empathetic")
FIRST = "雨水水，月"


def hanging(page: Any, side: str = "second") -> str:
    return page.locator(f"#couplet-pair .{side} .line").text_content()


def written(line: str) -> str:
    return line.replace("，", "")


def candidates(page: Any) -> list[str]:
    return page.locator(".candidate-text").all_text_contents()


def answer_of(page: Any, first: str) -> dict[str, Any]:
    page.fill("#couplet-first", first)
    with page.expect_response("**/v1/couplet") as response:
        page.press("#couplet-first", "Enter")
    idle(page, "#couplet-ask")
    return response.value.json()


def test_a_couplet_hangs_as_at_a_door(page: Any) -> None:
    page.fill("#couplet-first", FIRST)
    assert (hanging(page, "first"), hanging(page)) == (written(FIRST), "")  # while it is being written
    answer = answer_of(page, FIRST)
    second = answer["predictions"][0]["text"]
    assert (hanging(page, "first"), hanging(page)) == (written(FIRST), written(second))
    right, left = (page.locator(f"#couplet-pair .{side}").bounding_box() for side in ("first", "second"))
    assert left["x"] + left["width"] < right["x"]
    boxes = [c.bounding_box() for c in page.locator("#couplet-pair .first .character").all()]
    assert [b["y"] for b in boxes] == sorted({b["y"] for b in boxes})  # downwards
    assert len({round(b["x"]) for b in boxes}) == 1
    assert page.locator("#couplet-pair .second button").count() == 4  # the comma is not written on paper
    read = page.locator("#couplet-pair .line").all_text_contents()
    assert read == [written(FIRST), written(second)]  # by a screen reader, the 上联 first


def test_each_candidate_has_its_form_drawn(page: Any) -> None:
    answer = answer_of(page, FIRST)
    assert candidates(page) == [p["text"] for p in answer["predictions"]]
    assert len(answer["predictions"]) == 5
    signs = {"ping": "○", "ze": "●", "unknown": "◐", "punctuation": ""}
    for place, prediction in enumerate(answer["predictions"]):
        card = page.locator(".candidate").nth(place)
        tones = answer["tones"]["first"] + answer["tones"]["second"][place]
        assert card.locator(".mark").all_text_contents() == [signs[tone] for tone in tones]
        assert card.locator(".arc").count() == 2  # 水水 and its mirror
        share = card.locator(".bar").evaluate("at => Number(at.style.getPropertyValue('--share'))")
        assert share == pytest.approx(math.exp(prediction["score"]), abs=0.001)
        form = prediction["form"]
        kept = {
            "ends 仄 / 平": form["final_pair"],
            "repeats mirrored": form["repeats_mirrored"],
            "no shared character": not form["shares_character"],
            "same length": form["length_equal"],
        }
        told = card.locator(".rules-kept li").all_text_contents()
        assert [name for name in kept if any(name in one for one in told)] == [n for n in kept if not kept[n]]
        assert len(told) == 1 or "keeps the form" not in "".join(told)  # all that is kept is said once


def test_equal_tones_are_marked(page: Any) -> None:
    page.locator(".rules summary").click()
    page.get_by_label("Prefer opposed tones").uncheck()
    answer = answer_of(page, "雨水月")
    for place in range(len(answer["predictions"])):
        one, other = answer["tones"]["first"], answer["tones"]["second"][place]
        equal = sum(a == b for a, b in zip(one, other, strict=True))
        assert page.locator(".candidate").nth(place).locator(".clash").count() == 2 * equal


def test_another_candidate_is_hung_by_a_click(page: Any) -> None:
    ask(page, FIRST)
    texts = candidates(page)
    page.locator(".candidate-text").nth(2).click()
    assert hanging(page) == written(texts[2]) and candidates(page) == texts
    assert page.locator(".candidate-text[aria-pressed=true]").text_content() == texts[2]
    assert page.evaluate("document.activeElement.textContent") == texts[2]  # a keyboard stays where it was


def test_locked_characters_stay_and_the_rest_is_written_anew(page: Any) -> None:
    ask(page, "雨水月柳")
    page.locator(".candidate-text").nth(3).click()
    wanted = hanging(page)
    assert page.locator("#couplet-again").is_hidden()
    for place in (0, 2):
        page.locator(f"#couplet-pair [data-place='{place}']").click()
    with page.expect_request("**/v1/couplet") as request:
        page.click("#couplet-again")
    idle(page, "#couplet-ask")
    assert request.value.post_data_json == {"first": "雨水月柳", "lock": f"{wanted[0]}？{wanted[2]}？"}
    assert all((text[0], text[2]) == (wanted[0], wanted[2]) for text in candidates(page))
    assert page.locator("#couplet-pair [aria-pressed=true]").all_text_contents() == [wanted[0], wanted[2]]
    page.click("#couplet-unlock")
    assert page.locator("#couplet-pair [aria-pressed=true]").count() == 0
    page.locator("#couplet-pair [data-place='1']").click()
    with page.expect_request("**/v1/couplet") as request:
        page.fill("#couplet-first", "雨月")
        page.press("#couplet-first", "Enter")
    assert request.value.post_data_json == {"first": "雨月"}  # the lock was of the other line
    idle(page, "#couplet-ask")


def test_rules_are_switched(page: Any) -> None:
    page.locator(".rules summary").click()
    assert (
        page.locator("#couplet-rules input:checked").count() == 5
    )  # as the server's are; its tone weight is 0
    page.get_by_label("No character of the first line").uncheck()
    page.get_by_label("Prefer opposed tones").check()
    with page.expect_request("**/v1/couplet") as request:
        page.get_by_role("button", name="海内存知己").click()
    assert request.value.post_data_json == {
        "first": "海内存知己",
        "rules": {"no_shared_character": False, "tone_weight": 1},
    }
    idle(page, "#couplet-ask")


def test_a_couplet_is_copied_and_saved_as_a_picture(page: Any) -> None:
    from PIL import Image

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, FIRST)
    second = candidates(page)[0]
    page.click("#couplet-copy")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == f"{FIRST}\n{second}"
    page.select_option("#couplet-ink", "gold")
    page.click("#couplet-save")
    page.locator("#keepsake-picture[src]").wait_for()
    plain = page.locator("#keepsake-picture").get_attribute("src")
    page.fill("#keepsake-name", "山月")
    page.locator(f"#keepsake-picture:not([src='{plain}'])").wait_for()
    with page.expect_download() as download:
        page.click("#keepsake-save")
    assert download.value.suggested_filename == f"{FIRST}-{second}.png"
    picture = Image.open(io.BytesIO(download.value.path().read_bytes())).convert("RGB")
    width, height = picture.size
    assert (width, height) == (1080, 1440)
    seal = [
        count
        for count, (r, g, _) in picture.crop((950, 1300, 1060, 1420)).getcolors(1 << 24)
        if r > 150 > 60 > g
    ]
    assert sum(seal) > 500
    page.click("#keepsake-link")
    page.locator("#keepsake-link", has_text="Copied").wait_for()
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    page.reload()
    page.locator("#couplet-result").wait_for()
    assert (hanging(page, "first"), hanging(page)) == (
        written(FIRST),
        written(second),
    )  # the link opens it again
    assert page.locator("#couplet-pair").get_attribute("data-ink") == "gold"
    for x in (0.13, 0.87):  # a paper on either side, gold on red
        strip = picture.crop((int(width * (x - 0.08)), height // 3, int(width * (x + 0.08)), height // 2))
        colours = [colour for _, colour in strip.getcolors(1 << 24)]
        assert any(r > 140 and g < 60 for r, g, _ in colours) and any(
            r > 230 and g > 190 for r, g, _ in colours
        )


def test_a_turn_is_answered_with_what_was_felt(page: Any) -> None:
    page.click("#tab-empathetic")
    page.fill("#empathetic-turn", "my dog died")
    with page.expect_response("**/v1/reply") as response:
        page.press("#empathetic-turn", "Enter")
    idle(page, "#empathetic-send")
    answer = response.value.json()
    assert page.locator("#empathetic-turn").input_value() == ""
    assert page.evaluate("document.activeElement.id") == "empathetic-turn"
    assert page.locator(".speaker .bubble").text_content() == "You: my dog died"
    assert page.locator(".listener .bubble").text_content() == f"Model: {answer['predictions'][0]['text']}"
    assert page.locator(".felt summary").text_content() == answer["emotion"]  # one word; the rest on demand
    assert page.locator(".emotion").first.is_hidden()
    page.locator(".felt summary").click()
    assert page.locator(".emotion-name").all_text_contents() == list(answer["emotions"])
    percents = [f"{p * 100:.0f}%" for p in answer["emotions"].values()]
    assert page.locator(".percent").all_text_contents() == percents
    widths = [b.bounding_box()["width"] for b in page.locator(".emotion .bar").all()]
    filled = "all => all.map(b => parseFloat(getComputedStyle(b, '::before').width))"
    shares = page.locator(".emotion .bar").evaluate_all(filled)
    for width, share, probability in zip(widths, shares, answer["emotions"].values(), strict=True):
        assert share / width == pytest.approx(probability, abs=0.02)
    assert page.locator(".emotion.chosen .emotion-name").text_content() == answer["emotion"]


def test_where_no_emotion_is_clear_the_page_says_so_and_one_can_be_told(page: Any) -> None:
    page.click("#tab-empathetic")

    def unclear(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, json={**response.json(), "emotion": None})

    page.route("**/v1/reply", unclear)
    say(page, "hi")
    assert page.locator(".felt summary").text_content() == "no clear emotion"
    assert "no clear emotion" in page.locator("#empathetic-status").text_content()
    page.unroute("**/v1/reply")
    page.locator(".felt summary").click()
    page.select_option(".emotion-choice", "joyful")
    idle(page, "#empathetic-send")
    assert page.locator(".emotion").count() == 5 and "joyful" in page.locator(".felt summary").text_content()


def test_the_emotion_is_corrected_and_the_reply_made_anew(page: Any) -> None:
    page.click("#tab-empathetic")
    say(page, "my dog died")
    before = page.locator(".listener .bubble").text_content()
    page.locator(".felt summary").click()
    label = page.locator(".emotion-name").nth(1).text_content()
    for act, told in (
        (lambda: page.locator(".emotion").nth(1).click(), label),
        (lambda: page.select_option(".emotion-choice", "joyful"), "joyful"),
    ):
        said = page.locator(".listener .bubble").text_content()
        with page.expect_request("**/v1/reply") as request:
            act()
        idle(page, "#empathetic-send")
        assert request.value.post_data_json["emotion"] == told
        assert told in page.locator(".felt summary").text_content()
        assert page.locator(".listener .bubble").text_content() != said  # a correction changes the reply
    with page.expect_request("**/v1/reply") as request:
        page.select_option(".emotion-choice", "")
    idle(page, "#empathetic-send")
    assert "emotion" not in request.value.post_data_json
    assert page.locator(".listener .bubble").text_content() == before
    assert "as you said" not in page.locator(".felt summary").text_content()


def test_the_reply_taken_is_what_the_conversation_goes_on_from(page: Any) -> None:
    page.click("#tab-empathetic")
    say(page, "my dog died")
    page.locator(".others summary").click()
    other = page.locator(".other").nth(1).text_content()
    page.locator(".other").nth(1).click()
    assert page.locator(".listener .bubble").text_content() == f"Model: {other}"
    page.reload()
    page.locator("#models a").wait_for()
    assert page.locator(".listener .bubble").text_content() == f"Model: {other}"  # kept
    held: list[Any] = []
    page.route("**/v1/reply", lambda route: held.append(route))
    page.fill("#empathetic-turn", "he was called Rex")
    with page.expect_request("**/v1/reply") as request:
        page.click("#empathetic-send")
    assert page.locator(".speaker .bubble").nth(1).text_content() == "You: he was called Rex"  # at once
    page.fill("#empathetic-turn", "and he")
    page.press("#empathetic-turn", "Enter")
    held[0].continue_()
    page.unroute("**/v1/reply")
    idle(page, "#empathetic-send")
    assert page.locator("#empathetic-turn").input_value() == "and he" and len(held) == 1
    page.go_back()
    assert page.locator("#couplet").is_visible()
    page.go_forward()
    assert request.value.post_data_json["context"] == ["my dog died", other, "he was called Rex"]
    assert page.locator(".turn").count() == 4
    page.click("#empathetic-undo")
    assert (
        page.locator(".turn").count() == 2
        and page.locator("#empathetic-turn").input_value() == "he was called Rex"
    )
    page.click("#empathetic-reset")
    assert page.locator(".turn").count() == 0 and page.locator("#empathetic-turn").input_value() == ""


def test_attention_is_shown_when_asked_for(page: Any) -> None:
    page.click("#tab-empathetic")
    say(page, "my dog died")
    assert page.locator(".attention").count() == 0
    page.locator(".others summary").click()
    with page.expect_response("**/v1/reply") as response:
        page.locator(".look").click()
    idle(page, "#empathetic-send")
    attention = response.value.json()["attention"]
    assert page.locator(".source .token").all_text_contents() == ["⊢", *attention["source"][1:]]
    page.locator(".target .token").nth(1).click()
    row = attention["weights"][0]
    most = max(range(len(row)), key=row.__getitem__)
    shades = page.locator(".source .token").evaluate_all(
        "all => all.map(t => t.style.getPropertyValue('--weight'))"
    )
    assert [float(shade) for shade in shades] == pytest.approx([w / row[most] for w in row], abs=0.001)
    shown = page.locator(".source .token").nth(most).text_content()
    assert f"“{attention['target'][0]}” it looked most at: {shown}" in page.locator(".looked").text_content()
    page.locator(".look").click()
    assert page.locator(".attention").count() == 0
