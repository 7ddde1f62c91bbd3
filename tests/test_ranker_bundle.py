"""A ranker in the bundle of a generator: exported by the command, asked for the order, missed in a line."""

import json
from pathlib import Path

import pytest
from command import run_here
from empathetic_toys import make_vocabulary, save_model
from ranker_toys import save_ranker

import paddle_dialog
from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.bundle.loading import load_predictor
from paddle_dialog.errors import UserError
from tasks.empathetic.ranking.stored import RANKER, ranker_from_bytes, ranker_of_bundle

CONTEXT = "my dog died ."
DECODING = {
    "strategy": "sample",
    "top_k": 20,
    "max_length": 6,
    "rerank": {"candidates": 12, "model": 0.0, "ranker": 1.0},
}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recipe of a random generator, whose bundle `run/best` has no ranker, and beside it a `ranker`."""
    folder = tmp_path_factory.mktemp("bundle")
    save_ranker(folder / "ranker", make_vocabulary())
    return save_model(folder, "causal", emotion={"hints": False}, decoding=DECODING)


def export(recipe: Path, target: Path, **options: object) -> list[object]:
    """Return the arguments of an export of the generator."""
    more = [part for name, value in options.items() for part in (f"--{name}", value)]
    return ["--weights", recipe.parent / "run" / "best", "--output", target, *more]


def test_replies_are_ordered_by_the_ranker_of_the_bundle(recipe: Path, tmp_path: Path) -> None:
    outcome = run_here("export", *export(recipe, tmp_path / "new", ranker=recipe.parent / "ranker"))
    assert outcome.status == 0, outcome.stderr
    bundle = load_bundle(tmp_path / "new")
    assert "# empathetic.ranking\nRead train.jsonl" in bundle.card and "someone" not in bundle.config_text
    again = run_here("export", "--weights", tmp_path / "new", "--output", tmp_path / "again")
    assert again.status == 0 and load_bundle(tmp_path / "again").extra[RANKER] == bundle.extra[RANKER]

    arguments = ("-c", recipe, "--weights", tmp_path / "new", CONTEXT, "--n-best", 12, "--json")
    outcome = run_here("predict", *arguments)
    assert outcome.status == 0, outcome.stderr
    texts = [one["text"] for one in json.loads(outcome.stdout)["predictions"]]
    ranker = ranker_from_bytes(bundle.extra[RANKER], make_vocabulary(), RANKER)
    predictor = paddle_dialog.load(tmp_path / "new")
    replies = predictor.answer([[CONTEXT]], n_best=12)[0].predictions
    assert [reply.text for reply in replies] == texts and len(texts) > 3
    scores = ranker.scores([CONTEXT], [reply.tokens for reply in replies]).tolist()
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]
    alone = run_here("predict", *arguments, "-o", "decoding.rerank={model: 1.0, candidates: 12}")
    by_model = [one["text"] for one in json.loads(alone.stdout)["predictions"]]
    assert set(by_model) == set(texts) and by_model != texts


def test_unknown_words_and_what_is_too_long_are_scored(recipe: Path) -> None:
    content = ranker_of_bundle(load_bundle(recipe.parent / "ranker"), make_vocabulary(), Path("here"))
    ranker = ranker_from_bytes(content, make_vocabulary(), "here")
    long = ["zzz " * 500, "oh no !", "qqq"]
    first, second, cut = ranker.scores(long, [["xxx"], ["yyy"], ["dog"] * 400])
    assert first == second  # both unknown
    assert cut == ranker.scores(long, [["dog"] * 12])[0] != first


def test_a_missing_ranker_is_told_before_anything_is_answered(recipe: Path) -> None:
    line = run_here("predict", "-c", recipe, CONTEXT).error_line()
    assert f"decoding.rerank.ranker: needs {RANKER}, which these weights were saved without" in line
    assert "--ranker" in line
    outcome = run_here("predict", "-c", recipe, CONTEXT, "-o", "decoding.rerank.ranker=0")
    assert outcome.status == 0, outcome.stderr
    with pytest.raises(UserError, match=r"decoding\.rerank\.ranker: needs"):
        load_predictor(recipe.parent / "run" / "best")


def test_only_a_ranker_of_the_same_words_is_taken_in(recipe: Path, tmp_path: Path) -> None:
    generator = recipe.parent / "run" / "best"
    other = save_ranker(tmp_path / "other", make_vocabulary(min_count=2))
    for ranker, told in (
        (other, "other: this ranker has another vocabulary than the generator"),
        (generator, "best: is of the task 'empathetic', and a ranker is of 'empathetic.ranking'"),
        (tmp_path / "none", "none: is not a bundle"),
    ):
        assert told in run_here("export", *export(recipe, tmp_path / "new", ranker=ranker)).error_line()
        assert not (tmp_path / "new").exists()
    arguments = ("--weights", recipe.parent / "ranker", "--output", tmp_path / "new", "--ranker", other)
    line = run_here("export", *arguments).error_line()
    assert "the task 'empathetic.ranking' takes no further model into its bundle" in line
