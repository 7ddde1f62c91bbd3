"""Dialogues: the published corpus, files of one's own, and what ships."""

import gzip
import io
import json
import lzma
import tarfile
from collections import Counter

import pytest

from paddle_dialog.errors import UserError
from paddle_dialog.metrics import has_phrase
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.language import tokenise
from paddle_dialog.tasks.empathetic.data.sources import Dialogue, read_dialogues

HEADER = "conv_id,utterance_idx,context,prompt,speaker_idx,utterance,selfeval,tags"
ROWS = [
    "hit:0_conv:1,1,afraid,A storm_comma_ at night,5,I heard thunder_comma_ and hid.,5|5|5_5|5|5,",
    "hit:0_conv:1,2,afraid,A storm_comma_ at night,9,Was  it close?,5|5|5_5|5|5,",
    "hit:0_conv:1,3,afraid,A storm_comma_ at night,5,Very.,5|5|5_5|5|5,",
    "hit:0_conv:1,4,afraid,A storm_comma_ at night,9,Stay inside!,5|5|5_5|5|5,",
    "hit:2_conv:3,1,proud,My run,7,I ran a race.,5|5|5_5|5|5,",
    "hit:2_conv:3,2,proud,My run,8,Well done!,5|5|5_5|5|5,<GREET>,a|b|c",
    "hit:2_conv:3,3,proud,My run,7,Thanks,5|5|5_5|5|5,",
]
EXAMPLES = [
    Dialogue(["I heard thunder, and hid."], "Was it close?", "afraid", "A storm, at night"),
    Dialogue(
        ["I heard thunder, and hid.", "Was it close?", "Very."], "Stay inside!", "afraid", "A storm, at night"
    ),
    Dialogue(["I ran a race."], "Well done!", "proud", "My run"),
]


def _csv(rows, header=HEADER):
    return "\n".join([header, *rows]) + "\n"


def _write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def _archive(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            content = text.encode("utf-8")
            info = tarfile.TarInfo(f"empatheticdialogues/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return str(path)


def _jsonl(tmp_path, *records):
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return _write(tmp_path / "dialogues.jsonl", "\n".join(lines))


GOOD = {"context": ["Hi"], "target": "Hello"}


def test_csv_may_have_a_byte_order_mark_windows_line_ends_and_blank_lines(tmp_path):
    text = "\ufeff" + _csv(ROWS[:4]).replace("\n", "\r\n") + "\r\n" + "\r\n".join(ROWS[4:])
    path = tmp_path / "train.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    assert read_dialogues(str(path)) == read_dialogues(_write(tmp_path / "a.csv", _csv(ROWS))) == EXAMPLES


def test_archive_splits(tmp_path):
    path = _archive(tmp_path / "ed.tar.gz", {"train.csv": _csv(ROWS), "valid.csv": _csv(ROWS[4:])})
    assert read_dialogues(path) == read_dialogues(f"{path}:train") == EXAMPLES
    assert read_dialogues(f"{path}:valid") == EXAMPLES[2:]
    with pytest.raises(UserError, match=r"no test\.csv in this archive .*train\.csv, valid\.csv"):
        read_dialogues(f"{path}:test")
    with pytest.raises(UserError, match="unknown split 'dev'; choose one of train, valid, test"):
        read_dialogues(f"{path}:dev")
    path = _archive(tmp_path / "ed.tar.gz", {"train.csv": _csv([*ROWS[:2], "x,y"])})
    with pytest.raises(UserError, match=r"ed\.tar\.gz:train\.csv:4: 2 fields found, 8 expected"):
        read_dialogues(path)


def test_damaged_and_missing_archives(tmp_path):
    whole = _archive(tmp_path / "ed.tar.gz", {"train.csv": _csv(ROWS)})
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes((tmp_path / "ed.tar.gz").read_bytes()[:150])
    (tmp_path / "text.tar.gz").write_text("not an archive")
    for name in ("cut.tar.gz", "text.tar.gz"):
        with pytest.raises(UserError, match=f"{name}: not a sound"):
            read_dialogues(str(tmp_path / name))
    with pytest.raises(UserError, match="no such file"):
        read_dialogues(whole.replace("ed.tar.gz", "no.tar.gz"))


def test_stray_quotes_do_not_join_lines(tmp_path):
    rows = [
        'c1,1,sad,"So sad,1,"I lost my "lucky" coin.,5,',
        'c1,2,sad,"So sad,2,A "lucky" one?,5,',
        'c1,3,sad,"So sad,1,Yes",5,',
        'c1,4,sad,"So sad,2,Oh no",5,',
    ]
    last = read_dialogues(_write(tmp_path / "a.csv", _csv(rows)))[-1]
    assert last.context == ['I lost my "lucky" coin.', 'A "lucky" one?', "Yes"]
    assert (last.target, last.situation) == ("Oh no", "So sad")


@pytest.mark.parametrize(
    ("number", "row", "message"),
    [
        (2, ROWS[0].replace(",1,", ",one,"), "utterance_idx is 'one'"),
        (2, ROWS[1], "utterance_idx is 2, but the next of conversation hit:0_conv:1 is 1"),
        (3, ROWS[1].replace(",9,", ",5,"), "speaker_idx is 5 after 5, so .*do not alternate"),
        (4, ROWS[2].replace(",5,", ",6,", 1), "speaker_idx is 6 after 5 and 9, so .*do not alternate"),
        (3, ROWS[1].replace("afraid", "affraid"), "unknown emotion 'affraid'; did you mean 'afraid'"),
        (3, ROWS[1].replace("afraid", "angry"), "the emotion changes from afraid to angry"),
        (3, ROWS[1].replace("Was  it close?", " "), "the utterance is empty"),
        (3, ROWS[1].replace("Was  it", "Was, it"), "9 fields found, 8 expected.*_comma_"),
        (3, ROWS[1].replace("Was  it", "Wa,s, i,t"), "11 fields found, 8 expected.*_comma_"),
        (7, ROWS[0], "conversation hit:0_conv:1 goes on here after another one began"),
    ],
)
def test_faulty_csv_lines_are_named(tmp_path, number, row, message):
    path = _write(tmp_path / "train.csv", _csv([*ROWS[: number - 2], row]))
    with pytest.raises(UserError, match=rf"train\.csv:{number}: {message}"):
        read_dialogues(path)
    for text, told in (("\n".join(ROWS), r"a\.csv:1: not the header"), (HEADER, r"a\.csv: no utterance")):
        with pytest.raises(UserError, match=told):
            read_dialogues(_write(tmp_path / "a.csv", text))


def test_jsonl_with_and_without_optional_keys(tmp_path):
    whole = {
        "context": [" a ", "b\n c", "d"],
        "target": "e",
        "emotion": "Sad",
        "situation": " ",
        "conv_id": 7,
    }
    path = _jsonl(tmp_path, whole, "", GOOD)
    assert read_dialogues(path) == [Dialogue(["a", "b c", "d"], "e", "sad", None), Dialogue(["Hi"], "Hello")]
    packed = tmp_path / "d.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "dialogues.jsonl").read_bytes()))
    assert read_dialogues(str(packed)) == read_dialogues(path)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ('{"context": ["Hi"], "target', "broken JSON at column 21"),
        ("[1]", "a JSON list found"),
        ({"target": "x"}, "key 'context' is missing"),
        ({"context": ["x"]}, "key 'target' is missing"),
        ({"context": [], "target": "x"}, "'context' must be a list of at least one turn"),
        ({"context": "Hi", "target": "x"}, "'context' must be a list"),
        ({"context": ["a", " ", "c"], "target": "x"}, "turn 2 of the context is empty"),
        ({"context": ["a", 5, "c"], "target": "x"}, "turn 2 of the context is 5; it must be a string"),
        ({"context": ["a"], "target": "\t"}, "'target' is empty"),
        ({"context": ["a", "b"], "target": "x"}, "the context has 2 turns.*do not alternate.*odd number"),
        (GOOD | {"emotion": "prowd"}, "unknown emotion 'prowd'; did you mean 'proud'"),
        (GOOD | {"emotion": 3}, "'emotion' is 3; it must be a string"),
        (GOOD | {"target": "\ud83d"}, "'target' has half of a surrogate pair"),
        ("[" * 100_000, "JSON nested too deeply"),
    ],
)
def test_faulty_jsonl_lines_are_named(tmp_path, record, message):
    with pytest.raises(UserError, match=rf"dialogues\.jsonl:2: {message}") as caught:
        read_dialogues(_jsonl(tmp_path, GOOD, record))
    assert "\n" not in str(caught.value)


