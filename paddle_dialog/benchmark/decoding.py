"""How fast a trained model answers, text to text."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, Predictor


def measure_decoding(
    predictor: Predictor,
    single: Sequence[str],
    batch: Sequence[str],
    repeats: int,
    against_reference: bool = False,
) -> dict[str, Any]:
    """Times one input alone and many at once.

    Args:
        predictor: a trained model with its decoding settings.
        single: inputs answered one by one; the median over all of them and all repeats counts.
        batch: inputs answered in one call.
        repeats: how often.
        against_reference: also time ``nn.BeamSearchDecoder`` on the same weights, in turns, and report ratios.

    Returns:
        ``decoding`` {``milliseconds_one``, ``inputs_per_second``}, and with ``against_reference`` also
        ``reference`` and ``times_reference``.

    Raises:
        UserError: the task's predictor knows no reference decoder.
    """
    searching = predictor if isinstance(predictor, GenerationPredictor) else None
    if against_reference and not (searching and searching.has_reference):
        raise UserError(
            f"--against reference: Paddle's beam search does not decode the task '{predictor.config.task}'; "
            "leave it out"
        )
    engines = {"decoding": searching.config.decoding.engine if searching else "fast"}
    if against_reference:
        engines = {"decoding": "fast", "reference": "reference"}
    one: dict[str, list[float]] = {name: [] for name in engines}
    many: dict[str, list[float]] = {name: [] for name in engines}
    for repeat in range(repeats + 1):
        for name, engine in engines.items():
            if searching is not None:
                searching.config.decoding = dataclasses.replace(searching.config.decoding, engine=engine)
            alone = [_seconds(lambda text=text: list(predictor.predict_records([text]))) for text in single]  # type: ignore[misc]
            together = _seconds(lambda: list(predictor.predict_records(batch)))
            if repeat > 0:  # the first round warms caches up
                one[name].extend(alone)
                many[name].append(together)
    result: dict[str, Any] = {
        name: {
            "milliseconds_one": round(1000 * median(one[name]), 2),
            "inputs_per_second": round(len(batch) / median(many[name]), 2),
        }
        for name in engines
    }
    if against_reference:
        own, reference = result["decoding"], result["reference"]
        result["times_reference"] = {
            "one": round(reference["milliseconds_one"] / own["milliseconds_one"], 2),
            "batch": round(own["inputs_per_second"] / reference["inputs_per_second"], 2),
        }
    return result


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
