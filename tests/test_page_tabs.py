"""The files of the page and its tabs."""

import ast
import re

import pytest
from chromium import needs_chromium
from command import ROOT
from page_browser import opened, serving
from serving_toys import EchoEndpoint, make_app

from paddle_dialog.serving.app import ModelCard
from paddle_dialog.serving.page_files import PAGE

TABS = sorted((ROOT / "tasks").glob("*/page"))
tabs = pytest.mark.parametrize("folder", TABS, ids=lambda folder: folder.parent.name)


def text_of(folder, *suffixes):
    files = [file for file in sorted(folder.iterdir()) if file.suffix in suffixes and file.name != "words.js"]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def words_of(folder):
    """Return the words in Chinese and in English."""
    text = (folder / "words.js").read_text(encoding="utf-8")
    found = re.findall(r'^  (\w+): \[\s*"(.*)",\s*"(.*?)",?\s*\],$', text, re.M)
    assert len(found) == len(re.findall(r"^  \w+: \[", text, re.M)) > 3
    return {name: (chinese, english) for name, chinese, english in found}


@pytest.mark.parametrize("folder", [PAGE, *TABS], ids=lambda folder: folder.parent.name)
def test_both_languages_have_all_words_and_no_other(folder):
    words = words_of(folder)
    for pair in words.values():
        chinese, english = (sorted(re.findall(r"\{\w+\}", text)) for text in pair)
        assert chinese == english, pair
    users = [folder, *TABS] if folder == PAGE else [folder]
    # Those that the server or `form.js` names.
    used = "tab title description empty banned_words final_tone first_final_tone"
    used += "".join(text_of(user, ".html", ".js") for user in users)
    # A choice's word is made of its name and its value: `ground_gold`.
    unused = [key for key in words if not re.search(rf"\b({key}|{key.partition('_')[2] or key})\b", used)]
    assert [key for key in unused if not key.startswith("refused_")] == []


@tabs
def test_every_word_that_a_tab_names_exists(folder):
    named = re.findall(
        r'(?:data-(?:text|placeholder|label)=|\bword\(|\.tell\()"(\w+)"', text_of(folder, ".html", ".js")
    )
    assert named and set(named) <= {*words_of(folder), *words_of(PAGE)}


def test_every_code_of_a_refusal_has_words_and_the_values_that_they_name():
    """Each `UserError(sentence, "code", name=value)` of a task or of the server, and no other."""
    found = {}
    for top in (ROOT / "paddle_dialog" / "serving", *(folder.parent for folder in TABS)):
        home = found.setdefault(top.name, {})
        for file in top.rglob("*.py"):
            for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(call, ast.Call):
                    home.update(_coded(call))
    shared = words_of(PAGE)
    for folder in TABS:
        words = words_of(folder).items()
        own = {name.removeprefix("refused_"): pair for name, pair in words if "refused_" in name}
        of_page = {code for code in found[folder.parent.name] if f"refused_{code}" in shared}
        assert own.keys() == found[folder.parent.name].keys() - of_page
        for code, (chinese, _) in own.items():
            assert set(re.findall(r"\{(\w+)\}", chinese)) <= found[folder.parent.name][code], code
    of_server = {code for codes in found.values() for code in codes if f"refused_{code}" in shared}
    refused = {name for name in shared if name.startswith("refused_")}
    assert {f"refused_{code}" for code in of_server} == refused


def _coded(call):
    """Return the codes that a call gives to an error, each with the names of its values."""
    name = getattr(call.func, "id", "")
    place = {"UserError": 1, "NoResult": 1, "NoneFound": 1, "error_response": 3}.get(name)
    if place is None or len(call.args) <= place:
        return {}
    code = call.args[place]
    if isinstance(code, ast.JoinedStr):  # by language
        head = next(part.value for part in code.values if isinstance(part, ast.Constant))
        return {f"{head}{language}": set() for language in ("zh", "en")}
    if not isinstance(code, ast.Constant):
        return {}
    values = {keyword.arg or "" for keyword in call.keywords}
    if name == "error_response" and len(call.args) > place + 1:
        values = {key.value for key in getattr(call.args[place + 1], "keys", [])}
    return {code.value: values}


@tabs
def test_ids_and_styles_are_of_the_tab_alone(folder):
    task = folder.parent.name
    ids = re.findall(r'\bid="([^"]+)"', text_of(folder, ".html", ".js"))
    assert len(ids) == len(set(ids)) and all(name.startswith(f"{task}-") for name in ids)
    for style in folder.glob("*.css"):
        heads = re.findall(r"^[^\s}/].*(?= \{$)", style.read_text(encoding="utf-8"), re.M)
        assert heads and all(head.startswith((f":where(#{task})", f"@keyframes {task}-")) for head in heads)


CARD = ModelCard(task="echo", path="/v1/echo", family="cave", parameters=7, decoding="", details={}, card="")


def echo(folder):
    """Return the example in a folder."""
    text = (ROOT / "docs" / "tabs.md").read_text(encoding="utf-8")
    files = re.findall(r"\n`(\S+)`\n\n```\w+\n(.*?)```\n", text, re.S)
    assert [name for name, _ in files] == ["tab.html", "words.js", "tab.js", "tab.css"]
    for name, content in files:
        (folder / name).write_text(content, encoding="utf-8")
    endpoint = EchoEndpoint()
    endpoint.page = folder
    return endpoint


@needs_chromium
def test_it_answers_in_both_languages(browser, tmp_path):
    endpoint = echo(tmp_path)
    with (
        serving(make_app(endpoint, cards=[CARD])) as address,
        opened(browser, address, locale="zh-TW") as page,
    ):
        assert page.title() == "回声 · 笔谈"
        page.get_by_role("button", name="English").click()
        page.reload()
        page.locator("#models:not([hidden])").wait_for()
        assert page.locator("html").get_attribute("lang") == "en"  # remembered
        assert page.get_by_role("tab").all_text_contents() == ["Echo"]
        assert page.title() == "Echo · Paddle Dialog"
        assert page.locator("#models li").text_content() == "Echo: cave, 7 parameters"
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
@needs_chromium
def test_a_broken_tab_leaves_the_others_alone(browser, tmp_path, script):
    good, bad = (tmp_path / name for name in ("good", "bad"))
    good.mkdir()
    bad.mkdir()
    broken = echo(bad)
    markup = (bad / "tab.html").read_text(encoding="utf-8")
    (bad / "tab.html").write_text(markup.replace("echo-", "broken-"), encoding="utf-8")  # no id stands twice
    (bad / "tab.js").write_text(script, encoding="utf-8")
    broken.task, broken.path = "broken", "/v1/broken"
    endpoints = (broken, echo(good))
    with serving(make_app(*endpoints, cards=[CARD])) as address, browser.new_page(locale="en-US") as page:
        page.goto(address)
        page.get_by_text("This tab could not be loaded").wait_for()
        page.locator("#tab-echo", has_text="Echo").wait_for()  # named when all tabs are loaded
        page.click("#tab-echo")
        call(page, "hello")
        assert page.locator("#echo-status").text_content() == "Heard: hello"


def call(page, text):
    page.fill("#echo-text", text)
    with page.expect_response("**/v1/echo"):
        page.press("#echo-text", "Enter")
    page.locator("#echo-ask:not([aria-busy])").wait_for()
