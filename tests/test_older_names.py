"""weights and moments under the names of earlier versions are those of the present network."""

from typing import Any

import numpy as np
import pytest

from paddle_dialog.bundle.weights import read_weights, set_weights
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.models.older_names import SEQ2SEQ_NAMES, with_present_names
from paddle_dialog.models.seq2seq import Seq2Seq

LSTM = LstmAttentionConfig(embedding_size=6, hidden_size=6, bidirectional=True, score="bilinear")
TRANSFORMER = TransformerConfig(width=6, num_heads=2, inner_width=8, aligned_input=True)
OLDER = {
    "lstm": {
        "encoder.stack.rnn.": "encoder.rnn.",
        "decoder.bridge.": "bridge.",
        "decoder.cell.": "cell.",
    },
    "transformer": {
        "encoder.stack.": "encoder.",
        "decoder.stack.": "decoder.",
        "encoder.positions.": "positions.",
        "decoder.positions.": "positions.",
        "decoder.aligned_projection.": "aligned_projection.",
    },
}
FAMILIES = pytest.mark.parametrize(("config", "family"), [(LSTM, "lstm"), (TRANSFORMER, "transformer")])


def named_as_before(values: dict[str, Any], family: str) -> dict[str, Any]:
    """Return values by their names in a bundle of an earlier version."""
    renamed = {}
    for name, value in values.items():
        for new, old in OLDER[family].items():
            if name.startswith(new):
                name = old + name.removeprefix(new)
                break
        renamed[name] = value
    return renamed


@FAMILIES
def test_every_weight_finds_its_place(config: ModelConfig, family: str) -> None:
    source, target = Seq2Seq(config, 12), Seq2Seq(config, 12)
    older = named_as_before(read_weights(source), family)
    assert not any(name.startswith(tuple(OLDER[family])) for name in older)
    set_weights(target, older, "here")
    given = {name.replace("decoder.positions", "encoder.positions"): name for name in read_weights(source)}
    for name, values in read_weights(target).items():
        # The one table of positions that earlier versions had stands for both.
        origin = given[name.replace("decoder.positions", "encoder.positions")]
        np.testing.assert_array_equal(values, read_weights(source)[origin])


def test_names_of_moments_change_with_those_of_their_weights() -> None:
    older = {
        "positions.weight::moment1_0": 1,
        "cell.cells.0.bias_ih::moment2_0": 2,
        "output.bias::moment1_0": 3,
    }
    assert with_present_names(older, SEQ2SEQ_NAMES) == {
        "encoder.positions.weight::moment1_0": 1,
        "decoder.positions.weight::moment1_0": 1,
        "decoder.cell.cells.0.bias_ih::moment2_0": 2,
        "output.bias::moment1_0": 3,
    }


def test_present_names_stay() -> None:
    for config in (LSTM, TRANSFORMER):
        weights = read_weights(Seq2Seq(config, 12))
        assert with_present_names(weights, SEQ2SEQ_NAMES).keys() == weights.keys()


def test_a_bundle_of_an_earlier_version_fills_a_network() -> None:
    config = TransformerConfig(width=16, num_heads=2, inner_width=32, bias=False, aligned_input=True)
    network, other = Seq2Seq(config, 12), Seq2Seq(config, 12)
    earlier = {
        name.replace("encoder.stack.", "encoder.")
        .replace("decoder.stack.", "decoder.")
        .replace("decoder.aligned_projection", "aligned_projection"): values
        for name, values in read_weights(other).items()
    }
    assert (
        "encoder.layers.0.self_attention.output.weight" in earlier and "aligned_projection.weight" in earlier
    )
    set_weights(network, earlier, "here")
    for name, values in read_weights(other).items():
        np.testing.assert_array_equal(read_weights(network)[name], values, err_msg=name)
