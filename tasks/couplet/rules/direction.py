"""Which line of a couplet is given, and which is written."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.errors import UserError
from paddle_dialog.text.tones import Tone, can_be_level, can_be_oblique
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.marks import first_source, knows_marks, second_source
from tasks.couplet.rules.form import final_character

ONE_WAY = "this bundle knows only 下联 for 上联; take the shipped pretrained/couplet"


@dataclass(frozen=True)
class Direction:
    """One of `TO_SECOND` and `TO_FIRST`.

    Args:
        given: Chinese name of the line that is given.
        written: of the line that answers it.
        writes_first: whether that is the first line.
    """

    given: str
    written: str
    writes_first: bool

    def source(self, vocabulary: Vocabulary, line: str) -> list[int]:
        """Return the source, without end token, that asks a network for the answer to a line."""
        return (first_source if self.writes_first else second_source)(vocabulary, line)

    def pair(self, given: str, written: str) -> tuple[str, str]:
        """Return 上联 and 下联."""
        return (written, given) if self.writes_first else (given, written)

    def wanted_final_tone(self, given: str) -> Tone:
        """Return the tone the written line ends on.

        A 下联 ends level, unless the 上联 has no reading that ends otherwise; a 上联 ends oblique, unless the 下联
        can only end so itself.

        Args:
            given: normalised.
        """
        final = final_character(given)
        if self.writes_first:
            return Tone.LEVEL if can_be_oblique(final) and not can_be_level(final) else Tone.OBLIQUE
        return Tone.OBLIQUE if can_be_level(final) and not can_be_oblique(final) else Tone.LEVEL

    def check_known(self, vocabulary: Vocabulary) -> None:
        """Check that a model with this vocabulary writes such lines.

        Raises:
            UserError: it was trained for 下联 alone.
        """
        if self.writes_first and not knows_marks(vocabulary):
            raise UserError(ONE_WAY)


TO_SECOND = Direction("上联", "下联", writes_first=False)
TO_FIRST = Direction("下联", "上联", writes_first=True)
