"""The settings that every task shares; a task adds its own section by subclassing ``ExperimentConfig``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.fields import Problem, at_least, rate
from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig


@dataclass
class DataConfig:
    """Where the examples come from and how they become batches.

    Attributes:
        batch_size: examples of one process in a batch.
        streaming: read the training file while it is used, one block of ``bucket_batches`` steps in memory.
    """

    train: str = "sample"
    dev: str | None = "sample"
    max_length: int = at_least(1, 64)
    overlong: Literal["skip", "truncate"] = "skip"
    min_count: int = at_least(1, 1)
    max_vocabulary: int | None = field(default=None, metadata={"min": 8})
    vocabulary: str | None = None
    batch_size: int = at_least(1, 128)
    bucket_batches: int = at_least(1, 100)
    workers: int = at_least(0, 0)
    streaming: bool = False

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.streaming and self.workers > 1:
            yield "workers", f"is {self.workers}, but a streamed file is read by one process; take 0 or 1"


@dataclass
class TrainingConfig:
    """The optimiser, its schedule, and when to evaluate, save, log and stop.

    ``max_steps`` and the ``…_every`` settings count optimiser steps; an ``eval_every`` of 0 is once an epoch.
    ``start_from`` is a bundle whose weights and vocabulary a new run begins with. docs/training.md explains each.

    Attributes:
        accumulate: batches whose gradients make one optimiser step, weighted by their target tokens.
        max_skipped: steps in a row with a loss or gradient that is not finite, after which the run ends; each
            such step is left out and counted.
        ema_decay: d of an exponential moving average of the weights, which is then evaluated and saved as
            ``best``; 0.999 looks back over some 1,000 steps. None takes the weights themselves.
        keep_best: models kept by dev perplexity; above 1 also as ``best-STEP``.
        amp: mixed precision on a GPU: O1 computes what is safe in ``amp_dtype``, O2 nearly everything; weights
            and optimiser stay in float32.
        amp_dtype: float16 comes with loss scaling; bfloat16 needs none.
    """

    start_from: str | None = None
    epochs: int = at_least(1, 10)
    max_steps: int | None = field(default=None, metadata={"min": 1})
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = field(default=1e-3, metadata={"above": 0.0})
    beta1: float = rate(0.9)
    beta2: float = rate(0.999)
    epsilon: float = field(default=1e-8, metadata={"above": 0.0})
    weight_decay: float = at_least(0.0, 0.0)
    schedule: Literal["constant", "cosine", "noam"] = "constant"
    warmup_steps: int = at_least(0, 0)
    final_rate: float = rate(0.0)
    clip_norm: float | None = field(default=5.0, metadata={"above": 0.0})
    label_smoothing: float = rate(0.0)
    accumulate: int = at_least(1, 1)
    max_skipped: int = at_least(1, 10)
    ema_decay: float | None = field(default=None, metadata={"above": 0.0, "max": 0.99999})
    amp: Literal["none", "O1", "O2"] = "none"
    amp_dtype: Literal["bfloat16", "float16"] = "bfloat16"
    eval_every: int = at_least(0, 0)
    patience: int | None = field(default=None, metadata={"min": 1})
    keep_best: int = at_least(1, 1)
    save_every: int = at_least(1, 500)
    log_every: int = at_least(1, 100)
    show_examples: int = at_least(0, 4)

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.schedule == "noam" and self.warmup_steps == 0:
            yield "warmup_steps", "must be at least 1 for the noam schedule, e.g. 4000"
        if self.weight_decay and self.optimizer == "adam":
            yield "weight_decay", "has no effect with adam; take optimizer: adamw"


@dataclass
class DecodingConfig:
    """How text is produced from a trained model."""

    strategy: Literal["beam", "greedy", "sample"] = "beam"
    beam_size: int = at_least(1, 10)
    n_best: int = at_least(1, 1)
    length_penalty: Literal["none", "average", "gnmt"] = "none"
    alpha: float = at_least(0.0, 1.0)
    max_length: int = at_least(1, 64)
    temperature: float = field(default=1.0, metadata={"above": 0.0})
    top_k: int = at_least(0, 0)
    top_p: float = field(default=1.0, metadata={"above": 0.0, "max": 1.0})
    engine: Literal["fast", "reference"] = "fast"
    batch_size: int = at_least(1, 64)

    def problems(self) -> Iterator[Problem]:
        """Yields settings that contradict each other."""
        if self.strategy == "beam" and self.n_best > self.beam_size:
            yield "n_best", f"is {self.n_best}, but a beam of {self.beam_size} holds fewer; raise beam_size"
        if self.engine == "reference" and self.strategy != "beam":
            yield "engine", "reference decodes by beam search only; take strategy: beam or engine: fast"


@dataclass
class ExperimentConfig:
    """One recipe: the task, its model, its data, its training and its decoding.

    Attributes:
        inference_sections: what a recipe decides when it uses the weights of another; a task may add its own.
    """

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding",)

    task: str
    seed: int = at_least(0, 1)
    output_dir: str | None = None
    model: ModelConfig = field(default_factory=LstmAttentionConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def problems(self) -> Iterator[Problem]:
        """Yields settings of different sections that contradict each other."""
        if isinstance(self.model, TransformerConfig):
            if self.data.max_length >= self.model.max_positions:
                yield (
                    "model.max_positions",
                    f"must be above data.max_length ({self.data.max_length}) to hold the end token, "
                    f"and is {self.model.max_positions}",
                )
            if self.decoding.max_length >= self.model.max_positions:
                yield (
                    "decoding.max_length",
                    f"must be below model.max_positions ({self.model.max_positions}), "
                    f"and is {self.decoding.max_length}",
                )
        if self.training.patience is not None and self.data.dev is None:
            yield "training.patience", "early stopping needs data.dev"
        if self.training.keep_best > 1 and self.data.dev is None:
            yield "training.keep_best", "choosing the best models needs data.dev"
