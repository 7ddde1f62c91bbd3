"""Emotions: labels, the lexicon of hints, and the n-grams of a context, fitted and in the network's answer."""

import importlib.util
import math
import subprocess
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from empathetic_toys import make_config, make_network, make_vocabulary, tensors
from test_empathetic_model import VOCABULARY, batch

import paddle_dialog
from paddle_dialog.bundle.export import export_bundle
from paddle_dialog.bundle.folder import Bundle, load_bundle, save_bundle
from paddle_dialog.bundle.weights import read_weights
from paddle_dialog.config.loader import dump
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS, EmotionLexicon, emotion_id
from paddle_dialog.tasks.empathetic.data.encoding import (
    HINT_ID,
    HINTS,
    DialogueEncoder,
    character_ngrams,
    make_encoder,
    word_features,
)
from paddle_dialog.tasks.empathetic.data.examples import (
    NEUTRAL_FROM,
    NEUTRAL_WIDTH,
    DialogueDataset,
    annotated_texts,
    collate,
    fit_emotions,
    ngram_features,
)
from paddle_dialog.tasks.empathetic.network.emo_prepend import EmoPrepend, EmpatheticLoss
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary


def test_ids_follow_the_order_that_weights_rely_on_and_an_unknown_label_names_the_nearest():
    assert len(EMOTIONS) == len(set(EMOTIONS)) == 32
    assert [emotion_id(label) for label in EMOTIONS] == list(range(32))
    pinned = {"afraid": 0, "caring": 7, "excited": 14, "joyful": 22, " Proud ": 26, "trusting": 31}
    assert {label: emotion_id(label) for label in pinned} == pinned
    for wrong, meant in {"prowd": "proud", "gratefull": "grateful", "": "", "😀": ""}.items():
        with pytest.raises(UserError, match=f"unknown emotion '{wrong}'.*'{meant}"):
            emotion_id(wrong)


