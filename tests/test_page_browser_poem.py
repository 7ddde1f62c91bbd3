"""The poem tab in a browser."""

from chromium import needs_chromium
from page_browser import opened, serving
from poem_toys import toy

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.models import make_card
from paddle_dialog.serving.word_filter import WordFilter
from tasks.poem.api import PoemEndpoint


@needs_chromium
def test_a_form_is_chosen_a_poem_is_written_and_another_one_asked_for(browser):
    endpoint = PoemEndpoint(LimitsConfig())

    def load():
        predictor = toy()
        return [make_card(predictor, endpoint.path, endpoint.use(predictor, WordFilter()), None)]

    with serving(endpoint, load=load) as address, opened(browser, address, locale="zh-CN") as page:
        page.get_by_label("体裁").select_option("七绝")
        page.get_by_label("给出的是").select_option("acrostic")
        page.get_by_label("每句的第一个字").fill("山水日月")
        page.get_by_role("button", name="作诗", exact=True).click()
        lines = page.locator("#poem-lines p")
        lines.first.wait_for()
        first = lines.all_inner_texts()
        assert [line[0] + line[8] for line in first] == ["山水", "日月"] and {
            len(line) for line in first
        } == {16}
        assert "七绝" in page.locator("#poem-kept").inner_text()
        page.get_by_role("button", name="再写一首").click()
        changed = "before => document.querySelector('#poem-lines').innerText !== before"
        page.wait_for_function(changed, arg="\n".join(first))
        page.get_by_label("体裁").select_option("")
        page.get_by_role("button", name="作诗", exact=True).click()
        assert page.get_by_role("alert").inner_text() == "藏头诗要先选体裁。"
