"""The settings of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.config.typed import build
from paddle_dialog.decoding.processors import LogitsProcessor
from paddle_dialog.errors import UserError

_KEYS = frozenset(field.name for field in fields(DecodingConfig))


@dataclass(frozen=True)
class SearchOptions:
    """The settings of one search, checked when the object is made.

    Attributes that are not listed here are the keys of `DecodingConfig`, which describes and bounds them.

    Attributes:
        max_length: one number for all inputs, or one for each.
        seed: of the draws. The stream of an input depends on the seed, its own ids and the number of the
            draw, not on its place in the batch.
        processors: applied in this order to the log-probabilities of each step.
        early_stopping: stop searching for an input when no continuation can enter its n best; saves time and
            never changes the result.
        bos_id: start token, given to the first step.
        eos_id: end token.
    """

    strategy: str = "beam"
    beam_size: int = 5
    groups: int = 1
    diversity_penalty: float = 0.0
    n_best: int = 1
    length_penalty: str = "none"
    alpha: float = 1.0
    max_length: int | Sequence[int] = 64
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    processors: Sequence[LogitsProcessor] = ()
    early_stopping: bool = True
    bos_id: int = 2
    eos_id: int = 3

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            UserError: a value is out of range, or two contradict each other.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name in _KEYS}
        if not isinstance(self.max_length, int):
            values["max_length"] = min(self.max_length, default=1)
        build(DecodingConfig, values, "decoding")
        if self.seed < 0:
            raise UserError(f"decoding: seed is {self.seed}, it must be 0 or more")

    @classmethod
    def of(
        cls, settings: DecodingConfig, n_best: int, seed: int, processors: Sequence[LogitsProcessor]
    ) -> SearchOptions:
        """Return the options of a recipe's decoding section.

        Args:
            settings: the section; its beam is widened where `n_best` asks for more, to a multiple of the groups.
            n_best: candidates returned for an input.
            seed: of the draws.
            processors: applied in this order.
        """
        return cls(
            strategy=settings.strategy,
            beam_size=-(-max(settings.beam_size, n_best) // settings.groups) * settings.groups,
            groups=settings.groups,
            diversity_penalty=settings.diversity_penalty,
            n_best=n_best,
            length_penalty=settings.length_penalty,
            alpha=settings.alpha,
            max_length=settings.max_length,
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            seed=seed,
            processors=processors,
        )

    def limits(self, inputs: int) -> list[int]:
        """Return the length limit of every input.

        Args:
            inputs: number of inputs in the batch.

        Returns:
            Tokens at most, one number for each input.

        Raises:
            UserError: `max_length` is a list of another length than the batch.
        """
        if isinstance(self.max_length, int):
            return [self.max_length] * inputs
        if len(self.max_length) != inputs:
            raise UserError(
                f"decoding: max_length has {len(self.max_length)} limits for {inputs} inputs; give one each"
            )
        return [int(limit) for limit in self.max_length]
