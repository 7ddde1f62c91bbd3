"""A trained couplet model that also writes whole couplets: drafts, a 上联 for each, its 下联, and a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from operator import attrgetter

import numpy as np

from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.couplet.composing.drafts import (
    TONE_RULES,
    Draft,
    broken_tones,
    has_word,
    make_drafts,
)
from paddle_dialog.tasks.couplet.composing.proposals import KNOWN_COST, Proposal, Scores, choose, quality
from paddle_dialog.tasks.couplet.composing.request import COMMA, Request, read_request, usual_themes
from paddle_dialog.tasks.couplet.composing.scrolls import Scroll, choose_scrolls, occasions, occasions_in
from paddle_dialog.tasks.couplet.line_plan import LinePlan, PlannedLines
from paddle_dialog.tasks.couplet.prediction import CoupletPrediction, CoupletPredictor
from paddle_dialog.tasks.couplet.prompts import ONE_WAY, compose_source, encode_sources, knows_marks
from paddle_dialog.text.characters import Tone, is_hanzi, simplified_line

# What no character of somebody's name may become the beginning of.
UNKIND = "小人 小子 小丑 小贼 小鬼 小偷 小妾 小奴 王八 老贼 老鬼 白痴 红杏出墙 黄泉 文盲"
_SCROLLS = 5
MAX_DRAFTS, MIN_DRAFTS = 80, 12  # of each couplet in one round
COMPARED = 12  # proposals of a round that are looked for in the training corpus, the best
ANSWERED, CHARACTERS = 128, 1408  # of the 上联 of a round that are answered
_TOGETHER = 32  # of those; the best of each are there while the next are written
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
    """A 上联 that was written, and its log-probability per token, the end included."""

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
    """Composes what one request asks for.

    Args:
        refused: returns whether a line is not to be written.
    """

    def __init__(
        self, predictor: ComposingPredictor, request: Request, refused: Callable[[str], bool]
    ) -> None:
        if len(request.parts) > 1:  # the couplets of one proposal are alike in form
            usual = max(request.patterns, key=lambda pattern: request.patterns[pattern])
            request = replace(request, patterns={usual: 1})
        self._predictor, self._request, self._refused = predictor, request, refused
        self._model, self._vocabulary = predictor.step_model, predictor.vocabulary
        # Of each couplet fewer are tried in one round where its lines or the name are long, which takes longer.
        size = max(pattern.length for pattern in request.patterns) * len(request.parts)
        self._drafts = min(MAX_DRAFTS, max(MIN_DRAFTS, MAX_DRAFTS * 7 // size))
        self._answered = min(ANSWERED, max(2 * request.count, CHARACTERS // size))

    def compose(self, seed: int) -> Iterator[list[Proposal]]:
        """Yield the proposals that there are so far, ever more and better ones; the last are the answer.

        They differ and come best first, those of a long name in groups of its couplets, in order. There may be fewer
        than asked for, where too few differ; there is one at least.
        """
        request, random = self._request, np.random.default_rng(seed)
        pools: list[dict[str, Proposal]] = [{} for _ in request.parts]
        chosen: list[list[Proposal]] = [[] for _ in pools]
        usual_rounds = _USUAL_ROUNDS * (1 if self._answered == ANSWERED else 2)
        for number, rules in enumerate([TONE_RULES] * usual_rounds + _FURTHER_ROUNDS):
            if min(map(len, chosen)) == request.count or (number >= usual_rounds and all(pools)):
                break
            few = [place for place, found in enumerate(chosen) if len(found) < request.count]
            for place in few:
                drafts = make_drafts(request, request.parts[place], self._drafts, random, rules)
                before, written = pools[place], list[Proposal]()
                for batch in self._written(drafts, int(random.integers(2**31))):
                    written += batch
                    pools[place] = {**before, **{one.first: one for one in self._marked_down(written)}}
                    chosen = _chosen(pools, request.count)
                    if all(chosen):
                        yield _in_order(chosen)
        if not all(chosen):
            raise NoneFound(
                "the model finds no such couplet; ask for another theme, name or length", "none_found"
            )

    def _marked_down(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Lower the quality of the best proposals that have a line of the training corpus."""
        ranked = sorted(proposals, key=attrgetter("quality"), reverse=True)
        for place, proposal in enumerate(ranked[:COMPARED] if self._predictor.couplet_index else []):
            found = self._predictor.nearest_known(proposal.first, proposal.second)
            if found is not None and found.distance == 0:
                ranked[place] = replace(proposal, quality=proposal.quality - KNOWN_COST)
        return ranked

    def _written(self, drafts: Sequence[Draft], seed: int) -> Iterator[list[Proposal]]:
        """Yield proposals on the themes, one batch of 下联 after the other."""
        # The best of each draft, then the second of each, and so on: drafts differ more than the texts of one.
        ranks = zip_longest(*self._first_lines(drafts, seed))
        lines = {line.text: line for rank in ranks for line in rank if line is not None}
        firsts, most = list(lines.values()), self._answered
        if most < ANSWERED:  # those come first whose 下联 need not happen to speak of the themes
            firsts.sort(key=lambda first: not self._speaks_of(first.text, first.draft.lock))
        for start in range(0, min(len(firsts), most), _TOGETHER):
            yield self._proposals(firsts[start : min(start + _TOGETHER, most)])

    def _speaks_of(self, first: str, second: str) -> bool:
        """Return whether two lines have a word of each theme."""
        return all(
            any(has_word(line, word) for line in (first, second) for word in theme.words)
            for theme in self._request.themes
        )

    def _proposals(self, firsts: Sequence[FirstLine]) -> list[Proposal]:
        """Answer some 上联; return those as proposals whose couplets speak of the themes."""
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
            fitting = (second for second in seconds if self._speaks_of(first.text, second.text))
            if (best := next(fitting, None)) is not None:
                pairs.append((first, best))
        if not pairs:
            return []
        read = zip(pairs, *self._read_back(pairs), strict=True)
        return [self._proposal(*pair, float(back), float(judged)) for pair, back, judged in read]

    def _proposal(
        self, first: FirstLine, second: CoupletPrediction, reverse: float, judged: float
    ) -> Proposal:
        lines, request = (first.text, second.text), self._request
        relaxed = (*broken_tones(first.text), *second.relaxed)
        sizes = len(first.text) + 1, len(second.text) + 1
        score = (first.score * sizes[0] + second.score * sizes[1]) / sum(sizes)
        fixed = frozenset({*first.draft.first, *first.draft.second})
        scores = Scores(first.free_score, second.score, reverse, judged)
        good = quality(lines, scores, relaxed, request.themes, bool(request.name))
        return Proposal(*lines, score, second.form, relaxed, good, fixed=fixed)

    def _first_lines(self, drafts: Sequence[Draft], seed: int) -> list[list[FirstLine]]:
        """Write 上联 for each draft, held to its tones, best first; none where there is none."""
        plans = [self._plan(draft) for draft in drafts]
        sources = [np.asarray(compose_source(self._vocabulary, d.template, d.words)) for d in drafts]
        processors, limits = [PlannedLines(plans, self._predictor.table)], [draft.size for draft in drafts]
        options = replace(_SAMPLING, processors=processors, max_length=limits, seed=seed)
        found = decode(self._model, *encode_sources(sources), options)
        written = []
        for draft, plan, hypotheses in zip(drafts, plans, found, strict=True):
            texts = {plan.text(self._vocabulary.decode(h.tokens)): h.score for h in reversed(hypotheses)}
            ranked = sorted(texts.items(), key=lambda item: -item[1])
            written.append([FirstLine(draft, *each) for each in ranked if not self._refused(each[0])])
        return written

    def _plan(self, draft: Draft) -> LinePlan:
        vocabulary, table, size = self._vocabulary, self._predictor.table, draft.size
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
        lines, seconds = [first.text for first, _ in pairs], [second.text for _, second in pairs]
        back, judge = self._predictor.reverse, self._predictor.judge
        if judge is None or not isinstance(self._model, TextReader):
            return np.concatenate(back.scores(lines, [[one] for one in seconds])), np.zeros(len(pairs))
        scores, states = back.read(lines, seconds)
        return scores, judge(states)