@pytest.mark.skipif(importlib.util.find_spec("nrclex") is None, reason="NRCLex is not installed")
def test_package_lexicon_is_read_without_importing_the_package():
    code = (
        "import sys; from paddle_dialog.tasks.empathetic.data.emotions import EmotionLexicon as L;"
        "lexicon = L.load('nrc');"
        "print(len(lexicon), 'grief' in lexicon, 'table' in lexicon, {'nrclex', 'nltk'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["6468", "True", "False", "set()"]


SIX = Vocabulary([*SPECIAL_TOKENS, "happy", "dog"])
CONTEXT = ["my happy dog died ."]


def save(folder, **files):
    """Return a random model whose lexicon is the package's, with these files in its bundle."""
    config, vocabulary = make_config(emotion={"hints": True, "lexicon": "nrc"}), make_vocabulary()
    weights = read_weights(make_network(config, len(vocabulary)))
    bundle = Bundle("empathetic", dump(config), {"text": vocabulary}, weights, "", files)
    save_bundle(bundle, folder)
    return folder


def test_marks_by_hand_and_only_words_of_the_vocabulary_are_hints():
    marks = EmotionLexicon(["Happy", "grief"]).to_marks(SIX)
    assert marks == b"0\n0\n0\n0\n1\n0\n"
    read = EmotionLexicon.from_marks(marks, SIX, HINTS)
    assert read == {"happy"}
    for wrong in (b"", b"0\n0\n0\n0\n1\n", b"0\n0\n0\n0\n1\n0", b"0\n0\n0\n0\n1\nx\n", b"\xff"):
        with pytest.raises(UserError, match=r"hints.txt: must hold 6 lines of 0 or 1"):
            EmotionLexicon.from_marks(wrong, SIX, HINTS)
    # They know no words but the vocabulary's, and a model must read alike with them and with the lexicon.
    config = make_config(emotion={"hints": True})
    lexicon = EmotionLexicon.load("nrc")
    assert "happy" in lexicon and "grief" in lexicon
    for marks in (None, lexicon.to_marks(SIX)):
        encoder = make_encoder(config, SIX, marks)
        source, _ = encoder.pack(encoder.context(["happy dog grief"]))
        assert source.hints[1:].tolist() == [HINT_ID, 0, 0]


def test_a_bundle_with_marks_answers_without_the_lexicon(tmp_path, monkeypatch):
    without = save(tmp_path / "without")
    marks = EmotionLexicon.load("nrc").to_marks(load_bundle(without).vocabularies["text"])
    assert b"1" in marks
    with_marks = save(tmp_path / "with", **{HINTS: marks})
    other_marks = save(tmp_path / "other", **{HINTS: marks.replace(b"1", b"0")})
    expected = paddle_dialog.load(without).answer([CONTEXT])[0]
    find = importlib.util.find_spec  # the package NRCLex is to look as if it were not installed
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nrclex" else find(name))
    found = paddle_dialog.load(with_marks).answer([CONTEXT])[0]
    assert found.predictions == expected.predictions
    assert found.probabilities.tolist() == expected.probabilities.tolist()
    other = paddle_dialog.load(other_marks).answer([CONTEXT])[0]
    assert other.probabilities.tolist() != expected.probabilities.tolist()
    with pytest.raises(UserError, match=r"NRCLex is not installed; .* take a bundle that has hints.txt"):
        paddle_dialog.load(without)


def test_an_exported_bundle_has_its_marks(tmp_path):
    export_bundle(save(tmp_path / "run"), tmp_path / "shipped")
    shipped = load_bundle(tmp_path / "shipped")
    lexicon = EmotionLexicon.load("nrc")
    assert shipped.extra == {HINTS: lexicon.to_marks(shipped.vocabularies["text"])}
    own = save(tmp_path / "own", **{HINTS: shipped.extra[HINTS].replace(b"1", b"0"), "state": b"of the run"})
    export_bundle(own, tmp_path / "again")
    assert load_bundle(tmp_path / "again").extra == {HINTS: load_bundle(own).extra[HINTS]}


BUCKETS = 1 << 16
DIALOGUES = [
    Dialogue(["my dog died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my cat died"], "oh no", "sad", "I lost my pet."),
    Dialogue(["my dog won"], "oh yes", "proud", "There was a prize."),
    Dialogue(["what is it"], "oh", None, "Nothing is known of this."),
]


def ngram_config(**emotion):
    """Return the configuration of a tiny model with n-grams."""
    return make_config(emotion={"ngram_buckets": BUCKETS, "encoder_weight": 0.0, **emotion})


def fitted(**emotion):
    """Return an encoder, and weights and logits fitted to the dialogues."""
    config = ngram_config(**emotion)
    encoder = DialogueEncoder(make_vocabulary(), config)
    weights = fit_emotions(encoder, DIALOGUES, config.emotion)
    return encoder, weights["idf"], weights["table"]


def counts(encoder, **emotion):
    """Return the features [3, buckets] of the annotated contexts."""
    texts, _ = annotated_texts(DIALOGUES, situations=False)
    return ngram_features(encoder, [turns for turns, _ in texts], ngram_config(**emotion).emotion).toarray()


def test_ngram_columns_tell_word_role_pair_and_first_turn():
    config = make_config(emotion={"ngram_buckets": 1 << 20})
    encoder = DialogueEncoder(make_vocabulary(), config)
    grams = encoder.ngrams(encoder.context(["red cat", "cat", "red cat"]))  # [5, G]
    assert grams[:2, :5].all()
    buckets = grams[grams > 0]
    assert len(buckets) == len(set(buckets.tolist()))  # a feature stands once, where it is met first
    np.testing.assert_array_equal(grams[2, 3:], 0)  # the characters of "cat" are those of the speaker's
    assert grams[2, :2].all() and not grams[2, 2] and not grams[3:].any()
    hashes, roles = np.array([5, 6, 6, 5, 6]), np.array([1, 1, 2, 1, 1], dtype=np.int8)
    word, pair, first = word_features(hashes, roles, 2, 1 << 20).T
    assert word[1] == word[4] != word[2]  # the speaker's against the listener's
    assert pair[1] == pair[4] and pair[0] == pair[3]  # none crosses two turns
    assert (first > 0).tolist() == [True, True, False, False, False]


def test_character_ngrams_are_stable_and_shared_by_similar_words():
    happy, happily = (set(character_ngrams(word, 1 << 20).tolist()) - {0} for word in ("happy", "happily"))
    assert len(happy) == 5 + 4 + 3
    assert happy & happily and happy - happily
    assert character_ngrams("a", 1000).tolist()[1:] == [0] * 15


def test_features_weigh_by_how_rare_they_are_in_annotated_texts():
    encoder, idf, table = fitted()
    texts, _ = annotated_texts(DIALOGUES, situations=False)
    assert [emotion for _, emotion in texts] == ["sad", "sad", "proud"]
    totals = counts(encoder).sum(axis=0)
    assert {1.0, 2.0, 3.0} <= set(totals.tolist())
    np.testing.assert_allclose(idf[1:], np.log(4 / (1 + totals[1:])) + 1, rtol=1e-6)
    assert math.isclose(idf[totals == 3].max(), 1.0)
    assert idf[0] == 0 and not table[0].any()
    texts, _ = annotated_texts(DIALOGUES, situations=True)  # once a conversation
    assert [emotion for _, emotion in texts] == ["sad", "sad", "proud", "sad", "proud"]
    assert texts[3][0] == ["I lost my pet."] and (fitted(situations=True)[2] != table).any()


def test_where_a_context_is_like_small_talk_its_emotions_are_alike():
    config = ngram_config(small_talk=True)
    neutral = [["hello my friend"], ["hello there"]] * 10
    encoder = DialogueEncoder(make_vocabulary(), config)
    weights = fit_emotions(encoder, DIALOGUES * 20, config.emotion, neutral)
    assert weights["plainness"][0] == NEUTRAL_FROM / NEUTRAL_WIDTH
    network = network_with(config, weights)
    dialogues = [Dialogue(["my dog died"], "oh"), Dialogue(["hello my friend"], "oh")]
    data = DialogueDataset(dialogues, make_encoder(config, make_vocabulary()), 50)
    source, lengths = tensors(collate([data[0], data[1]]))[:2]
    clear, unclear = network.emotion_probabilities(source, lengths).numpy()
    network.emotion_head.recognises_neutral = False
    as_clear, as_unclear = network.emotion_probabilities(source, lengths).numpy()
    np.testing.assert_allclose(clear, as_clear, rtol=0.1)
    assert unclear.max() < 1.3 / 32 < 4 / 32 < as_unclear.max()
    assert unclear.argmax() == as_unclear.argmax()


def test_texts_that_share_a_conversation_are_held_out_together():
    dialogues = [
        Dialogue(["one"], "so", "sad", "First."),
        Dialogue(["one", "so", "more"], "ah", "sad", "First."),
        Dialogue(["two"], "oh", "proud", "Second."),
        Dialogue(["three"], "oh", "sad", "First."),  # the situation stands twice
        Dialogue(["four"], "oh", None, "Second."),  # unlabelled, and left out
        Dialogue(["five"], "oh", "sad"),
        Dialogue(["six", "oh", "five"], "oh", "proud"),  # begun anew with the opening of another
    ]
    texts, groups = annotated_texts(dialogues, situations=True)
    assert len(groups) == len(texts) == 8
    one, more, two, three, five, six, first, second = groups
    assert one == more == three == first and two == second and five == six
    assert len({one, two, five}) == 3


def network_with(config, weights):
    """Return a network whose emotions come from fitted n-grams."""
    network = EmoPrepend(config, len(make_vocabulary()))
    for name, values in weights.items():
        getattr(network.emotion_head, f"ngram_{name}").set_value(paddle.to_tensor(values))
    network.eval()
    return network


def test_the_network_answers_as_the_machine_does_and_other_emotions_are_unlikely():
    config = ngram_config(character_weight=0.5)
    encoder, idf, table = fitted(character_weight=0.5)
    network = network_with(config, {"idf": idf, "table": table})
    data = DialogueDataset(DIALOGUES, make_encoder(config, make_vocabulary()), 50)
    source, lengths = tensors(collate([data[index] for index in range(3)]))[:2]
    probabilities = network.emotion_probabilities(source, lengths).numpy()
    dense = counts(encoder, character_weight=0.5) * idf
    scores = np.exp(dense / np.linalg.norm(dense, axis=1, keepdims=True) @ table)
    np.testing.assert_allclose(probabilities, scores / scores.sum(1, keepdims=True), rtol=1e-4)
    assert probabilities.argmax(1).tolist() == [emotion_id(name) for name in ("sad", "sad", "proud")]


def test_of_one_emotion_nothing_is_learned():
    config = make_config(emotion={"ngram_buckets": 50})
    encoder = DialogueEncoder(make_vocabulary(), config)
    weights = fit_emotions(encoder, DIALOGUES[:2], config.emotion, [["hi"]])
    assert not weights["idf"].any() and not weights["table"].any() and not weights["plainness"][1:].any()


def test_the_emotion_is_that_of_the_ngrams_with_a_share_of_the_encoders_and_the_reply_needs_none():
    config = make_config(emotion={"ngram_buckets": 101, "encoder_weight": 0.3})
    network = make_network(config, len(VOCABULARY))
    source, lengths, target, emotion, label, mask = batch(config)
    without = source._replace(ngrams=paddle.zeros_like(source.ngrams))
    given = [each._replace(condition=paddle.zeros_like(source.condition)) for each in (source, without)]
    for output, same in zip(*(network(*each, lengths, target) for each in given), strict=True):
        np.testing.assert_array_equal(output.numpy(), same.numpy())
    outputs = network(*source, lengths, target)
    idf, table = (network.emotion_head.state_dict()[name].numpy() for name in ("ngram_idf", "ngram_table"))
    answers = []
    for row, packed in enumerate(source.ngrams.numpy()):
        buckets = packed[packed > 0]
        by_ngrams = idf[buckets] / np.linalg.norm(idf[buckets]) @ table[buckets]
        answers.append(0.3 * outputs[-1][row].numpy() + by_ngrams)
    np.testing.assert_allclose(
        network.emotion_probabilities(source, lengths).numpy(),
        F.softmax(paddle.to_tensor(np.array(answers))).numpy(),
        atol=1e-5,
    )
    chosen = -paddle.log(F.softmax(outputs[-1])).numpy()[np.arange(3), emotion.numpy()]  # [B]
    criterion = EmpatheticLoss()
    loss = criterion(*outputs, emotion=emotion, label=label, mask=mask)
    reply = float(criterion.token_nll.sum() / mask.sum())
    assert float(loss) == pytest.approx(reply + chosen.mean(), rel=1e-4)
    loss.backward()
    assert all(buffer.stop_gradient for buffer in network.emotion_head.buffers())
