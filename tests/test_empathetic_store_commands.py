"""A bundle with a store of replies as its users meet it: exported, asked, evaluated, and told of what is missing."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from command import run, run_here
from empathetic_toys import save_model

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from tasks.empathetic.data.language import ENGLISH
from tasks.empathetic.data.sources import read_dialogues
from tasks.empathetic.store import REPLY_STORE, ReplyStore

RERANK = {"context_words": 2.0, "overlap_last": 0.3, "candidates": 4}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recipe of a random model that chooses replies; its run has no store."""
    decoding = {"beam_size": 4, "max_length": 4, "rerank": RERANK}
    folder = tmp_path_factory.mktemp("people")
    return save_model(folder, "causal", decoding=decoding, replies={"candidates": 5})


@pytest.fixture(scope="module")
def shipped(recipe: Path) -> Path:
    """Return the bundle exported with a store."""
    folder = recipe.parent / "shipped"
    outcome = run_here(
        *("export", "--weights", recipe.parent / "run" / "best", "--output", folder, "--data", "sample")
    )
    assert outcome.status == 0, outcome.stderr
    assert "sample: 128 replies, kept" in outcome.stderr and "own life" in outcome.stderr
    return folder


def test_the_store_ships_and_is_exported_again(shipped: Path, tmp_path: Path) -> None:
    content = load_bundle(shipped).extra[REPLY_STORE]
    store = ReplyStore.from_bytes(content, REPLY_STORE)
    assert 20 < len(store) < 128 and store.emotions.all()
    assert run_here("export", "--weights", shipped, "--output", tmp_path / "again").status == 0
    assert load_bundle(tmp_path / "again").extra[REPLY_STORE] == content


