"""What a turn means: features, the fit, the figures of what ships; and the answers to somebody who needs help now."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, run_here
from empathetic_toys import chinese_predictor, random_predictor, save_chinese_model, save_model
from hypothesis import given
from hypothesis import strategies as st
from serving_toys import app_of, running

from paddle_dialog.data.eight_bits import EightBitWeights, quantize
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.serving.endpoint import WordFilter
from paddle_dialog.tasks.empathetic import prediction
from paddle_dialog.tasks.empathetic.api import ReplyEndpoint
from paddle_dialog.tasks.empathetic.chat_command import Chat
from paddle_dialog.tasks.empathetic.config import CareConfig
from paddle_dialog.tasks.empathetic.turns import (
    ACTS,
    BUCKETS,
    CARES,
    KINDS,
    MOODS,
    CareResponder,
    TurnReader,
    TurnReading,
    read_turn,
    turn_features,
)
from tools.weights.empathetic.turn_fitting import key_of, read_written

FRESH = Path(__file__).parent / "data"
SAID = {  # act, mood, care of turns that a few words tell apart
    ("thanks", "gratitude", "none"): ["thank you so much", "thanks a lot", "many thanks to you"],
    ("farewell", "none", "none"): ["bye now", "good bye", "i have to go, bye"],
    ("statement", "sadness", "self_harm"): [
        "i want to die",
        "i will end my life",
        "life must end, i want it",
    ],
    ("about_you", "none", "none"): ["do you sleep?", "what do you eat?", "are you a robot?"],
}


def fitted(folder, *arguments):
    """Run the command that fits a reader, on a few turns."""
    lines = [
        "\t".join([*labels, "", f"{turn}{mark}"])
        for labels, turns in SAID.items()
        for turn in turns
        for mark in ("", "!", " ok")
    ]
    (folder / "written.tsv").write_text("\n".join(lines), encoding="utf-8")
    files = ("--written", folder / "written.tsv", "--output", folder / "reader", *arguments)
    return run_here("weights/empathetic/turn_fitting", *files)


def test_the_command_fits_a_reader_of_new_turns(tmp_path):
    (tmp_path / "others.tsv").write_text(
        "-\t-\tself_harm\t\tdie and end it\nthanks\tgratitude\tnone\t\tthank you\n"
    )
    outcome = fitted(tmp_path, "--held-out", tmp_path / "others.tsv")
    assert outcome.status == 0 and "act: 1.000 right of 1" in outcome.stdout, outcome.stderr
    assert "care self_harm: 1 of 1 get the whole answer" in outcome.stdout
    reader = TurnReader.from_bytes((tmp_path / "reader").read_bytes(), "reader")
    turns = ("thank you", "bye bye", "i want to end my life")
    for turn, labels in zip(turns, list(SAID)[:3], strict=True):
        reading = reader(turn)
        assert (reading.act, MOODS[int(reading.moods.argmax())], reading.care) == labels
        assert all(part.sum() == pytest.approx(1) for part in reader.probabilities(turn))


def test_turns_of_corpora_are_found_by_their_keys(tmp_path):
    (tmp_path / "talks.jsonl").write_text('{"turns": ["hello  there", "hi", "my dog died"]}\n', "utf-8")
    said = [("hi", "my dog died"), ("", "hello there"), ("", "gone")]
    labels = ("statement sadness none", "greeting none none", "joke joy none")
    lines = [f"{label} {key_of('talks', *turns)}" for label, turns in zip(labels, said, strict=True)]
    (tmp_path / "references.txt").write_text("\n".join(lines), encoding="utf-8")
    files = ("--references", tmp_path / "references.txt", "--corpora", tmp_path / "talks.jsonl")
    outcome = fitted(tmp_path, *files)
    assert outcome.status == 0 and "2 of 3 turns found" in outcome.stderr


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_turn_has_features(turn, previous):
    buckets, weights = turn_features(turn, previous)
    assert len({*buckets.tolist()}) == len(buckets) == len(weights) and (weights > 0).all()
    assert ((buckets >= 0) & (buckets < BUCKETS)).all()


def test_what_looks_alike_is_read_alike():
    alike = [("我想死", "我\u200b想死"), ("I don’t", "I don't"), ("HELP", "ｈｅｌｐ")]
    for one, other in (*alike, ("我很難過", "我很难过"), ("nooooo", "noo")):
        for mine, theirs in zip(turn_features(one), turn_features(other), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(
    ("moods", "tone"),
    [
        ({"joy": 0.4, "pride": 0.2, "sadness": 0.4}, "glad"),
        ({"joy": 0.25, "fear": 0.4, "anger": 0.35}, "sorry"),
        ({"joy": 0.35, "fear": 0.35, "anger": 0.3}, "plain"),
        ({"none": 0.5, "joy": 0.3, "fear": 0.2}, "plain"),
        ({"surprise": 0.7, "relief": 0.3}, "plain"),
    ],
)
def test_the_tone_that_suits_a_mood(moods, tone):
    shares = np.array([moods.get(mood, 0.0) for mood in MOODS])
    assert TurnReading(np.eye(len(ACTS))[0], shares, "none").tone == tone


def test_a_damaged_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="here: holds no reader of turns"):
        TurnReader.from_bytes(b"nonsense", "here")
    small = TurnReader(EightBitWeights(quantize({"table": np.ones((4, 2), np.float32)}))).to_bytes()
    with pytest.raises(UserError, match="here: has other n-grams or labels than are needed"):
        TurnReader.from_bytes(small, "here")


def test_care_is_found_in_a_turn_of_two_languages():
    for turn in ("老师 I want to kill myself tonight", "sorry, 我想自杀, I mean it"):
        for language in ("en", "zh"):
            assert read_turn(turn, "", language).care == "self_harm"


@pytest.mark.parametrize(
    ("language", "least_found", "most_wrong", "least_acts"),
    [("en", 0.83, 0.12, 0.92), ("zh", 0.86, 0.12, 0.9)],
)
def test_the_shipped_reader_on_lines_of_a_writer_who_saw_none_of_the_others(
    language, least_found, most_wrong, least_acts
):
    """The figures of docs/care.md and docs/results/empathetic.md, a little below them."""
    turns = read_written(str(FRESH / f"fresh_turns_{language}.tsv"))
    readings = [read_turn(one.turn, one.previous, language) for one in turns]
    care = np.array([one.labels[2] for one in turns])
    stopped = np.array([reading.care != "none" for reading in readings])
    assert stopped[care > 0].mean() >= least_found and stopped[care == 0].mean() <= most_wrong
    acts = [ACTS[one.labels[0]] == reading.act for one, reading in zip(turns, readings, strict=True)]
    assert np.mean(acts) >= least_acts


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_labelled_turns_can_be_read(language):
    folder = ROOT / "tools/weights/empathetic/turns"
    assert len(read_written(str(folder / f"written_{language}.tsv.xz"))) > 7000
    with lzma.open(folder / f"references_{language}.txt.xz", "rt", encoding="utf-8") as lines:
        rows = [line.split() for line in lines]
    assert len(rows) > 6000 and {row[2] for row in rows} <= {*CARES}


SHIPPED = CareResponder(CareConfig())


def answer(responder, *turns, language="en"):
    previous = turns[-2] if len(turns) > 1 else ""
    return responder.answer(turns, read_turn(turns[-1], previous, language), language)


def test_the_answer_is_in_the_language_of_the_turn_and_asks_where_it_is_not_sure():
    chinese, english = answer(SHIPPED, "我想死"), answer(SHIPPED, "i want to die", language="zh")
    assert chinese and "12356" in chinese and "120" in chinese and "语言模型" in chinese
    assert english and "988" in english and "12356" in english and "local emergency services" in english
    assert "\n" not in chinese + english
    reading = read_turn("I want to die", "", "en")._replace(sure=False)
    asked = SHIPPED.answer(["I want to die"], reading, "en")
    assert asked and "are you safe right now" in asked and "911" in asked and "988" not in asked


@pytest.mark.parametrize(
    ("turn", "numbers"),
    [
        ("my husband hits me every night", "911, 999, 1-800-799-7233, 0808 2000 247, 12338, 1-800-422-4453"),
        ("我爸又打我了，我不敢回家", "110, 12338, 12355"),
        ("my uncle touches me at night", "911, 1-800-656-4673, 1-800-422-4453, 0800 1111, 12355"),
        ("我被他强奸了", "110, 12338, 12355"),
        ("I'm going to kill him tonight. I have the knife in my bag.", "911, 999, 110, 988"),
        ("我要杀了他", "110, 12356"),
        ("I took the whole bottle of pills and now I can't stay awake", "911, 999, 120, 1-800-222-1222"),
        ("我爸突然倒在地上，没有呼吸了", "120, 119"),
    ],
)
def test_each_kind_has_its_own_places_to_turn_to(turn, numbers):
    sentence = answer(SHIPPED, turn)
    assert sentence and all(number in sentence for number in numbers.split(", ")) and "\n" not in sentence


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_sentence_is_said_in_full_again_and_a_denial_ends_it(language):
    turn, more, denial = {
        "en": ("I want to kill myself.", "I still want to die.", "No, you got me wrong, I'm not suicidal."),
        "zh": ("我想自杀。", "我还是想死。", "不是，你理解错了，我没有要寻死。"),
    }[language]
    full = answer(SHIPPED, turn, language=language)
    again = answer(SHIPPED, turn, full or "", more, language=language)
    assert full and again and again != full and len(again) < len(full) / 2
    turns = [turn, full, denial]
    reading = read_turn(denial, full, language)
    assert SHIPPED.answer(turns, reading, language) is None
    assert SHIPPED.reassurance(turns, reading, language)
    assert SHIPPED.reassurance([turn, "Hello.", denial], reading, language) is None


def answers_of(folder, text):
    (folder / "answers.yaml").write_text(text, encoding="utf-8")
    return CareResponder(CareConfig(str(folder / "answers.yaml")))


def test_an_operator_gives_a_sentence_in_each_language_or_of_each_kind(tmp_path):
    own = answers_of(tmp_path, "en: Call 1.\nzh: >-\n  请\n  拨打\n  2。\n")
    assert answer(own, "I want to die", language="zh") == "Call 1." and answer(own, "我想死") == "请拨打 2。"
    own = answers_of(tmp_path, "".join(f"{kind}:\n  en: {kind}!\n  zh: 好\n" for kind in KINDS))
    turns = {"self_harm": "i want to die", "abuse": "he raped me", "violence": "my dad beats me every day"}
    assert all(answer(own, turn, language="zh") == f"{kind}!" for kind, turn in turns.items())


ENGLISH, CHINESE = answer(SHIPPED, "i want to die"), answer(SHIPPED, "我想死")
TURNS = [("I want to die.", ENGLISH), ("我不想活了", CHINESE), ("我不想活了 😭 i'm done", CHINESE)]
TINY = {"decoding": {"max_length": 5, "beam_size": 3}}


@pytest.fixture(scope="module", params=["en", "zh"])
def predictor(request):
    return random_predictor(**TINY) if request.param == "en" else chinese_predictor(**TINY)


@pytest.fixture(scope="module", params=["en", "zh"])
def recipe(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("care")
    return save_model(folder, **TINY) if request.param == "en" else save_chinese_model(folder, **TINY)


@pytest.mark.parametrize(("turn", "sentence"), TURNS)
def test_the_model_is_not_asked(predictor, monkeypatch, turn, sentence):
    monkeypatch.delattr(prediction, "write_replies")
    (found,) = predictor.answer([["hi", "hello", turn]], 3)
    assert (found.care, found.emotion) == (True, None)
    (reply,) = found.predictions
    assert (reply.text, reply.origin, reply.score) == (sentence, "care", 0.0)
    assert predictor.predict([turn]) == [[reply]]
    (record,) = predictor.predict_records([turn])
    assert record["care"] is True and "hint" not in record
    assert record["emotion"] is None and record["emotions"] == {}
    assert record["predictions"] == [{"text": sentence, "score": 0.0, "origin": "care"}]


def test_others_of_the_batch_are_answered_as_without_it(predictor):
    plain = [["我今天很难过"], ["my dog died"]]
    expected = [one.as_dict() for one in predictor.answer(plain, 2)]
    mixed = predictor.answer([plain[0], ["I want to kill myself"], plain[1]], 2)
    assert [one.as_dict() for one in mixed[::2]] == expected
    assert [one.care for one in mixed] == [False, True, False]


def test_on_the_command_line_and_in_the_chat_which_continues_afterwards(recipe):
    said, sentences = zip(*TURNS, strict=True)
    outcome = run_here("predict", "-c", recipe, *said)
    assert (outcome.status, outcome.stdout.splitlines()) == (0, [f"[care] {one}" for one in sentences])
    printed = run_here("predict", "-c", recipe, *said, "--json", "--n-best", 2).stdout.splitlines()
    for record, sentence in zip(map(json.loads, printed), sentences, strict=True):
        assert record["care"] is True and [p["text"] for p in record["predictions"]] == [sentence]
    lines = "I want to KILL myself\n我想自殺\n谢谢你。 thank you\n"
    outcome = run_here("chat", "-c", recipe, stdin=lines.encode())
    assert outcome.stdout.startswith(f"[care]\n{ENGLISH}\n[care]\n{CHINESE}\n[")
    assert outcome.stdout.count("[care]") == 2 and "knows none" not in outcome.stderr


def served(*predictors, words=None):
    """Return the running server of models."""
    models = [(predictor, [ReplyEndpoint(LimitsConfig())]) for predictor in predictors]
    return running(app_of(*models, words=words))


def ask(client, *context, **request):
    response = client.post("/v1/reply", json={"context": context, **request})
    assert response.status_code == 200, response.json()
    return response.json()


def test_over_http_however_long_the_turn_is_and_even_with_a_banned_word(predictor):
    words = WordFilter(["die", "不想活", "语言模型", "crisis", "Samaritans"])
    with served(predictor, words=words) as client:
        records = [ask(client, turn, attention=True, n_best=3) for turn, _ in TURNS]
        assert ask(client, "I went to work. " * 80 + "I want to kill myself.")["care"] is True
        long, banned = (
            client.post("/v1/reply", json={"context": [turn]})
            for turn in ("I went to work. " * 80, "we watched Die Hard")
        )
        schema = client.get("/openapi.json").json()["components"]["schemas"]["ReplyAnswer"]["properties"]
    for record, (_, sentence) in zip(records, TURNS, strict=True):
        assert record["care"] is True and "attention" not in record and record["emotion"] is None
        assert [(p["text"], p["origin"]) for p in record["predictions"]] == [(sentence, "care")]
    assert long.status_code == banned.status_code == 422 and "1,000 characters" in long.json()["error"]
    assert {"care", "hint", "language"} <= set(schema)


def test_both_languages_behind_one_address():
    english, chinese = random_predictor(**TINY), chinese_predictor(**TINY)
    with served(english, chinese) as client:
        cards = [card["details"] for card in client.get("/v1/models").json()["models"]]
        assert [card["language"] for card in cards] == ["en", "zh"]
        for turn, language, model in [("my dog died", "en", english), ("我今天很难过", "zh", chinese)]:
            record = ask(client, turn)
            assert record.pop("language") == language
            assert [record] == list(model.predict_records([turn]))
        given = ask(client, "我今天很难过", emotion="难过")
        assert (given["emotion"], given["language"]) == ("sad", "zh")
        assert ask(client, "ok", language="zh")["language"] == "zh"
        hinted = ask(client, "my dog died", language="zh")
        assert hinted["language"] == "zh" and hinted["hint"].startswith("This model reads Chinese")
        assert ask(client, "我想死", language="en")["care"] is True


@pytest.mark.parametrize(
    ("turn", "languages"),
    [
        ("my dog died yesterday", ["zh"]),
        ("我的狗昨天死了。", ["en"]),
        ("我的狗叫 Rex，昨天走了 😢", ["en"]),
        ("我的狗叫 Rex", ["en"]),
        ("ok", []),
        ("my friend always says 加油 to me", ["zh"]),
        ("😢 123", []),
    ],
)
def test_another_language_gets_a_hint(predictor, turn, languages):
    (found,) = predictor.answer([[turn]])
    assert (found.hint is not None) == (predictor.language.name in languages)
    assert found.as_dict().get("hint") == found.hint and found.predictions[0].text
    note = Chat(predictor).handle(turn).note
    assert found.hint is None or note == f"({found.hint})"


def test_the_hint_is_said_beside_the_results(recipe):
    chinese = "language: zh" in recipe.read_text(encoding="utf-8")
    turn = "my dog died yesterday" if chinese else "我的狗昨天死了。"
    outcome = run_here("predict", "-c", recipe, turn)
    said = "note: This model reads Chinese" if chinese else "note: 这个模型只懂英文"
    assert outcome.status == 0 and said in outcome.stderr and "note" not in outcome.stdout
    outcome = run_here("predict", "-c", recipe, turn, "--json")
    assert json.loads(outcome.stdout)["hint"] in said + outcome.stdout and "note:" not in outcome.stderr


def test_traditional_characters_and_half_width_signs_are_read_as_the_others():
    model = chinese_predictor(**TINY)
    (plain,), (other,) = (model.predict_records([turn]) for turn in ("我很难过，真的！", "我很難過,真的!"))
    assert {**other, "context": plain["context"]} == plain
