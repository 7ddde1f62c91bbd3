"""Couplets: files, PaddleNLP's corpus, streams; one network for all uses of a couplet; an exact resume."""

from __future__ import annotations

import lzma
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from conftest import Trained, write_couplets
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.tasks.couplet.config import CoupletDataConfig
from paddle_dialog.tasks.couplet.couplets import _USUAL_LINE, Couplet, limit_length, read_couplets
from paddle_dialog.tasks.couplet.direction import (
    BLANK,
    COMPOSE,
    FIRST,
    MARKS,
    TO_FIRST,
    TO_SECOND,
    VERSE,
    compose_source,
    with_marks,
)
from paddle_dialog.tasks.couplet.training_data import UsesDataset, regulated
from paddle_dialog.text.characters import normalise_line
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def refusal(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_couplets(str(path))
    return str(caught.value)


def test_couplets_of_a_file_in_order_with_blank_lines_skipped(tmp_path: Path) -> None:
    text = "一帆风顺\t万事如意\r\n\n  \u3000\n 春，风 \t秋，雨\nA股红\tB股绿\n\U00020000\t〇\n"
    expected = [
        Couplet("一帆风顺", "万事如意"),
        Couplet("春，风", "秋，雨"),
        Couplet("A股红", "B股绿"),
        Couplet("\U00020000", "〇"),
    ]
    plain, packed = tmp_path / "c.tsv", tmp_path / "c.tsv.xz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(lzma.compress(text.encode()))
    assert read_couplets(str(plain)) == expected
    assert read_couplets(str(packed)) == expected


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("春风", "1 column found"),
        ("春\t风\t雨", "3 columns found"),
        ("\t\t", "3 columns found"),
        ("\t风", "the first line (上联) is empty"),
        ("春\t\u3000 ", "the second line (下联) is empty"),
        ("\t", "the first line (上联) is empty"),
        ("hello\t风", "the first line (上联) has no hanzi: 'hello'"),
        ("春\t，。", "the second line (下联) has no hanzi: '，。'"),
        ("春\tかな", "the second line (下联) has no hanzi: 'かな'"),
    ],
)
def test_faulty_line_is_told_with_file_and_number(tmp_path: Path, line: str, fault: str) -> None:
    path = tmp_path / "c.tsv"
    message = refusal(path, f"好\t坏\n\n{line}\n")
    assert message == f"{path}:3: {fault}; a line must be 上联<TAB>下联"


def test_lines_are_normalised_as_those_of_users_are(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("春 风,来!\t秋 雨，去！\n山\u200b高Ａ\t\ufeff水长A\n", encoding="utf-8")
    assert read_couplets(str(path)) == [Couplet("春风，来！", "秋雨，去！"), Couplet("山高A", "水长A")]


def test_lines_that_are_taken_as_they_are_need_no_normalising() -> None:
    usual = [chr(code) for code in range(sys.maxunicode + 1) if _USUAL_LINE.fullmatch("一" + chr(code))]
    assert len(usual) > 20_000
    assert all(normalise_line(char) == char for char in usual)
    assert not _USUAL_LINE.fullmatch("，。")


LINES = st.text("春夏秋冬，", min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.builds(Couplet, LINES, LINES)), st.integers(1, 9))
def test_only_the_long_couplets_are_skipped(couplets: list[Couplet], limit: int) -> None:
    short = [c for c in couplets if max(len(c.first), len(c.second)) <= limit]
    if couplets and not short:
        with pytest.raises(UserError, match="every couplet"):
            limit_length(couplets, limit)
        return
    kept, note = limit_length(couplets, limit)
    assert kept == short and f" {len(couplets) - len(kept)} skipped" in note


VOCABULARY = with_marks(Vocabulary([*SPECIAL_TOKENS, *"，春风花月雪山水云"]))
MODERN, CLASSICAL = Couplet("春风，花月", "雪山，水云"), Couplet("月山", "云水")


def texts(source: np.ndarray) -> list[str]:
    return VOCABULARY.decode(source.tolist())


def dataset(reverse: float = 1.0, compose: float = 1.0, seed: int = 1) -> UsesDataset:
    settings = CoupletDataConfig(reverse=reverse, compose=compose)
    return UsesDataset([MODERN], [CLASSICAL], settings, VOCABULARY, seed)


def test_a_source_names_its_use_behind_the_line() -> None:
    decode = VOCABULARY.decode
    assert decode(TO_SECOND.source(VOCABULARY, "春风")) == ["春", "风"]
    assert decode(TO_FIRST.source(VOCABULARY, "雪山")) == ["雪", "山", FIRST]
    found = decode(compose_source(VOCABULARY, ["春", None, "，", None], "花月"))
    assert found == ["春", BLANK, "，", BLANK, COMPOSE, "花", "月"]


