"""A line that answers another, and how it is told to a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paddle_dialog.data.records import Record
from paddle_dialog.predictor import Prediction
from tasks.couplet.known.index import Known
from tasks.couplet.rules.form import Form


@dataclass(frozen=True)
class CoupletPrediction(Prediction):
    """A 下联, or a 上联 where that is asked for.

    Args:
        form: which rules of the couplet the pair keeps.
        relaxed: the rules of the config that it could not be held to, see `tasks.couplet.rules.constraints`.
        known: the couplet of the training corpus nearest to it, where that was asked for and the index of the corpus
            has lines of this length.
    """

    form: Form
    relaxed: Sequence[str] = ()
    known: Known | None = None

    def as_dict(self) -> Record:
        """Return the candidate as the command line prints it; `relaxed` and `known` only where there are any."""
        record = super().as_dict() | {"form": self.form.as_dict()}
        if self.relaxed:
            record["relaxed"] = list(self.relaxed)
        return record | ({"known": self.known.as_dict()} if self.known is not None else {})


def notes_of(prediction: Record) -> str:
    """Return what a reader is told behind a candidate."""
    told = f"\trelaxed: {', '.join(prediction['relaxed'])}" if "relaxed" in prediction else ""
    if "known" not in prediction:
        return told
    known = prediction["known"]
    away = f"differs in {known['distance']} from" if known["distance"] else "stands in"
    return f"{told}\t{away} the corpus: {known['first']} / {known['second']}"
