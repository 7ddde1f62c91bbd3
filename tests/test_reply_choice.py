"""Which reply is said: written replies and those that mirror what was said, the judge's order, manners, its fit."""

import dataclasses
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from command import records, run_here
from empathetic_toys import judged_predictor, save_model
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from paddle_dialog.bundle.folder import load_bundle, save_bundle
from paddle_dialog.config.models import CausalTransformerConfig, TransformerConfig
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.empathetic.clauses import chinese_clauses, clauses_of, english_clauses, option_of
from paddle_dialog.tasks.empathetic.config import EmpatheticConfig
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EMOTIONS_OF
from paddle_dialog.tasks.empathetic.replies import (
    ANY,
    ANY_AGREEMENT,
    FEATURES,
    MIN_EMOTION,
    MIN_SIMILARITY,
    ORIGINS,
    SHARED,
    Reflector,
    ReplyPrediction,
    WrittenReplies,
    judge_inputs,
    judge_of_bundle,
    judged_width,
    read_frames,
    read_written,
    repeats,
    score_replies,
    tone_of_emotions,
    units,
)
from paddle_dialog.tasks.empathetic.turns import ACTS, STATEMENT, read_turn

# Language, turn, clauses; of Chinese ones with their kind.
TURNS = Path(__file__).parent / "data" / "clauses.tsv"


def test_clauses_are_mirrored():
    for line in TURNS.read_text(encoding="utf-8").splitlines():
        language, turn, *wanted = line.split("\t")
        found = clauses_of(turn, language)
        assert [one.text if language == "en" else f"{one.text}|{one.kind}" for one in found] == wanted, turn


@pytest.mark.parametrize(
    ("turn", "language", "option"),
    [
        ("tea or coffee?", "en", "coffee"),
        ("Hi! Should I wear my red dress or my blue one?", "en", "your blue one"),
        ("Are you coming or not?", "en", None),
        ("This is hard, or so it seems.", "en", None),
        ("喝茶还是喝咖啡？", "zh", "喝咖啡"),
        ("去海边还是去山里好呢", "zh", "去山里"),
    ],
)
def test_the_last_option_of_a_choice(turn, language, option):
    assert option_of(turn, language) == option


@given(st.text(max_size=80))
def test_any_text_is_read_and_no_first_person_is_left(text):
    assert not any("我" in clause.text for clause in chinese_clauses(text + "，我很难过。"))
    for clause in english_clauses(text + ". I lost my keys."):
        assert not re.search(r"\b(?:i|my|me|myself)\b", clause.text, re.IGNORECASE | re.ASCII)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_frame_has_its_place_and_every_emotion_a_frame(language):
    frames = read_frames(language)
    emotions = {*EMOTIONS_OF[language], ANY}
    assert {emotion for _, emotion in frames} <= emotions
    every = [frame for some in frames.values() for frame in some]
    assert all(frame.count("{}") == 1 and frame.strip() == frame for frame in every)
    assert all(len(some) == len(set(some)) for some in frames.values())
    if language == "en":
        assert {emotion for _, emotion in frames} == emotions
    kinds = {"en": ["plain"], "zh": ["trouble", "good", "plan", "wish", "plain"]}[language]
    assert all(frames[kind, ANY] for kind in kinds)


def reflector(language):
    return Reflector(language, EMOTIONS_OF[language])


def test_frames_are_those_of_the_likeliest_emotions_of_the_tone():
    emotions = EMOTIONS_OF["en"]
    turn = "My dog died last night. I miss him so much."
    felt = np.full(len(emotions), 0.01)
    felt[[emotions.index("sad"), emotions.index("joyful")]] = MIN_EMOTION + 0.1
    found = reflector("en").replies(turn, felt, "sorry", 12)
    assert len(found) == 12 == len({reply.text for reply in found})
    assert {reply.agreement for reply in found} == {MIN_EMOTION + 0.1, ANY_AGREEMENT}
    assert all("dog died last night" in reply.text or "miss him so much" in reply.text for reply in found)
    assert all(reply.text[0].isupper() for reply in found)
    assert reflector("en").replies(turn, felt, "sorry", 12) == found
    assert reflector("en").replies("Thank you!", felt, "plain", 12) == []
    assert reflector("en").replies("", felt, "plain", 12) == []


