"""Pictures of what a couplet model attends to."""

from __future__ import annotations

import paddle

from paddle_dialog.decoding.interface import evaluation_mode
from paddle_dialog.figures.folder import FigureFolder
from paddle_dialog.figures.heat_map import draw_heat_map
from tasks.couplet.data.couplets import limit_length, read_couplets
from tasks.couplet.data.dataset import CoupletDataset, collate
from tasks.couplet.prediction import CoupletPredictor

MAPPED_EXAMPLES = 4


def write_figures(predictor: CoupletPredictor, source: str, folder: FigureFolder) -> None:
    """Draw the attention of each character of the first true 下联 over the 上联.

    Args:
        predictor: the model.
        source: as for `read_couplets`.
        folder: takes the pictures.

    Raises:
        UserError: the source cannot be used, or the folder cannot be written.
    """
    pairs, _ = limit_length(read_couplets(source), predictor.longest_line)
    dataset = CoupletDataset(pairs[:MAPPED_EXAMPLES], predictor.vocabulary)
    network, decode = predictor.network, predictor.vocabulary.decode
    for index in range(len(dataset)):
        first, second = dataset[index]
        source_ids, lengths, target = (paddle.to_tensor(array) for array in collate([(first, second)])[:3])
        with paddle.no_grad(), evaluation_mode(network):
            weights = network.attention_weights(source_ids, lengths, target)[0].numpy()  # [T, S]
        image = draw_heat_map(weights, [*decode(second), "<eos>"], [*decode(first), "<eos>"])
        folder.add(f"attention_{index + 1}", image)
