"""The reward model of 下联: learned, added to a bundle and heeded, all through their commands."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest
from command import run_here

from paddle_dialog.bundle import loading
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.command_line import load_model, run_tool
from tasks.couplet.prediction import CoupletPredictor
from tasks.couplet.preferences.reward_adding import main, make_parser
from tasks.couplet.reward import REWARD
from tasks.couplet.rules.clauses import has_clauses
from tasks.couplet.rules.direction import TO_FIRST
from tasks.couplet.task import TASK

LOVED, HATED = "花霜江", "客老香"  # by the reader of these tests
CHARACTERS = "春山秋天高溪清雨水月柳鸟雪海绿" + LOVED + HATED
SIZES = ("width", 16), ("inner_width", 16), ("num_heads", 2), ("encoder_layers", 1), ("decoder_layers", 1)


def line(draws: np.random.Generator) -> str:
    drawn = draws.choice([*CHARACTERS], 5, replace=False)
    return "".join([*drawn[:2], "，", *drawn[2:]])


def liked(second: str) -> float:
    return sum((character in LOVED) - (character in HATED) for character in second)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an untrained model, `plain`, and the same with a reward model, `valued`."""
    folder = tmp_path_factory.mktemp("reward")
    draws = np.random.default_rng(1)
    couplets = [f"{line(draws)}\t{line(draws)}" for _ in range(60)]
    (folder / "couplets.tsv").write_text("\n".join(couplets), encoding="utf-8")
    rated = []
    for _ in range(120):
        seconds = [line(draws) for _ in range(6)]
        answers = [{"second": second, "rating": 5 + liked(second)} for second in seconds]
        rated.append({"first": line(draws), "answers": answers})
    rated.append({"answers": [{"first": "春雨", "second": "秋霜", "template": "？？", "rating": 3}] * 2})
    (folder / "ratings.jsonl").write_text("\n".join(map(json.dumps, rated)), encoding="utf-8")
    sizes = [part for key, value in SIZES for part in ("-o", f"model.{key}={value}")]

    def trained(recipe: str, **settings: object) -> None:
        chosen = [
            part for key, value in settings.items() for part in ("-o", f"{key.replace('__', '.')}={value}")
        ]
        outcome = run_here("train", "-c", f"configs/{recipe}.yaml", *sizes, *chosen)
        assert outcome.status == 0, outcome.stderr

    trained(
        "couplet", data__train=folder / "couplets.tsv", data__dev="null", data__batch_size=4,
        training__max_steps=1, output_dir=folder / "plain",
    )  # fmt: skip
    trained(
        "couplet_reward", training__start_from=folder / "plain" / "last", training__epochs=12,
        training__learning_rate=0.01, preferences__ratings=folder / "ratings.jsonl", output_dir=folder / "reward",
    )  # fmt: skip
    assert add(folder / "plain" / "last", folder / "reward" / "last", folder / "valued", rank=16) == 0
    return folder


def add(weights: Path, reward: Path, output: Path, rank: int = 8) -> int:
    words = ["--weights", weights, "--reward", reward, "--output", output, "--rank", rank]
    return run_tool(main, make_parser(), [str(word) for word in words])


def predictor(folder: Path, **rerank: float) -> CoupletPredictor:
    chosen = [f"rerank.{key}={value}" for key, value in rerank.items()]
    words = argparse.Namespace(
        config="configs/couplet.yaml", override=chosen, weights=str(folder), device="cpu"
    )
    return load_model(words)[1].predictor


def test_what_readers_like_is_valued(folder: Path) -> None:
    reward, draws = predictor(folder / "valued").reward, np.random.default_rng(7)
    assert reward is not None
    seconds = [line(draws) for _ in range(150)]
    values = reward(line(draws), seconds)
    assert np.corrcoef(values, [liked(second) for second in seconds])[0, 1] > 0.8


