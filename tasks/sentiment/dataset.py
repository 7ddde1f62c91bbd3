"""Reviews as a dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from paddle import io

from paddle_dialog.data.training_data import EncodedData
from tasks.sentiment.data import EncodedReview, Review, ReviewEncoder


class ReviewDataset(io.Dataset):
    """Encoded reviews.

    Args:
        reviews: with their labels.
        encoder: of the run.
        more: further texts, of another kind.

    Attributes:
        own: the reviews without the further texts.
    """

    def __init__(
        self, reviews: Sequence[Review], encoder: ReviewEncoder, more: Sequence[Review] = ()
    ) -> None:
        super().__init__()
        self.own = [encoder.encode(review) for review in reviews]
        self.reviews = [*self.own, *map(encoder.encode, more)]

    def encoded(self) -> EncodedData:
        """Return the reviews with the lengths that batches are made by."""
        return EncodedData(self, np.array([len(review.ids) for review in self.reviews]))

    def __len__(self) -> int:
        return len(self.reviews)

    def __getitem__(self, index: int) -> EncodedReview:
        return self.reviews[index]
