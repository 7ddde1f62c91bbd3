"""What is kept of a couplet: a picture, a list in the browser, sheets of paper; and all of it on a phone."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from chromium import needs_chromium
from page_browser import low_contrasts, opened
from page_couplets import PAIRS, SCROLLS, choose, compose, hung, offer_all, scroll

pytestmark = needs_chromium
SERVED, PREPARE = ("couplet",), offer_all
# The characters that reach beyond their sheet; their boxes are higher than they are.
OUTSIDE = """() => [...document.querySelectorAll("#sheets text")].filter((one) => {
  const [text, sheet] = [one, one.ownerSVGElement].map((part) => part.getBoundingClientRect());
  const half = (Number(one.getAttribute("font-size")) * sheet.width) / one.ownerSVGElement.viewBox.baseVal.width / 2;
  const [x, y] = [text.left + text.width / 2, text.top + text.height / 2];
  return x - half < sheet.left || x + half > sheet.right || y - half < sheet.top || y + half > sheet.bottom;
})"""

# Of the ink with each colour of the paper (WCAG 2.2, 1.4.3).
INK_CONTRASTS = """() => {
  const light = (colour) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const part = (v) => (v <= 10 ? v / 3295 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map(part);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const style = getComputedStyle(document.querySelector("#couplet-pair"));
  const ink = light(getComputedStyle(document.querySelector("#couplet-pair .line")).color);
  const papers = style.getPropertyValue("--paper").match(/#[0-9a-f]+/g).map(light);
  return papers.map((paper) => Math.max(paper, ink) / Math.min(paper, ink));
}"""


def test_the_picture_has_the_scroll_on_top(page: Any) -> None:
    from PIL import Image

    def picture() -> Any:
        page.click("#couplet-save")
        page.locator("#keepsake-picture[src]").wait_for()
        with page.expect_download() as download:
            page.click("#keepsake-save")
        page.click("#keepsake-close")
        return Image.open(io.BytesIO(download.value.path().read_bytes())).convert("RGB")

    compose(page)
    page.select_option("#couplet-font", "song")
    with_scroll = picture()
    page.locator("#couplet-scrolls button").first.click()
    without = picture()

    def red(picture: Any) -> float:
        middle = picture.crop((400, 170, 680, 240))
        found = sum(count for count, (r, g, _) in middle.getcolors(1 << 24) if r > 180 and g < 90)
        return found / middle.width / middle.height

    assert red(with_scroll) > 0.4 and red(without) == 0
    assert (
        "Songti SC"
        in page.locator("#couplet-pair .line").first.evaluate("at => getComputedStyle(at).fontFamily")[:20]
    )


def test_what_one_likes_is_kept(page: Any) -> None:
    compose(page)
    page.click("#couplet-like")
    page.locator(".candidate-text").nth(1).click()
    page.click("#couplet-like")
    page.reload()
    page.locator("#models a").wait_for()
    kept = page.locator(".liked-text")
    assert kept.all_inner_texts() == ["\n".join([*pair, SCROLLS[0]]) for pair in reversed(PAIRS)]
    with page.expect_response("**/v1/form"):
        kept.nth(1).click()
    assert hung(page) == PAIRS[0] and scroll(page) == [SCROLLS[0]]
    assert page.locator("#couplet-like").text_content() == "Keep no longer"
    with page.expect_download() as download:
        page.click("#couplet-liked-save")
    text = download.value.path().read_text(encoding="utf-8")
    assert text == "\n\n".join(f"{one}\n{other}\n横批：{SCROLLS[0]}" for one, other in reversed(PAIRS)) + "\n"
    page.get_by_role("button", name=f"Remove the couplet {PAIRS[1][0]}").click()
    assert kept.count() == 1 and page.evaluate("document.activeElement.className") == "remove"
    page.click("#couplet-like")
    assert page.locator("#couplet-liked").is_hidden()


@pytest.mark.parametrize("fault", ["full", "forbidden", "spoilt"])
def test_storage_that_fails_loses_nothing_that_is_shown(page: Any, fault: str) -> None:
    full = "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); };"
    forbidden = (
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('SecurityError'); } });"
    )
    spoilt = "localStorage.setItem('paddle_dialog.couplet.liked', '[{\"first\": 1}, null, 7]');"
    page.add_init_script({"full": full, "forbidden": forbidden, "spoilt": spoilt}[fault])
    page.reload()
    page.locator("#models a").wait_for()
    assert page.locator("#couplet-liked").is_hidden()
    compose(page)
    page.click("#couplet-like")
    assert page.locator(".liked-text").count() == 1
    told = page.locator("#couplet-liked-error")
    assert told.is_hidden() if fault == "spoilt" else "it is lost when the page closes" in told.text_content()


def test_sheets_are_printed_in_their_size(page: Any) -> None:
    a4 = (210, 297)
    papers = {
        "one": (1, a4),
        "characters": (18, a4),
        "scrolls": (3, (220, 1300)),
        "halfSheets": (3, (345, 1380)),
    }
    compose(page)
    page.locator("#couplet .print summary").click()
    assert page.locator("#couplet-paper option").count() == len(papers)
    for paper, (count, size) in papers.items():
        page.select_option("#couplet-paper", paper)
        page.click("#couplet-print")
        written = "".join(page.locator("#sheets text").all_text_contents())
        assert written == "".join(PAIRS[0]) + SCROLLS[0]
        page.emulate_media(media="print")
        assert page.locator("#couplet").is_hidden() and page.locator("#sheets svg").first.is_visible()
        assert page.evaluate(OUTSIDE) == []
        pdf = page.pdf(prefer_css_page_size=True)
        points = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
        assert len(points) == count
        assert all(
            abs(float(p) / 72 * 25.4 - mm) < 1 for box in points for p, mm in zip(box, size, strict=True)
        )
        page.emulate_media(media="screen")
        assert page.locator("#sheets *").count() == 0 and page.locator("#couplet").is_visible()  # as before


def test_a_phone_and_both_schemes_show_all(browser: Any, address: str) -> None:
    for scheme in ("light", "dark"):
        size = {"width": 360, "height": 640}
        with opened(browser, address, viewport=size, color_scheme=scheme, prepare=offer_all) as page:
            for way in ("From a second line", "My own pair", "From a theme"):
                choose(page, way)
                assert page.evaluate("document.documentElement.scrollWidth") == 360, way
            compose(page)
            page.click("#couplet-like")
            page.click("#couplet-edit")
            page.locator("#couplet .print summary").click()
            assert page.evaluate("document.documentElement.scrollWidth") == 360
            assert low_contrasts(page) == []
            heights = "all => all.map(one => one.getBoundingClientRect().height).filter(Boolean)"
            assert (
                min(page.locator("button, select, summary, .way").evaluate_all(heights)) >= 24
            )  # WCAG 2.2, 2.5.8


def test_the_paper_follows_the_occasion_and_the_ink_stands_out(page: Any) -> None:
    pair, ground = page.locator("#couplet-pair"), page.locator("#couplet-ground")
    compose(page)
    assert ground.input_value() == "gold" and pair.locator(".luck").text_content() == "福"
    choose(page, "From a theme")
    for theme, wanted, luck in (("婚庆", "double", "囍"), ("挽联", "white", None), ("书房", "xuan", None)):
        page.fill("#couplet-theme", theme)
        page.click("#couplet-ask")
        page.locator(f"#couplet-pair[data-ground={wanted}]").wait_for()
        assert pair.locator(".luck").all_text_contents() == ([luck] if luck else [])
        assert page.locator("#couplet-ink").is_visible() == (
            wanted == "double"
        )  # black on white, and no gold
    for name in ("gold", "red", "double", "xuan", "white"):
        page.select_option("#couplet-ground", name)
        for ink in ("black", "gold") if page.locator("#couplet-ink").is_visible() else ("black",):
            if page.locator("#couplet-ink").is_visible():
                page.select_option("#couplet-ink", ink)
            assert min(page.evaluate(INK_CONTRASTS)) >= 4.5, (name, ink)
    page.emulate_media(forced_colors="active")
    first, second = (pair.locator(f".{side} .unseen").text_content() for side in ("first", "second"))
    assert first.startswith("First line") and second.startswith("Second line")


def test_a_link_asks_a_friend_and_opens_what_is_traditional(page: Any) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    compose(page)
    page.select_option("#couplet-script", "older")
    page.locator("#couplet-pair .second .line", has_text="畫圖新").wait_for()
    assert hung(page) == ("李白桃紅春色好", "明山秀水畫圖新")
    page.fill("#couplet-scroll", "千里后羿")
    assert scroll(page) == ["千里后羿"]  # 里 and 后 of themselves; 裏 and 後 elsewhere
    page.locator(".candidate-text").nth(1).click()
    assert scroll(page) == ["春滿人間"] and page.locator("#couplet-scroll").input_value() == ""
    page.locator(".candidate-text").nth(0).click()
    assert scroll(page) == ["千里后羿"]  # one's own stays with its couplet
    page.click("#couplet-challenge")
    page.get_by_role("button", name="Copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    page.get_by_text("can you answer it?").wait_for()
    assert page.locator("#couplet-first").input_value() == PAIRS[0][0]
    page.fill("#couplet-second", PAIRS[0][1])
    page.click("#couplet-ask")
    page.locator(".candidate").wait_for()
    assert hung(page)[1] == "明山秀水畫圖新" and page.locator("#couplet-challenged").is_hidden()


def test_long_work_is_stopped_and_refusals_are_in_the_language_of_the_page(
    browser: Any, address: str
) -> None:
    with opened(browser, address, locale="zh-CN", prepare=offer_all) as page:
        held: list[Any] = []
        page.route("**/v1/compose", lambda route: held.append(route))
        page.fill("#couplet-name", "李明")
        page.click("#couplet-ask")
        page.locator("#running button").click()
        page.locator("#couplet-ask:not([aria-busy])").wait_for()
        assert page.locator("#running").is_hidden() and page.locator("#couplet-error").is_hidden()
        refusal = "the name '一二三四五六七八九' has 9 characters; up to 8 can be placed, two in each couplet"
        page.route("**/v1/compose", lambda route: route.fulfill(status=422, json={"error": refusal}))
        page.click("#couplet-ask")
        page.get_by_text("名字“一二三四五六七八九”有 9 个字，最多嵌 8 个。").wait_for()
