"""A trained couplet model that also writes whole couplets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from paddle_dialog.decoding.interface import TextReader
from paddle_dialog.decoding.search import SearchOptions
from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified_line
from tasks.couplet.composing.composer import Composer, FirstLine, SecondLine
from tasks.couplet.composing.first_lines import FirstLineWriter
from tasks.couplet.composing.proposals import Proposal
from tasks.couplet.composing.request import Wish, read_wish
from tasks.couplet.composing.themes import usual_themes
from tasks.couplet.direction import ONE_WAY, knows_marks
from tasks.couplet.prediction import CoupletPredictor
from tasks.couplet.rerank import ReverseModel
from tasks.couplet.scrolls.chooser import Scroll, ScrollChooser
from tasks.couplet.scrolls.listing import occasions

# How 上联 are drawn: near enough to the model's best to be good, far enough to differ.
_SAMPLING = SearchOptions(strategy="sample", n_best=3, temperature=0.65, top_k=20, top_p=0.9)
_BEAM = 5  # of the 下联, or as wide as `rerank.candidates` asks
_TONE_WEIGHT = 2.0  # of the 下联: both lines are ours, so their tones can oppose
_SCROLLS = 5


class ComposingPredictor(CoupletPredictor):
    """Answers 上联, and writes couplets from a theme, from a name or from nothing."""

    @cached_property
    def judge(self) -> Judge | None:
        """What values couplets, fitted to ratings; None where the bundle has none."""
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
        """Write whole couplets that differ, best first.

        Args:
            theme: words with blanks or commas between them, e.g. 春节; a couplet has a word of each.
            name: its characters stand in the lines by turns, e.g. 李明; more than two make several couplets.
            place: of the name's characters in their lines, 1 is the first, punctuation not counted.
            length: characters of a line, 4 to 15, punctuation not counted; 7 by default.
            pattern: of the clauses, e.g. 4+7.
            count: proposals, each of as many couplets as the name needs.
            scroll: a 横批 of one's own; by default the model chooses.
            seed: of the draws; the config's by default.

        Returns:
            Couplets with form and 横批; fewer than asked for where too few differ.

        Raises:
            UserError: the request cannot be met, or the model was not trained for it.
        """
        return self.compose_wish(read_wish(theme, name, place, length, pattern, count, scroll), seed)

    def compose_wish(
        self, wish: Wish, seed: int | None = None, refused: Callable[[str], bool] | None = None
    ) -> list[Proposal]:
        """Do what `compose` does for a checked request.

        Args:
            wish: the request.
            seed: of the draws; the config's by default.
            refused: says which lines are not to be written; by default those with a word of `rules.banned_words`.
        """
        self.check_composes(wish)
        if seed is not None and not 0 <= seed < 2**32:
            raise UserError(f"seed is {seed}; give 0 to {2**32 - 1}")
        refused = self.has_banned_word if refused is None else refused
        writer = FirstLineWriter(self.step_model, self._table, _SAMPLING)
        composer = Composer(writer, partial(self._answer_lines, refused), self._has_known_line, refused)
        found = composer.compose(wish, self.config.seed if seed is None else seed)
        return self._with_scrolls(wish, found)

    def scrolls(self, first: str, second: str, count: int = 5) -> list[Scroll]:
        """Return 横批 that go with a couplet, best first.

        Args:
            first: 上联.
            second: 下联.
            count: how many.

        Raises:
            UserError: a line has no Chinese character.
        """
        above, below = simplified_line(first), simplified_line(second)
        for name, line in (("上联", above), ("下联", below)):
            if not any(map(is_hanzi, line)):
                raise UserError(f"the {name} has no Chinese character; a 横批 is chosen for both lines")
        return self._scroll_chooser.choose(above, below, count)

    @cached_property
    def _scroll_chooser(self) -> ScrollChooser:
        return ScrollChooser()

    def _with_scrolls(self, wish: Wish, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Give each proposal its 横批, none the same best one where others fit too."""
        known = usual_themes()
        words = {theme.words for theme in wish.themes}
        asked = [name for name in occasions() if name in known and known[name].words in words]
        given: list[Proposal] = []
        for proposal in proposals:
            chosen = self._scroll_chooser.choose(proposal.first, proposal.second, _SCROLLS, asked)
            texts = [scroll.text for scroll in chosen]
            taken = {other.scroll for other in given}
            best = next((text for text in texts if text not in taken), texts[0])
            lead = best if wish.scroll is None else wish.scroll
            given.append(replace(proposal, scrolls=tuple(dict.fromkeys([lead, *texts]))[:_SCROLLS]))
        return given

    def check_composes(self, wish: Wish) -> None:
        """Raise a `UserError` unless the model can write such lines."""
        if not self.composes:
            raise UserError(ONE_WAY)
        longest = max(pattern.length + len(pattern.commas) for pattern in wish.patterns)
        if longest > self.longest_line:
            raise UserError(
                f"the lines would have {longest} characters, and this model writes up to {self.longest_line}"
            )

    def _has_known_line(self, first: str, second: str) -> bool:
        """Return whether a line stands in the index of the training corpus; False where there is no index."""
        if self.couplet_index is None:
            return False
        found = self.nearest_known(first, second)
        return found is not None and found.distance == 0

    def _answer_lines(
        self, refused: Callable[[str], bool], firsts: Sequence[FirstLine]
    ) -> list[list[SecondLine]]:
        found = self.answer(
            [self.check(first.text, first.draft.lock) for first in firsts],
            2,
            replace(self.rules, tone_weight=_TONE_WEIGHT),
            replace(self.config.decoding, strategy="beam", beam_size=_BEAM),
            distance=0.0,  # what is proposed is made to differ as a whole
            refused=refused,
        )
        texts = [[candidate.text for candidate in each] for each in found]
        reverse, judged = self._read_back([first.text for first in firsts], texts)
        return [
            [
                SecondLine(c.text, c.score, float(score), tuple(c.relaxed), float(value))
                for c, score, value in zip(*own, strict=True)
            ]
            for own in zip(found, reverse, judged, strict=True)
        ]

    def _read_back(
        self, lines: Sequence[str], found: Sequence[Sequence[str]]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Return scores of each 上联 after its answers, and what the judge says, [K] each; 0 without one."""
        back = ReverseModel(self.step_model, self.vocabulary)
        if self.judge is None or not isinstance(self.step_model, TextReader):
            scores = back.scores(lines, found)
            return scores, [np.zeros(len(own)) for own in scores]
        scores, states = back.read(lines, found)
        return scores, [self.judge(own) for own in states]