def _chosen(pools: Sequence[Mapping[str, Proposal]], count: int) -> list[list[Proposal]]:
    """Return the best of each couplet that differ, from those of the other couplets too."""
    chosen: list[list[Proposal]] = []
    for pool in pools:
        before = [proposal for proposals in chosen for proposal in proposals]
        chosen.append(choose(sorted(pool.values(), key=attrgetter("quality"), reverse=True), count, before))
    return chosen


def _in_order(chosen: Sequence[Sequence[Proposal]]) -> list[Proposal]:
    """Return proposals best first, those of several couplets with their numbers."""
    if len(chosen) == 1:
        return sorted(chosen[0], key=attrgetter("quality"), reverse=True)
    return [
        replace(proposal, set=number, part=part)
        for number, proposals in enumerate(zip(*chosen, strict=False), start=1)
        for part, proposal in enumerate(proposals, start=1)
    ]


class ComposingPredictor(CoupletPredictor):
    """Answers 上联, and writes couplets from a theme, from a name or from nothing."""

    @cached_property
    def judge(self) -> Judge | None:
        """The judge of couplets, fitted to ratings; None where the bundle has none."""
        content = self._trained.files.get(JUDGE)
        return None if content is None else Judge.from_bytes(content, self.config.model.width)

    @property
    def composes(self) -> bool:
        """Whether the model was trained to write couplets without a 上联."""
        return knows_marks(self.vocabulary) and self.config.decoding.engine != "reference"

    def compose(
        self,
        theme: str = "",
        name: str = "",
        place: int = 1,
        length: int | None = None,
        pattern: str | None = None,
        count: int = 5,
        scroll: str | None = None,
        seed: int | None = None,
    ) -> list[Proposal]:
        """Write whole couplets that differ, best first; fewer than asked for where too few differ.

        Args:
            theme: words with blanks or commas between them, e.g. 春节; a couplet has a word of each.
            name: its characters are placed in the lines by turns, e.g. 李明; more than two make several couplets.
            place: of the name's characters in their lines, 1 is the first, punctuation not counted.
            length: characters of a line, 4 to 15, punctuation not counted; 7 by default.
            pattern: of the clauses, e.g. 4+7.
            count: proposals, each of as many couplets as the name needs.
            scroll: a 横批 of one's own; by default the model chooses.
            seed: of the draws; the config's by default.

        Raises:
            UserError: the request cannot be met, or the model was not trained for it.
        """
        asked = read_request(theme, name, place, length, pattern, count, scroll)
        *_, found = self.compose_in_parts(asked, seed)
        return found

    def compose_in_parts(
        self, request: Request, seed: int | None = None, refused: Callable[[str], bool] | None = None
    ) -> Iterator[list[Proposal]]:
        """Yield what `compose` has found so far, and at last what it returns; it writes nothing `refused`."""
        self.check_composes(request)
        if seed is not None and not 0 <= seed < 2**32:
            raise UserError(f"seed is {seed}; give 0 to {2**32 - 1}")
        unkind = [word for word in UNKIND.split() if word[0] in request.name]

        def refuses(line: str) -> bool:
            return any(word in line for word in unkind) or (refused is not None and refused(line))

        for found in Composer(self, request, refuses).compose(self.config.seed if seed is None else seed):
            yield self._with_scrolls(request, found)

    def scrolls(self, first: str, second: str, count: int = 5) -> list[Scroll]:
        """Return 横批 that go with a couplet, best first."""
        above, below = simplified_line(first), simplified_line(second)
        for name, line in (("上联", above), ("下联", below)):
            if not any(map(is_hanzi, line)):
                raise UserError(f"the {name} has no Chinese character; a 横批 is chosen for both lines")
        return choose_scrolls(above, below, count)

    def _with_scrolls(self, request: Request, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Give each proposal its 横批, none the same best one where others fit too."""
        known = usual_themes()
        words = {theme.words for theme in request.themes}
        asked = [name for name in occasions() if name in known and known[name].words in words]
        asked += occasions_in(" ".join(theme.name for theme in request.themes))
        parts = [part for theme in request.themes for part in (theme.name, *theme.words)]
        given: list[Proposal] = []
        for proposal in proposals:
            lines = (proposal.first, proposal.second)
            wished = "".join(parts or lines)
            chosen = choose_scrolls(*lines, _SCROLLS, asked, wished)
            texts = [scroll.text for scroll in chosen]
            taken = {other.scroll for other in given}
            best = next((text for text in texts if text not in taken), texts[0])
            lead = best if request.scroll is None else request.scroll
            given.append(replace(proposal, scrolls=tuple(dict.fromkeys([lead, *texts]))[:_SCROLLS]))
        return given

    def check_composes(self, request: Request) -> None:
        """Raise a `UserError` unless the model can write such lines."""
        if not self.composes:
            raise UserError(ONE_WAY)
        longest = max(pattern.length + len(pattern.commas) for pattern in request.patterns)
        if longest > self.longest_line:
            raise UserError(
                f"the lines would have {longest} characters, and this model writes up to {self.longest_line}",
                "pattern_long",
                length=longest,
                limit=self.longest_line,
            )