@pytest.mark.parametrize(
    ("language", "turn", "tone", "never"),
    [
        ("en", "My boss humiliated me in front of everyone.", "sorry", "happy|wonderful|glad"),
        ("en", "They found my lost dog and he is fine!", "glad", "sorry|hard|struggle"),
        ("zh", "我的家里没有任何温暖，妈妈也不会做饭。他对我很好。", "sorry", "棒|恭喜|开心"),
        ("zh", "手术很成功，肿瘤都切干净了！", "glad", "不好受|滋味|心疼|不容易"),
        # Of good and bad news the other clause is left.
        ("en", "My dog died this morning. I passed my driving test!", "glad", "^(?!.*driving test)"),
    ],
)
def test_joy_never_gets_sorrow_and_grief_never_joy(language, turn, tone, never):
    felt = np.full(len(EMOTIONS_OF[language]), 1 / len(EMOTIONS_OF[language]))
    found = reflector(language).replies(turn, felt, tone, 12)
    assert found and not [reply.text for reply in found if re.search(never, reply.text)]


WIDTH = 8  # of the toys' models

# Written replies.


@pytest.mark.parametrize("language", ["en", "zh"])
def test_written_replies_are_for_every_act_and_say_nothing_twice(language):
    replies = read_written(language)
    assert {reply.act for reply in replies} == {*range(len(ACTS))}
    assert len({reply.text for reply in replies}) == len(replies) >= 400
    for reply in replies:
        assert reply.text == reply.text.strip() and 1 <= len(units(reply.text)) <= 45
        assert {*reply.emotions} <= {*EMOTIONS_OF[language]}


def test_the_cosine_of_turns_is_that_of_scikit_learn():
    written = WrittenReplies("en", EMOTIONS)

    def grams(turn):
        words = units(turn)
        return [*words, *("_".join(pair) for pair in pairwise(words))]

    vectoriser = TfidfVectorizer(analyzer=grams, binary=True, smooth_idf=False, norm=None)
    weights = vectoriser.fit_transform([reply.turn for reply in written.replies]).toarray()
    scale = (vectoriser.idf_ - 1) / vectoriser.idf_  # its IDF has 1 added
    turn = "Are you a robot or a person, my friend?"
    vectors, query = weights * scale, vectoriser.transform([turn]).toarray()[0] * scale
    cosines = vectors @ query / np.maximum(np.linalg.norm(vectors, axis=1), 1e-9) / np.linalg.norm(query)
    acts, felt = np.full(len(ACTS), 1 / len(ACTS)), np.full(len(EMOTIONS), 1 / len(EMOTIONS))
    found = written.matches(turn, acts, felt)
    texts = [reply.text for reply in written.replies]
    places = [texts.index(one.text) for one in found]
    np.testing.assert_allclose([one.similarity for one in found], cosines[places], atol=1e-9)


def test_replies_to_statements_are_chosen_by_what_is_felt():
    written = WrittenReplies("en", EMOTIONS)
    by_text = {reply.text: reply for reply in written.replies}
    statement = np.eye(len(ACTS))[STATEMENT]
    for emotion in ("sad", "joyful", "angry"):
        felt = np.eye(len(EMOTIONS))[EMOTIONS.index(emotion)]
        for one in written.matches("well", statement, felt, 5, tone_of_emotions([emotion])):
            assert one.act == STATEMENT and emotion in by_text[one.text].emotions and one.agreement == 1
    found = written.matches("What is it?", statement, felt, 9)
    assert all(by_text[one.text].general or one.similarity >= MIN_SIMILARITY for one in found)
    assert not all(reply.general for reply in written.replies)
    for one in written.matches("well", statement, felt):
        meant = by_text[one.text].emotions
        assert one.agreement == (ANY_AGREEMENT if not meant else float("angry" in meant))


# The order.


def read_context(found, *turns):
    return found.read(found.encode([list(turns)]))[0]


def candidate(text, origin="model", **features):
    return ReplyPrediction(text, -1.0, tuple(units(text)), origin, **features)