def test_every_pair_is_learned_in_every_use() -> None:
    found = [(texts(source), "".join(texts(target))) for source, target in dataset()]
    assert found[0] == ([*MODERN.first], MODERN.second)
    assert found[1] == ([*CLASSICAL.first, VERSE], CLASSICAL.second)
    assert found[2] == ([*MODERN.second, FIRST], MODERN.first)
    assert found[3] == ([*CLASSICAL.second, FIRST, VERSE], CLASSICAL.first)
    assert [target for _, target in found[4:]] == [MODERN.first, CLASSICAL.first]
    assert found[5][0][-1] == VERSE


@given(st.integers(0, 200), st.integers(0, 3))
def test_a_template_shows_the_line_at_few_places_and_words_of_the_couplet(seed: int, epoch: int) -> None:
    examples = dataset(seed=seed)
    examples.set_epoch(epoch)
    source = texts(examples[4][0])
    shape, theme = source[:5], source[6:]
    assert source[5] == COMPOSE and shape[2] == "，"
    assert all(shown in (BLANK, char) for shown, char in zip(shape, MODERN.first, strict=True))
    assert sum(shown != BLANK for shown in shape) <= 3  # two hanzi and the comma
    words = {"".join(theme[start : start + 2]) for start in range(0, len(theme), 2)}
    assert words <= {"春风", "花月", "雪山", "水云"}


def test_templates_differ_from_epoch_to_epoch_and_seeds_repeat_them() -> None:
    def shown(epoch: int) -> list[list[str]]:
        found = []
        for seed in range(20):
            examples = dataset(seed=seed)
            examples.set_epoch(epoch)
            found.append(texts(examples[4][0]))
        return found

    assert shown(0) == shown(0) != shown(1)


def test_lengths_say_how_long_examples_are_within_the_theme() -> None:
    examples = dataset()
    for (source, target), (longest, exact) in zip(examples, examples.lengths, strict=True):
        assert len(target) == exact and abs(len(source) - longest) <= 2


def test_positions_must_hold_the_marks_of_the_uses() -> None:
    assert load_config("configs/couplet.yaml", ["model.max_positions=70"])[1].data.longest_source == 69
    for override, longest in (("data.compose=0.25", 69), ("data.compose=0", 65), ("data.verse=v.tsv", 70)):
        least = ["data.reverse=0.3", override, f"model.max_positions={longest}"]
        assert load_config("configs/couplet.yaml", least)[1].data.longest_source == longest
        if longest > 65:  # the end token asks for 65 anyway
            with pytest.raises(UserError, match=f"the marks of the uses, {longest} in all"):
                load_config("configs/couplet.yaml", [*least[:2], f"model.max_positions={longest - 1}"])


def test_verse_must_end_oblique_and_level() -> None:
    assert regulated([Couplet("春月", "秋风"), Couplet("秋风", "春月"), Couplet("春月", "秋雪")]) == [
        Couplet("春月", "秋风")
    ]
    assert len(regulated([Couplet("春月，", "秋风。"), Couplet("秋风，", "春月。")])) == 1


@pytest.fixture
def uses_recipe(trained: dict[str, Trained], tmp_path: Path) -> Path:
    """Return a recipe for all uses, with one layer more, from the weights of the session's tiny model."""
    write_couplets(tmp_path / "verse.tsv", 20, seed=5)
    path = tmp_path / "uses.yaml"
    path.write_text(
        f"""base: {trained["transformer"].config}
model: {{encoder_layers: 2, max_positions: 18}}
data: {{verse: {tmp_path}/verse.tsv, reverse: 0.5, compose: 0.5}}
training: {{start_from: {trained["transformer"].folder}/best, optimizer: muon, learning_rate: 1.0e-9, epochs: 1}}
output_dir: {tmp_path}/run
""",
        encoding="utf-8",
    )
    return path


def test_a_run_for_all_uses_starts_from_a_smaller_network_for_one(
    trained: dict[str, Trained], uses_recipe: Path
) -> None:
    outcome = run_here("train", "-c", uses_recipe)
    assert outcome.status == 0, outcome.stderr
    bundle = load_bundle(uses_recipe.parent / "run" / "best")
    assert bundle.vocabularies["text"].tokens[-4:] == MARKS
    before = float(re.findall(r"dev perplexity ([\d.]+)", trained["transformer"].outcome.stderr)[-1])
    after = float(re.findall(r"dev perplexity ([\d.]+)", outcome.stderr)[0])
    assert after == pytest.approx(before, rel=0.05)  # four new rows of the vocabulary take a little
    again = run_here("train", "-c", uses_recipe, "--resume", "auto")
    assert "already finished" in again.stderr
