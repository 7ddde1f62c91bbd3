"""The training loader: datasets that vary from epoch to epoch."""

import numpy as np
from paddle import io

from paddle_dialog.data.batching import LengthBucketSampler
from paddle_dialog.training.batches import TrainingBatches
from paddle_dialog.training.progress import Progress


class EpochDataset(io.Dataset):
    """Examples that hold the epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        return self.epoch


def test_a_dataset_is_told_the_epoch_that_begins_or_goes_on() -> None:
    progress = Progress()
    sampler = LengthBucketSampler([1] * 6, 2)
    batches = TrainingBatches(EpochDataset(), sampler, lambda examples: [np.array(examples)], len, progress)
    seen = []
    for progress.epoch, progress.batch in ((0, 0), (3, 1)):  # the second is resumed inside an epoch
        seen.append(
            [
                array.tolist()
                for array, share, completes_step in batches
                if (share, completes_step) == (1.0, True)
            ]
        )
    assert seen == [[[0, 0]] * 3, [[3, 3]] * 2]