def test_a_line_of_several_clauses_is_answered_by_what_is_liked(folder: Path) -> None:
    valued = predictor(folder / "valued", reward=100.0, reward_candidates=60)
    plain = predictor(folder / "plain" / "last", reward=100.0, reward_candidates=60)
    firsts, short = ["春雨，天月山", "山水，月天溪"], "春雨天月山"
    answers = valued.predict([firsts[0], short, firsts[1]])
    before = plain.predict([firsts[0], short, firsts[1]])
    assert answers[1][0].text == before[1][0].text
    assert [liked(own[0].text) for own in answers[::2]] > [liked(own[0].text) for own in before[::2]]
    found = valued.predict(firsts[:1], n_best=20, distance=0.0)[0]
    values = valued.reward(firsts[0], [candidate.text for candidate in found])
    sums = [candidate.score + 100.0 * value for candidate, value in zip(found, values, strict=True)]
    assert sums == sorted(sums, reverse=True)
    # A 上联 is not what it learned to value.
    assert str(valued.predict(firsts, direction=TO_FIRST)) == str(plain.predict(firsts, direction=TO_FIRST))


def test_a_line_without_a_free_character_has_one_answer(folder: Path) -> None:
    found = predictor(folder / "valued").predict(["春雨，天月山"], n_best=3, template="秋水，溪清柳")[0]
    assert [each.text for each in found] == ["秋水，溪清柳"]


def test_a_call_may_leave_the_reward_model_out(folder: Path) -> None:
    line = "春雨，天月山"
    without = predictor(folder / "valued", reward=100.0).predict([line], valued=False)
    assert str(without) == str(predictor(folder / "valued", reward=0.0).predict([line]))


def test_a_bundle_keeps_its_reward_model_and_a_weight_of_0_leaves_it_out(
    folder: Path, tmp_path: Path
) -> None:
    outcome = run_here("export", "--weights", folder / "valued", "--output", tmp_path / "out")
    assert outcome.status == 0 and REWARD in load_bundle(tmp_path / "out").extra
    without = predictor(folder / "valued", reward=0.0).predict(["春雨，天月山"])[0][0].text
    assert without == predictor(folder / "plain" / "last").predict(["春雨，天月山"])[0][0].text


def test_paddles_network_values_as_the_arrays_do(folder: Path) -> None:
    own = predictor(folder / "valued").reward
    loaded = loading.load_model(folder / "valued", TASK)
    network = loaded.trained.with_weights(load_bundle(folder / "reward" / "last").weights).network
    again = type(own)(network, own.vocabulary)
    assert again("春雨，天月山", ["秋霜，江水清"]) == pytest.approx(
        own("春雨，天月山", ["秋霜，江水清"]), abs=0.02
    )


def test_weights_of_another_model_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(folder / "plain" / "last", Path("pretrained/poem"), tmp_path / "out") == 2
    assert "is a bundle of the task 'poem'; a reward model is of couplets" in capsys.readouterr().err
    assert add(Path("pretrained/couplet"), folder / "reward" / "last", tmp_path / "out") == 2
    assert "two different models" in capsys.readouterr().err
    assert add(folder / "plain" / "last", folder / "reward" / "last", tmp_path / "out", rank=0) == 2
    assert "--rank: 0 keeps nothing" in capsys.readouterr().err


def test_composed_couplets_alone_are_refused(folder: Path, tmp_path: Path) -> None:
    composed = {"answers": [{"first": "春雨", "second": "秋霜", "template": "？？", "rating": 3}] * 2}
    (tmp_path / "ratings.jsonl").write_text(json.dumps(composed), encoding="utf-8")
    settings = f"training.start_from={folder}/plain/last", f"preferences.ratings={tmp_path}/ratings.jsonl"
    sizes = [part for key, value in SIZES for part in ("-o", f"model.{key}={value}")]
    outcome = run_here(
        "train", "-c", "configs/couplet_reward.yaml", *sizes, "-o", settings[0], "-o", settings[1]
    )
    assert "composed couplets alone" in outcome.error_line()


def test_marks_inside_a_line_make_clauses() -> None:
    assert [has_clauses(text) for text in ("春，雨", "春雨", "春雨。", "，春雨")] == [
        True,
        False,
        False,
        False,
    ]
