"""Where replies come from, and by what they are ordered."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.config.fields import at_least


@dataclass
class RepliesConfig:
    """Replies that people wrote, among which answers are looked for beside those that the generator writes.

    Args:
        store: whether they are; ``true`` refuses a bundle that has none, ``false`` leaves the generator alone, and
            null takes what the bundle has.
        file: replies to take in the place of the bundle's, one a line, plain, ``.gz`` or ``.xz``.
        cache: keep what the model makes of ``file`` beside it, as ``<file>.vectors.safetensors``, for the next start.
        candidates: how many of the nearest are ranked for a context.
        generate: whether the generator writes candidates too.
    """

    store: bool | None = None
    file: str | None = None
    cache: bool = False
    candidates: int = at_least(1, 20)
    generate: bool = True


@dataclass
class RerankConfig:
    """Weights of the sum that orders the candidates; with all but ``model`` at 0 the search's order stays.

    Args:
        candidates: how many replies the search hands over; at least the number asked for. Greedy search has one.
        model: of log p(reply | context) per token.
        mutual_information: λ, the weight of -log p(reply) per token, which the same network says without a
            context (Li et al. 2016, "A Diversity-Promoting Objective Function for Neural Conversation Models",
            equation 9).
        familiarity: of how common the reply's word sequences are in the training replies, which counts against
            it; see ``ReplyNgrams.familiarity``.
        length: of the logarithm of the number of tokens.
        consensus: of what the reply shares with the other candidates; see ``rerank.consensus``.
        selection: of the cosine of the vectors of context and reply, in -1–1; needs ``selection.size``.
        ranker: of the score of the bundle's ranker, a network of its own that reads conversation and reply.
        person: of being a person's reply, 1, and not the generator's, 0.
        emotion: of how well the emotions in which people gave the reply fit the one that is felt, in 0–1; 1 where
            nothing is known, as with the generator's.
        overlap_last: of the share of the reply's content words that stand in the turn it answers, in 0–1.
        overlap_earlier: of the share that stands in earlier turns alone, in 0–1.
        echo: of the share of the content words of the reply's questions that the speaker has said already, in 0–1,
            which counts against it.
        repetition: of what the reply shares with the listener's turn most like it, in 0–1, which counts against it.
    """

    candidates: int = at_least(1, 20)
    model: float = at_least(0.0, 1.0)
    mutual_information: float = at_least(0.0, 0.0)
    familiarity: float = at_least(0.0, 0.0)
    length: float = 0.0
    consensus: float = at_least(0.0, 0.0)
    selection: float = at_least(0.0, 0.0)
    ranker: float = at_least(0.0, 0.0)
    person: float = 0.0
    emotion: float = at_least(0.0, 0.0)
    overlap_last: float = 0.0
    overlap_earlier: float = 0.0
    echo: float = at_least(0.0, 0.0)
    repetition: float = at_least(0.0, 0.0)

    @property
    def weights(self) -> dict[str, float]:
        """Those that are not 0, by name."""
        return {name: value for name, value in vars(self).items() if name != "candidates" and value}

    @property
    def is_active(self) -> bool:
        """Whether anything beside the model's own score counts."""
        return bool(self.weights.keys() - {"model"})

    def summary(self) -> str:
        """The sum in a few words."""
        return " + ".join(f"{value:g} {name.replace('_', ' ')}" for name, value in self.weights.items())
