"""The poem task as a user meets it: train, evaluate, predict, serve, and what is told of bad input."""

import re

import numpy as np
import pytest
from chromium import needs_chromium
from command import records, run_here
from page_browser import opened, serving
from poem_toys import toy
from serving_toys import app_of, post, served

import paddle_dialog
from paddle_dialog.decoding.paddle_steps import PrefixModel
from paddle_dialog.decoding.search import text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import WordFilter
from paddle_dialog.tasks.poem.api import PoemEndpoint

POEM = "白日依山尽，黄河入海流。欲穷千里目，更上一层楼。"
COMMON = """
task: poem
model: {{name: causal_lm, width: 32, num_heads: 2, inner_width: 64, num_layers: 1, max_positions: 120}}
data: {{train: {folder}/train.txt, dev: {folder}/train.txt, window: 52, max_length: 60, batch_size: 4}}
training: {{epochs: 40, learning_rate: 0.02, schedule: cosine, warmup_steps: 5, clip_norm: 1.0, save_every: 1000}}
decoding: {{strategy: greedy, max_length: 60}}
verse: {{rhyme: false}}
output_dir: {folder}/run
"""


def recipe(folder, text):
    (folder / "train.txt").write_text(text, encoding="utf-8")
    config = folder / "toy.yaml"
    config.write_text(COMMON.format(folder=folder), encoding="utf-8")
    return config


@pytest.fixture(scope="module")
def poem_model(tmp_path_factory):
    """Return a model that has read one poem, often."""
    config = recipe(tmp_path_factory.mktemp("poem"), f"登鹳雀楼\t{POEM}\n" * 36)
    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    assert float(re.search(r"best dev perplexity ([\d.]+)", trained.stdout)[1]) < 1.02
    return config


def predictions(config, *arguments):
    return records(run_here("predict", "-c", config, "--json", *arguments))


def test_a_beginning_is_continued_and_what_it_keeps_is_told(poem_model):
    (record,) = predictions(poem_model, "白日")
    (prediction,) = record["predictions"]
    assert record["begin"] == "白日" and prediction["text"] == POEM and prediction["score"] > -0.1
    assert prediction["form"] == {"name": "五绝", "lengths": True, "tones": True, "rhyme": True}
    assert predictions(poem_model, "-o", "verse.form=五绝", "")[0]["predictions"][0]["text"] == POEM
    shown = run_here("predict", "-c", poem_model, "白日")
    assert shown.stdout.splitlines()[:2] == [POEM[:12], POEM[12:]]


def test_characters_that_the_model_has_never_seen_stand_as_they_were_given(poem_model):
    for arguments in ((), ("--form", "五绝")):
        text = predictions(poem_model, *arguments, "白龘")[0]["predictions"][0]["text"]
        assert text.startswith("白龘") and len(text) > 2


def test_given_characters_begin_the_lines_of_a_longer_form(poem_model):
    arguments = ("-o", "verse.input=acrostic", "山水日月花鸟风云")  # eight of them: a 七律
    (record,) = predictions(poem_model, *arguments)
    lines = re.split("[，。]", record["predictions"][0]["text"])[:-1]
    assert "".join(line[0] for line in lines) == "山水日月花鸟风云" and {len(line) for line in lines} == {7}


def test_a_vocabulary_that_cannot_rhyme_is_told_as_relaxed(poem_model):
    (record,) = predictions(poem_model, "-o", "verse.form=七绝", "-o", "verse.rhyme=true", "")
    prediction = record["predictions"][0]
    assert prediction["form"]["lengths"] and "rhyme" in prediction["relaxed"]


def test_an_evaluation_measures_characters_and_forms(poem_model, tmp_path):
    written = tmp_path / "poems.jsonl"
    (result,) = records(run_here("evaluate", "-c", poem_model, "--json", "--predictions", written))
    assert result["n"] == 36 and 1.0 <= result["perplexity"] < 1.02 and result["perplexity_titled"] < 1.05
    assert 2 ** result["bits_per_character"] == pytest.approx(result["perplexity"])
    assert result["form"]["lengths"] == 1.0 and result["unknown_rate"] == 0.0
    assert len(written.read_text(encoding="utf-8").splitlines()) == 40  # ten of each form
    del result["form"], result["decoding"]
    assert records(run_here("evaluate", "-c", poem_model, "--json", "--no-answers")) == [result]


