"""A task that is only in the tests: says whether a text has an even number of characters, and sends it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from paddle import nn
from serving_toys import EchoEndpoint

from paddle_dialog.config.schema import ExperimentConfig
from paddle_dialog.data.batching import EncodedData, TrainingData
from paddle_dialog.metrics import Accuracy
from paddle_dialog.predictor import Predictor
from paddle_dialog.task import Task


@dataclass(frozen=True)
class EchoModelConfig:
    """Its network."""

    name: str = "parity"
    width: int = 1


@dataclass(frozen=True)
class EchoConfig(ExperimentConfig):
    """Its settings."""

    model: EchoModelConfig = field(default_factory=EchoModelConfig)  # type: ignore[assignment]


class EchoPredictor(Predictor):
    """Sends texts back, in capitals where asked to."""

    def __init__(self, config):
        self.config = config

    def predict_records(self, texts, shout=False, times=1):
        """See `Predictor`."""
        return [{"echo": " ".join([text.upper() if shout else text] * times)} for text in texts]

    def format_record(self, record):
        """See `Predictor`."""
        return str(record["echo"])


class ServedEcho(EchoEndpoint):
    """Its address and its tab."""

    page = Path(__file__).parent / "page"


class SecondEcho(EchoEndpoint):
    """A further address, which sends texts back reversed."""

    path, summary = "/v1/echo/reversed", "A reversed echo"

    def use(self, predictor, words):
        """See `Endpoint`."""
        return {"reversed": True}

    def answer(self, items, settings):
        """See `Endpoint`."""
        return [{"echo": item[::-1]} for item in items]


class EchoTask(Task):
    """See above."""

    name = "echo"
    config_class = EchoConfig
    objective = Accuracy()

    def prepare_data(self, config, vocabularies):
        """See `Task`."""
        texts = Path(config.data.train).read_text(encoding="utf-8").split()
        data = EncodedData(texts, np.array([len(text) for text in texts]))  # type: ignore[arg-type]
        return TrainingData(data, data, {}, _collate)

    def build_network(self, config, vocabulary_sizes):
        """See `Task`."""
        return nn.Linear(2, 2)

    def build_criterion(self, config):
        """See `Task`."""
        return nn.CrossEntropyLoss()

    def predictor(self, config, model):
        """See `Task`."""
        return EchoPredictor(config)

    def evaluate(self, predictor, source, predictions):
        """See `Task`."""
        return {"n": len(self.example_inputs(predictor.config, source, 9))}

    def example_inputs(self, config, source, count):
        """See `Task`."""
        return Path(source).read_text(encoding="utf-8").split()[:count]

    def add_arguments(self, parser):
        """See `Task`."""
        parser.add_argument("--shout", action="store_true", help="answer in capitals")
        parser.add_argument("--times", type=int, metavar="N", help="how often")

    def endpoints(self, limits):
        """See `Task`."""
        return [ServedEcho(), SecondEcho()]


class EchoBatch(NamedTuple):
    """Texts as vectors [B, 2], and whether their lengths are odd [B]."""

    input: np.ndarray
    label: np.ndarray


def _collate(texts):
    odd = np.array([len(text) % 2 for text in texts])
    return EchoBatch(np.eye(2, dtype="float32")[odd], odd)


TASK = EchoTask()
