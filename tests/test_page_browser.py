"""The page as people use it, one journey a tab: couplets asked for, changed and kept; a talk led and corrected."""

import io
import json
import re
import threading
from contextlib import ExitStack

from chromium import needs_chromium
from empathetic_toys import chinese_predictor
from page_browser import _reply_predictor, ask, idle, opened, say, served, serving
from page_couplets import PAIRS, SCROLLS, choose, compose, composed, hung, offer_all, request_of, scroll
from serving_toys import PATIENCE, app_of

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.couplet.composing.composer import ComposingPredictor
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint
from paddle_dialog.tasks.empathetic.data.emotions import CHINESE_NAMES

pytestmark = needs_chromium
SERVED, PREPARE = ("couplet",), offer_all
FIRST = "雨水水，月"
# The characters that reach beyond their sheet; their boxes are higher than they are.
OUTSIDE = """() => [...document.querySelectorAll("#sheets text")].filter((one) => {
  const [text, sheet] = [one, one.ownerSVGElement].map((part) => part.getBoundingClientRect());
  const half = (Number(one.getAttribute("font-size")) * sheet.width) / one.ownerSVGElement.viewBox.baseVal.width / 2;
  const [x, y] = [text.left + text.width / 2, text.top + text.height / 2];
  return x - half < sheet.left || x + half > sheet.right || y - half < sheet.top || y + half > sheet.bottom;
})"""
SHIFTS = """window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((one) => (window.shift += one.value)))
  .observe({ type: "layout-shift", buffered: true });"""


def candidates(page):
    return page.locator(".candidate-text").all_text_contents()


def ground(page):
    return page.locator("#couplet-pair").get_attribute("data-ground")


def clipboard(page):
    return page.evaluate("navigator.clipboard.readText()")


def open_anew(page, link):
    page.evaluate("sessionStorage.clear()")
    page.goto("about:blank")
    page.goto(link)


def test_a_line_is_answered_again_locked_and_drawn(page):
    ask(page, FIRST)
    second = candidates(page)[0]
    assert hung(page) == (FIRST.replace("，", ""), second.replace("，", ""))  # no marks on paper
    right, left = (page.locator(f"#couplet-pair .{side}").bounding_box() for side in ("first", "second"))
    assert left["x"] + left["width"] < right["x"]
    boxes = [c.bounding_box() for c in page.locator("#couplet-pair .first .character").all()]
    assert [b["y"] for b in boxes] == sorted({b["y"] for b in boxes})  # downwards
    card = page.locator(".candidate").first
    card.locator(".pinyin", has_text="yǔ").first.wait_for()
    assert card.locator(".arc").count() == 2 and "natural" in card.text_content()  # 水水 and its mirror
    before = set(candidates(page))
    body = request_of(page, "couplet", lambda: page.click("#couplet-ask"))
    assert body == {"first": FIRST, "n_best": 10}
    assert candidates(page) and not before & set(candidates(page))  # others
    ask(page, "雨水月柳")
    page.locator(".candidate-text").nth(3).click()
    wanted = hung(page)[1]
    for place in (0, 2):
        page.locator(f"#couplet-pair [data-place='{place}']").click()
    body = request_of(page, "couplet", lambda: page.click("#couplet-again"))
    assert body["first"] == "雨水月柳" and body["lock"] == f"{wanted[0]}？{wanted[2]}？"
    assert all((text[0], text[2]) == (wanted[0], wanted[2]) for text in candidates(page))
    choose(page, "From a second line")
    body = request_of(page, "couplet", lambda: page.get_by_role("button", name="天涯若比邻").click())
    assert body["second"] == "天涯若比邻" and hung(page) == ("天天天天天", "天涯若比邻")
    assert page.locator("p.known").text_content().startswith("The line stands in the corpus")


