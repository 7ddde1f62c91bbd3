"""How fast a trained model answers, text to text."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Predictor


def measure_decoding(
    predictors: Mapping[str, Predictor], single: Sequence[str], batch: Sequence[str], repeats: int
) -> Record:
    """Time one input alone and many at once.

    Args:
        predictors: a trained model with its decoding settings as `decoding`, and for a comparison the same
            model with `nn.BeamSearchDecoder` as `reference`; they are timed in turns.
        single: inputs answered one by one; the median over all of them and all repeats counts.
        batch: inputs answered in one call.
        repeats: how often.

    Returns:
        For each predictor {`milliseconds_one`, `inputs_per_second`}, and `times_reference` where there is one.
    """
    one: dict[str, list[float]] = {name: [] for name in predictors}
    many: dict[str, list[float]] = {name: [] for name in predictors}
    for repeat in range(repeats + 1):
        for name, predictor in predictors.items():
            alone = [_seconds(predictor, [text]) for text in single]
            together = _seconds(predictor, batch)
            if repeat > 0:  # the first round warms up the caches
                one[name].extend(alone)
                many[name].append(together)
    result: Record = {
        name: {
            "milliseconds_one": round(1000 * median(one[name]), 2),
            "inputs_per_second": round(len(batch) / median(many[name]), 2),
        }
        for name in predictors
    }
    if "reference" in predictors:
        own, reference = result["decoding"], result["reference"]
        result["times_reference"] = {
            "one": round(reference["milliseconds_one"] / own["milliseconds_one"], 2),
            "batch": round(own["inputs_per_second"] / reference["inputs_per_second"], 2),
        }
    return result


def _seconds(predictor: Predictor, texts: Sequence[str]) -> float:
    began = time.perf_counter()
    list(predictor.predict_records(texts))
    return time.perf_counter() - began
