"""The search for texts: greedy, beam and sampling, over all inputs of a batch at once; and scores of given texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from paddle_dialog.config.schema import DecodingConfig
from paddle_dialog.decoding.interface import Hypothesis, StepModel, TextReader
from paddle_dialog.decoding.processors import ForcedPrefix, LogitsProcessor, Prefixes, allow_only
from paddle_dialog.decoding.sampling import draw_tokens, uniform_numbers
from paddle_dialog.decoding.scores import ScoreTable, best_candidates, capped, group_starts
from paddle_dialog.errors import UserError
from paddle_dialog.text.vocabulary import Vocabulary

Rules = TypeVar("Rules")
Found = TypeVar("Found")


@dataclass(frozen=True)
class SearchOptions:
    """The settings of one search.

    Attributes that are not explained here are the keys of `DecodingConfig`, which describes and bounds them.

    Raises:
        UserError: more candidates are wanted than the search finds.
    """

    strategy: str = "beam"
    beam_size: int | Sequence[int] = 5  # one number for all inputs, or one for each
    n_best: int = 1
    # A narrower beam whose candidates come before those that only `beam_size` finds, so that asking for more changes
    # none of the first ones.
    first_beam: int | None = None
    length_penalty: str = "none"
    alpha: float = 1.0
    max_length: int | Sequence[int] = 64  # the same
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    # Of the draws. The stream of an input depends on the seed, its own ids and the number of the draw, not on
    # its place in the batch.
    seed: int = 0
    # Applied in this order to the log-probabilities of each step.
    processors: Sequence[LogitsProcessor] = ()
    bos_id: int = Vocabulary.bos_id  # start token, given to the first step

    def __post_init__(self) -> None:
        if self.strategy == "greedy" and self.n_best > 1:
            raise UserError(
                f"decoding.n_best: is {self.n_best}, but greedy search gives one candidate; take beam or sample"
            )
        beam = self.beam_size if isinstance(self.beam_size, int) else max(self.beam_size, default=self.n_best)
        if self.strategy == "beam" and self.n_best > beam:
            raise UserError(
                f"decoding.n_best: is {self.n_best}, but a beam of {beam} holds fewer; raise beam_size"
            )

    @classmethod
    def of(
        cls, settings: DecodingConfig, n_best: int, seed: int, processors: Sequence[LogitsProcessor]
    ) -> SearchOptions:
        """Return the options of a recipe's decoding section.

        Args:
            settings: the section; its beam is widened where `n_best` asks for more.
            n_best: candidates returned for an input.
            seed: of the draws.
            processors: applied in this order.
        """
        values = {key.name: getattr(settings, key.name) for key in fields(cls) if hasattr(settings, key.name)}
        if settings.strategy != "sample" and n_best > settings.beam_size:
            values.update(beam_size=n_best, first_beam=settings.beam_size)
        values.update(n_best=n_best)
        return cls(**values, seed=seed, processors=processors)

    def beam_sizes(self, inputs: int) -> list[int]:
        """Return the slots of every input's beam [B]; greedy search has one."""
        return _of_each("beam_size", 1 if self.strategy == "greedy" else self.beam_size, inputs)

    def limits(self, inputs: int) -> np.ndarray:
        """Return the length limit of every input in tokens [B]."""
        return np.array(_of_each("max_length", self.max_length, inputs), dtype=np.int64)


def _of_each(name: str, value: int | Sequence[int], inputs: int) -> list[int]:
    """Return the value of an option for each input."""
    values = [value] * inputs if isinstance(value, int) else list(value)
    if len(values) != inputs:
        raise UserError(f"decoding: {name} has {len(values)} numbers for {inputs} inputs; give one each")
    return values


