"""Metrics of second lines over a whole file: form, variety, similarity to the references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddle_dialog.metrics.bleu import corpus_bleu
from paddle_dialog.metrics.distinct import distinct_n
from paddle_dialog.text.characters import normalise_line
from tasks.couplet.rules.form import form_report


@dataclass(frozen=True)
class CoupletScores:
    """Scores of a set of second lines.

    Args:
        form: the mean over pairs of each field of `Form` (for `tone_opposed` the mean of the shares),
            and `distinct_1`, `distinct_2` over characters, punctuation included; all in 0–1.
        bleu: corpus BLEU over characters, 0–100 as sacrebleu reports it.
    """

    form: dict[str, float]
    bleu: float


def couplet_scores(
    firsts: Sequence[str], hypotheses: Sequence[str], references: Sequence[str]
) -> CoupletScores:
    """Score one hypothesis for each first line.

    Args:
        firsts: 上联.
        hypotheses: the 下联 to score.
        references: the human 下联.

    Raises:
        ValueError: there is no pair, or the three differ in length.
    """
    if not len(firsts) == len(hypotheses) == len(references):
        raise ValueError(
            f"{len(firsts)} first lines, {len(hypotheses)} hypotheses, {len(references)} references"
        )
    return CoupletScores(
        form=form_rates(firsts, hypotheses),
        bleu=corpus_bleu(
            [normalise_line(line) for line in hypotheses], [normalise_line(line) for line in references]
        ),
    )


def form_rates(firsts: Sequence[str], hypotheses: Sequence[str]) -> dict[str, float]:
    """Compute the scores that need no reference; see `CoupletScores.form`.

    Raises:
        ValueError: there is no pair, or the numbers of lines differ.
    """
    if not firsts:
        raise ValueError("no pair to score")
    reports = [form_report(first, second).as_dict() for first, second in zip(firsts, hypotheses, strict=True)]
    rates = {name: sum(float(report[name]) for report in reports) / len(reports) for name in reports[0]}
    characters = [normalise_line(line) for line in hypotheses]
    return rates | {f"distinct_{n}": distinct_n(characters, n) for n in (1, 2)}
