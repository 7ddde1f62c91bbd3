"""Dialogues: the published corpus, files of one's own, what ships, and the published tokenisation."""

import gzip
import io
import json
import lzma
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from paddle_dialog.metrics import has_phrase
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, read_dialogues
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.data.language import (
    ABBREVIATIONS,
    CONTRACTIONS,
    TYPOGRAPHIC,
    detokenise,
    tokenise,
)

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


def test_csv_may_have_a_byte_order_mark_windows_line_ends_and_blank_lines(tmp_path):
    text = "\ufeff" + _csv(ROWS[:4]).replace("\n", "\r\n") + "\r\n" + "\r\n".join(ROWS[4:])
    path = tmp_path / "train.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    assert read_dialogues(str(path)) == read_dialogues(_write(tmp_path / "a.csv", _csv(ROWS))) == EXAMPLES


def test_archive_splits_and_damaged_and_missing_archives(tmp_path):
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
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes((tmp_path / "ed.tar.gz").read_bytes()[:150])
    (tmp_path / "text.tar.gz").write_text("not an archive")
    for name in ("cut.tar.gz", "text.tar.gz"):
        with pytest.raises(UserError, match=f"{name}: not a sound"):
            read_dialogues(str(tmp_path / name))
    with pytest.raises(UserError, match="no such file"):
        read_dialogues(path.replace("ed.tar.gz", "no.tar.gz"))


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


def test_jsonl_with_and_without_optional_keys(tmp_path):
    whole = {"context": [" a ", "b\n c", "d"], "target": "e", "emotion": "Sad", "situation": " "}
    lines = [json.dumps({**whole, "conv_id": 7}), "", '{"context": ["Hi"], "target": "Hello"}']
    path = _write(tmp_path / "dialogues.jsonl", "\n".join(lines))
    assert read_dialogues(path) == [Dialogue(["a", "b c", "d"], "e", "sad", None), Dialogue(["Hi"], "Hello")]
    packed = tmp_path / "d.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "dialogues.jsonl").read_bytes()))
    assert read_dialogues(str(packed)) == read_dialogues(path)


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


def test_the_table_of_published_rules_and_back():
    table = (Path(__file__).parent / "data" / "tokens.tsv").read_text(encoding="utf-8")
    for kind, text, expected in (line.split("\t") for line in table.splitlines()):
        found = " ".join(tokenise(text)) if kind == "tokenise" else detokenise(text.split())
        assert found == expected
    assert tokenise("") == tokenise(" \t ") == [] and detokenise([]) == ""
    assert tokenise("I’m sure that’s “it”…") == tokenise("I'm sure that's \"it\"...")
    for short, long in CONTRACTIONS.items():
        assert " ".join(tokenise(short)) == long.replace("cannot", "can not")
    # Emoji are words of their own.
    assert tokenise("great😀day 👍🏽!") == ["great", "😀", "day", "👍🏽", "!"]
    assert tokenise("❤️") == ["❤️"]


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_no_token_is_empty_or_has_a_blank_and_no_character_is_lost(text):
    tokens = tokenise(text)
    assert all(token and not token.split()[1:] and token == token.strip() for token in tokens)

    def with_marks(text):
        return text.replace('"', "''").replace("``", "''")

    plain = text.translate(TYPOGRAPHIC).lower()
    if not any(short in plain for short in CONTRACTIONS):
        assert with_marks("".join(tokens)) == with_marks("".join(plain.split()))


_WORDS = ["i", "home", "well", "3", "1,000", "5:30", "can't", "won't", "she's", "they'll", "don't", "u", "it"]
_WORDS += ["dogs'", "gonna", "would've", "(yes)", "[no", "a-b", "and/or", "$5", "20%", "he'd", "'cause"]
_ENDS = ["", ".", "...", "..", "!", "?", ",", ";", ":", "?!", ".)", "--", "!!", " .", " :)"]


@cache
def _nltk():
    treebank = pytest.importorskip("nltk.tokenize.treebank").TreebankWordTokenizer()
    punkt = pytest.importorskip("nltk.tokenize.punkt")
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    return punkt.PunktSentenceTokenizer(parameters), treebank


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from(_ENDS)), max_size=12))
def test_same_tokens_as_the_treebank_tokeniser_of_nltk(pieces):
    sentences, treebank = _nltk()
    # Not compared: a period after a number, initial or abbreviation, where Punkt looks further than one word.
    text = " ".join(word + (end if len(word) > 1 and word[0].isalpha() else "!") for word, end in pieces)
    written_out = text
    for short, long in CONTRACTIONS.items():
        written_out = written_out.replace(short, long)
    expected = [token for part in sentences.tokenize(written_out) for token in treebank.tokenize(part)]
    assert tokenise(text) == expected


_TOKENS = ["i", "he", "is", "not", "can", "na", "'s", "5", "$", "😀"]
_TOKENS += [":", ")", "(", ".", ",", "...", "``", "''"]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(_TOKENS), max_size=15))
def test_detokenised_text_has_no_stray_blanks(tokens):
    text = detokenise(tokens)
    assert text == text.strip() and "  " not in text and " ," not in text