def length_divisor(name: str, alpha: float) -> Callable[[int], float]:
    """Return what log-probabilities of texts of different lengths are divided by before they are compared.

    `none`: 1. `average`: length ** alpha, the mean log-probability at alpha 1. `gnmt`: ((5 + length) / 6) **
    alpha (Wu et al. 2016, "Google's Neural Machine Translation System", equation 14).

    Args:
        name: `none`, `average` or `gnmt`.
        alpha: strength, >= 0; 0 is no penalty.

    Returns:
        A function of the length in tokens, the end token counted; it never decreases, which early stopping needs.
    """
    if name == "average":
        return lambda length: float(length) ** alpha
    if name == "gnmt":
        return lambda length: ((5.0 + length) / 6.0) ** alpha
    return lambda length: 1.0


def decode(
    model: StepModel,
    source: np.ndarray,
    lengths: np.ndarray,
    options: SearchOptions,
    state: Any = None,
    copies: int = 1,
) -> list[list[Hypothesis]]:
    """Write texts for a batch of inputs.

    Every text ends with the end token: at the length limit of its input it is the only token left, so
    `log_prob` is always that of a whole text. The result of an input does not depend on the rest of the
    batch, as long as the rows of the model's output do not. An input whose processors allow no text at all gets
    an empty list: relax them and search again.

    Args:
        model: implements `StepModel`.
        source: ids, [B, S] int64, or [B, S, k] where a model reads k numbers at each position.
        lengths: real length of each row, [B] int64.
        options: how to search.
        state: what `model.encode` returns for these inputs, where they are read already; else the search reads them.
        copies: how often each input is searched for; the copies are inputs of their own, one after the other, which
            the processors may treat differently. They are read once.

    Returns:
        For each input at most `n_best` hypotheses, highest `rank_score` first; those of `first_beam` before others.

    Raises:
        UserError: lengths and source do not fit, or the model's scores are not numbers.
    """
    if len(source.shape) not in (2, 3) or list(lengths.shape) != [source.shape[0]]:
        raise UserError(
            f"decoding: source has shape {list(source.shape)} and lengths {list(lengths.shape)}; "
            "they must be [batch, length] (or [batch, length, numbers]) and [batch]"
        )
    if not len(source):
        return []
    search = _sample if options.strategy == "sample" else _beam_search
    if state is None:
        state = model.encode(source, lengths)
    if copies > 1:
        rows = np.repeat(np.arange(len(source)), copies)
        source, lengths, state = source[rows], lengths[rows], model.reorder(state, rows)
    found = search(model, state, source, lengths, options)
    if options.first_beam is None or options.strategy != "beam":
        return found
    narrow = replace(options, beam_size=options.first_beam, n_best=options.first_beam, first_beam=None)
    first = search(model, state, source, lengths, narrow)
    return [_joined(*both)[: options.n_best] for both in zip(first, found, strict=True)]


def _joined(first: list[Hypothesis], more: list[Hypothesis]) -> list[Hypothesis]:
    known = {tuple(hypothesis.tokens) for hypothesis in first}
    return [*first, *(hypothesis for hypothesis in more if tuple(hypothesis.tokens) not in known)]


def text_log_probs(
    model: StepModel,
    source: np.ndarray,
    lengths: np.ndarray,
    texts: Sequence[Sequence[int]],
    inputs: Sequence[int] | None = None,
    state: Any = None,
) -> np.ndarray:
    """Return the teacher-forced log-probability of each text, its end token included.

    Args:
        model: implements `StepModel`; one that offers `TextReader` too reads each text whole.
        source: ids, [B, S] int64, or [B, S, k] where a model reads k numbers at each position.
        lengths: [B] int64.
        texts: M texts, ids without start and end token.
        inputs: the row of the source that each text belongs to; by default there is one text for each row.
        state: what `model.encode` returns for these inputs, where they are read already.

    Returns:
        log p(text, end | input), float64 [M].
    """
    rows = np.arange(len(texts)) if inputs is None else np.asarray(inputs, dtype=np.int64)  # [M]
    if isinstance(model, TextReader):
        return model.state_log_probs(model.text_states(source, lengths, texts, rows), texts)
    if state is None:
        state = model.encode(source, lengths)
    forced = ForcedPrefix([[*text, Vocabulary.eos_id] for text in texts])
    options = SearchOptions("greedy", max_length=[len(text) for text in texts], processors=[forced])
    found = decode(model, source[rows], lengths[rows], options, model.reorder(state, rows))
    return np.array([text[0].log_prob if text else -np.inf for text in found])


