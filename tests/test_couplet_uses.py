"""One network for all uses of a couplet: what it reads and learns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from conftest import Trained, write_couplets
from hypothesis import given
from hypothesis import strategies as st

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.config import CoupletDataConfig
from tasks.couplet.couplets import Couplet
from tasks.couplet.dataset import UsesDataset, regulated
from tasks.couplet.direction import (
    BLANK,
    COMPOSE,
    FIRST,
    MARKS,
    TO_FIRST,
    TO_SECOND,
    VERSE,
    compose_source,
    knows_marks,
    with_marks,
)

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


def test_marks_are_added_once_at_the_end() -> None:
    plain = Vocabulary([*SPECIAL_TOKENS, "春"])
    assert not knows_marks(plain) and knows_marks(with_marks(plain))
    assert with_marks(plain).tokens == (*plain.tokens, *MARKS)
    assert with_marks(VOCABULARY) is VOCABULARY


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


def test_shares_are_shares_of_the_pairs() -> None:
    pairs = [MODERN] * 100
    settings = CoupletDataConfig(reverse=0.3, compose=0.25)
    assert len(UsesDataset(pairs, [], settings, VOCABULARY, 0)) == 155


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


def test_streaming_reads_pairs_alone(uses_recipe: Path) -> None:
    outcome = run_here("train", "-c", uses_recipe, "-o", "data.streaming=true")
    assert "data.streaming" in outcome.error_line() and "verse to null" in outcome.error_line()
