"""The classifier of n-grams in EmoPrepend: what it decides, and what it leaves alone."""

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
from empathetic_toys import make_config, make_network
from test_empathetic_model import VOCABULARY, batch

from tasks.empathetic.network.criterion import EmpatheticLoss


def test_ngrams_reach_the_emotion_and_not_the_reply() -> None:
    config = make_config(emotion={"ngram_buckets": 101, "prepend": "none"})
    network = make_network(config, len(VOCABULARY))
    source, lengths, target, *_ = batch(config)
    without = source.clone()
    without[:, :, 3:] = 0
    assert (source != without).any().item()
    emotions = [network.emotion_probabilities(given, lengths).numpy() for given in (source, without)]
    assert not np.allclose(*emotions)
    for output, same in zip(network(source, lengths, target), network(without, lengths, target), strict=True):
        np.testing.assert_array_equal(output.numpy(), same.numpy())


def test_the_emotion_is_that_of_the_ngrams_with_a_share_of_the_encoders() -> None:
    config = make_config(emotion={"ngram_buckets": 101, "encoder_share": 0.3})
    network = make_network(config, len(VOCABULARY))
    source, lengths, target, emotion, label, mask = batch(config)
    outputs = network(source, lengths, target)
    idf, table = (network.emotion_head.state_dict()[name].numpy() for name in ("ngram_idf", "ngram_table"))
    answers = []
    for row, packed in enumerate(source.numpy()[:, :, 3:]):
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
    assert float(loss) == pytest.approx(
        float(criterion.token_nll.sum() / mask.sum()) + chosen.mean(), rel=1e-4
    )
    loss.backward()
    assert all(buffer.stop_gradient for buffer in network.emotion_head.buffers())
