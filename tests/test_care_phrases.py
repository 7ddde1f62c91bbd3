"""Which turns speak of self-harm, and the files that say so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from tasks.empathetic.care import Phrases, care_responder
from tasks.empathetic.config import CareConfig

SHIPPED = care_responder(CareConfig())


def speaks_of_it(turn):
    return SHIPPED.answer(turn, "en") is not None


@pytest.mark.parametrize(
    "turn",
    [
        "我想死",
        "最近总是想自杀。",
        "我想自殺",  # traditional
        "活著真的好沒意思",
        "想 死",
        "我想。死",
        "我 想 * 死 了",
        "想\u200b死",  # with an invisible character
        "我真的不想活了😭",
        "想死你了，可是我也真的想死",  # the idiom, and then the word itself
        "我想死，你了解吗",  # the idiom's characters, with a comma inside
        "我想死他们会伤心吗",
        "我想kill myself",
        "I want to die",
        "i WANT  to\tdie!!",
        "ｉ ｗａｎｔ ｔｏ ｄｉｅ",  # full width
        "I just really want to fucking die.",
        "kill-my-self",
        "k i l l myself",
        "I don't want to live anymore",
        "I don’t want to live anymore",
        "I dont want to live any more",
        "i'm SUICIDAL",
        "My friend wants to kill himself",
        "I've been cutting myself again",
        "活着真没劲",
        "没有我大家会更好",
        "我用刀划自己的手臂",
        "我吃了一瓶安眠药",
        "我想自鲨",
        "真不想醒来",
        "I hope I don't wake up tomorrow",
        "I want 2 die",
        "I overdosed last night",
        "I took a whole bunch of pills",
        "I wanna kms",
        "I've written my goodbye letter",
        "我想从楼上跳下去",
        "I feel like dying",
    ],
)
def test_what_speaks_of_self_harm_is_found(turn):
    assert speaks_of_it(turn)


@pytest.mark.parametrize(
    "turn",
    [
        "想死你了",
        "妈，我想死你啦！",
        "想死妈妈做的红烧肉了",
        "累死了",
        "笑死我了",
        "今天气死我了，热死了",
        "我的理想死了",
        "我想死党们了",
        "手机死机了",
        "商场跳楼大甩卖",
        "爷爷离开了这个世界",
        "不想有性生活了",
        "I'm dying to see you",
        "you're killing it!",
        "I died laughing",
        "That cake is to die for",
        "in the end it all worked out",
        "We watched Suicide Squad",
        "I wanted to die of embarrassment",
        "I shoot myself in the foot every time",
        "I don't want to live in Paris",
        "I want to diet",
        "I want to take my life in a new direction",
        "想从冰箱里拿东西",
        "her skill, my self and I",
        "I ran 5 kms",
        "没有我的帮助他更好",
        "我会提前计划自己的学习方向",
        "我吃了一片安眠药",
        "I took my pills",
        "my grandma died last week",
        "😊",
        "",
    ],
)
def test_idioms_and_all_else_are_left_alone(turn):
    assert not speaks_of_it(turn)


@settings(deadline=None)
@given(st.text(st.characters(categories=["P", "Zs"]), max_size=3), st.text(max_size=20))
def test_a_sign_between_the_characters_hides_no_phrase(sign, rest):
    assert Phrases(["想死"]).finds(f"{rest}。想{sign}死。{rest}")


def test_a_gap_takes_up_to_three_words_of_the_same_clause():
    phrases = Phrases(["want to … die", "活着…累"])
    assert phrases.finds("want to die") and phrases.finds("want to just go and die")
    assert not phrases.finds("want to go there and then die")
    assert not phrases.finds("want to stay. die") and not phrases.finds("want to studie")
    assert phrases.finds("活着真的好累") and not phrases.finds("活着，累")


def test_the_answer_is_in_the_language_of_the_turn():
    chinese, english = SHIPPED.answer("想死", "en"), SHIPPED.answer("i want to die", "zh")
    assert "12356" in chinese and "120" in chinese and "语言模型" in chinese
    assert "988" in english and "12356" in english and "local emergency services" in english
    assert "\n" not in chinese + english
    own = Phrases(["112358"])
    assert type(SHIPPED)(own, {"en": "E", "zh": "Z"}).answer("112358", "zh") == "Z"  # no letters


def test_every_exception_has_a_phrase_inside():
    for idiom in SHIPPED._phrases._exceptions:
        text = "".join(idiom)
        assert any(all(part in text for part in phrase) for phrase in SHIPPED._phrases._phrases), idiom


def write(folder, **files):
    paths = {}
    for name, text in files.items():
        path = folder / f"{name}.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths[name] = str(path)
    return CareConfig(**paths)


def test_an_operator_brings_phrases_idioms_and_sentences(tmp_path):
    answers = "en: Call 1.\nzh: >-\n  请\n  拨打\n  2。\n"
    own = care_responder(
        write(tmp_path, phrases="# mine\n\nvery blue\n", exceptions="very blue sky", answers=answers)
    )
    assert own.answer("I feel VERY blue", "zh") == "Call 1."
    assert own.answer("我 very blue 很难过", "en") == "请拨打 2。"
    assert own.answer("what a very blue sky", "en") is None
    assert own.answer("I want to die", "en") is None  # the list that ships does not count


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({"phrases": "# none\n"}, "care.phrases: {} holds no phrase"),
        ({"phrases": "good\n!!\n"}, ":2: '!!' has no letters"),
        ({"phrases": "want to …\n"}, ":1: 'want to …' has no letters"),
        ({"phrases": b"\xff\xfe"}, "not UTF-8"),
        ({"exceptions": ""}, "care.exceptions"),
        ({"answers": "en: fine"}, "has no sentence for 'zh'"),
        ({"answers": "en: 5\nzh: 好"}, "has no sentence for 'en'"),
        ({"answers": "en: a\nzh: b\nfr: c"}, "'fr' is no language; there are en, zh"),
        ({"answers": "- a"}, "has no sentences"),
        ({"answers": "en: [a"}, "is not YAML"),
        ({"answers": b"\xff"}, "not UTF-8"),
    ],
)
def test_a_faulty_file_is_told_by_its_setting(tmp_path, files, part):
    (name,) = files
    with pytest.raises(UserError) as error:
        care_responder(write(tmp_path, **files))
    told = str(error.value)
    assert told.startswith(f"care.{name}: ") and "\n" not in told
    assert part.format(tmp_path / f"{name}.txt") in told


def test_a_missing_file_is_told():
    for name in ("phrases", "exceptions", "answers"):
        with pytest.raises(UserError, match=rf"care.{name}: nowhere"):
            care_responder(CareConfig(**{name: "nowhere"}))