def search_relaxed(
    count: int, rules: Iterable[Rules], search: Callable[[Sequence[int], Rules], Sequence[Found | None]]
) -> list[Found | None]:
    """Search under the first of some rules that leave an input any text.

    Args:
        count: number of inputs.
        rules: tried in this order.
        search: returns what it finds for some of the inputs, given by number, under rules.

    Returns:
        What was found for each input; None where even the last rules leave nothing.
    """
    found: list[Found | None] = [None] * count
    for each in rules:
        pending = [number for number in range(count) if found[number] is None]
        if not pending:
            break
        for number, texts in zip(pending, search(pending, each), strict=True):
            found[number] = texts
    return found


class _CachedModel:
    """A model and its cache for the prefixes that grow.

    Args:
        model: that is stepped.
        state: of the inputs, before the first token.
        options: of the search.
    """

    def __init__(self, model: StepModel, state: Any, options: SearchOptions) -> None:
        self._model = model
        self._options = options
        self._cache = state
        self._normalised = bool(getattr(model, "returns_log_probabilities", False))

    def reorder(self, rows: np.ndarray) -> None:
        """Make row i of the cache continue what was row `rows[i]` [N']."""
        if not np.array_equal(rows, np.arange(self._rows)):
            self._cache = self._model.reorder(self._cache, rows.astype(np.int64))

    def step(self, prefixes: Prefixes) -> tuple[ScoreTable, np.ndarray]:
        """Score every continuation of the prefixes.

        Args:
            prefixes: what was written so far, one row for each row of the cache.

        Returns:
            Scores after the processors, with only the end token left at the length limit; and whether the model
            itself would end a row at its limit, True elsewhere, [N] bool.
        """
        if prefixes.length:
            last = prefixes.tokens[:, -1]  # [N]
        else:
            last = np.full(len(prefixes.inputs), self._options.bos_id, dtype=np.int64)
        scores, self._cache = self._model.step(last, self._cache)
        self._rows = len(last)
        table = ScoreTable(scores, self._normalised)
        values = table.values
        for process in self._options.processors:
            process(values, prefixes)
        ends = np.ones(len(last), dtype=bool)
        for row in np.flatnonzero(prefixes.limits == prefixes.length).tolist():
            ends[row] = values[row].argmax() == Vocabulary.eos_id
            allow_only(values, row, Vocabulary.eos_id)
        return table, ends


class Continuation(NamedTuple):
    """A prefix with one more token."""

    input: int  # number of the input
    row: int  # of the prefix
    token: int  # that follows it
    total: float  # processed log-probability of the prefix with this token
    log_prob: float  # the model's own


