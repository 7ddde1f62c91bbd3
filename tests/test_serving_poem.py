"""The poem's address: forms, titles, acrostics, draws of other seeds, what is refused."""

import re

from poem_toys import toy
from serving_toys import loader, make_app, running

from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.word_filter import WordFilter
from tasks.poem.api import PoemEndpoint


def start(words=None):
    endpoint, words = PoemEndpoint(LimitsConfig(characters=50)), words or WordFilter()
    return running(make_app(endpoint, words=words, load=loader(endpoint, toy(), words)))


def ask(client, **request):
    response = client.post("/v1/poem", json=request)
    return response.status_code, response.json()


def test_the_answer_is_that_of_the_command():
    (expected,) = toy().predict_records(["白日"], 2, form="五绝")
    with start() as client:
        status, record = ask(client, text="白日", form="五绝", n_best=2)
        card = client.get("/v1/models").json()["models"][0]
    assert status == 200 and record == expected and len(record["predictions"]) == 2
    assert record["predictions"][0]["form"] == {"name": "五绝", "lengths": True, "tones": True, "rhyme": True}
    assert card["task"] == "poem" and card["details"] == {"knows_forms": True, "longest": 40}


def test_another_seed_writes_another_poem_and_a_title_too():
    with start() as client:
        poems = [
            ask(client, form="七绝", seed=1),
            ask(client, form="七绝", seed=1),
            ask(client, form="七绝", seed=2),
            ask(client, form="七绝", seed=1, text="秋夜", texts_are="title"),
        ]
    texts = [record["predictions"][0]["text"] for _, record in poems]
    assert texts[0] == texts[1] and len(set(texts)) == 3


def test_an_acrostic_has_its_characters_and_needs_as_many_as_lines():
    with start() as client:
        _, record = ask(client, form="七绝", text="山水日月", texts_are="acrostic")
        few = ask(client, form="七绝", text="山水", texts_are="acrostic")
        without = ask(client, text="山水", texts_are="acrostic")
        long = ask(client, text="山" * 41)
    lines = re.split("[，。]", record["predictions"][0]["text"])
    assert "".join(line[:1] for line in lines) == "山水日月"
    assert few[0] == without[0] == long[0] == 422
    assert "4 hanzi" in few[1]["error"] and "must be named" in without[1]["error"]
    assert "41 characters" in long[1]["error"]


def test_a_poem_with_a_banned_word_is_not_sent(tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("，", encoding="utf-8")
    with start(WordFilter.load(str(file))) as client:
        status, record = ask(client, form="五绝")
    assert status == 422 and "does not write" in record["error"]
