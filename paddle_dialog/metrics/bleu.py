"""Corpus BLEU over ready tokens, and chrF over texts, by sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence


def corpus_bleu(hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> float:
    """Return corpus BLEU-4 with one reference each (Papineni et al. 2002).

    sacrebleu with its own defaults on our tokens: nrefs:1|case:mixed|eff:no|tok:none|smooth:exp.

    Args:
        hypotheses: token lists without blanks in a token; a string is a list of characters.
        references: as many token lists.

    Returns:
        The score on sacrebleu's scale, 0–100.

    Raises:
        ValueError: there is nothing to score, or the numbers differ.
    """
    from sacrebleu.metrics import BLEU

    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"BLEU needs as many references as hypotheses: {len(references)}, {len(hypotheses)}")
    # The tokens are final: `force` keeps sacrebleu from warning that the text looks tokenised.
    bleu = BLEU(tokenize="none", force=True)
    joined_references = [" ".join(tokens) for tokens in references]
    score = bleu.corpus_score([" ".join(tokens) for tokens in hypotheses], [joined_references])
    return float(score.score)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Return corpus chrF2 with one reference each (Popović 2015): character n-grams up to 6, blanks left out.

    Args:
        hypotheses: texts.
        references: as many texts.

    Returns:
        The score on sacrebleu's scale, 0–100.

    Raises:
        ValueError: there is nothing to score, or the numbers differ.
    """
    from sacrebleu.metrics import CHRF

    if not hypotheses or len(hypotheses) != len(references):
        raise ValueError(f"chrF needs as many references as hypotheses: {len(references)}, {len(hypotheses)}")
    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)
