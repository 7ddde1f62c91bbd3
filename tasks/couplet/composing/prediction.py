"""A trained couplet model that also writes whole couplets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from paddle_dialog.errors import UserError
from paddle_dialog.judge import JUDGE, Judge
from paddle_dialog.tasks.couplet.composing.composer import Composer
from paddle_dialog.tasks.couplet.composing.proposals import Proposal
from paddle_dialog.tasks.couplet.composing.request import Request, read_request, usual_themes
from paddle_dialog.tasks.couplet.composing.scrolls import Scroll, ScrollChooser, occasions
from paddle_dialog.tasks.couplet.direction import ONE_WAY, knows_marks
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified_line

# What no character of somebody's name may become the beginning of.
UNKIND = "小人 小子 小丑 小贼 小鬼 小偷 小妾 小奴 王八 老贼 老鬼 白痴 红杏出墙 黄泉 文盲"
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
        return self.compose_checked(read_request(theme, name, place, length, pattern, count, scroll), seed)

    def compose_checked(
        self, request: Request, seed: int | None = None, refused: Callable[[str], bool] | None = None
    ) -> list[Proposal]:
        """Do what `compose` does for a checked request.

        Args:
            seed: of the draws; the config's by default.
            refused: says which lines are not to be written; by default none.
        """
        self.check_composes(request)
        if seed is not None and not 0 <= seed < 2**32:
            raise UserError(f"seed is {seed}; give 0 to {2**32 - 1}")
        unkind = [word for word in UNKIND.split() if word[0] in request.name]

        def refuses(line: str) -> bool:
            return any(word in line for word in unkind) or (refused is not None and refused(line))

        composer = Composer(self, self._table, self.judge, refuses)
        found = composer.compose(request, self.config.seed if seed is None else seed)
        return self._with_scrolls(request, found)

    def scrolls(self, first: str, second: str, count: int = 5) -> list[Scroll]:
        """Return 横批 that go with a couplet, best first.

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

    def _with_scrolls(self, request: Request, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Give each proposal its 横批, none the same best one where others fit too."""
        known = usual_themes()
        words = {theme.words for theme in request.themes}
        asked = [name for name in occasions() if name in known and known[name].words in words]
        given: list[Proposal] = []
        for proposal in proposals:
            chosen = self._scroll_chooser.choose(proposal.first, proposal.second, _SCROLLS, asked)
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