def test_what_the_judge_reads_by_hand():
    found = judged_predictor()
    context = read_context(found, "my dog died", "oh no ! who ?", "my dog")
    acts = np.arange(len(ACTS)) / 100
    every = [candidate("why ?"), candidate("oh no !", "written", act=3, similarity=0.5, agreement=0.25)]
    rows = judge_inputs(context, acts, every, score_replies(found.encoder, context, every)[1])
    assert rows.shape == (2, judged_width(WIDTH)) == (2, FEATURES + 6 * WIDTH)
    size = 2 + len(ACTS)
    np.testing.assert_allclose(rows[0, :size], [1, -1, *acts])
    np.testing.assert_allclose(rows[1, size : 2 * size], [1, -1, *acts])
    assert not rows[0, size : FEATURES - SHARED].any() and not rows[1, :size].any()
    shared = rows[:, FEATURES - SHARED : FEATURES]
    np.testing.assert_allclose(shared, [[0, 0, 0, 1, 1], [0.03, 0.5, 0.25, 0, 0]])
    states = np.split(rows[:, FEATURES:], 3, axis=1)  # of all, of written replies, of reflections
    assert not states[1][0].any() and not states[2].any()
    np.testing.assert_array_equal(states[1][1], states[0][1])


def judge_of(**weights):
    """Return a judge that counts the origin of a reply alone."""
    values = np.zeros(judged_width(WIDTH), np.float32)
    for origin, weight in weights.items():
        values[ORIGINS.index(origin) * (2 + len(ACTS))] = weight
    return Judge(values)


SAID_BACK = ["my dog died last night .", "Your dog died last night. Oh no!", "he was so old ."]


@pytest.mark.parametrize(
    ("turns", "origins"),
    [
        (SAID_BACK[:1], ["reflected", "reflected", "model"]),
        (SAID_BACK, ["written", "written", "model"]),  # a statement is said back at most every other time
    ],
)
def test_prepared_replies_are_ordered_by_the_judge_and_the_generator_fills_up(turns, origins):
    found = judged_predictor(replies={"written": 2, "reflections": 2})
    assert found.judge is not None
    (answer,) = found.answer([turns], n_best=3)
    assert [one.origin for one in answer.predictions] == origins
    (context,) = found._emotion_of_last_turn([read_context(found, *turns)])
    acts = found.read_newest_turn(turns).acts
    prepared = [one for one in answer.predictions if one.origin != "model"]
    values = found.judge(judge_inputs(context, acts, *score_replies(found.encoder, context, prepared)))
    assert (np.diff(values) <= 1e-5).all()
    assert answer.act == ACTS[int(acts.argmax())] == answer.as_dict()["act"]
    assert found.answer([turns])[0].predictions == answer.predictions[:1]


def test_the_same_answers_alone_and_in_a_batch():
    found = judged_predictor()
    three = ["someone stole my bike", "that is awful .", "my bike !"]
    contexts = [["my dog died ."], ["i won a prize"], three]
    together = [[one.text for one in answer.predictions] for answer in found.answer(contexts, 5)]
    assert together == [[one.text for one in found.answer([one], 5)[0].predictions] for one in contexts]


def test_nothing_is_said_twice_and_no_reflection_follows_another():
    found = judged_predictor(judge_of(reflected=2.0, written=1.0))
    turns = ["My dog died last night."]
    said = []
    for turn in ("My cat ran away today.", "I lost my keys in the garden.", "My neighbour shouted at me."):
        (answer,) = found.answer([turns])
        said.append(answer.predictions[0])
        turns += [said[-1].text, turn]
    assert [one.origin for one in said] == ["reflected", "written", "reflected"]
    (answer,) = found.answer([[*turns[:-1], "My cat ran away today."]])
    assert answer.predictions[0].text not in turns


@pytest.mark.parametrize(
    ("reply", "turns", "language", "is_said"),
    [
        ("That must be so hard for you.", ["a", "It must be so hard!", "b"], "en", True),  # four words
        ("That must be hard.", ["a", "It must be so hard!", "b"], "en", False),
        ("I see.", ["a", "I see.", "b"], "en", True),
        ("my dog died last night", ["my dog died last night", "oh", "b"], "en", False),  # the speaker said it
        ("这段日子一定很辛苦吧。", ["甲", "唉，这段日子一定不好过。", "乙"], "zh", True),  # six characters
        ("这段日子很辛苦。", ["甲", "唉，这段日子一定不好过。", "乙"], "zh", False),
    ],
)
def test_what_was_said_before(reply, turns, language, is_said):
    assert repeats(reply, turns, language) is is_said


# The emotion.


