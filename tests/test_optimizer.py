"""Schedules by hand, gradient clipping against Paddle's own, and which parameters decay."""

import math
from typing import Any

import numpy as np
import paddle
import pytest
from paddle import Tensor, nn

from paddle_dialog.config.schema import TrainingConfig
from paddle_dialog.training.optimizer import GlobalNormClip, build_optimizer, learning_rate_factor


def factors(steps: list[int], total_steps: int = 100, width: int = 256, **settings: Any) -> list[float]:
    factor = learning_rate_factor(TrainingConfig(**settings), total_steps, width)
    return [factor(step) for step in steps]


def test_constant_schedule_rises_linearly_and_stays() -> None:
    assert factors([0, 50, 99], schedule="constant") == [1.0, 1.0, 1.0]
    found = factors([0, 1, 3, 4, 50], schedule="constant", warmup_steps=4)
    assert found == pytest.approx([0.25, 0.5, 1.0, 1.0, 1.0])


def test_cosine_schedule_starts_full_and_ends_at_the_final_rate() -> None:
    found = factors([0, 25, 50, 75, 100, 130], schedule="cosine")
    half = math.sqrt(0.5) / 2
    assert found == pytest.approx([1.0, 0.5 + half, 0.5, 0.5 - half, 0.0, 0.0])
    assert factors([0, 50, 100], schedule="cosine", final_rate=0.1) == pytest.approx([1.0, 0.55, 0.1])


def test_cosine_schedule_begins_after_the_warm_up() -> None:
    found = factors([0, 9, 19, 20, 60, 100], schedule="cosine", warmup_steps=20)
    assert found == pytest.approx([0.05, 0.5, 1.0, 1.0, 0.5, 0.0])


def test_cosine_schedule_survives_a_run_shorter_than_its_warm_up() -> None:
    found = factors([0, 4, 10, 11], total_steps=5, schedule="cosine", warmup_steps=10)
    assert found == pytest.approx([0.1, 0.5, 1.0, 0.0])


def test_noam_schedule_is_equation_3_of_the_paper() -> None:
    """At width 512 and 4,000 warm-up steps the rate peaks at 1 / sqrt(512 · 4000) = 0.000699."""
    found = factors([0, 1999, 3999, 15999], width=512, schedule="noam", warmup_steps=4000)
    peak = 1 / math.sqrt(512 * 4000)
    assert found == pytest.approx([peak / 4000, peak / 2, peak, peak / 2])
    assert peak == pytest.approx(0.000699, abs=1e-6)


def test_the_optimiser_multiplies_its_rate_by_the_schedule() -> None:
    config = TrainingConfig(schedule="constant", warmup_steps=4, learning_rate=0.2)
    optimizer, _ = build_optimizer(config, nn.Linear(2, 2), 10, 8)
    rates = []
    for _ in range(5):
        rates.append(optimizer.get_lr())
        optimizer._learning_rate.step()
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2, 0.2])


def gradients(scale: float) -> list[tuple[Tensor, Tensor]]:
    rng = np.random.default_rng(4)
    network = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    return [
        (parameter, paddle.to_tensor((scale * rng.normal(size=parameter.shape)).astype("float32")))
        for parameter in network.parameters()
    ]


@pytest.mark.parametrize(("scale", "clips"), [(0.01, False), (10.0, True)])
def test_clipping_equals_paddles_and_records_the_norm(scale: float, clips: bool) -> None:
    expected = nn.ClipGradByGlobalNorm(1.0)(gradients(scale))
    given = gradients(scale)
    norm = math.sqrt(sum(float((gradient.numpy().astype("float64") ** 2).sum()) for _, gradient in given))
    clip = GlobalNormClip(1.0)
    clipped = clip(given)
    assert clip.last_norm is not None
    assert float(clip.last_norm) == pytest.approx(norm, rel=1e-5)
    assert (norm > 1.0) is clips
    for (_, ours), (_, theirs) in zip(clipped, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5)
    after = math.sqrt(sum(float((gradient.numpy() ** 2).sum()) for _, gradient in clipped))
    assert after == pytest.approx(min(norm, 1.0), rel=1e-5)


def test_without_a_limit_the_norm_is_only_measured() -> None:
    clip = GlobalNormClip(None)
    for (_, ours), (_, raw) in zip(clip(gradients(10.0)), gradients(10.0), strict=True):
        np.testing.assert_array_equal(ours.numpy(), raw.numpy())
    assert clip.last_norm is not None
    assert float(clip.last_norm) > 1.0


def test_parameters_without_a_gradient_are_passed_over() -> None:
    with_gap: list[Any] = [(paddle.zeros([2]), None), *gradients(10.0)]
    clip, plain = GlobalNormClip(0.5), GlobalNormClip(0.5)
    clipped, expected = clip(with_gap), plain(gradients(10.0))
    assert clipped[0][1] is None
    assert clip.last_norm is not None
    assert plain.last_norm is not None
    assert float(clip.last_norm) == float(plain.last_norm)
    for (_, ours), (_, theirs) in zip(clipped[1:], expected, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_a_step_is_that_of_paddles_optimiser_with_paddles_clip(name: str) -> None:
    """Also says that the clip is in effect: these gradients are far above its limit."""
    settings = {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "epsilon": 1e-3, "clip_norm": 0.01}
    ours, theirs = nn.Linear(3, 2), nn.Linear(3, 2)
    theirs.set_state_dict(ours.state_dict())
    config = TrainingConfig(optimizer=name, **settings)
    optimizer, _ = build_optimizer(config, ours, 10, 8)
    plain = {"adam": paddle.optimizer.Adam, "adamw": paddle.optimizer.AdamW}[name]
    extra = {"weight_decay": 0.0} if name == "adamw" else {}
    reference = plain(
        0.1, 0.8, 0.9, 1e-3, parameters=theirs.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.01), **extra
    )
    x = paddle.to_tensor([[1.0, 2.0, 3.0]])
    for _ in range(3):
        for network, stepper in ((ours, optimizer), (theirs, reference)):
            (network(x) ** 2 * 50.0).sum().backward()
            stepper.step()
            stepper.clear_grad()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_only_matrices_decay() -> None:
    """With zero gradients AdamW leaves exactly the decay: w · (1 - rate · decay)."""
    network = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.LSTM(4, 3))
    for parameter in network.parameters():
        parameter.set_value(paddle.ones_like(parameter))
        parameter.grad = paddle.zeros_like(parameter)
    config = TrainingConfig(optimizer="adamw", learning_rate=0.1, weight_decay=0.5)
    optimizer, _ = build_optimizer(config, network, 10, 8)
    optimizer.step()
    seen = set()
    for name, parameter in network.named_parameters():
        expected = 0.95 if parameter.ndim > 1 else 1.0
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-6, err_msg=name)
        seen.add(expected)
    assert seen == {0.95, 1.0}


def test_frozen_parameters_are_left_out() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    network[0].weight.trainable = False
    optimizer, _ = build_optimizer(TrainingConfig(), network, 10, 8)
    held = {parameter.name for parameter in optimizer._parameter_list}
    assert network[0].weight.name not in held
    assert len(held) == 3
