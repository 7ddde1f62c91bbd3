"""The emotion lexicon from its package or a file."""

import importlib.util
import json
import subprocess
import sys

import pytest

from paddle_dialog.errors import UserError
from tasks.empathetic.data.emotions import EmotionLexicon


def _file(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_word_file(tmp_path):
    lexicon = EmotionLexicon.load(_file(tmp_path, "words.txt", "Happy\n\n tears \n"))
    assert len(lexicon) == 2
    assert "happy" in lexicon
    assert "HAPPY" in lexicon
    assert "table" not in lexicon
    assert 3 not in lexicon
    assert lexicon.hints(["happy", "table", "tears"]) == [1, 0, 1]


def test_json_file_leaves_out_words_without_a_category(tmp_path):
    table = {"grief": ["sadness", "negative"], "table": []}
    lexicon = EmotionLexicon.load(_file(tmp_path, "nrc.json", json.dumps(table, indent=1)))
    assert "grief" in lexicon
    assert "table" not in lexicon


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "happy\nvery sad\n", r"a\.txt:2: 'very sad' is more than one word"),
        ("b.txt", "\n", r"b\.txt: no word in this lexicon"),
        ("c.json", '{"a":\n oops}', r"c\.json:2: broken JSON"),
        ("d.json", '["a"]', r"d\.json: a JSON list found"),
        ("e.json", '{"a": 1}', r"e\.json: the value of 'a' is not a list"),
        ("f.json", '{"a": []}', r"f\.json: no word"),
    ],
)
def test_faulty_files(tmp_path, name, text, message):
    with pytest.raises(UserError, match=message):
        EmotionLexicon.load(_file(tmp_path, name, text))


def test_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match="NRCLex is not installed; pip install NRCLex"):
        EmotionLexicon.load("nrc")


@pytest.mark.skipif(importlib.util.find_spec("nrclex") is None, reason="NRCLex is not installed")
def test_package_lexicon_is_read_without_importing_the_package():
    code = (
        "import sys; from tasks.empathetic.data.emotions import EmotionLexicon as L; lexicon = L.load('nrc');"
        "print(len(lexicon), 'grief' in lexicon, 'table' in lexicon, {'nrclex', 'nltk'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6468", "True", "False", "set()"]