def test_running_text_is_learned_and_continued(tmp_path):
    config = recipe(tmp_path, "one two\nthree " * 60)
    config.write_text(
        config.read_text("utf-8").replace("window: 52", "running_text: true, window: 52"), "utf-8"
    )
    trained = run_here("train", "-c", config)
    assert trained.status == 0, trained.stderr
    (record,) = predictions(config, "-o", "decoding.max_length=20", "one two\nth")
    (prediction,) = record["predictions"]
    assert prediction["text"] == "one two\nthree one two"[:20] and prediction["form"] is None
    (measured,) = records(run_here("evaluate", "-c", config, "--json"))
    assert measured["perplexity"] < 1.3 and "form" not in measured
    error = run_here("predict", "-c", config, "-o", "verse.form=七绝", "one").error_line()
    assert "trained on running text" in error


def test_settings_that_do_not_fit_are_told(tmp_path):
    config = recipe(tmp_path, f"题\t{POEM}\n")
    small = ("-o", "model.max_positions=80", "-o", "data.max_length=50", "-o", "decoding.max_length=50")
    assert run_here("train", "-c", config, "-o", "training.max_steps=1", *small).status == 0
    error = run_here(
        "predict", "-c", config, "--form", "七律", "-o", "decoding.max_length=50", ""
    ).error_line()
    assert "needs 90 positions, and this model has 80" in error


def start(words=None):
    return served(toy(), PoemEndpoint(LimitsConfig(characters=50)), words=words)


def test_the_answer_is_that_of_the_command():
    (expected,) = toy().predict_records(["白日"], 2, form="五绝")
    with start() as client:
        status, record = post(client, "poem", text="白日", form="五绝", n_best=2)
        card = client.get("/v1/models").json()["models"][0]
    assert status == 200 and record == expected and len(record["predictions"]) == 2
    assert record["predictions"][0]["form"] == {"name": "五绝", "lengths": True, "tones": True, "rhyme": True}
    assert card["task"] == "poem" and card["details"] == {"knows_forms": True, "longest": 40}


def test_another_seed_writes_another_poem_and_a_title_too():
    with start() as client:
        asked = [{"seed": 1}, {"seed": 1}, {"seed": 2}, {"seed": 1, "text": "秋夜", "texts_are": "title"}]
        poems = [post(client, "poem", form="七绝", **each) for each in asked]
    texts = [record["predictions"][0]["text"] for _, record in poems]
    assert texts[0] == texts[1] and len(set(texts)) == 3


def test_poems_to_a_title_are_ordered_by_what_the_title_makes_likelier():
    def poems(weight, title):
        verse = {"form": "五绝", "input": "title", "title_weight": weight}
        return toy(verse).predict([title], 24)[0]

    likeliest, ordered = poems(0.0, "秋"), poems(2.0, "秋")
    assert {p.text for p in ordered} == {p.text for p in likeliest} and ordered != likeliest
    model, vocabulary = PrefixModel(toy().network), toy().vocabulary
    source = np.array([vocabulary.encode(["<五绝>"])])
    texts = [vocabulary.encode(poem.text) for poem in ordered]
    # Of 24 characters and the end.
    without = text_log_probs(model, source, np.array([1]), texts, [0] * len(texts)) / 25
    gains = [poem.score - 2.0 * common for poem, common in zip(ordered, without, strict=True)]
    assert gains == sorted(gains, reverse=True)
    assert poems(2.0, "") == poems(0.0, "")


def test_an_acrostic_has_its_characters_and_needs_as_many_as_lines():
    with start() as client:
        _, record = post(client, "poem", form="七绝", text="山水日月", texts_are="acrostic")
        _, few = post(client, "poem", form="七绝", text="山水", texts_are="acrostic")
        _, longer = post(client, "poem", form="五绝", text="山水日月山水日月", texts_are="acrostic")
        long = post(client, "poem", text="山" * 41)
    lines = re.split("[，。]", record["predictions"][0]["text"])
    assert "".join(line[:1] for line in lines) == "山水日月"
    assert longer["predictions"][0]["form"]["name"] == "五律"
    lines = re.split("[，。]", few["predictions"][0]["text"])
    assert "".join(line[:1] for line in lines[:2]) == "山水" and len(lines) == 5
    assert long[0] == 422 and "41 characters" in long[1]["error"]


def test_what_a_title_can_and_cannot_be():
    predictor = toy({"title_weight": 0.0})
    titles = {"给女儿": "示女", "生日快乐": "自寿", "外卖小哥": None, "秋夜": "", "寄女儿远嫁长安诸亲": ""}
    for title, classical in titles.items():
        (record,) = predictor.predict_records([title], form="五绝", texts_are="title")
        assert record.get("written_to", "") == classical
        assert (predictor.note_of(record) is None) == (classical == "")
    (record,) = predictor.predict_records(["生日"], form="五绝", texts_are="title")
    (same,) = predictor.predict_records(["自寿"], form="五绝", texts_are="title")
    assert record["predictions"] == same["predictions"]
    with pytest.raises(UserError, match="input 2 is None, and must be a text"):
        predictor.predict(["秋", None])
    with pytest.raises(UserError, match="n_best is 25, and 24 poems are drawn"):
        predictor.predict(["秋"], 25)


