"""How fast a trained model answers on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Predictor


def measure_decoding(
    predictor: Predictor, single: Sequence[str], batch: Sequence[str], repeats: int
) -> Record:
    """Time one input alone and many at once, text to text.

    Args:
        predictor: a trained model with its decoding settings.
        single: inputs answered one by one; the median over all of them and all repeats counts.
        batch: inputs answered in one call.
        repeats: how often.

    Returns:
        `decoding`: `milliseconds_one` and `inputs_per_second`.
    """
    alone: list[float] = []
    together: list[float] = []
    for repeat in range(repeats + 1):
        one, many = [_seconds(predictor, [text]) for text in single], _seconds(predictor, batch)
        if repeat > 0:  # the first round warms up the caches
            alone += one
            together.append(many)
    return {
        "decoding": {
            "milliseconds_one": round(1000 * median(alone), 2),
            "inputs_per_second": round(len(batch) / median(together), 2),
        }
    }


def _seconds(predictor: Predictor, texts: Sequence[str]) -> float:
    began = time.perf_counter()
    list(predictor.predict_records(texts))
    return time.perf_counter() - began
