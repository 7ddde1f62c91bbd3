"""The entry point of every search."""

from __future__ import annotations

from paddle_dialog.decoding.arrays import evaluation_mode, to_array
from paddle_dialog.decoding.beam import BeamSearch
from paddle_dialog.decoding.diverse import DiverseBeamSearch
from paddle_dialog.decoding.interface import Array, Hypothesis, StepModel
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.sampling import Sampler
from paddle_dialog.errors import UserError


def decode(model: StepModel, source: Array, lengths: Array, options: SearchOptions) -> list[list[Hypothesis]]:
    """Write texts for a batch of inputs.

    Every text ends with the end token: at the length limit of its input it is the only token left, so
    `log_prob` is always that of a whole text. The result of an input does not depend on the rest of the
    batch, as long as the rows of the model's output do not. An input whose processors allow no text at all gets
    an empty list: relax them and search again.

    Args:
        model: offers `StepModel`; a `paddle.nn.Layer` is put into evaluation mode for the search.
        source: ids, [B, S] int64, or [B, S, k] where a model reads k numbers at each position; an array or a
            tensor, whatever the model works on.
        lengths: real length of each row, [B] int64.
        options: how to search.

    Returns:
        For each input at most `n_best` hypotheses, highest `rank_score` first.

    Raises:
        UserError: lengths and source do not fit, or the model's scores are not numbers.
    """
    if len(source.shape) not in (2, 3) or list(lengths.shape) != [source.shape[0]]:
        raise UserError(
            f"decoding: source has shape {list(source.shape)} and lengths {list(lengths.shape)}; "
            "they must be [batch, length] (or [batch, length, numbers]) and [batch]"
        )
    if source.shape[0] == 0:
        return []
    with evaluation_mode(model):
        return _searcher(model, options).run(to_array(source), to_array(lengths))


def _searcher(model: StepModel, options: SearchOptions) -> BeamSearch | DiverseBeamSearch | Sampler:
    if options.strategy == "sample":
        return Sampler(model, options)
    if options.strategy == "beam" and options.groups > 1:
        return DiverseBeamSearch(model, options)
    return BeamSearch(model, options)