@dataclass
class _Beam:
    """The hypotheses of one input; the prefixes that still grow have the other slots of the beam.

    At each step the slots go to the best of the finished hypotheses that hold one and the candidates, compared by
    their score at their own length. Without a length penalty a hypothesis that loses its slot is forgotten, which
    is the textbook search and that of `nn.BeamSearchDecoder`; with one it still counts for the answer, since
    normalised scores fall and rise again.
    """

    options: SearchOptions  # of the search
    size: int  # number of slots
    limit: int  # length limit in tokens
    divisor: Callable[[int], float]  # of the length penalty
    in_beam: list[Hypothesis] = field(default_factory=list)  # finished hypotheses with a slot, best first
    # All finished hypotheses, in the order they were found.
    finished: list[Hypothesis] = field(default_factory=list)

    def advance(
        self, candidates: Sequence[Continuation], prefixes: Prefixes, ends: np.ndarray
    ) -> list[Continuation]:
        """Give out the slots of one step; return the candidates that grow on, none where the search is over.

        Args:
            candidates: of this input, best first.
            prefixes: all rows of the step.
            ends: see `_CachedModel.step`.
        """
        divisor = self.divisor(prefixes.length + 1)
        waiting, self.in_beam = self.in_beam, []
        growing: list[Continuation] = []
        for candidate in candidates:
            free = self.size - len(growing)
            score = candidate.total / divisor
            while waiting and len(self.in_beam) < free and waiting[0].rank_score >= score:
                self.in_beam.append(waiting.pop(0))
            if len(self.in_beam) >= free:
                break
            if candidate.token != Vocabulary.eos_id:
                growing.append(candidate)
                continue
            text = prefixes.tokens[candidate.row].tolist()
            hypothesis = Hypothesis.of(text, candidate.log_prob, bool(ends[candidate.row]), score)
            self.in_beam.append(hypothesis)
            self.finished.append(hypothesis)
        self.in_beam += waiting[: self.size - len(growing) - len(self.in_beam)]
        return [] if self._is_decided(growing) else growing

    def answer(self) -> list[Hypothesis]:
        """Return the finished hypotheses so far, best first; equal scores in the order they were found."""
        everything = sorted(self.finished, key=lambda hypothesis: -hypothesis.rank_score)
        if self.options.length_penalty != "none":
            return everything
        # Needed only if the processors left the prefixes that took its slot without a candidate.
        return self.in_beam + [h for h in everything if not any(h is kept for kept in self.in_beam)]

    def _is_decided(self, growing: Sequence[Continuation]) -> bool:
        """Return whether no candidate can still enter the answer.

        Every further token adds at most 0 to a log-probability, which is at most 0 itself, and the divisor is
        largest at the length limit: no text with this prefix can score above total / divisor(limit + 1). A later
        hypothesis of equal score ranks behind.
        """
        if not growing:
            return False
        settled = self.in_beam if self.options.length_penalty == "none" else self.answer()
        if len(settled) < self.options.n_best:
            return False
        reachable = growing[0].total / self.divisor(self.limit + 1)
        return settled[self.options.n_best - 1].rank_score >= reachable


def _beam_search(
    model: StepModel, state: Any, source: np.ndarray, lengths: np.ndarray, options: SearchOptions
) -> list[list[Hypothesis]]:
    """Search with a beam for each input; a beam of one is greedy search."""
    limits, sizes = options.limits(len(source)), options.beam_sizes(len(source))  # [B] each
    divisor = length_divisor(options.length_penalty, options.alpha)
    beams = [_Beam(options, size, limit, divisor) for size, limit in zip(sizes, limits.tolist(), strict=True)]
    cached = _CachedModel(model, state, options)
    inputs: np.ndarray = np.arange(len(beams))  # [N] input of each growing prefix
    tokens: np.ndarray = np.zeros((len(beams), 0), dtype=np.int64)  # [N, t]
    totals: np.ndarray = np.zeros(len(beams))  # [N] processed log-probabilities
    log_probs: np.ndarray = np.zeros(len(beams))  # [N] the model's own
    while len(inputs):
        prefixes = Prefixes(tokens, inputs, limits[inputs])
        table, ends = cached.step(prefixes)
        growing = [
            grown
            for candidates in _candidates(table, totals, log_probs, inputs, max(sizes))
            for grown in beams[candidates[0].input].advance(candidates, prefixes, ends)
        ]
        rows = np.array([candidate.row for candidate in growing], dtype=np.int64)  # [N']
        last = np.array([candidate.token for candidate in growing], dtype=np.int64)  # [N']
        totals = np.array([candidate.total for candidate in growing])
        log_probs = np.array([candidate.log_prob for candidate in growing])
        tokens = np.concatenate([tokens[rows], last[:, None]], axis=1)  # [N', t + 1]
        inputs = inputs[rows]
        if len(rows):
            cached.reorder(rows)
    return [beam.answer()[: options.n_best] for beam in beams]


