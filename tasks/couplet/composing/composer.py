"""Writes whole couplets: drafts, a 上联 for each, its 下联 under the rules, and a choice of those that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice, zip_longest

import numpy as np

from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.errors import UserError
from paddle_dialog.judge import Judge
from paddle_dialog.tasks.couplet.composing.drafts import TONE_RULES, Draft, broken_tones, make_drafts
from paddle_dialog.tasks.couplet.composing.proposals import KNOWN_COST, Proposal, Scores, choose, quality
from paddle_dialog.tasks.couplet.composing.request import COMMA, Request, has_word
from paddle_dialog.tasks.couplet.direction import compose_source, encode_sources
from paddle_dialog.tasks.couplet.form import form_report
from paddle_dialog.tasks.couplet.line_plan import CharacterTable, LinePlan, PlannedLines
from paddle_dialog.tasks.couplet.prediction import CoupletPrediction, CoupletPredictor
from paddle_dialog.tasks.couplet.rerank import ReverseModel
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import Tone

DRAFTS, FEWEST_DRAFTS = 80, 12  # of each couplet in one round, see `_drafts`
COMPARED = 12  # proposals of a round that are looked for in the training corpus, the best
ANSWERED, CHARACTERS = 128, 1408  # of the 上联 of a round that are answered, see `_answered`
_USUAL_ROUNDS = 2  # which differ in their drafts alone; twice as many where fewer 上联 are answered in one
# What a 上联 is held to in the rounds after those, where they find nothing.
_FURTHER_ROUNDS = [TONE_RULES[number:] for number in range(1, len(TONE_RULES) + 1)]
# How 上联 are drawn: near enough to the model's best to be good, far enough to differ.
_SAMPLING = SearchOptions(strategy="sample", n_best=3, temperature=0.65, top_k=20, top_p=0.9)
_BEAM = 5  # of the 下联, or as wide as `rerank.candidates` asks
_TONE_WEIGHT = 2.0  # of the 下联: both lines are ours, so their tones can oppose


class NoneFound(UserError):
    """The model writes no couplet of the kind that was asked for."""


@dataclass(frozen=True)
class FirstLine:
    """A 上联 that was written.

    Args:
        score: log-probability per token, the end included.
    """

    draft: Draft
    text: str
    score: float

    @property
    def free_score(self) -> float:
        """The log-probability per token that was left to the model; what it is given is likely."""
        size = len(self.text) + 1
        given = len(self.draft.first) + len(self.draft.pattern.commas)
        return self.score * size / max(1, size - given)


class Composer:
    """Composes with one model.

    Args:
        predictor: answers 上联.
        table: the characters of its vocabulary.
        judge: values couplets; None where there is none.
        refused: says which lines are not to be written.
    """

    def __init__(
        self,
        predictor: CoupletPredictor,
        table: CharacterTable,
        judge: Judge | None,
        refused: Callable[[str], bool],
    ) -> None:
        self._predictor, self._table, self._judge, self._refused = predictor, table, judge, refused
        self._model, self._vocabulary = predictor.step_model, predictor.vocabulary

    def compose(self, request: Request, seed: int = 0) -> list[Proposal]:
        """Return proposals that differ, best first; those of a long name in groups of its couplets, in order.

        There may be fewer than asked for, where too few differ; there is one at least.

        Raises:
            NoneFound: the model finds no couplet.
        """
        random = np.random.default_rng(seed)
        if len(request.parts) > 1:  # the couplets of one proposal are alike in form
            usual = max(request.patterns, key=lambda pattern: request.patterns[pattern])
            request = replace(request, patterns={usual: 1})
        pools: list[dict[str, Proposal]] = [{} for _ in request.parts]
        chosen: list[list[Proposal]] = [[] for _ in pools]
        rounds = _USUAL_ROUNDS if _answered(request) == ANSWERED else 2 * _USUAL_ROUNDS
        for number, rules in enumerate([TONE_RULES] * rounds + _FURTHER_ROUNDS):
            if number >= rounds and all(pools):
                break
            short = [len(own) < request.count for own in chosen]
            for part, pool in compress(zip(request.parts, pools, strict=True), short):
                drafts = make_drafts(request, part, _drafts(request), random, rules)
                written = self._written(request, drafts, int(random.integers(2**31)))
                pool.update({proposal.first: proposal for proposal in self._new_first(written)})
            chosen = _chosen(pools, request.count)
            if min(map(len, chosen)) == request.count:
                break
        return _in_order(chosen)

    def _new_first(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Return proposals with those of the best marked down that have a line of the training corpus."""
        ranked = sorted(proposals, key=_quality, reverse=True)
        known = [number < COMPARED and self._is_known(proposal) for number, proposal in enumerate(ranked)]
        both = zip(ranked, known, strict=True)
        return [replace(proposal, quality=proposal.quality - KNOWN_COST * cost) for proposal, cost in both]

    def _is_known(self, proposal: Proposal) -> bool:
        """Return whether a line stands in the index of the training corpus; False where there is no index."""
        if self._predictor.couplet_index is None:
            return False
        found = self._predictor.nearest_known(proposal.first, proposal.second)
        return found is not None and found.distance == 0

    def _written(self, request: Request, drafts: Sequence[Draft], seed: int) -> list[Proposal]:
        """Return proposals on the themes."""
        # The best of each draft, then the second of each, and so on: drafts differ more than the texts of one.
        ranks = zip_longest(*self._first_lines(drafts, seed))
        lines = {line.text: line for rank in ranks for line in rank if line is not None}
        firsts, most = list(lines.values()), _answered(request)
        if most < ANSWERED:  # those come first whose 下联 need not happen to speak of the themes
            firsts.sort(key=lambda first: not _speaks_of(request, first.text, first.draft.lock))
        firsts = firsts[:most]
        if not firsts:
            return []
        answers = self._predictor.answer(
            [self._predictor.check(first.text, first.draft.lock) for first in firsts],
            2,
            replace(self._predictor.rules, tone_weight=_TONE_WEIGHT),
            replace(self._predictor.config.decoding, strategy="beam", beam_size=_BEAM),
            distance=0.0,  # what is proposed is made to differ as a whole
            refused=self._refused,
        )
        pairs = []
        for first, seconds in zip(firsts, answers, strict=True):
            fitting = (second for second in seconds if _speaks_of(request, first.text, second.text))
            pairs += [(first, second) for second in islice(fitting, 1)]
        read = zip(pairs, *self._read_back(pairs), strict=True)
        return [_proposal(request, *pair, float(back), float(said)) for pair, back, said in read]

    def _first_lines(self, drafts: Sequence[Draft], seed: int) -> list[list[FirstLine]]:
        """Write 上联 for each draft, held to its tones, best first; none where there is none."""
        plans = [self._plan(draft) for draft in drafts]
        sources = [np.asarray(compose_source(self._vocabulary, d.template, d.told)) for d in drafts]
        processors, limits = [PlannedLines(plans, self._table)], [draft.size for draft in drafts]
        options = replace(_SAMPLING, processors=processors, max_length=limits, seed=seed)
        found = decode(self._model, *encode_sources(sources), options)
        written = []
        for draft, plan, hypotheses in zip(drafts, plans, found, strict=True):
            texts = {plan.text(self._vocabulary.decode(h.tokens)): h.score for h in reversed(hypotheses)}
            ranked = sorted(texts.items(), key=lambda item: -item[1])
            written.append([FirstLine(draft, *each) for each in ranked if not self._refused(each[0])])
        return written

    def _plan(self, draft: Draft) -> LinePlan:
        vocabulary, table, size = self._vocabulary, self._table, draft.size
        # What the 下联 is bound to have, the 上联 may not have too.
        fixed = (*draft.first.values(), *draft.second.values())
        base = np.where(table.hanzi & ~table.special, 0.0, np.inf).astype(np.float32)  # [V]
        base[vocabulary.encode({c for c in fixed if is_hanzi(c) and c in vocabulary})] = np.inf
        unlike = {Tone.LEVEL: ~table.level, Tone.OBLIQUE: ~table.oblique}
        of_tone: dict[Tone | None, np.ndarray] = {None: base}  # each [V]
        of_tone.update({tone: np.where(wrong, np.inf, base) for tone, wrong in unlike.items()})
        forced = {**dict.fromkeys(draft.pattern.commas, COMMA), **draft.first}
        return LinePlan(
            forced=forced,
            origins=range(size),
            penalties={p: of_tone[draft.tones.get(p)] for p in range(size) if p not in forced},
            beyond=base,
            minimum=size,
            exact=True,
            distinct=True,
            ending=None,
        )

    def _read_back(
        self, pairs: Sequence[tuple[FirstLine, CoupletPrediction]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return scores of each 上联 after its answer, and what the judge says, [N] each; 0 without one."""
        lines, seconds = [first.text for first, _ in pairs], [[second.text] for _, second in pairs]
        back = ReverseModel(self._model, self._vocabulary)
        if self._judge is None or not isinstance(self._model, TextReader) or not pairs:
            return np.array(back.scores(lines, seconds)).ravel(), np.zeros(len(pairs))
        scores, states = back.read(lines, seconds)
        return np.concatenate(scores), self._judge(np.concatenate(states))


def _drafts(request: Request) -> int:
    """Return the drafts of each couplet in one round: fewer for long lines and names, which take longer."""
    return min(DRAFTS, max(FEWEST_DRAFTS, DRAFTS * 7 // _size(request)))


def _answered(request: Request) -> int:
    """Return how many 上联 of each couplet are answered in one round: fewer for long lines and names."""
    return min(ANSWERED, max(2 * request.count, CHARACTERS // _size(request)))


def _size(request: Request) -> int:
    """Return the characters of the 上联 of one proposal, at most."""
    return max(pattern.length for pattern in request.patterns) * len(request.parts)


def _speaks_of(request: Request, first: str, second: str) -> bool:
    return all(
        any(has_word(line, word) for line in (first, second) for word in theme.words)
        for theme in request.themes
    )


def _proposal(
    request: Request, first: FirstLine, second: CoupletPrediction, reverse: float, judged: float
) -> Proposal:
    lines, form = (first.text, second.text), form_report(first.text, second.text)
    relaxed = (*broken_tones(first.text), *second.relaxed)
    sizes = len(first.text) + 1, len(second.text) + 1
    score = (first.score * sizes[0] + second.score * sizes[1]) / sum(sizes)
    fixed = frozenset({*first.draft.first, *first.draft.second})
    scores = Scores(first.free_score, second.score, reverse, judged)
    good = quality(lines, scores, relaxed, request.themes, bool(request.name))
    return Proposal(*lines, score, form, relaxed, good, fixed=fixed)


def _quality(proposal: Proposal) -> float:
    return proposal.quality


def _chosen(pools: Sequence[dict[str, Proposal]], count: int) -> list[list[Proposal]]:
    """Choose for each couplet of a proposal; all differ from one another."""
    chosen: list[list[Proposal]] = []
    for pool in pools:
        before = [proposal for proposals in chosen for proposal in proposals]
        chosen.append(choose(sorted(pool.values(), key=_quality, reverse=True), count, before))
    return chosen


def _in_order(chosen: Sequence[Sequence[Proposal]]) -> list[Proposal]:
    complete = list(zip(*chosen, strict=False))
    if not complete:
        raise NoneFound(
            "the model finds no such couplet; ask for another theme, name or length", "none_found"
        )
    if len(chosen) == 1:
        return sorted(chosen[0], key=_quality, reverse=True)
    return [
        proposal.numbered(number, part)
        for number, proposals in enumerate(complete, start=1)
        for part, proposal in enumerate(proposals, start=1)
    ]
