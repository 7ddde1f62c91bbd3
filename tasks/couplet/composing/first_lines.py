"""Writes 上联 for drafts, held to their tones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paddle_dialog.decoding.interface import StepModel
from paddle_dialog.decoding.search import SearchOptions, decode
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.tones import Tone
from tasks.couplet.composing.drafts import Draft
from tasks.couplet.composing.patterns import COMMA
from tasks.couplet.direction import compose_source, encode_sources
from tasks.couplet.line_plan import CharacterTable, LinePlan, PlannedLines


class FirstLineWriter:
    """Writes 上联 with one model.

    Args:
        model: its steps.
        table: its vocabulary's characters.
        options: of the search; its processors are added.
    """

    def __init__(self, model: StepModel, table: CharacterTable, options: SearchOptions) -> None:
        self._model, self._table, self._options = model, table, options

    def write(self, drafts: Sequence[Draft], seed: int) -> list[list[tuple[str, float]]]:
        """Write 上联.

        Args:
            drafts: what is fixed of them.
            seed: of the draws.

        Returns:
            For each draft its texts with their log-probabilities per token, best first; none where there is none.
        """
        vocabulary = self._table.vocabulary
        plans = [self._plan(draft) for draft in drafts]
        sources = [np.asarray(compose_source(vocabulary, d.template, d.told)) for d in drafts]
        processors, limits = [PlannedLines(plans, self._table)], [draft.size for draft in drafts]
        options = replace(self._options, processors=processors, max_length=limits, seed=seed)
        found = decode(self._model, *encode_sources(sources), options)
        written = []
        for plan, hypotheses in zip(plans, found, strict=True):
            texts = {plan.text(vocabulary.decode(h.tokens)): h.score for h in reversed(hypotheses)}
            written.append(sorted(texts.items(), key=lambda item: -item[1]))
        return written

    def _plan(self, draft: Draft) -> LinePlan:
        vocabulary, size = self._table.vocabulary, draft.size
        fixed = dict(draft.first)
        # What the 下联 is bound to have, the 上联 may not have too.
        taken = {c for c in (*fixed.values(), *draft.second.values()) if is_hanzi(c) and c in vocabulary}
        base = np.where(self._table.hanzi & ~self._table.special, 0.0, np.inf).astype(np.float32)  # [V]
        base[vocabulary.encode(taken)] = np.inf
        unlike = {Tone.LEVEL: ~self._table.level, Tone.OBLIQUE: ~self._table.oblique}
        of_tone: dict[Tone | None, np.ndarray] = {None: base}  # each [V]
        of_tone.update({tone: np.where(wrong, np.inf, base) for tone, wrong in unlike.items()})
        forced = {**dict.fromkeys(draft.pattern.commas, COMMA), **fixed}
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