def _candidates(
    table: ScoreTable, totals: np.ndarray, log_probs: np.ndarray, inputs: np.ndarray, count: int
) -> Iterator[list[Continuation]]:
    """Iterate over the `count` best candidates of each input, best first; an input without any is left out.

    Args:
        table: scores of the next token of N prefixes.
        totals: processed log-probabilities of the prefixes [N].
        log_probs: the model's own [N].
        inputs: of the prefixes [N].
        count: candidates of an input.
    """
    rows, tokens, scores = best_candidates(table, totals, inputs, count)  # [M] each
    columns = (inputs[rows], rows, tokens, scores, log_probs[rows] + table.log_probs(rows, tokens))
    every = list(map(Continuation._make, zip(*(column.tolist() for column in columns), strict=True)))
    starts = group_starts(inputs[rows]).tolist() if every else []
    for start, stop in pairwise([*starts, len(every)]):
        yield every[start:stop]


def _sample(
    model: StepModel, state: Any, source: np.ndarray, lengths: np.ndarray, options: SearchOptions
) -> list[list[Hypothesis]]:
    """Draw `n_best` texts for each input; fewer where the processors leave no token to draw.

    Draws of an input with the same prefix share a row of the model.
    """
    limits = options.limits(len(source))  # [B]
    numbers: list[np.ndarray] = []  # for each draw
    for ids, length, limit in zip(source, lengths.tolist(), limits.tolist(), strict=True):
        numbers += uniform_numbers(options.seed, options.n_best, ids[:length].ravel().tolist(), limit + 1)
    texts: list[list[Hypothesis]] = [[] for _ in limits]
    cached = _CachedModel(model, state, options)
    inputs = np.arange(len(limits))  # [N] input of each row
    tokens = np.zeros((len(limits), 0), dtype=np.int64)  # [N, t]
    rows = np.repeat(inputs, options.n_best)  # [M] row of each growing text
    draws = np.arange(len(rows))  # [M] number of each growing text
    totals, log_probs = np.zeros(len(rows)), np.zeros(len(rows))  # [M]
    while len(rows):
        table, ends = cached.step(Prefixes(tokens, inputs, limits[inputs]))
        uniform = np.array([numbers[draw][tokens.shape[1]] for draw in draws.tolist()])  # [M]
        drawn = draw_tokens(table.values, rows, uniform, options.temperature, options.top_k, options.top_p)
        alive = np.flatnonzero(drawn >= 0)
        rows, draws, drawn = rows[alive], draws[alive], drawn[alive]  # [M'] from here on
        totals = totals[alive] + capped(table.values[rows, drawn])
        log_probs = log_probs[alive] + table.log_probs(rows, drawn)
        for place in np.flatnonzero(drawn == Vocabulary.eos_id).tolist():
            row, log_prob, total = rows[place], float(log_probs[place]), float(totals[place])
            texts[inputs[row]].append(Hypothesis.of(tokens[row].tolist(), log_prob, bool(ends[row]), total))
        on = np.flatnonzero(drawn != Vocabulary.eos_id)
        draws, totals, log_probs = draws[on], totals[on], log_probs[on]  # [M'']
        width = table.values.shape[1]
        grown, rows = np.unique(rows[on] * width + drawn[on], return_inverse=True)  # [N'], [M'']
        parents = grown // width  # [N']
        tokens = np.concatenate([tokens[parents], (grown % width)[:, None]], axis=1)  # [N', t + 1]
        inputs = inputs[parents]
        if len(rows):
            cached.reorder(parents)
    return [sorted(drawn, key=lambda text: (-text.rank_score, text.tokens)) for drawn in texts]
