"""Weights in 8 bits a number, and bundles that hold them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from command import run_here
from conftest import Trained
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.bundle.eight_bits import SCALE, packed, unpacked
from paddle_dialog.bundle.folder import load_bundle, save_bundle


@settings(max_examples=30)
@given(seed=st.integers(0, 999), rows=st.integers(1, 5), size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_a_number_comes_back_within_half_a_step_of_its_row(seed: int, rows: int, size: float) -> None:
    draws = np.random.default_rng(seed)
    weights = {
        "table": (size * draws.normal(size=(rows, 6))).astype(np.float32),
        "column": draws.normal(size=(rows, 1)).astype(np.float32),
        "norm.scale": draws.normal(size=4).astype(np.float32),
        "kernel": draws.normal(size=(2, 3, 4)).astype(np.float32),
        "number": np.array(draws.normal(), np.float32),
    }
    found = unpacked(packed(weights))
    assert found.keys() == weights.keys()
    step = np.abs(weights["table"]).max(axis=1, keepdims=True) / 127
    assert (np.abs(found["table"] - weights["table"]) <= 0.5001 * step).all()
    assert all((found[name] == weights[name]).all() for name in weights.keys() - {"table"})


def test_the_numbers_of_a_matrix_by_hand() -> None:
    tensors = packed({"table": np.array([[1.27, -0.634], [0.0, 0.0]], np.float32)})
    assert tensors["table"].dtype == np.int8 and tensors["table"].tolist() == [[127, -63], [0, 0]]
    assert tensors["table" + SCALE][0, 0] == pytest.approx(0.01)
    assert unpacked(tensors)["table"] == pytest.approx(np.array([[1.27, -0.63], [0.0, 0.0]]))


def test_packing_what_was_unpacked_changes_nothing() -> None:
    first = packed({"table": np.random.default_rng(1).normal(size=(20, 30)).astype(np.float32)})
    again = packed(unpacked(first))
    assert (again["table"] == first["table"]).all()


def test_an_exported_bundle_answers_alike_in_less_space(trained: dict[str, Trained], tmp_path: Path) -> None:
    source = trained["transformer"].folder / "last"
    outcome = run_here("export", "--weights", source, "--output", tmp_path / "small", "--eight-bits")
    assert outcome.status == 0, outcome.stderr
    own, small = load_bundle(source), load_bundle(tmp_path / "small")
    assert small.eight_bits and not own.eight_bits
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (source, tmp_path / "small")]
    assert sizes[1] < 0.55 * sizes[0]  # a quarter of a large network; a small one is mostly vectors and names
    for name, values in own.weights.items():
        assert small.weights[name] == pytest.approx(values, abs=float(np.abs(values).max()) / 127)
    answers = [
        run_here("predict", "-c", trained["transformer"].config, "--weights", folder, "天山春红").stdout
        for folder in (source, tmp_path / "small")
    ]
    assert answers[0] == answers[1] != ""


def test_a_bundle_that_is_saved_again_keeps_its_8_bits(trained: dict[str, Trained], tmp_path: Path) -> None:
    bundle = dataclasses.replace(load_bundle(trained["lstm"].folder / "last"), eight_bits=True)
    save_bundle(bundle, tmp_path / "once")
    save_bundle(load_bundle(tmp_path / "once"), tmp_path / "twice")
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("once", "twice")]
    assert files[0] == files[1]
