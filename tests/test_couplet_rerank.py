"""The order of the candidates by a mix of scores."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from couplet_toys import LEVEL, OBLIQUE, toy

from paddle_dialog.bundle.folder import Bundle, read_weights, save_bundle
from paddle_dialog.config.loader import dump
from paddle_dialog.config.models import LstmAttentionConfig
from paddle_dialog.models.seq2seq import Seq2Seq
from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.couplet.config import CoupletConfig, CoupletRerankConfig
from tasks.couplet.rerank import consensus

ROOMY = LEVEL + OBLIQUE
FIRSTS = ["雨雪月", "春山雨", "柳花"]


def predicted(**rerank):
    predictor = toy(ROOMY, 4, {"final_tone": False}, {"candidates": 8, **rerank}, beam_size=8, n_best=8)
    return predictor.predict(FIRSTS)


def test_consensus_by_hand():
    # 山雨 and 山水 share 1 of 2, 山雨 and 山雨风 2 of 3, 山水 and 山雨风 1 of 3.
    assert consensus(["山雨", "山水", "山雨风"]) == pytest.approx(
        [(1 / 2 + 2 / 3) / 2, (1 / 2 + 1 / 3) / 2, 1 / 2]
    )
    assert consensus(["山"]).tolist() == [0.0] and consensus([]).tolist() == []


def test_without_weights_the_search_decides():
    assert not CoupletRerankConfig().is_active
    for candidates in predicted():
        scores = [candidate.score for candidate in candidates]
        assert scores == sorted(scores, reverse=True)


def test_the_tone_share_orders_and_the_score_stays():
    plain = predicted()
    mixed = predicted(model=0.5, tone_opposed=3.0)
    for before, after in zip(plain, mixed, strict=True):
        assert sorted(c.text for c in before) == sorted(c.text for c in after)
        assert {c.text: c.score for c in before} == {c.text: c.score for c in after}
        sums = [0.5 * c.score + 3.0 * c.form.tone_opposed for c in after]
        assert sums == sorted(sums, reverse=True)
    assert [c.text for c in plain[0]] != [c.text for c in mixed[0]]


def test_the_best_is_chosen_from_all_candidates():
    everything = predicted(tone_opposed=9.0)
    predictor = toy(ROOMY, 4, {"final_tone": False}, {"tone_opposed": 9.0, "candidates": 8}, beam_size=8)
    one = predictor.predict(FIRSTS)
    assert [[c.text for c in candidates] for candidates in one] == [[c[0].text] for c in everything]


def test_consensus_orders():
    for before, after in zip(predicted(), predicted(model=0.0, consensus=1.0), strict=True):
        shares = dict(zip([c.text for c in before], consensus([c.text for c in before]), strict=True))
        expected = sorted(before, key=lambda c: -shares[c.text])
        assert [c.text for c in after] == [c.text for c in expected]


def test_a_reverse_model_orders_by_how_well_it_foresees_the_first_line(tmp_path):
    model = LstmAttentionConfig(embedding_size=8, hidden_size=8, num_layers=1)
    config = CoupletConfig(task="couplet", model=model)
    vocabulary = Vocabulary([*SPECIAL_TOKENS, *reversed(ROOMY)])
    paddle.seed(1)
    network = Seq2Seq(model, len(vocabulary))
    for parameter in network.parameters():  # far from uniform
        parameter.set_value(parameter * 4.0)
    save_bundle(
        Bundle("couplet", dump(config), {"text": vocabulary}, read_weights(network)), tmp_path / "reverse"
    )
    after = predicted(model=0.0, reverse=1.0, reverse_weights=str(tmp_path / "reverse"))
    network.eval()
    for first, candidates in zip(FIRSTS, after, strict=True):
        foreseen = []
        for candidate in candidates:
            source = paddle.to_tensor([[*vocabulary.encode(candidate.text), vocabulary.eos_id]])
            written = vocabulary.encode(first)
            inputs = paddle.to_tensor([[vocabulary.bos_id, *written]])
            with paddle.no_grad():
                logits = network(source, paddle.to_tensor([source.shape[1]]), inputs)[0].numpy()  # [T, V]
            log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            foreseen.append(sum(log_probs[t, i] for t, i in enumerate([*written, vocabulary.eos_id])))
        assert foreseen == sorted(foreseen, reverse=True)
        assert len(set(foreseen)) > 1