def test_the_newest_turn_decides_and_a_silent_one_does_not(monkeypatch):
    found = judged_predictor()
    sad, proud = (np.full(32, 1e-3) for _ in range(2))
    sad[EMOTIONS.index("sad")] = proud[EMOTIONS.index("proud")] = 1 - 31e-3
    silent = np.full(32, 1 / 32)
    for newest, expected in ((proud, "proud"), (silent, "sad")):
        felt = {3: sad, 1: newest}  # by the number of turns

        def read(contexts, felt=felt):
            return [dataclasses.replace(one, predicted=felt[len(one.turns)]) for one in contexts]

        monkeypatch.setattr(found, "read", read)
        (context,) = found._emotion_of_last_turn(found.read(found.encode([["a", "b", "c"]])))
        assert context.predicted is not None and context.predicted.sum() == pytest.approx(1)
        assert EMOTIONS[int(context.predicted.argmax())] == expected


# Settings and bundles.


def test_without_a_judge_the_generator_answers_alone(caplog):
    caplog.set_level("INFO", "paddle_dialog")
    config = EmpatheticConfig("empathetic", model=CausalTransformerConfig())
    assert judge_of_bundle(config, {}) is None and "the generator answers alone" in caplog.messages[0]
    wanted = dataclasses.replace(config, replies=dataclasses.replace(config.replies, judge=True))
    for model, message in (
        (config.model, "these weights have no judge"),
        (TransformerConfig(), "transformer replies"),
    ):
        with pytest.raises(UserError, match=rf"replies\.judge: {message}"):
            judge_of_bundle(dataclasses.replace(wanted, model=model), {})


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    """Return the recipe of a random model; its run has no judge."""
    return save_model(tmp_path_factory.mktemp("judged"), "causal", decoding={"beam_size": 4, "max_length": 6})


STATEMENTS = [f"My {one} died last {night}." for one in ("dog", "cat", "bird") for night in ("night", "week")]


@pytest.mark.parametrize("liked", ["reflected", "written"])
def test_a_fitted_judge_answers_as_the_raters_liked(recipe, tmp_path, liked):
    """Through both commands: fitted to ratings, then asked."""
    weights = recipe.parent / "run" / "best"
    felt = np.full(len(EMOTIONS), 1 / len(EMOTIONS))
    written = [one.text for one in read_written("en") if one.general and not one.emotions][:4]
    lines = []
    for number, turn in enumerate(STATEMENTS * 4):
        tone = read_turn(turn, "", "en").tone
        reflected = [one.text for one in reflector("en").replies(turn, felt, tone, 4)]
        rated = [
            {"text": text, "sensible": is_liked, "specific": is_liked, "empathy": 1 + 4 * is_liked}
            for texts, is_liked in ((reflected, liked == "reflected"), (written, liked == "written"))
            for text in texts
        ]
        lines.append(json.dumps({"id": f"{number}-1", "context": [turn], "candidates": rated}) + "\n")
    (tmp_path / "rated.jsonl").write_text("".join(lines), encoding="utf-8")
    made = tmp_path / "judged"
    files = ("--ratings", tmp_path / "rated.jsonl", "--output", made)
    outcome = run_here("weights/empathetic/judge_fitting", "-c", recipe, "--weights", weights, *files)
    assert outcome.status == 0 and "turn 1: " in outcome.stdout, outcome.stderr
    assert JUDGE in load_bundle(made).extra
    context = json.dumps({"context": [STATEMENTS[0], "Your dog died last night!", STATEMENTS[1]]})
    asked = STATEMENTS[0] if liked == "reflected" else context
    predict = ("predict", "-c", recipe, "--json", "--n-best", 5, asked)
    judged, off, plain = (
        records(run_here(*predict, "--weights", folder, "-o", f"replies.judge={judge}"))[0]
        for folder, judge in ((made, "true"), (made, "false"), (weights, "null"))
    )
    assert judged["predictions"][0]["origin"] == liked and judged["act"] == "statement"
    assert {one["origin"] for one in plain["predictions"]} == {"model"} and "act" not in plain
    assert off == plain


def test_a_damaged_judge_is_refused(recipe, tmp_path):
    bundle = load_bundle(recipe.parent / "run" / "best")
    files = {JUDGE: Judge(np.ones(3)).to_bytes()}
    save_bundle(dataclasses.replace(bundle, extra={**bundle.extra, **files}), tmp_path / "damaged")
    outcome = run_here("predict", "-c", recipe, "--weights", tmp_path / "damaged", "hello")
    assert outcome.status == 2 and "reads 3 numbers of a text, and this model has" in outcome.stderr
