"""The makers' workshop: every script of `tools/weights` runs to its end on tiny data; the tables that they make."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest
from command import ROOT, run_here

import paddle_dialog
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.couplets import Couplet
from paddle_dialog.tasks.poem.forms import NAMES
from paddle_dialog.text.characters import TONE_TABLE, Tone, is_hanzi, read_classes, tones
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tools.weights import tone_table as TONES
from tools.weights.couplet import associations as ASSOCIATIONS
from tools.weights.poem import rhyme_table as RHYMES

TINY = "data.min_count=1 training.max_steps=1 "
TRANSFORMER = TINY + "model.width=16 model.inner_width=16 model.num_heads=2"
SENTIMENT = TINY + "model.embedding_size=8 model.hidden_size=8 linear.buckets=64"
ASKED = {
    "couplet": "春风",
    "poem": "明月",
    "translation": "上闻之。",
    "sentiment_zh": "很好",
    "sentiment_en": "good",
}


def run_script(task, data, folder):
    """Run the script of a task; return the bundles that it made."""
    overrides = SENTIMENT if task == "sentiment" else TRANSFORMER
    options = " ".join(f"-o {override}" for override in overrides.split())
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    given = {name: str(value) for name, value in data.items()}
    environment = {**os.environ, **given, "OPTIONS": options, "PATH": path}
    command = ["bash", f"tools/weights/{task}/make.sh", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    made = folder / "bundles"
    return sorted(made.iterdir()) if made.is_dir() else [folder / "bundle"]


def answers(bundle, text):
    return len(paddle_dialog.load(bundle).predict([text])) == 1


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_couplet_weights(tmp_path):
    pairs = [line.split("\t") for line in (ROOT / "tasks/couplet/sample.tsv").read_text("utf-8").splitlines()]
    lines = [f"{a}\t{b}" for a, b in pairs[:24]]
    couplets, verse = write(tmp_path / "couplets.tsv", *lines), write(tmp_path / "verse.tsv", *lines[:8])
    rated = [
        '{"answers": ['
        + ", ".join(
            f'{{"first": "{a}", "second": "{b}", "rating": {rating}, "template": "{"？" * len(a)}"}}'
            for rating, (a, b) in enumerate(pairs[start : start + 6])
        )
        + "]}"
        for start in (0, 6, 12)
    ]
    data = {
        "COUPLET_TRAIN": couplets,
        "COUPLET_DEV": couplets,
        "COUPLET_VERSE": verse,
        "COUPLET_RATINGS": write(tmp_path / "ratings.jsonl", *rated),
    }
    (bundle,) = run_script("couplet", data, tmp_path / "runs")
    assert answers(bundle, ASKED["couplet"])
    assert paddle_dialog.load(bundle).compose(count=1)


@pytest.mark.parametrize(("task", "sample"), [("poem", "sample.txt"), ("translation", "sample.tsv")])
def test_the_weights_of(task, sample, tmp_path):
    data: dict[str, Path | str] = {
        f"{task.upper()}_{part}": ROOT / "tasks" / task / sample for part in ("TRAIN", "DEV")
    }
    data["POEM_PAIRS"] = ROOT / "tasks/couplet/sample.tsv"
    (bundle,) = run_script(task, data, tmp_path / "runs")
    assert answers(bundle, ASKED[task])


def test_the_sentiment_weights(tmp_path):
    data: dict[str, Path | str] = {
        f"ZH_{part}": ROOT / "tasks/sentiment/sample_zh.tsv" for part in ("TRAIN", "DEV")
    }
    data |= {f"EN_{part}": ROOT / "tasks/sentiment/sample_en.tsv" for part in ("TRAIN", "DEV")}
    data["GOEMOTIONS"] = write(
        tmp_path / "goemotions.tsv",
        "train\tjoy\tthat is good",
        "dev\tanger,joy\tboth at once",
        "test\tanger,neutral\tthat is bad",
        "train\tneutral\tthat is",
    )
    bundles = run_script("sentiment", data, tmp_path / "runs")
    assert [bundle.name for bundle in bundles] == ["sentiment_en", "sentiment_zh"]
    assert all(answers(bundle, ASKED[bundle.name]) for bundle in bundles)
    assert (tmp_path / "runs/goemotions.tsv").read_text("utf-8") == "1\tthat is good\n0\tthat is bad\n"


WORDS = ["春", "风", "秋", "月"]


def save(folder, seed, size=4, words=WORDS):
    """Save a random model and return its bundle."""
    model = LstmAttentionConfig(embedding_size=size, hidden_size=4, num_layers=1)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *words])
    paddle.seed(seed)
    weights = read_weights(Seq2Seq(model, len(vocabulary)))
    config = dump(CoupletConfig(task="couplet", model=model))
    save_bundle(Bundle("couplet", config, {"text": vocabulary}, weights), folder)
    return folder


def test_weights_are_the_weighted_mean(tmp_path):
    first, second, output = save(tmp_path / "a", 1), save(tmp_path / "b", 2), tmp_path / "c"
    outcome = run_here("weights/average", first, second, "--share", "0.25", "--output", output)
    assert outcome.status == 0, outcome.stderr
    one, other, mean = (load_bundle(folder).weights for folder in (first, second, output))
    assert one.keys() == mean.keys()
    for name, array in mean.items():
        np.testing.assert_allclose(array, 0.75 * one[name] + 0.25 * other[name], rtol=1e-6, atol=1e-7)
        assert array.dtype == np.float32


@pytest.mark.parametrize(
    ("size", "words", "share", "message"),
    [
        (5, WORDS, "0.5", "differ in their task, vocabulary or shape"),
        (4, WORDS[::-1], "0.5", "differ in their task, vocabulary or shape"),
        (4, WORDS, "2", "is 2.0"),
    ],
)
def test_other_models_and_shares_are_refused(size, words, share, message, tmp_path):
    first, second = save(tmp_path / "a", 1), save(tmp_path / "b", 2, size, words)
    outcome = run_here("weights/average", first, second, "--share", share, "--output", tmp_path / "c")
    assert message in outcome.error_line() and not (tmp_path / "c").exists()


LEVEL, OBLIQUE = frozenset({Tone.LEVEL}), frozenset({Tone.OBLIQUE})


def test_the_others_tell_the_tone_of_a_character_by_hand():
    # Second and fourth of both lines: 看 ?, 月 仄; 雨 仄, 山 平. 看 opposes 雨 and alternates with 月: level, and 山
    # is what it must be. 雨 alternates with 山, 月 opposes 山: all known ones agree.
    level, known = TONES.count_uses([("春看春月春", "春雨春山春")])
    assert known == {"看": 1, "雨": 1, "月": 1, "山": 1}
    assert level["看"] == 1 and level["山"] == 1 and level["雨"] == 0 and level["月"] == 0


def test_where_the_known_ones_disagree_nothing_is_counted():
    level, known = TONES.count_uses([("春看春山春", "春雨春山春")])  # 雨 says level, 山 above it oblique
    assert known["看"] == 0 and level["看"] == 0


def test_lines_of_other_lengths_are_left_out():
    assert TONES.count_uses([("春看春月", "春雨春山"), ("春看春月春", "春雨春山春花红")])[1].total() == 0


def test_shares_decide_for_characters_that_cantonese_reads_in_both_tones():
    uses = dict.fromkeys("人地看春", TONES.LEAST_USES) | {"马": TONES.LEAST_USES - 1}
    level = {"人": TONES.LEAST_USES, "地": 1, "看": TONES.LEAST_USES // 2}
    assert TONES.classes_of_uses(level, uses) == {"人": LEVEL, "地": OBLIQUE, "看": LEVEL | OBLIQUE}


def test_the_readings_of_cantonese():
    assert TONES.cantonese_tones("人") == LEVEL | OBLIQUE and TONES.cantonese_tones("春") == LEVEL
    assert TONES.has_entering_tone("一") and not TONES.has_entering_tone("人")


def test_the_table_is_read_as_it_was_written():
    text = TONES.VERSE_TABLE.read_text(encoding="utf-8")
    assert TONES.write_classes(read_classes(TONES.VERSE_TABLE)) == text
    assert TONES.verse_tones("人") == TONES.verse_tones("門") == LEVEL
    assert TONES.verse_tones("看") == LEVEL | OBLIQUE
    assert TONES.verse_tones("春") == frozenset()  # Cantonese has one tone for it


def test_the_text_by_hand():
    assert TONES.write_tones("春雨看山水月，a") == "山春\n月水雨\n看\n"
    assert TONES.write_tones("") == "\n\n\n"


def test_the_table_is_what_the_libraries_say():
    """All 102,000 hanzi would take ten seconds; common characters and a sample of the rest take one."""
    hanzi = [char for char in map(chr, range(sys.maxunicode + 1)) if is_hanzi(char)]
    for char in [*map(chr, range(0x4E00, 0x5E00)), *random.Random(1).sample(hanzi, 2000)]:
        assert tones(char) == TONES.tones_of_readings(char), char


def test_each_character_stands_once():
    characters = TONE_TABLE.read_text(encoding="utf-8").replace("\n", "")
    assert len(set(characters)) == len(characters) > 40_000
    assert all(map(is_hanzi, characters))


def test_an_association_by_hand():
    pairs = [Couplet("春风花", "瑞雪梅")] * 40 + [Couplet("秋水长", "寒山远")] * 60
    table = ASSOCIATIONS.count_association(pairs, ["春风", "寒山"])
    assert table.words == ("春风", "寒山") and set(table.characters) == set("春风花瑞雪梅秋水长寒山远")
    # p(花) = 0.4; p(花 | 春风) = (40 + 20 * 0.4) / (40 + 20) = 0.8, and log 2 = 0.69 is below 1 nat
    assert table.steps[table.characters.index("花"), 0] == 0
    fewer = [Couplet("春风花", "瑞雪梅")] * 10 + pairs[40:] * 2
    rare = ASSOCIATIONS.count_association(fewer, ["春风", "寒山"])
    likely = (10 + 20 * 10 / 130) / (10 + 20)
    assert rare.steps[rare.characters.index("花"), 0] == round(np.log(likely / (10 / 130)) * 40)
    assert rare.steps[rare.characters.index("花"), 1] == 0
    by_line = rare.of("花，秋")  # the comma does not count
    assert by_line[0] == pytest.approx(rare.steps[rare.characters.index("花"), 0] / 40 / 2)
    both = ASSOCIATIONS.grouped(rare, {"all": ["春风", "寒山"]})
    assert both.steps[:, 0].tolist() == rare.steps.mean(axis=1).round().tolist()


def test_rhymes_are_found_from_who_rhymes_with_whom():
    generator = np.random.default_rng(0)
    groups = ["东空红甲乙丙丁", "秋楼舟戊己庚辛"]
    endings = [
        "".join(generator.choice(list(group), 4, replace=False)) for group in groups for _ in range(200)
    ]
    found = RHYMES.find_rhymes(endings)
    assert set(found["东"]) >= set("甲乙丙丁") and set(found["尤"]) >= set("戊己庚辛")
    assert not any(set("甲乙丙丁戊己庚辛") & set(found[name]) for name in NAMES if name not in "东尤")


@pytest.mark.parametrize("name", ["couplet/associations", "poem/rhyme_table", "tone_table"])
def test_a_script_has_help_and_tells_of_a_missing_file_in_one_plain_line(name):
    option = {"couplet/associations": ["--data"], "poem/rhyme_table": [], "tone_table": ["--verse"]}[name]
    for arguments, status in ((["--help"], 0), ([*option, "/nonexistent/file"], 2)):
        command = [sys.executable, f"tools/weights/{name}.py", *arguments]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
        assert ended.returncode == status
    assert ended.stderr.count("\n") == 1 and ended.stderr.startswith("error: /nonexistent/file: no such file")
