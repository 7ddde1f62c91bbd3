"""The search over EmoPrepend: packed sources, scores over the extended vocabulary, copied words."""

import paddle
import pytest
from empathetic_toys import (
    DIALOGUES,
    MODELS,
    make_config,
    make_network,
    make_vocabulary,
    named,
    predictor_of,
    tensors,
)

from paddle_dialog.decoding import ForbiddenTokens, SearchOptions, decode, text_log_probs
from tasks.empathetic.data.dataset import DialogueDataset, collate
from tasks.empathetic.data.dialogue import Dialogue
from tasks.empathetic.data.encoding import Source
from tasks.empathetic.data.vocabulary import not_words
from tasks.empathetic.network.emo_prepend import EmoPrepend
from tasks.empathetic.network.loss import EmpatheticLoss

VOCABULARY = make_vocabulary(DIALOGUES[1:])


def inputs(config: object) -> tuple[Source, paddle.Tensor]:
    dataset = DialogueDataset(DIALOGUES, config, VOCABULARY, 50)
    source, lengths, *_ = tensors(collate([dataset[index] for index in range(len(dataset))]))
    return source, lengths


@pytest.mark.parametrize("family", MODELS)
@pytest.mark.parametrize("strategy", ["beam", "sample"])
def test_a_hypothesis_has_the_log_probability_of_its_text(family: str, strategy: str) -> None:
    config = make_config(family)
    network = make_network(config, len(VOCABULARY))
    source, lengths = inputs(config)
    options = SearchOptions(
        strategy=strategy,
        beam_size=3,
        n_best=2,
        max_length=5,
        processors=[ForbiddenTokens([not_words()])],
    )
    state = network.encode(source, lengths)
    found = decode(network, source.words, lengths, options, state)
    for best in range(2):
        texts = [hypotheses[best].tokens for hypotheses in found]
        expected = text_log_probs(network, source.words, lengths, texts, state=state)
        for hypotheses, log_prob in zip(found, expected, strict=True):
            assert hypotheses[best].log_prob == pytest.approx(log_prob, abs=1e-3)
    assert found == decode(network, source.words, lengths, options, state)


def test_a_reply_may_hold_a_word_that_only_its_context_has() -> None:
    config = make_config(decoding={"strategy": "greedy", "max_length": 4, "no_repeat_ngram": 1})
    network = make_network(config, len(VOCABULARY))
    network.generator.gate.bias.set_value(paddle.to_tensor([-50.0]))  # copy, never generate
    predictor = predictor_of(config, network, VOCABULARY)
    (answer,) = predictor.answer([["Rex Fido Bello"]])
    copied = {"rex", "fido", "bello"}
    assert "rex" not in VOCABULARY
    assert len(copied & set(answer.predictions[0].tokens)) >= 2
    assert answer.predictions[0].text[0].isupper()


@pytest.mark.parametrize("family", MODELS)
def test_a_model_learns_replies_emotions_and_copying(family: str) -> None:
    # "rex" is outside the vocabulary and stands in the first context and its reply.
    vocabulary = make_vocabulary([*DIALOGUES[1:], Dialogue(["was a good dog"], "was a good dog .")])
    config = make_config(
        family, model={"num_heads": 1} if family != "lstm" else {}, decoding={"max_length": 8}
    )
    paddle.seed(3)
    network = EmoPrepend(config, len(vocabulary))
    optimizer = paddle.optimizer.Adam(0.02, parameters=network.parameters())
    dataset = DialogueDataset(DIALOGUES, config, vocabulary, 50)
    source, lengths, target, *labels = tensors(collate([dataset[index] for index in range(3)]))
    criterion = EmpatheticLoss()
    for _ in range(250 if family == "lstm" else 80):
        loss = criterion(*network(*source, lengths, target), **named(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    answers = predictor_of(config, network, vocabulary).answer([d.context for d in DIALOGUES])
    assert "rex" not in vocabulary
    assert [answer.emotion for answer in answers] == [d.emotion for d in DIALOGUES]
    for answer, dialogue in zip(answers, DIALOGUES, strict=True):
        assert " ".join(answer.predictions[0].tokens) == dialogue.target.lower()