def test_a_store_is_made_without_the_lexicon_where_the_bundle_has_its_marks(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(source: str) -> None:
        raise AssertionError(f"the lexicon {source} is not installed here")

    monkeypatch.setattr("tasks.empathetic.data.emotions.EmotionLexicon.load", missing)
    given = ("export", "--weights", shipped, "--output", tmp_path / "again", "--data", "sample")
    assert run_here(*given).status == 0


def test_answers_say_where_they_are_from(recipe: Path, shipped: Path) -> None:
    arguments = ("-c", recipe, "--weights", shipped, "I won a prize!", "--n-best", 9)
    outcome = run("predict", *arguments, "--json")
    assert outcome.status == 0, outcome.stderr
    replies = json.loads(outcome.stdout)["predictions"]
    origins = [reply["origin"] for reply in replies]
    assert origins.count("person") == 5 and origins.count("model") == 4
    for reply in replies:
        assert ("similarity" in reply) == (reply["origin"] == "person")
    told = run_here("predict", *arguments).stdout.splitlines()[1:]
    for line, reply in zip(told, replies, strict=True):
        mark = f" (from a person, {reply['similarity']:.2f})" if reply["origin"] == "person" else ""
        assert line.endswith(f"{reply['text']}{mark}")
    alone = run_here("predict", *arguments, "--json", "-o", "replies.store=false")
    assert {reply["origin"] for reply in json.loads(alone.stdout)["predictions"]} == {"model"}


def test_the_speakers_words_are_said_back(recipe: Path, shipped: Path) -> None:
    words = ("-o", "replies.reflections=4", "-o", "decoding.rerank.reflected=50")
    arguments = ("-c", recipe, "--weights", shipped, "My dog died last night.", *words)
    outcome = run_here("predict", *arguments, "--json", "--n-best", 5)
    assert outcome.status == 0, outcome.stderr
    replies = json.loads(outcome.stdout)["predictions"]
    assert [reply["origin"] for reply in replies[:4]] == ["reflected"] * 4
    assert replies[4]["origin"] != "reflected"
    assert all("your dog died last night" in reply["text"].lower() for reply in replies[:4])
    assert not any("similarity" in reply for reply in replies[:4])
    assert run_here("predict", *arguments).stdout.rstrip().endswith("(in your own words)")
    alone = run_here("predict", *arguments, "--json", "-o", "replies.store=false")
    assert json.loads(alone.stdout)["predictions"][0]["origin"] == "model"


def test_a_chat_marks_a_persons_reply_and_goes_on_from_its_words(recipe: Path, shipped: Path) -> None:
    options = ("-o", "replies.generate=false", "-o", "decoding.rerank.model=0")
    outcome = run_here("chat", "-c", recipe, "--weights", shipped, *options, stdin=b"I won!\nthanks\n")
    assert outcome.status == 0, outcome.stderr
    assert outcome.stdout.count("(from a person, ") == 2


def test_the_published_protocol_is_one_command(recipe: Path, shipped: Path) -> None:
    options = ("-o", "replies.store=false", "-o", "decoding.strategy=beam", "-o", "decoding.rerank={}")
    outcome = run_here("evaluate", "-c", recipe, "--weights", shipped, *options, "--data", "sample", "--json")
    assert outcome.status == 0, outcome.stderr
    assert json.loads(outcome.stdout)["decoding"].startswith(
        "beam 4, length penalty average 1.0, no repeated 3-gram"
    )


def test_a_store_that_is_asked_for_and_missing_is_told(recipe: Path) -> None:
    line = run_here("predict", "-c", recipe, "hello", "-o", "replies.store=true").error_line()
    assert "replies.store: these weights have no store of replies" in line and "export.py --data" in line
    quiet = run_here("predict", "-c", recipe, "hello", "--json")
    assert quiet.status == 0 and json.loads(quiet.stdout)["predictions"][0]["origin"] == "model"


@pytest.mark.parametrize(
    "text", ["我很难过", "😭", "x" * 5000, "dog " * 2000], ids=["foreign", "emoji", "word", "long"]
)
def test_odd_turns_are_answered(recipe: Path, shipped: Path, text: str) -> None:
    outcome = run_here("predict", "-c", recipe, "--weights", shipped, text, "--json")
    assert outcome.status == 0 and json.loads(outcome.stdout)["predictions"], outcome.stderr


def test_data_that_make_no_files_are_refused(recipe: Path, tmp_path: Path) -> None:
    best = recipe.parent / "run" / "best"
    line = run_here(
        "export", "--weights", best, "--output", tmp_path / "x", "--data", "nowhere.jsonl"
    ).error_line()
    assert "nowhere.jsonl: no such file" in line and not (tmp_path / "x").exists()


def test_nobodys_paths_ship(tmp_path: Path) -> None:
    save_model(
        tmp_path, "causal", data={"more": "/home/me/talk.jsonl"}, care={"phrases": "/home/me/mine.txt"}
    )
    best = tmp_path / "run" / "best"
    save_bundle(
        dataclasses.replace(load_bundle(best), card="further conversations /home/me/talk.jsonl"), best
    )
    assert run_here("export", "--weights", best, "--output", tmp_path / "out").status == 0
    exported = load_bundle(tmp_path / "out")
    assert (
        "/home/me" not in exported.config_text + exported.card and "more: talk.jsonl" in exported.config_text
    )


def test_replies_are_found_by_the_words_of_their_conversations(tmp_path: Path) -> None:
    rerank = {"context_words": 5.0, "model": 0.0}
    decoding = {"beam_size": 2, "max_length": 4, "rerank": rerank}
    recipe = save_model(tmp_path, "transformer", decoding=decoding, replies={"candidates": 3})
    folder = tmp_path / "shipped"
    weights = recipe.parent / "run" / "best"
    assert run_here("export", "--weights", weights, "--output", folder, "--data", "sample").status == 0
    store = ReplyStore.from_bytes(load_bundle(folder).extra[REPLY_STORE], REPLY_STORE)
    (first,) = read_dialogues("sample")[:1]
    words = store.similarities([ENGLISH.tokens_of(turn) for turn in first.context])
    outcome = run("predict", "-c", recipe, "--weights", folder, first.context[0], "--json")
    assert outcome.status == 0, outcome.stderr
    (reply,) = json.loads(outcome.stdout)["predictions"]
    assert reply["origin"] == "person" and reply["similarity"] == pytest.approx(words.max(), abs=1e-3)
    assert store.texts[int(words.argmax())] == reply["text"]
