"""Corpora in the forms in which they are published, read alone and by `train` and `evaluate`."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import pickle
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command import ROOT, records, run_here, written
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.data.corpora import read_conversations, read_poems, read_reviews
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, read_dialogues
from paddle_dialog.tasks.poem.data import Poem
from paddle_dialog.tasks.poem.data import read_poems as read_normalised
from paddle_dialog.text.characters import SIMPLIFIED_TABLE, _log_once, read_as_simplified

VERSES = ["白日依山尽，黄河入海流。", "欲穷千里目，更上一层楼。"]
BODY = "".join(VERSES)
NIGHT = "床前明月光，疑是地上霜。举头望明月，低头思故乡。"
TITLED = [("登鹳雀楼", BODY), ("静夜思", NIGHT)]
CHINESE_POETRY = [
    {"author": "王之渙", "paragraphs": VERSES, "title": "登鹳雀楼", "id": "1"},
    {"author": "李白", "paragraphs": [NIGHT], "title": "静夜思", "id": "2"},
]
CCPC = [
    {"author": "x", "content": re.sub("[，。]", "|", text)[:-1], "title": title} for title, text in TITLED
]


def dumped(*values, indent=None):
    """Return values as JSON, a line each unless they are indented."""
    return "".join(json.dumps(value, ensure_ascii=False, indent=indent) + "\n" for value in values)


POEM_FILES = {
    "chinese-poetry": dumped(CHINESE_POETRY, indent=2),
    "chinese-poetry in a line": dumped(CHINESE_POETRY),
    "CCPC": dumped(*CCPC),
    "Werneror": '"题目","朝代","作者","内容"\n' + "".join(f'"{a}","唐","x","{b}"\n' for a, b in TITLED),
    "title:text": "".join(f"{title}:{text}\n" for title, text in TITLED),
    "title<TAB>text": "".join(f"{title}\t{text}\n" for title, text in TITLED),
    "blocks with titles": f"登鹳雀楼\n{VERSES[0]}\n{VERSES[1]}\n\n静夜思\n{NIGHT[:12]}\n{NIGHT[12:]}\n",
    "traditional": "登鸛雀樓\t白日依山盡，黃河入海流。欲窮千里目，更上一層樓。\n靜夜思\t"
    + NIGHT.replace("乡", "鄉"),
}
UNTITLED = {
    "a poem a line": f"{BODY}\n{NIGHT}\n",
    "a verse a line": f"{VERSES[0]}\n{VERSES[1]}\n\n{NIGHT[:12]}\n{NIGHT[12:]}\n",
    "a half-verse a line": f"{BODY}\n\n{NIGHT}\n".replace("，", "\n").replace("。", "\n"),
}


@pytest.mark.parametrize("form", [*POEM_FILES, *UNTITLED])
def test_poems_are_read_for_what_they_are(tmp_path, form):
    wanted = [Poem(title if form in POEM_FILES else "", body) for title, body in TITLED]
    assert read_normalised(str(written(tmp_path, (POEM_FILES | UNTITLED)[form]))) == wanted


TALK = ["我丢了工作。", "很难过吧？", "是的，我很害怕。", "慢慢来。"]


def told(speaker, listener, role="role", text="content"):
    """Return the dialogue as messages of such roles under such keys."""
    return [{role: (speaker, listener)[place % 2], text: turn} for place, turn in enumerate(TALK)]


MESSAGES, SMILE = told("user", "assistant"), told("client", "counselor")
SHAREGPT = [{"from": "gpt", "value": "你好"}, *told("human", "gpt", "from", "value")]
TWICE = [{"role": "user", "content": part} for part in ("我丢了", "工作。")]
TALKS = {
    "OpenAI": dumped({"messages": [{"role": "system", "content": "Be kind."}, *MESSAGES]}),
    "ShareGPT": dumped([{"id": "a", "conversations": SHAREGPT}], indent=1),
    "SMILE": dumped(SMILE, indent=4),
    "SMILE, many": dumped([SMILE]),
    "LCCC": dumped([[" ".join(turn) for turn in TALK]], indent=1),
    "LCCC, a line each": dumped([" ".join(turn) for turn in TALK]),
    "DailyDialog": " __eou__ ".join(TALK) + " __eou__\n",
    "turns": dumped({"turns": TALK}),
    "one who writes twice": dumped({"messages": [*TWICE, *MESSAGES[1:]]}),
}


@pytest.mark.parametrize("form", TALKS)
def test_dialogues_are_read_for_what_they_are(tmp_path, form):
    ((_, record),) = read_conversations(written(tmp_path, TALKS[form]))
    assert "".join(record["turns"]).replace("了，工", "了工") == "".join(TALK) and len(record["turns"]) == 4


def test_files_of_one_dialogue_may_be_joined(tmp_path):
    path = written(tmp_path, dumped(SMILE[:2], SMILE[2:], indent=4).replace("]\n[", "]["))
    assert [record["turns"] for _, record in read_conversations(path)] == [TALK[:2], TALK[2:]]


def test_a_conversation_without_an_answer_is_left_out(tmp_path, caplog):
    path = written(tmp_path, dumped({"messages": MESSAGES[:1]}, {"messages": MESSAGES[:2]}))
    assert [number for number, _ in read_conversations(path)] == [2]
    assert "1 conversations without an answer left out" in caplog.text


PRAISE, BLAME = '房间"很"干净，\n下次还来', "太吵了, 不会再来"
QUOTED = '"房间""很""干净，\n下次还来"'
REVIEW_FILES = {
    "label,review": f'label,review\n1,{QUOTED}\n0,"{BLAME}"\n1,\n',
    "text_a": f"qid\tlabel\ttext_a\n0\t1\t{QUOTED}\n1\t0\t{BLAME}\n",
    "GLUE": f"sentence\tlabel\n{QUOTED}\t1\n{BLAME}\t0\n",
    "words as labels": f'\ufeffreview,sentiment\n{QUOTED},positive\n"{BLAME}",negative\n',
}


@pytest.mark.parametrize("form", REVIEW_FILES)
def test_reviews_are_read_for_what_they_are(tmp_path, form):
    found = [(label, text) for _, label, text in read_reviews(written(tmp_path, REVIEW_FILES[form]))]
    assert found == [(1, PRAISE), (0, BLAME)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        # GLUE quotes nothing.
        ('sentence\tlabel\n"good" film\t1\n"bad film\t0\n', ['"good" film', '"bad film']),
        ('1\t"a ""good"" film"\n0\tsaid "no"\n', ['a "good" film', 'said "no"']),
        ('good, very\t1\n"bad\t0\n', ["good, very", '"bad']),
        ("1,good, very\n0,bad\n", ["good, very", "bad"]),
    ],
)
def test_quotes_that_do_not_fit_are_the_text_s(tmp_path, text, wanted):
    assert [text for *_, text in read_reviews(written(tmp_path, text))] == wanted


THREE = [{"role": who, "content": "a"} for who in "abc"]
READERS = {"poem": read_poems, "talk": read_conversations, "review": read_reviews}


@pytest.mark.parametrize(
    ("reader", "text", "said"),
    [
        ("poem", dumped([{"title": "a"}]), ":1: .* is no poem; it must have 'paragraphs' or 'content'"),
        ("poem", dumped(*CCPC) + "{\n", ":3: broken JSON"),
        ("poem", "题目,内容\n登鹳雀楼\n", ":2: 1 columns found, and the header has 2"),
        ("poem", '题目,内容\n登,"白\n', ":2: not a row of a table"),
        ("poem", "First:\nBefore we go\n", "no form of poems .* for running text set data.running_text=true"),
        ("poem", "登:白日，依山。\n无题\n", ":2: 1 column found; a line must be title:text"),
        ("talk", "hello\n", ":1: broken JSON.* a line must be .*__eou__"),
        ("talk", "[1, 2]\n", ":1: a JSON list found"),
        ("talk", '[["a", "b"],\n ["c",\n', ":2: Expecting value"),
        ("talk", dumped({"messages": ["a", {"role": "b"}]}), ":1: .* are no messages with a role and a text"),
        ("talk", dumped({"messages": [{"role": 1, "content": "a"}]}), ":1: message 1 has no role"),
        ("talk", dumped({"messages": THREE}), r":1: more than two people speak \(a, b, c\)"),
        ("review", "label,stars\n1,5\n", ":1: 'label,stars' names no column of the text"),
        ("review", "text,stars\ngood,5\n", ":1: .* names no column of the label"),
        ("review", "label,review\n3,good\n", ":2: the label is '3'; it must be 0 or 1"),
        ("review", 'label,review\n1,"good\n', ":2: not a row of a table"),
        ("review", "label,review\n1,good, very\n", ":2: 3 columns found, and the header has 2"),
    ],
)
def test_what_is_none_of_the_forms_is_named(tmp_path, reader, text, said):
    with pytest.raises(UserError, match="data.txt" + (said if said[0] == ":" else f": {said}")) as caught:
        list(READERS[reader](written(tmp_path, text)))
    assert "\n" not in str(caught.value)


def bytes_of(save):
    """Return the bytes of a file that is no text."""
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


PICKLE = pickle.dumps({"a": 1})
EXCEL = bytes_of(lambda file: zipfile.ZipFile(file, "w").writestr("xl/workbook.xml", "<a/>"))
ARRAY = bytes_of(lambda file: np.save(file, np.arange(3)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (EXCEL, "an Excel file"),
        (ARRAY, "an array of NumPy, not text; .* docs/your_data.md"),
        (PICKLE, "a pickle of Python, not text"),
        (b"PAR1\x15\x04", "a Parquet table, not text"),
    ],
    ids=["xlsx", "npy", "pickle", "parquet"],
)
def test_what_is_no_text_is_named_by_its_first_bytes(tmp_path, content, said):
    with pytest.raises(UserError, match=said):
        list(read_lines(written(tmp_path, content)))


RECIPE = """
task: {task}
model: {model}
data: {{train: {data}, dev: {data}, batch_size: 2, min_count: 1{more}}}
training: {{max_steps: 2, epochs: 2, warmup_steps: 1}}
output_dir: {folder}/run
"""
FAMILY = "{name: lstm_attention, embedding_size: 4, hidden_size: 4, num_layers: 1}"
CAUSAL = "{name: causal_lm, width: 8, num_heads: 2, inner_width: 8, num_layers: 1, max_positions: 160}"
TASKS: dict[str, tuple[str, str]] = {
    "poem": (CAUSAL, ", window: 16, max_length: 40"),
    "empathetic": (FAMILY, ""),
    "sentiment": (FAMILY, ""),
}


def trained(folder, task, text):
    """Train on a file of this content for two steps."""
    model, more = TASKS[task]
    recipe = RECIPE.format(task=task, model=model, data=written(folder, text), more=more, folder=folder)
    if task == "empathetic":
        recipe += "language: zh\nemotion: {hints: false}\n"
    return run_here("train", "-c", written(folder, recipe, "toy.yaml"))


FORMS = {"poem": POEM_FILES | UNTITLED, "empathetic": TALKS, "sentiment": REVIEW_FILES}


@pytest.mark.parametrize(("task", "form"), [(task, form) for task, forms in FORMS.items() for form in forms])
def test_a_file_trains_and_is_evaluated_as_it_is(tmp_path, task, form):
    outcome = trained(tmp_path, task, FORMS[task][form])
    assert outcome.status == 0, outcome.stderr
    options = ["--weights", tmp_path / "run", "--data", tmp_path / "data.txt", "--json"]
    (found,) = records(run_here("evaluate", *options, *([] if task == "sentiment" else ["--no-answers"])))
    assert found["n"] == 2
    words = (tmp_path / "run" / "best" / "text.vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert not {"{", "[", "|"} & set(words)


@pytest.mark.parametrize("task", TASKS)
def test_bad_data_is_one_line_of_the_command(tmp_path, task):
    assert "data.txt" in trained(tmp_path, task, "1;2;3\n").error_line()
    assert "a pickle of Python" in trained(tmp_path, task, PICKLE).error_line()


def test_the_arrays_of_empdg_and_moel_are_turned_by_the_script_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    contexts = np.empty(2, dtype=object)
    contexts[:] = [["my dog died .", "oh no !", "he was old ."], ["i won a prize ."]]
    arrays = {
        "dialog": contexts,
        "target": np.array(["poor dog .", "well done !"]),
        "emotion": np.array(["sad", "proud"]),
    }
    for name, array in arrays.items():
        np.save(f"sys_{name}_texts.train.npy", array)
    for page in ("your_data.md", "your_data.zh.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {})
        first, second = read_dialogues("train.jsonl")
        assert first == Dialogue(contexts[0], "poor dog .", "sad") and second.target == "well done !"


@pytest.mark.parametrize("task", ["couplet", "poem", "sentiment_zh", "translation", "empathetic_zh"])
def test_traditional_characters_are_measured_as_simplified_ones(tmp_path, task):
    traditional, plain = SIMPLIFIED_TABLE.read_text(encoding="utf-8").splitlines()
    letters = dict(zip(map(ord, "东风书云马鸟时见说门"), "東風書雲馬鳥時見說門", strict=True))
    assert set(letters.values()) <= set(traditional) and {chr(letter) for letter in letters} <= set(plain)
    texts = {
        "couplet": "东风吹马鸟\t书云见说门\n",
        "poem": f"东风\t{NIGHT}马上见云书。\n",
        "sentiment_zh": "1\t东风时见，说书马上。\n",
        "translation": "东风时见。\t东风时常见到。\n",
        "empathetic_zh": dumped(
            {"context": ["东风说书时，我很难过。"], "target": "我见到马了。", "emotion": None}
        ),
    }
    shown = []
    for text in (texts[task], texts[task].translate(letters)):
        more = [] if task == "sentiment_zh" else ["--no-answers"]
        path = written(tmp_path, text)
        shown += records(run_here("evaluate", "-c", f"configs/{task}.yaml", "--data", path, "--json", *more))
    assert shown[0] == shown[1]


def test_traditional_characters_are_said_once(caplog):
    _log_once.cache_clear()
    with caplog.at_level("INFO"):
        assert [read_as_simplified(text) for text in ("东", "東風", "書")] == ["东", "东风", "书"]
    (record,) = caplog.records
    assert record.message == "traditional characters are read as simplified ones"


WRITERS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}


def write(folder, suffix, data):
    return written(folder, WRITERS[suffix.lower()](data), f"lines.txt{suffix}")


def refusal(path):
    with pytest.raises(UserError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message


LINES = b"\xef\xbb\xbf" + "春\r\n\r\n秋\t月\n 末".encode()
# Only a line feed ends a line, and only a leading byte-order mark is dropped.
ONE_LINE = "a\u2028b\x0bc\x85d\re"


@pytest.mark.parametrize(
    ("suffix", "data", "lines"),
    [
        *((suffix, WRITERS[suffix](LINES), ["春", "", "秋\t月", " 末"]) for suffix in WRITERS),
        ("", f"{ONE_LINE}\n\ufefff\n".encode(), [ONE_LINE, "\ufefff"]),
        # An archive of several streams is read to its end, and its suffix in any case.
        (".gz", gzip.compress(b"one\n") + gzip.compress(b"two\n"), ["one", "two"]),
        (".XZ", lzma.compress(b"one\n") + lzma.compress(b"two\n"), ["one", "two"]),
    ],
    ids=["plain", "gz", "xz", "odd ends", "streams of gz", "streams of xz"],  # an archive holds the time
)
def test_lines_are_numbered_from_one_without_their_ends(tmp_path, suffix, data, lines):
    path = written(tmp_path, data, f"lines.txt{suffix}")
    assert list(read_lines(str(path))) == list(enumerate(lines, start=1))


@settings(deadline=None, max_examples=50)
@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1)
)
def test_lines_written_come_back(tmp_path_factory, lines):
    if lines[0].startswith("\ufeff"):
        lines[0] = "x" + lines[0]
    path = write(tmp_path_factory.mktemp("lines"), ".gz", "".join(line + "\n" for line in lines).encode())
    assert list(read_lines(path)) == list(enumerate(lines, start=1))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_line_that_is_not_utf8_is_named_after_the_good_ones(tmp_path, suffix):
    path = write(tmp_path, suffix, "好\n".encode() + "ab好".encode("gbk") + b"\n")
    lines = read_lines(path)
    assert next(lines) == (1, "好")
    said = r":2: not UTF-8 \(byte 3 of the line is 0xba\); save the file as UTF-8"
    with pytest.raises(UserError, match=said):
        next(lines)


def test_folder_and_file_used_as_folder(tmp_path):
    (tmp_path / "folder.gz").mkdir()
    assert "this is a folder" in refusal(tmp_path / "folder.gz")
    assert "this is a folder" in refusal(tmp_path)
    file = write(tmp_path, "", b"x")
    assert "is a file, not a folder" in refusal(file / "inner.txt")


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_empty_file_and_archive_of_nothing(tmp_path, suffix):
    path = write(tmp_path, suffix, b"")
    assert "the file is empty" in refusal(path)
    path.write_bytes(b"")
    assert "the file is empty" in refusal(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_what_is_no_sound_archive(tmp_path, suffix):
    path = write(tmp_path, suffix, "".join(f"{n * n * 7919 % 10007}\n" for n in range(5000)).encode())
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert "ends too early" in refusal(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    path.write_bytes(flipped)
    assert f"not a sound {suffix} archive" in refusal(path)
    path.write_text("上\t下\n" * 30, encoding="utf-8")
    assert "plain text under a name without that suffix" in refusal(path)


def test_no_permission_and_no_possible_path(tmp_path, monkeypatch):
    path = write(tmp_path, "", b"x")

    def refuse(*_, **__):  # chmod does not stop root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    assert "no permission to read" in refusal(path)
    monkeypatch.undo()
    for impossible in ("a\0b.txt", "a" * 5000):
        assert "cannot be opened" in refusal(impossible)
