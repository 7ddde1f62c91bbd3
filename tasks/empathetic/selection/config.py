"""The settings of people's replies and of re-ranking."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.config.fields import at_least, setting


@dataclass(frozen=True)
class RepliesConfig:
    """Replies that people wrote, which answer beside those that the generator writes."""

    store: bool | None = setting(
        None,
        "answer from a store of replies too: true refuses a bundle that has none, false leaves the generator alone, "
        "null takes what the bundle has",
    )
    candidates: int = at_least(1, 20, "how many of the nearest replies are ranked for a context")
    reflections: int = at_least(
        0,
        0,
        "how many replies that say back what the speaker said, in frames written for this project, are ranked for a "
        "context; none with `store: false`",
    )
    generate: bool = setting(True, "the generator writes candidates too")


@dataclass(frozen=True)
class ReplyRerankConfig:
    """Weights of the sum that orders the candidates; with all but `model` at 0 the search's order stays."""

    candidates: int = at_least(
        1, 20, "replies the search hands over, at least the number asked for; greedy search has one"
    )
    model: float = at_least(0.0, 1.0, "weight of log p(reply | context) per token")
    context_words: float = at_least(
        0.0,
        0.0,
        "weight of how like the conversation, by its words, is the one in which a person gave the reply: cosine of "
        "TF-IDF, 0 for the generator's",
    )
    judge: float = at_least(
        0.0,
        0.0,
        "weight of what the bundle's judge makes of the decoder's state over the reply; it is fitted to ratings",
    )
    person: float = setting(0.0, "weight of being a stored reply (1) or the generator's (0); may be negative")
    own: float = setting(
        0.0,
        "weight of a reply's having been written for this project (small_talk, everyday); may be negative",
    )
    own_words: float = setting(
        0.0,
        "weight of the cosine of `context_words` of such a reply, beside that of all; it fits what was said where "
        "that is high, and speaks of something else where it is low",
    )
    reflected: float = setting(0.0, "weight of saying back what the speaker said; may be negative")
    emotion: float = at_least(
        0.0,
        0.0,
        "weight of how well the emotions in which people gave the reply, or for which a reflected one is meant, fit "
        "the one that is felt: p of the likeliest of them over that of the likeliest of all; 1 where none is known, "
        "as with the generator's",
    )
    overlap_last: float = setting(
        0.0, "weight of the share of the reply's content words that stand in the last turn; may be negative"
    )
    overlap_earlier: float = setting(
        0.0, "weight of the share that stands in earlier turns alone; may be negative"
    )
    echo: float = at_least(
        0.0,
        0.0,
        "weight of the share of the content words of the reply's questions that the speaker has said already; "
        "subtracted",
    )
    repetition: float = at_least(
        0.0, 0.0, "weight of what the reply shares with the listener's turn most like it; subtracted"
    )

    @property
    def weights(self) -> dict[str, float]:
        """The weights that are not 0, by name."""
        return {name: value for name, value in vars(self).items() if name != "candidates" and value}

    @property
    def is_active(self) -> bool:
        """Whether anything beside the model's own score counts."""
        return bool(self.weights.keys() - {"model"})

    def summary(self) -> str:
        """Describe the sum in a few words."""
        return " + ".join(f"{value:g} {name.replace('_', ' ')}" for name, value in self.weights.items())