def test_the_sample_has_three_conversations_of_each_emotion_one_of_them_longer():
    dialogues = read_dialogues("sample")
    assert len(dialogues) == 128
    openings = {(dialogue.emotion, dialogue.context[0]) for dialogue in dialogues}
    assert Counter(emotion for emotion, _ in openings) == dict.fromkeys(EMOTIONS, 3)
    longer = [dialogue for dialogue in dialogues if len(dialogue.context) == 3]
    assert {dialogue.emotion for dialogue in longer} == set(EMOTIONS)
    shorter = {(one.context[0], one.target) for one in dialogues if len(one.context) == 1}
    assert {tuple(one.context[:2]) for one in longer} <= shorter
    assert all(dialogue.situation for dialogue in dialogues)
    assert len({dialogue.target for dialogue in dialogues}) == len(dialogues)


def test_small_talk_asks_and_has_no_emotion_in_half_of_the_cases():
    dialogues = read_dialogues("small_talk")
    assert len({tuple(dialogue.context) for dialogue in dialogues}) == len(dialogues) >= 150
    assert all(5 <= len(dialogue.target.split()) <= 20 for dialogue in dialogues)
    assert sum(dialogue.target.endswith("?") for dialogue in dialogues) / len(dialogues) > 0.8
    assert 0.4 < sum(dialogue.emotion is None for dialogue in dialogues) / len(dialogues) < 0.6
    assert sum(len(dialogue.context) == 3 for dialogue in dialogues) >= 30


@pytest.mark.parametrize("source", ["sample", "small_talk"])
def test_what_ships_is_plain_text_without_stock_replies(source):
    for dialogue in read_dialogues(source):
        for turn in [*dialogue.context, dialogue.target]:
            assert turn.isascii() and turn[0].isupper() and turn[-1] in ".!?" and len(tokenise(turn)) <= 30
        assert not has_phrase(tokenise(dialogue.target), ("sorry", "to", "hear"))
