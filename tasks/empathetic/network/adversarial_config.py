"""The settings of adversarial training."""

from __future__ import annotations

from dataclasses import dataclass, field

from paddle_dialog.config.fields import at_least


@dataclass
class AdversarialConfig:
    """Discriminators that learn to tell the network's words from people's while the network learns to deceive them.

    They are parts of the training alone: checkpoints hold them, and no model that answers does.

    Attributes:
        semantic: weight, beside the reply's loss, of the contest about whether a person wrote a reply to its
            context; 0 is none.
        emotional: weight of the contest about whether a reply's emotional words carry the annotated emotion; 0 is
            none. Both 0 train without discriminators.
        size: of their hidden layers.
        temperature: of the softmax through which the gradient of a drawn word passes.
    """

    semantic: float = at_least(0.0, 0.0)
    emotional: float = at_least(0.0, 0.0)
    size: int = at_least(1, 64)
    temperature: float = field(default=1.0, metadata={"above": 0.0})

    @property
    def is_active(self) -> bool:
        """Whether there are discriminators."""
        return bool(self.semantic or self.emotional)