def test_couplets_are_composed_kept_on_their_paper_and_there_after_a_reload(page):
    compose(page)
    assert hung(page) == PAIRS[0] and scroll(page) == [SCROLLS[0]] and ground(page) == "gold"
    assert page.locator("details.known").inner_text() == "The couplet of the corpus most like it"
    page.locator("details.known summary").click()
    assert "李白桃红春意闹" in page.locator("details.known").text_content()
    page.click("#couplet-like")
    again = request_of(page, "compose", lambda: page.click("#couplet-ask"))
    assert 0 <= again["seed"] < 2**32  # others
    choose(page, "From a theme")
    for theme, wanted in (("婚庆", "double"), ("书房", "xuan"), ("清明", "white")):
        page.fill("#couplet-theme", theme)
        page.click("#couplet-ask")
        page.locator(f"#couplet-pair[data-ground={wanted}]").wait_for()
    page.locator(".candidate-text").nth(1).click()
    page.click("#couplet-like")
    page.reload()
    page.locator("#models:not([hidden])").wait_for()
    assert page.locator(".candidate").count() == 2 and hung(page) == PAIRS[1] and ground(page) == "white"
    assert page.locator("#couplet-theme").input_value() == "清明"
    kept = page.locator(".kept-text")
    assert kept.all_inner_texts() == ["\n".join([*pair, f"横批：{SCROLLS[0]}"]) for pair in reversed(PAIRS)]
    for place, wanted in ((1, "gold"), (0, "white")):
        kept.nth(place).click()
        assert ground(page) == wanted
    page.select_option("#couplet-ground", "xuan")  # by hand
    kept.nth(1).click()
    assert ground(page) == "gold"
    with page.expect_download() as download:
        page.click(".save-text")
    assert download.value.path().read_text(encoding="utf-8").count("横批：") == 2
    choose(page, "My own pair")
    for first, second, wanted in (
        ("音容宛在云山外", "德泽长存日月间", "white"),
        ("喜气盈门春满院", "祥光入室福临家", "gold"),
    ):
        page.fill("#couplet-first", first)
        page.fill("#couplet-second", second)
        request_of(page, "form", lambda: page.click("#couplet-ask"))
        assert ground(page) == wanted
    page.get_by_role("button", name="Remove ").first.click()
    assert kept.count() == 1 and page.evaluate("document.activeElement.className") == "remove"


def test_what_the_brush_lacks_is_written_whole_in_the_next_font(page):
    page.locator("#fonts[href]").wait_for(state="attached")
    page.wait_for_function("() => document.fonts.size > 100")
    choose(page, "My own pair")
    for line, font in (("宸雯晗煜鑫钰婧", "Dialog Brush"), ("玥色珺光", "Dialog Kai"), ("𠀀山", "Songti SC")):
        page.fill("#couplet-first", line)
        hand = page.locator("#couplet-pair .first .line").evaluate("at => getComputedStyle(at).fontFamily")
        assert hand.replace('"', "").startswith(font), line


def test_a_picture_is_signed_saved_and_its_link_opens_it(page):
    from PIL import Image

    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    compose(page)
    page.select_option("#couplet-ink", "gold")
    page.click("#couplet-picture")
    assert page.evaluate("document.activeElement.id") == "picture-save"  # no keyboard of a phone
    page.fill("#picture-name", "山月")
    with page.expect_download() as download:
        page.click("#picture-save")  # at once: it waits for the drawing
    assert download.value.suggested_filename == "-".join(PAIRS[0]) + ".png"
    picture = Image.open(io.BytesIO(download.value.path().read_bytes())).convert("RGB")
    assert picture.size == (1080, 1440)
    colours = picture.crop((950, 1300, 1060, 1420)).getcolors(1 << 24)
    assert sum(count for count, (r, g, _) in colours if r > 150 > 60 > g) > 500  # the seal
    refuse = "navigator.share = () => Promise.reject(new DOMException('', 'NotAllowedError'))"
    page.evaluate(f"navigator.canShare = () => true; {refuse}; 0")
    page.fill("#picture-name", "月")
    page.click("#picture-share")
    page.get_by_text("did not share it").wait_for()
    page.click("#picture-close")
    page.click("#couplet-copy")
    page.get_by_role("button", name="Copied").wait_for()
    assert clipboard(page) == "\n".join([*PAIRS[0], f"横批：{SCROLLS[0]}"])
    page.click("#couplet-link")
    page.locator("#couplet-link", has_text="Copied").wait_for()
    link = clipboard(page)
    open_anew(page, link)
    page.locator("#couplet-result").wait_for()
    assert hung(page) == PAIRS[0] and page.locator("#couplet-pair").get_attribute("data-ink") == "gold"


