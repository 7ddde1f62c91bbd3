"""Proposals: written couplets, what is good of them, and a choice of such as differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from paddle_dialog.data.records import Record
from paddle_dialog.text.characters import is_hanzi
from tasks.couplet.form import Form, clauses

SHARED_CLAUSE = 4  # characters in a row that no two proposals share


@dataclass(frozen=True)
class Proposal:
    """A whole couplet.

    Args:
        first: 上联.
        second: 下联.
        score: mean log-probability per character of the two lines, their ends included.
        form: which rules it keeps.
        relaxed: rules it could not be held to.
        quality: what proposals are ordered by.
        scrolls: 横批 that go with it, best first.
        fixed: positions whose characters were asked for, so that they say nothing of how two proposals differ.
        set: number of the proposal, from 1, where one has several couplets; None where it has one.
        part: number of the couplet in it, from 1.
    """

    first: str
    second: str
    score: float
    form: Form
    relaxed: tuple[str, ...] = ()
    quality: float = 0.0
    scrolls: tuple[str, ...] = ()
    fixed: frozenset[int] = frozenset()
    set: int | None = None
    part: int | None = None

    @property
    def scroll(self) -> str:
        """The best 横批."""
        return self.scrolls[0] if self.scrolls else ""

    def numbered(self, number: int, part: int) -> Proposal:
        """Return it as one of several couplets of a proposal."""
        return replace(self, set=number, part=part)

    def __str__(self) -> str:
        note = f"\trelaxed: {', '.join(self.relaxed)}" if self.relaxed else ""
        number = f"{self.set}.{self.part}\t" if self.part is not None else ""
        return f"{number}{self.first}\t{self.second}\t{self.scroll}{note}"

    def as_dict(self) -> Record:
        """Return it as the command line prints it; `relaxed`, `set` and `part` only where they say something."""
        record = {
            "first": self.first,
            "second": self.second,
            "scroll": self.scroll,
            "score": round(self.score, 4),
            "form": self.form.as_dict(),
        }
        record |= {"relaxed": list(self.relaxed)} if self.relaxed else {}
        return record | ({} if self.part is None else {"set": self.set, "part": self.part})


def choose(ranked: Iterable[Proposal], count: int, before: Sequence[Proposal] = ()) -> list[Proposal]:
    """Choose the best proposals that differ.

    No two share a clause of four characters or more (or four characters in a row), or begin with the same word. If
    that leaves too few, the same first word is let pass; four characters in a row never are.

    Args:
        ranked: best first.
        count: how many at most.
        before: proposals chosen already, from which these differ too.
    """
    waiting, chosen = list(ranked), list(before)
    for strict in (True, False):
        for proposal in waiting:
            if len(chosen) == len(before) + count:
                break
            if all(_differ(proposal, other, strict) for other in chosen):
                chosen.append(proposal)
    return chosen[len(before) :]


def _differ(one: Proposal, other: Proposal, strict: bool) -> bool:
    if _stretches(one) & _stretches(other):
        return False
    return not strict or not (_first_words(one) & _first_words(other))


def _stretches(proposal: Proposal) -> set[str]:
    """Return all characters that stand four in a row within a clause, of both lines."""
    found = set()
    for line in (proposal.first, proposal.second):
        found |= {c[i : i + SHARED_CLAUSE] for c in clauses(line) for i in range(len(c) - SHARED_CLAUSE + 1)}
    return found


def _first_words(proposal: Proposal) -> set[str]:
    """Return the first two characters of both lines, without those that were asked for."""
    words = set()
    for line in (proposal.first, proposal.second):
        word = "".join(c for i, c in enumerate(line[:2]) if i not in proposal.fixed and is_hanzi(c))
        words.add(word)
    return words - {""}
