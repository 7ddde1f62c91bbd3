"""How to search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddle_dialog.decoding.penalties import LENGTH_PENALTIES
from paddle_dialog.decoding.processors import LogitsProcessor
from paddle_dialog.errors import UserError

if TYPE_CHECKING:
    from paddle_dialog.config.schema import DecodingConfig

STRATEGIES = ("beam", "greedy", "sample")


@dataclass(frozen=True)
class SearchOptions:
    """The settings of one search; nonsense is refused when the object is made.

    Attributes:
        strategy: `beam`, `greedy` (a beam of 1) or `sample` (ancestral sampling).
        beam_size: hypotheses kept for an input (`beam` only).
        groups: parts of the beam that keep away from each other's tokens, see `diverse`; 1 is plain beam search.
        diversity_penalty: nats a token costs for each earlier group that chose it at the same step, >= 0.
        n_best: candidates returned for an input, best first; for `sample` the number of independent draws.
        length_penalty: `none`, `average` or `gnmt`; see `penalties.length_divisor`.
        alpha: strength of the length penalty, >= 0.
        max_length: tokens of a text at most, the end token not counted; one number, or one for every input.
        temperature: divides the log-probabilities before sampling, > 0 (`sample` only).
        top_k: sample among the k most probable tokens; 0 means all.
        top_p: sample among the fewest most probable tokens that hold this probability together, in (0, 1].
        seed: of the draws. The stream of an input depends on the seed, its own ids and the number of the
            draw, not on its place in the batch.
        processors: applied in this order to the log-probabilities of each step.
        early_stopping: leave an input when no continuation can enter its n best; changes the time, never the
            result.
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
        _one_of("strategy", self.strategy, STRATEGIES)
        _one_of("length_penalty", self.length_penalty, LENGTH_PENALTIES)
        _at_least("beam_size", self.beam_size, 1)
        _at_least("groups", self.groups, 1)
        _at_least("n_best", self.n_best, 1)
        _at_least("top_k", self.top_k, 0)
        _at_least("seed", self.seed, 0)
        if not self.diversity_penalty >= 0:
            raise UserError(f"decoding: diversity_penalty is {self.diversity_penalty}, it must be 0 or more")
        if self.strategy == "beam" and self.beam_size % self.groups:
            raise UserError(
                f"decoding: beam_size is {self.beam_size}, which {self.groups} groups cannot share equally; "
                "take a multiple of groups"
            )
        if not self.alpha >= 0:
            raise UserError(f"decoding: alpha is {self.alpha}, it must be 0 or more")
        if not self.temperature > 0:
            raise UserError(f"decoding: temperature is {self.temperature}, it must be above 0")
        if not 0 < self.top_p <= 1:
            raise UserError(f"decoding: top_p is {self.top_p}, it must be above 0 and at most 1")
        limits = [self.max_length] if isinstance(self.max_length, int) else list(self.max_length)
        for limit in limits:
            _at_least("max_length", limit, 1)
        if self.strategy == "beam" and self.beam_size < self.n_best:
            raise UserError(
                f"decoding: n_best is {self.n_best} but beam_size only {self.beam_size}; "
                "raise beam_size or ask for fewer candidates"
            )
        if self.strategy == "greedy" and self.n_best > 1:
            raise UserError(
                f"decoding: greedy search gives one candidate, n_best is {self.n_best}; use beam or sample"
            )

    @classmethod
    def of(
        cls, settings: DecodingConfig, n_best: int, seed: int, processors: Sequence[LogitsProcessor]
    ) -> SearchOptions:
        """The options of a recipe's decoding section.

        Args:
            settings: the section; its beam is widened where `n_best` asks for more.
            n_best: candidates returned for an input.
            seed: of the draws.
            processors: applied in this order.
        """
        return cls(
            strategy=settings.strategy,
            beam_size=max(settings.beam_size, n_best),
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
        """The length limit of every input.

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


def _one_of(key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UserError(f"decoding: {key} is {value!r}, it must be one of {', '.join(allowed)}")


def _at_least(key: str, value: int, least: int) -> None:
    if value < least:
        raise UserError(f"decoding: {key} is {value}, it must be {least} or more")
