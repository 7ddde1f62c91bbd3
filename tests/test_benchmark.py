"""The budget holds answers to their limits."""

import json
from pathlib import Path

import pytest
from command import Outcome, run_here
from conftest import Trained
from empathetic_toys import save_model


def budget(trained: Trained, folder: Path, *words: str, five: str = "limit: 1000", more: str = "") -> Outcome:
    """Run the budget of a tiny couplet model and a tiny dialogue model; `five` is of the five candidates."""
    recipe, reply = trained.config, save_model(folder / "empathetic")
    path = folder / "budget.yaml"
    path.write_text(
        f"""
rounds: 3
answers:
  plain: {{config: {recipe}, weights: {trained.folder}/best, override: [decoding.beam_size=1], texts: [春红, 天山春]}}
  five candidates:
    {{config: {recipe}, n_best: 5, texts: [春红, 天山春], beside: plain, {five}}}
  reply: {{config: {reply}, texts: [I lost it.], beside: plain, limit: 1000}}
{more}""",
        "utf-8",
    )
    return run_here("benchmark", "--budget", "-c", path, *words)


def test_answers_within_the_budget_are_told_beside_their_limits(
    trained: dict[str, Trained], tmp_path: Path
) -> None:
    outcome = budget(trained["transformer"], tmp_path)
    assert outcome.status == 0, outcome.stderr
    plain, five, reply = outcome.stdout.splitlines()
    assert plain.split()[1:] == ["ms", "plain"]
    assert five.split()[3:] == ["of", "1000", "five", "candidates"] and float(five.split()[2]) > 1
    assert reply.split()[3:] == ["of", "1000", "reply"]


def test_a_limit_that_is_exceeded_gives_exit_status_1(trained: dict[str, Trained], tmp_path: Path) -> None:
    outcome = budget(trained["transformer"], tmp_path, five="limit: 0.1")
    assert outcome.status == 1
    assert [line.endswith("EXCEEDED  five candidates") for line in outcome.stdout.splitlines()] == [0, 1, 0]
    outcome = budget(trained["transformer"], tmp_path, "--json", five="limit: 0.1")
    spent = json.loads(outcome.stdout)
    assert outcome.status == 1 and spent["plain"]["limit"] is None
    assert spent["five candidates"]["ratio"] > spent["five candidates"]["limit"] == 0.1


@pytest.mark.parametrize(
    ("five", "more", "message"),
    [
        ("limit: 0", "", "answers.five candidates.limit: must be a number (above 0.0) or null, found 0"),
        ("limit: null", "", "needs the kind beside which it is set, and that a limit"),
        ("limit: 1", "  odd: {config: couplet}", "answers.odd.texts: is empty; name what is answered"),
        (
            "limit: 1",
            "  odd: {config: couplet, texts: [春], beside: plane, limit: 1}",
            "'plane' is none of plain, five",
        ),
        ("limit: 1", "  odd: {config: sentiment_zh, n_best: 2, texts: [春]}", "writes no candidates"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    trained: dict[str, Trained], tmp_path: Path, five: str, more: str, message: str
) -> None:
    assert message in budget(trained["transformer"], tmp_path, five=five, more=more).error_line()


def test_a_benchmark_needs_a_recipe() -> None:
    assert run_here("benchmark").error_line() == "error: no recipe: name one with -c, or take --budget"
