"""The settings of adversarial training."""

from __future__ import annotations

from dataclasses import dataclass

from paddle_dialog.config.fields import at_least, setting


@dataclass(frozen=True)
class AdversarialConfig:
    """Discriminators that learn to tell the network's words from people's while the network learns to deceive them.

    Only training needs them: checkpoints hold them, bundles that answer do not.
    """

    semantic: float = at_least(
        0.0,
        0.0,
        "weight, beside the reply's loss, of the contest about whether a person wrote a reply to its context; 0 is "
        "none",
    )
    emotional: float = at_least(
        0.0,
        0.0,
        "weight of the contest about which emotion the reply's words of the lexicon carry; 0 is none",
    )
    size: int = at_least(1, 64, "size of the discriminators' hidden layers")
    temperature: float = setting(
        1.0, "of the softmax through which the gradient of a drawn word passes", above=0.0
    )

    @property
    def is_active(self) -> bool:
        """Whether there are discriminators."""
        return bool(self.semantic or self.emotional)
