"""The settings that every task shares; a task adds its own section by subclassing `ExperimentConfig`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from paddle_dialog.config.models import LstmAttentionConfig, ModelConfig, TransformerConfig
from paddle_dialog.config.typed import MAX_COUNT, Problem, at_least, rate, setting

MAX_ROWS = 1000  # of a beam
INPUTS_TOGETHER = 64  # beams of 1000 of them still fit into memory


@dataclass(frozen=True)
class DataConfig:
    """Where the examples come from and how they become batches."""

    train: str = setting("sample", "the training examples: a file, or `sample`, the examples that ship")
    dev: str | None = setting("sample", "the examples of the dev evaluations; null evaluates nothing")
    max_length: int = at_least(1, 64, "longest text in tokens, end token not counted")
    min_count: int = at_least(1, 1, "how often a token must occur to enter the vocabulary")
    max_vocabulary: int | None = setting(
        None,
        "largest vocabulary, special tokens included; the most frequent tokens enter it",
        minimum=8,
        maximum=1_000_000,
    )
    vocabulary: str | None = setting(None, "a vocabulary file to use instead of building one")
    batch_size: int = at_least(1, 128, "examples in a batch of one process")
    bucket_batches: int = at_least(
        1, 100, "batches that are drawn together and sorted by length; more means less padding"
    )


@dataclass(frozen=True)
class TrainingConfig:
    """The optimiser, its schedule, and when to evaluate, save, log and stop; a step is one update of the weights."""

    start_from: str | None = setting(
        None,
        "a bundle whose weights and vocabularies a new run begins with; what is fitted to the data is fitted anew",
    )
    epochs: int = at_least(1, 10, "how often all examples are seen")
    max_steps: int | None = setting(None, "ends the run earlier", minimum=1, maximum=MAX_COUNT)
    optimizer: Literal["adam", "adamw", "muon"] = setting(
        "adam",
        "`adamw` is Adam with decoupled weight decay; `muon` orthogonalises the updates of hidden matrices and is "
        "AdamW for embeddings and vectors",
    )
    learning_rate: float = setting(
        1e-3, "the highest learning rate; with `noam` a factor, usually 1 or 2", above=0.0, maximum=100.0
    )
    beta2: float = at_least(0.0, 0.999, "Adam's decay of the squared gradients' running mean", 0.999999)
    epsilon: float = at_least(1e-20, 1e-8, "Adam's constant against division by zero", maximum=1.0)
    weight_decay: float = at_least(
        0.0, 0.0, "decay of the matrices, not for `adam`; biases and layer norms are left alone"
    )
    schedule: Literal["constant", "cosine", "noam"] = setting(
        "constant", "`cosine` falls to `final_rate` at the last step; `noam` is the Transformer paper's"
    )
    warmup_steps: int = at_least(
        0, 0, "steps over which the rate rises linearly; `noam` needs at least 1", maximum=MAX_COUNT
    )
    final_rate: float = rate(0.0, "where `cosine` ends, as a share of `learning_rate`")
    clip_norm: float | None = setting(
        5.0, "largest global norm of the gradients; null does not clip", above=0.0
    )
    label_smoothing: float = rate(
        0.0, "share of the target that is spread over the vocabulary; perplexities are never smoothed"
    )
    accumulate: int = at_least(
        1, 1, "batches whose gradients make one step, each weighted by its target tokens"
    )
    amp: Literal["none", "O1", "O2"] = setting(
        "none", "mixed precision on a GPU: O1 computes what is safe in `amp_dtype`, O2 nearly everything"
    )
    amp_dtype: Literal["bfloat16", "float16"] = setting(
        "bfloat16", "float16 comes with loss scaling; bfloat16 needs none"
    )
    eval_every: int = at_least(
        0,
        0,
        "steps between dev evaluations; 0 is once an epoch; the last step is always evaluated",
        maximum=MAX_COUNT,
    )
    max_dev: int | None = setting(
        None, "dev examples that an evaluation uses, spread evenly over all; null uses all", minimum=1
    )
    patience: int | None = setting(
        None, "evaluations without a better one after which the run ends; null never ends it", minimum=1
    )
    save_every: int = at_least(
        1, 500, "steps between checkpoints; the last step is always saved", maximum=MAX_COUNT
    )
    log_every: int = at_least(1, 100, "steps between log lines and points of the curves", maximum=MAX_COUNT)

    def problems(self) -> Iterator[Problem]:
        if self.schedule == "noam" and self.warmup_steps == 0:
            yield "warmup_steps", "must be at least 1 for the noam schedule, e.g. 4000"
        if self.schedule != "noam" and self.learning_rate > 1:
            yield "learning_rate", f"is {self.learning_rate:g}; above 1 no network learns, take e.g. 0.001"
        if self.weight_decay and self.optimizer == "adam":
            yield "weight_decay", "has no effect with adam; take optimizer: adamw"
        if self.optimizer == "muon" and self.amp == "O2":
            yield "optimizer", "muon needs float32 weights; take training.amp: O1 or none"


@dataclass(frozen=True)
class DecodingConfig:
    """How text is produced from a trained model."""

    strategy: Literal["beam", "greedy", "sample"] = setting(
        "beam", "beam search, greedy search (a beam of 1) or ancestral sampling"
    )
    beam_size: int = at_least(1, 10, "hypotheses kept for an input (`beam` only)", maximum=MAX_ROWS)
    n_best: int = at_least(
        1, 1, "candidates for an input, best first; with `sample` the number of draws", maximum=10_000
    )
    length_penalty: Literal["none", "average", "gnmt"] = setting(
        "none",
        "what a log-probability is divided by: 1, length^alpha, or ((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14)",
    )
    alpha: float = at_least(0.0, 1.0, "strength of the length penalty")
    max_length: int = at_least(1, 64, "longest text in tokens, end token not counted")
    temperature: float = setting(1.0, "divides the log-probabilities before a token is drawn", above=0.0)
    top_k: int = at_least(0, 0, "draw among the k most probable tokens; 0 is all")
    top_p: float = setting(
        1.0, "draw among the fewest most probable tokens that hold this probability", above=0.0, maximum=1.0
    )
    engine: Literal["fast", "reference"] = setting(
        "fast", "`reference` is Paddle's own beam search, for comparison"
    )

    @property
    def batch_size(self) -> int:
        """Number of inputs that are decoded together."""
        return INPUTS_TOGETHER

    def problems(self) -> Iterator[Problem]:
        if self.strategy == "beam" and self.n_best > self.beam_size:
            yield "n_best", f"is {self.n_best}, but a beam of {self.beam_size} holds fewer; raise beam_size"
        if self.strategy == "greedy" and self.n_best > 1:
            yield "n_best", f"is {self.n_best}, but greedy search gives one candidate; take beam or sample"
        if self.engine == "reference" and self.strategy != "beam":
            yield "engine", "reference decodes by beam search only; take strategy: beam or engine: fast"
        if self.engine == "reference" and self.length_penalty != "none":
            yield "engine", "reference has no length penalty; take length_penalty: none or engine: fast"


@dataclass(frozen=True)
class ExperimentConfig:
    """One recipe: the task, its model, its data and its training.

    Attributes:
        inference_sections: the sections that a recipe decides when it uses the weights of another; a task may add
            its own.
    """

    inference_sections: ClassVar[tuple[str, ...]] = ()

    @property
    def language(self) -> str | None:
        """The language that its models read, `en` or `zh`; None where a task has no models of several."""
        return None

    task: str = setting(dataclasses.MISSING, "what the recipe is for: a task's name")
    seed: int = at_least(0, 1, "of weights, order of examples, dropout and draws", maximum=MAX_COUNT)
    output_dir: str | None = setting(None, "the run's folder; by default `runs/<name of the recipe>`")
    model: ModelConfig = field(default_factory=LstmAttentionConfig)
    data: DataConfig = field(default_factory=DataConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def problems(self) -> Iterator[Problem]:
        if self.training.patience is not None and self.data.dev is None:
            yield "training.patience", "early stopping needs data.dev"
        if getattr(self.model, "vectors", None) is not None and self.training.start_from is not None:
            yield "model.vectors", "are of a new model; leave them out, or training.start_from"


@dataclass(frozen=True)
class GenerationConfig(ExperimentConfig):
    """A recipe of a task whose models write text: also its decoding."""

    inference_sections: ClassVar[tuple[str, ...]] = ("decoding",)

    decoding: DecodingConfig = field(default_factory=DecodingConfig)

    def problems(self) -> Iterator[Problem]:
        yield from super().problems()
        if getattr(self.model, "sampled_words", 0) and self.training.label_smoothing:
            yield "model.sampled_words", "has no mean over the vocabulary; set training.label_smoothing: 0"
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