def test_a_friend_is_asked_and_sends_an_answer_back(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    compose(page)
    page.select_option("#couplet-script", "older")
    page.locator("#couplet-pair .second .line", has_text="畫圖新").wait_for()
    assert candidates(page)[0].endswith("畫圖新") and page.get_by_role("button", name="國泰民安").is_visible()
    page.fill("#couplet-scroll", "千里后羿")
    assert scroll(page) == ["千里后羿"]  # 里 and 后 of themselves; 裏 and 後 elsewhere
    page.click("#couplet-challenge")
    page.get_by_role("button", name="Copied").wait_for()
    link = clipboard(page)
    open_anew(page, link)
    page.get_by_text("can you answer it?").wait_for()
    assert page.locator("#couplet-first").input_value() == PAIRS[0][0]
    page.fill("#couplet-second", PAIRS[0][1])
    page.click("#couplet-ask")
    page.get_by_role("button", name="send it back").click()
    page.get_by_role("button", name="Copied").wait_for()
    back = clipboard(page)
    open_anew(page, back)
    page.locator("#couplet-pair .second .line", has_text="畫圖新").wait_for()  # once the table is there
    assert hung(page) == ("李白桃紅春色好", "明山秀水畫圖新")


def test_characters_are_written_over_and_sheets_printed(page):
    compose(page)
    page.click("#couplet-edit")
    assert page.evaluate("document.activeElement.dataset.place") == "0"
    page.locator("#couplet-pair .first [data-place='2']").click()
    with page.expect_request("**/v1/form") as request:
        page.keyboard.insert_text("花")
    changed = ("李白花红春色好", PAIRS[0][1])
    assert request.value.post_data_json == {"first": changed[0], "second": changed[1]}
    page.get_by_text("✗ repeats mirrored").wait_for()
    keyboard = page.context.new_cdp_session(page)
    for letters in ("q", "qi", "qiu"):  # an input method
        keyboard.send("Input.imeSetComposition", {"text": letters, "selectionStart": 3, "selectionEnd": 3})
    keyboard.send("Input.insertText", {"text": "秋光"})
    assert hung(page)[0] == "李白花秋光色好"
    page.keyboard.press("ArrowLeft")
    page.keyboard.insert_text("青山绿水多")  # over the end of the line: the last is dropped
    assert hung(page)[1] == "明山秀水画青山"
    page.click("#couplet-restore")
    assert hung(page) == PAIRS[0]
    page.emulate_media(media="print")
    assert page.locator("#couplet-pair .character:visible").count() == 14
    assert page.locator("#couplet-form").is_hidden()
    page.emulate_media(media="screen")
    page.click("#couplet-edit")
    page.locator("#couplet .print summary").click()
    papers = {
        "one": (1, (210, 297)),
        "characters": (18, (210, 297)),
        "scrolls": (3, (220, 1300)),
        "halfSheets": (3, (345, 1380)),
    }
    for paper, (count, size) in papers.items():
        page.select_option("#couplet-paper", paper)
        page.click("#couplet-print")
        assert "".join(page.locator("#sheets text").all_text_contents()) == "".join(PAIRS[0]) + SCROLLS[0]
        page.emulate_media(media="print")
        assert page.locator("#couplet").is_hidden() and page.evaluate(OUTSIDE) == []
        pdf = page.pdf(prefer_css_page_size=True)
        boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
        assert len(boxes) == count
        sides = [(float(p) / 72 * 25.4, mm) for box in boxes for p, mm in zip(box, size, strict=True)]
        assert all(abs(side - mm) < 1 for side, mm in sides)
        page.emulate_media(media="screen")


def test_what_is_served_first_stays_where_it_is(browser):
    with served("composing") as address:
        for width in (390, 1280):
            size = {"width": width, "height": 800}
            with opened(
                browser, address, prepare=lambda page: page.add_init_script(SHIFTS), viewport=size
            ) as page:
                page.wait_for_timeout(500)
                assert page.evaluate("window.shift") < 0.05
        with opened(browser, address) as page:  # everything through the server's own addresses
            page.fill("#couplet-name", "山月")
            page.select_option("#couplet-place", "3")
            body = request_of(page, "compose", lambda: page.click("#couplet-ask"))
            assert body == {"name": "山月", "place": 3, "count": 5}
            first, second = hung(page)
            assert (first[2], second[2]) == ("山", "月")
            assert page.locator("#couplet-scrolls button").count() == 5
            page.fill("#couplet-name", "一二三四五六七八九")
            page.click("#couplet-ask")
            page.get_by_text("up to 8 can be placed").wait_for()
            page.get_by_role("button", name="中文").click()
            page.get_by_text("有 9 个字，最多嵌 8 个").wait_for()


def test_couplets_hang_as_they_come_and_stay(browser, monkeypatch):
    more, whole = threading.Event(), ComposingPredictor.compose_in_parts

    def in_two_parts(*asked):
        *_, found = whole(*asked)
        yield found[:2]
        assert more.wait(PATIENCE)
        yield found

    def two(page):
        page.locator("#couplet-ask").click()
        page.wait_for_function("() => document.querySelectorAll('.candidate').length === 2")
        assert page.locator("#couplet-ask[aria-busy]").count() == 1

    monkeypatch.setattr(ComposingPredictor, "compose_in_parts", in_two_parts)
    more.set()
    with served("composing") as address, opened(browser, address) as page, ExitStack() as ending:
        ending.callback(more.set)  # the server waits for it
        more.clear()
        page.fill("#couplet-name", "山月")
        two(page)
        page.locator(".candidate-text").nth(1).click()
        taken = hung(page)
        more.set()
        idle(page, "#couplet-ask")
        assert page.locator(".candidate").count() == 5 and hung(page) == taken  # somebody reads it
        more.clear()
        two(page)
        page.click("#couplet .running button")
        idle(page, "#couplet-ask")
        assert "cut short; here are 2" in page.locator("#couplet-status").text_content()
        assert page.locator(".candidate").count() == 2
        more.set()
        lines = [composed(), {"error": "there was no answer within 30 seconds"}]
        body = "".join(json.dumps(line) + "\n" for line in lines)
        page.route("**/v1/compose", lambda r: r.fulfill(body=body, content_type="application/x-ndjson"))
        page.click("#couplet-ask")
        page.get_by_text("cut short; here are 2").wait_for()
        assert hung(page) == PAIRS[0]


def test_a_talk_in_two_languages(browser):
    both = (_reply_predictor(), chinese_predictor())
    app = app_of(*((one, [ReplyEndpoint(LimitsConfig(turns=5))]) for one in both))

    def asked(page, text):
        with page.expect_request("**/v1/reply") as request:
            say(page, text)
        return request.value.post_data_json

    with serving(app) as address, opened(browser, address, locale="zh-CN") as page:
        notice = page.locator("#empathetic [role=note]")
        assert "不是心理咨询师" in notice.text_content()
        assert notice.locator("a[href='tel:12356']").is_visible()
        body = asked(page, "我今天很难过")
        assert body == {"context": ["我今天很难过"], "n_best": 5, "language": "zh"}
        assert page.locator("#empathetic-turn").get_attribute("placeholder") == "接着说……"
        for text in ("ok", "😀", "haha"):
            assert asked(page, text)["language"] == "zh"
        long = asked(page, "我的狗死了")
        assert len(long["context"]) == 5 and long["context"][0] == "😀"  # the oldest are not sent
        english = asked(page, "my dog died")
        assert english["language"] == "en" and english["context"] == ["my dog died"]
        page.locator(".others summary").last.click()
        other = page.locator(".other").nth(1).text_content()
        page.locator(".other").nth(1).click()
        assert page.locator(".listener .bubble").last.text_content() == f"模型: {other}"
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"  # the focus is not lost
        page.locator(".felt summary").last.click()
        with page.expect_request("**/v1/reply") as request:
            page.select_option(".emotion-choice", "joyful")
        idle(page, "#empathetic-send")
        assert request.value.post_data_json["emotion"] == "joyful"
        assert CHINESE_NAMES["en"]["joyful"] in page.locator(".felt summary").last.text_content()
        turns = page.locator(".bubble").all_text_contents()
        with page.expect_download() as download:
            page.click("#empathetic-save")
        assert download.value.path().read_text(encoding="utf-8").splitlines() == turns
        page.reload()
        page.locator("#models:not([hidden])").wait_for()
        page.click("#empathetic-reset")
        assert page.locator(".turn").count() == 0
        page.get_by_role("button", name="恢复刚才的谈话").click()
        assert page.locator(".bubble").all_text_contents() == turns
        page.click("#empathetic-undo")
        assert page.locator("#empathetic-turn").input_value() == "my dog died"
        say(page, "我不想活了")
        care = page.locator(".turn.care")
        assert care.locator("a[href='tel:12356']").is_visible() and "不是模型写的" in care.text_content()
        assert care.locator("..").locator(".care .others, .care .felt").count() == 0
        page.set_viewport_size({"width": 320, "height": 568})
        page.wait_for_timeout(100)
        care.scroll_into_view_if_needed()
        assert page.evaluate("document.documentElement.scrollWidth") == 320
