"""The emotions of replies that were written for this project, which nobody has annotated."""

import numpy as np
import paddle
from empathetic_store_toys import toy_config
from empathetic_toys import make_network, make_vocabulary

from tasks.empathetic.answering.answer import origin_note
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.emotions import EMOTIONS
from tasks.empathetic.data.encoding import make_encoder, pad_sources
from tasks.empathetic.selection.candidate import Nearness, ReplyPrediction
from tasks.empathetic.selection.felt import SHARE, emotions_of_replies, felt_emotions
from tasks.empathetic.selection.rerank import Reranker
from tasks.empathetic.selection.store import emotion_bits

CONTEXTS = [["my dog died ."], ["i won a prize"], ["someone stole my bike", "oh no !", "my bike !"]]


def test_what_is_felt_is_every_emotion_near_the_likeliest() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    felt = felt_emotions(CONTEXTS, model, encoder)
    for context, names in zip(CONTEXTS, felt, strict=True):
        source, lengths = pad_sources([encoder.pack(encoder.context(context))[0]])
        told = model.emotion_probabilities(*map(paddle.to_tensor, (source, lengths))).numpy()[0]  # [32]
        wanted = [name for name, p in zip(EMOTIONS, told, strict=True) if p >= SHARE * told.max()]
        assert names == wanted and 0 < len(names) < len(EMOTIONS)


def test_only_our_own_without_an_emotion_are_asked_for() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    model, encoder = make_network(config, len(vocabulary)), make_encoder(config, vocabulary)
    named, unnamed, theirs = (
        Dialogue(context, "oh", emotion)
        for context, emotion in zip(CONTEXTS, ("sad", None, None), strict=True)
    )
    bits = emotions_of_replies([[named, unnamed], [theirs]], {id(named), id(unnamed)}, model, encoder)
    felt = felt_emotions([unnamed.context], model, encoder)[0]
    assert bits.tolist() == [emotion_bits(["sad", *felt]), 0]
    assert emotions_of_replies([[theirs]], set(), model, encoder).tolist() == [0]


def test_how_near_counts_for_our_own_alone() -> None:
    config, vocabulary = toy_config(), make_vocabulary()
    reranker = Reranker(make_network(config, len(vocabulary)), make_encoder(config, vocabulary), None, None)
    candidates = [
        ReplyPrediction("a", 0.0, ("a",), "person", Nearness(context_words=0.7), 0),
        ReplyPrediction("b", 0.0, ("b",), "written", Nearness(context_words=0.6), 1),
        ReplyPrediction("c", 0.0, ("c",)),
    ]
    values = {name: reranker.features[name]([None], [candidates]) for name in ("person", "own", "own_words")}
    assert values["person"].tolist() == [1, 1, 0]
    assert values["own"].tolist() == [0, 1, 0]
    np.testing.assert_allclose(values["own_words"], [0, 0.6, 0])
    notes = [origin_note(candidate.as_dict()) for candidate in candidates]
    assert notes == [" (from a person, 0.70)", " (written for this project, 0.60)", ""]