KNOWN = "秋江晚眺 送友人 咏竹 江雪 桂花 燕子 七夕 登山 夜雨 早行"
UNKNOWN = "股份公司 蓝牙音箱 区块链 洗衣机 高速公路 出租车 橡皮擦 身份证 奥数班 垃圾分类"


def test_a_title_that_verse_does_not_know_is_told():
    predictor = paddle_dialog.load("poem")
    records = list(predictor.predict_records([*KNOWN.split(), *UNKNOWN.split()]))
    told = [record["begin"] for record in records if record.get("written_to", "") is None]
    assert not set(told) & set(KNOWN.split()) and len(told) >= 9  # 身份证 may get a poem of 身
    assert all((predictor.note_of(record) is None) == (record["begin"] not in told) for record in records)


def test_any_form_has_four_lines_and_no_character_three_times():
    predictor = toy(max_length=60)
    for poem in predictor.predict(["", "白白白"], 12, form="any", texts_are="begin", seed=5)[0]:
        lines = re.split("[，。！？；]", poem.text)
        assert len(lines) > 4 or len(poem.text) == 60
        assert max(poem.text.count(char) for char in set(poem.text) - set("，。")) <= 2
    traditional, plain = predictor.predict(["鳥", "鸟"], form="五绝", texts_are="begin")
    assert traditional[0].text == plain[0].text


def test_a_poem_with_a_banned_word_is_not_sent():
    with start(WordFilter(["，"])) as client:
        status, record = post(client, "poem", form="五绝")
    assert status == 422 and "does not write" in record["error"]


@needs_chromium
def test_a_poem_is_written_kept_and_there_after_a_reload(browser):
    endpoint = PoemEndpoint(LimitsConfig())
    phone = {"width": 390, "height": 800}
    with (
        serving(app_of((toy(), [endpoint]))) as address,
        opened(browser, address, locale="zh-CN", viewport=phone) as page,
    ):
        chosen = [page.get_by_label(label).input_value() for label in ("体裁", "给出的是")]
        assert chosen == ["七绝", "title"]
        page.get_by_label("给出的是").select_option("acrostic")
        page.get_by_label("每句的第一个字").fill("山水日月")
        page.get_by_role("button", name="作诗", exact=True).click()
        lines = page.locator("#poem-lines p")
        lines.first.wait_for()
        first = lines.all_inner_texts()
        assert "".join(line[0] for line in first) == "山水日月"  # a column each, without marks
        assert {len(line) for line in first} == {7}
        columns = [line.bounding_box() for line in lines.all()]
        assert [box["x"] for box in columns] == sorted((box["x"] for box in columns), reverse=True)
        page.click("#poem-picture")
        page.locator("#picture-image[src]").wait_for()
        assert page.locator("#picture-image").get_attribute("alt").startswith("山水日月\n")
        page.click("#picture-close")
        assert "七绝" in page.locator("#poem-form-kept").inner_text()
        page.click("#poem-like")
        page.get_by_label("体裁").select_option("五律")
        page.get_by_label("给出的是").select_option("begin")
        page.get_by_role("button", name="作诗", exact=True).click()
        page.wait_for_function("() => document.querySelectorAll('#poem-lines p').length === 8")
        scroll, seal = (page.locator(f"#poem-lines{part}").bounding_box() for part in ("", " .poem-seal"))
        assert scroll["x"] >= 0 and scroll["x"] + scroll["width"] <= 390 and seal["x"] > scroll["x"]
        assert page.locator("#poem-lines").evaluate("at => at.scrollWidth - at.clientWidth") == 0
        shown = lines.all_inner_texts()
        page.reload()
        lines.first.wait_for()
        assert lines.all_inner_texts() == shown  # the address has it
        with page.expect_request("**/v1/poem") as request:
            page.get_by_role("button", name="再写一首").click()
        asked = request.value.post_data_json
        assert (asked["form"], asked["texts_are"], asked["text"]) == ("五律", "begin", "山水日月")
        page.get_by_role("button", name="前一首").click()
        assert lines.all_inner_texts() == shown  # it is not lost
        page.locator(".kept-text").click()
        assert lines.all_inner_texts() == first
        page.get_by_label("给出的是").select_option("acrostic")
        page.get_by_label("每句的第一个字").fill("鳥")  # the answer is in the script of the question
        page.get_by_role("button", name="作诗", exact=True).click()
        page.wait_for_function("() => document.querySelector('#poem-lines').innerText.includes('鳥')")
        assert "鸟" not in page.locator("#poem-lines").inner_text()
