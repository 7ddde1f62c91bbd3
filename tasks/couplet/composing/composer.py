"""Writes whole couplets: drafts, a 上联 for each, its 下联 under the rules, and a choice of those that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from paddle_dialog.errors import UserError
from tasks.couplet.composing.drafts import Draft, make_drafts
from tasks.couplet.composing.first_lines import FirstLineWriter
from tasks.couplet.composing.proposals import Proposal, choose
from tasks.couplet.composing.ranking import KNOWN_COST, Scores, quality
from tasks.couplet.composing.request import Wish
from tasks.couplet.composing.themes import has_word
from tasks.couplet.composing.tone_schemes import TONE_RULES, broken_tones
from tasks.couplet.form import form_report

DRAFTS = 80  # of each couplet in one round
COMPARED = 12  # proposals of a round that are looked for in the training corpus, the best
ANSWERED = 128  # 上联 of a round that are answered
# What a 上联 is held to in each round. The first two differ in their drafts; the others are for what else finds none.
_ROUNDS = (TONE_RULES, TONE_RULES, *(TONE_RULES[number:] for number in range(1, len(TONE_RULES) + 1)))
_USUAL_ROUNDS = 2


class NoneFound(UserError):
    """The model writes no couplet of the kind that was asked for."""


@dataclass(frozen=True)
class FirstLine:
    """A 上联 that was written.

    Args:
        draft: that it keeps.
        text: as shown.
        score: log-probability per token, the end included.
    """

    draft: Draft
    text: str
    score: float


@dataclass(frozen=True)
class SecondLine:
    """A 下联.

    Args:
        text: as shown.
        score: log-probability per token, the end included.
        reverse: the same of its 上联, given it.
        relaxed: rules it could not be held to.
        judged: what the judge says of the couplet, 0 without one.
    """

    text: str
    score: float
    reverse: float
    relaxed: tuple[str, ...]
    judged: float = 0.0


AnswerLines = Callable[[Sequence[FirstLine]], Sequence[Sequence[SecondLine]]]


class Composer:
    """Composes with one model.

    Args:
        writer: of 上联.
        answer: writes 下联 for each 上联, held to its draft's `lock`, best first.
        is_known: says whether a line of a couplet stands in the training corpus.
        refused: says which lines are not to be written.
    """

    def __init__(
        self,
        writer: FirstLineWriter,
        answer: AnswerLines,
        is_known: Callable[[str, str], bool],
        refused: Callable[[str], bool],
    ) -> None:
        self._writer, self._answer, self._is_known, self._refused = writer, answer, is_known, refused

    def compose(self, wish: Wish, seed: int = 0) -> list[Proposal]:
        """Return proposals that differ, best first; those of a long name in groups of its couplets, in order.

        There may be fewer than asked for, where too few differ; there is one at least.

        Args:
            wish: the request.
            seed: of the draws.

        Raises:
            NoneFound: the model finds no couplet.
        """
        random = np.random.default_rng(seed)
        if len(wish.parts) > 1:  # the couplets of one proposal are alike in form
            usual = max(wish.patterns, key=lambda pattern: wish.patterns[pattern])
            wish = replace(wish, patterns={usual: 1})
        pools: list[dict[str, Proposal]] = [{} for _ in wish.parts]
        chosen: list[list[Proposal]] = []
        for number, rules in enumerate(_ROUNDS):
            if number >= _USUAL_ROUNDS and all(pools):
                break
            for part, pool in zip(wish.parts, pools, strict=True):
                drafts = make_drafts(wish, part, DRAFTS, random, rules)
                written = self._written(wish, drafts, int(random.integers(2**31)))
                pool.update({proposal.first: proposal for proposal in self._own_first(written)})
            chosen = _chosen(pools, wish.count)
            if min(map(len, chosen)) == wish.count:
                break
        return _in_order(chosen)

    def _own_first(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Return proposals with those of the best marked down that have a line of the training corpus."""
        ranked = sorted(proposals, key=_quality, reverse=True)
        known = [
            number < COMPARED and self._is_known(proposal.first, proposal.second)
            for number, proposal in enumerate(ranked)
        ]
        return [
            replace(proposal, quality=proposal.quality - KNOWN_COST * cost)
            for proposal, cost in zip(ranked, known, strict=True)
        ]

    def _written(self, wish: Wish, drafts: Sequence[Draft], seed: int) -> list[Proposal]:
        """Return proposals on the themes."""
        found = self._writer.write(drafts, seed)
        ranked = [
            [FirstLine(draft, text, score) for text, score in texts if not self._refused(text)]
            for draft, texts in zip(drafts, found, strict=True)
        ]
        # The best of each draft, then the second of each, and so on: drafts differ more than the texts of one.
        lines = {line.text: line for rank in zip_longest(*ranked) for line in rank if line is not None}
        firsts = list(lines.values())[:ANSWERED]
        written = []
        for first, answers in zip(firsts, self._answer(firsts) if firsts else (), strict=True):
            shown = [answer for answer in answers if _speaks_of(wish, first.text, answer.text)]
            if shown:
                written.append(_proposal(wish, first, shown[0]))
        return written


def _speaks_of(wish: Wish, first: str, second: str) -> bool:
    return all(
        any(has_word(line, word) for line in (first, second) for word in theme.words) for theme in wish.themes
    )


def _free_score(first: FirstLine) -> float:
    """Return the log-probability per token that was left to the model; what it is told is likely."""
    size = len(first.text) + 1
    given = len(first.draft.first) + len(first.draft.pattern.commas)
    return first.score * size / max(1, size - given)


def _proposal(wish: Wish, first: FirstLine, second: SecondLine) -> Proposal:
    form = form_report(first.text, second.text)
    relaxed = (*broken_tones(first.text), *second.relaxed)
    sizes = len(first.text) + 1, len(second.text) + 1
    score = (first.score * sizes[0] + second.score * sizes[1]) / sum(sizes)
    fixed = frozenset({*first.draft.first, *first.draft.second})
    scores = Scores(_free_score(first), second.score, second.reverse, second.judged)
    good = quality((first.text, second.text), scores, relaxed, wish.themes, bool(wish.name))
    return Proposal(first.text, second.text, score, form, relaxed, good, fixed=fixed)


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
        raise NoneFound("the model finds no such couplet; ask for another theme, name or length")
    if len(chosen) == 1:
        return sorted(chosen[0], key=_quality, reverse=True)
    return [
        proposal.numbered(number, part)
        for number, proposals in enumerate(complete, start=1)
        for part, proposal in enumerate(proposals, start=1)
    ]
