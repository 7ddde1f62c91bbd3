"""The couplet task: 上联 to 下联.

Importing Paddle takes seconds and answering does not need it, so modules that need it are imported late. In an
evaluation the answers come first, on all cores: a process that has imported Paddle cannot be forked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.data.batching import EncodedData, EpochBatches, TrainingData
from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.judge import JUDGE
from paddle_dialog.metrics import corpus_bleu, distinct_n, token_losses, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.couplet.composing.composer import ComposingPredictor
from paddle_dialog.tasks.couplet.config import CoupletConfig
from paddle_dialog.tasks.couplet.couplets import (
    COUPLET_INDEX,
    Couplet,
    index_bytes,
    limit_length,
    read_couplets,
)
from paddle_dialog.tasks.couplet.prediction import CoupletPredictor
from paddle_dialog.tasks.couplet.prompts import (
    TO_FIRST,
    TO_SECOND,
    VOCABULARY,
    Direction,
    collate,
    knows_marks,
    prompt,
)
from paddle_dialog.tasks.couplet.rules import form_report
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    import argparse

    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.serving.endpoint import Endpoint

TOGETHER = 8  # batches whose likelihood a process measures at once, each of pairs of like length


class CoupletTask(GenerationTask):
    """Writes the second line of a couplet, given the first."""

    name = "couplet"
    config_class = CoupletConfig
    path_keys = ("data.verse", "preferences.ratings")
    file_names = (COUPLET_INDEX, JUDGE)

    def prepare_data(
        self, config: CoupletConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        """Read, limit and encode the couplets; the vocabulary is built from the training pairs alone."""
        from paddle_dialog.tasks.couplet.training_data import training_data

        return training_data(self, config, vocabularies)

    def training_batches(
        self, config: CoupletConfig, examples: EncodedData, processes: int = 1, rank: int = 0
    ) -> EpochBatches:
        """Return the order of the training examples; those of rated answers come with ordinary ones."""
        from paddle_dialog.tasks.couplet.preferences import INPUTS, RatedBatches, RatedDataset

        dataset = examples.dataset
        if not isinstance(dataset, RatedDataset):
            return super().training_batches(config, examples, processes, rank)
        return RatedBatches(dataset, config.data.batch_size, INPUTS, config.seed, processes, rank)

    def build_criterion(self, config: CoupletConfig) -> nn.Layer:
        from paddle_dialog.tasks.couplet.preferences import PreferenceLoss
        from paddle_dialog.training.losses import SequenceCrossEntropy

        own, settings = super().build_criterion(config), config.preferences
        if settings.ratings is None:
            return own
        return PreferenceLoss(SequenceCrossEntropy(config.training.label_smoothing), settings.least_gap)

    def build_network(self, config: CoupletConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        if isinstance(config.model, PretrainedConfig):
            from paddle_dialog.models.pretrained import PretrainedSeq2Seq
            from paddle_dialog.tasks.couplet.training_data import pretrained_vocabulary

            return PretrainedSeq2Seq(
                config.model, vocabulary_sizes[VOCABULARY], pretrained_vocabulary(config), prompt
            )
        from paddle_dialog.models.seq2seq import Seq2Seq

        return Seq2Seq(config.model, vocabulary_sizes[VOCABULARY])

    def display(self, config: CoupletConfig, network: nn.Layer, data: TrainingData, count: int) -> Display:
        examples = data.dev if data.dev is not None else data.train
        vocabulary = data.vocabularies[VOCABULARY]
        pairs = [examples.dataset[index] for index in range(min(count, len(examples.dataset)))]
        if not pairs:
            return Display([])
        firsts = [vocabulary.decode(first) for first, _ in pairs]
        seconds = [vocabulary.decode(second) for _, second in pairs]
        predictor = CoupletPredictor(config, TrainedModel.of_network(network, data.vocabularies))
        answers = predictor.greedy([first for first, _ in pairs])
        texts = [
            f"{''.join(first)} → {answer} (reference {''.join(second)})"
            for first, answer, second in zip(firsts, answers, seconds, strict=True)
        ]
        return Display(texts)

    def predictor(self, config: CoupletConfig, model: TrainedModel) -> ComposingPredictor:
        return ComposingPredictor(config, model)

    def files_of_data(
        self, config: CoupletConfig, model: TrainedModel, sources: Sequence[str]
    ) -> dict[str, bytes]:
        couplets = (couplet for source in sources for couplet in read_couplets(source))
        return {COUPLET_INDEX: index_bytes(couplets)}

    def evaluate(self, predictor: CoupletPredictor, source: str, predictions: Path | None) -> Record:
        """Measure BLEU, the form of the answers, and the likelihood on one source of couplets."""
        if predictions is not None:
            check_writable(predictions)
        pairs, _ = limit_length(read_couplets(source), predictor.longest_line)
        answers = answer_all(predictor.predict, [pair.first for pair in pairs], predictor.batch_size)
        if predictions is not None:
            shown = ([candidate.as_dict() for candidate in candidates] for candidates in answers)
            write_records(
                predictions,
                (
                    {"first": pair.first, "reference": pair.second, "predictions": own}
                    for pair, own in zip(pairs, shown, strict=True)
                ),
            )
        hypotheses = [candidates[0].text if candidates else "" for candidates in answers]
        texts = [[normalise_line(line) for line in side] for side in (hypotheses, [p.second for p in pairs])]
        return {
            **self.measure_likelihood(predictor, source),
            "bleu": corpus_bleu(*texts),
            "form": form_rates([pair.first for pair in pairs], hypotheses),
            "decoding": predictor.decoding_summary(),
        }

    def measure_likelihood(self, predictor: CoupletPredictor, source: str) -> Record:
        """Measure how well a model predicts the lines of one source of couplets.

        Returns:
            The metrics by name. `perplexity` is exp of the mean over all tokens of the 下联, punctuation and end
            token included, `perplexity_hanzi` that over Chinese characters alone, `perplexity_first` that of the 上联
            given the 下联, where the model was trained for it; `unknown_rate` is the share of characters outside the
            vocabulary; `skipped` counts the pairs that were too long for the model.
        """
        read = read_couplets(source)
        pairs, _ = limit_length(read, predictor.longest_line)
        nll, tokens, hanzi_nll, hanzi, unknown = _sums(predictor, pairs, TO_SECOND)
        mirrored = {}
        if knows_marks(predictor.vocabulary):
            first_nll, first_tokens, *_ = _sums(predictor, pairs, TO_FIRST)
            mirrored["perplexity_first"] = token_perplexity(first_nll, int(first_tokens))
        return {
            "n": len(pairs),
            "skipped": len(read) - len(pairs),
            "perplexity": token_perplexity(nll, int(tokens)),
            "perplexity_hanzi": token_perplexity(hanzi_nll, int(hanzi)),
            **mirrored,
            "unknown_rate": unknown / tokens,
        }

    def example_inputs(self, config: CoupletConfig, source: str, count: int) -> list[str]:
        return [couplet.first for couplet in read_couplets(source)[:count]]

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        told = "characters of the 下联, ？ where any may stand, e.g. ？？？？花更红"
        parser.add_argument("--template", metavar="TEXT", help=told)
        parser.add_argument(
            "--second",
            action="store_true",
            help="the inputs are 下联; write their 上联, under the same rules",
        )
        parser.add_argument(
            "--known",
            action="store_true",
            help="show for each candidate the couplet of the training corpus nearest to it",
        )

    def endpoints(self, limits: LimitsConfig) -> list[Endpoint[Any]]:
        from paddle_dialog.tasks.couplet.api import ENDPOINTS  # only a server needs them

        return [endpoint(limits) for endpoint in ENDPOINTS]


def form_rates(firsts: Sequence[str], hypotheses: Sequence[str]) -> dict[str, float]:
    """Score one 下联 for each 上联 without a reference.

    Returns:
        The mean over pairs of each field of `Form`, and `distinct_1`, `distinct_2` over characters, punctuation
        included; all in 0–1.
    """
    reports = [form_report(first, second).as_dict() for first, second in zip(firsts, hypotheses, strict=True)]
    rates = {name: sum(float(report[name]) for report in reports) / len(reports) for name in reports[0]}
    characters = [normalise_line(line) for line in hypotheses]
    return rates | {f"distinct_{n}": distinct_n(characters, n) for n in (1, 2)}


def _sums(predictor: CoupletPredictor, pairs: Sequence[Couplet], direction: Direction) -> list[float]:
    """Return the -log p of all tokens that answer the other lines, their number, both of hanzi, and unknown ones."""
    vocabulary, size = predictor.vocabulary, predictor.config.data.batch_size
    is_chinese = np.array([is_hanzi(token) for token in vocabulary.tokens])  # [V]
    # An unknown character is one that was too rare in training, and those are hanzi.
    is_chinese[vocabulary.unk_id] = True

    def measure(part: Sequence[Couplet]) -> list[np.ndarray]:
        """Return the five sums for each pair."""
        from paddle_dialog.training.losses import SequenceCrossEntropy

        lines = [direction.pair(pair.first, pair.second) for pair in part]
        examples = [
            (np.array(direction.source(vocabulary, given)), np.array(vocabulary.encode(written)))
            for given, written in lines
        ]
        lengths = np.array([[len(source), len(target)] for source, target in examples])  # [N, 2]
        sums, criterion = np.zeros([len(part), 5]), SequenceCrossEntropy()
        for losses in token_losses(predictor.network, criterion, examples, lengths, collate, size):
            label, mask = losses.batch.label, losses.batch.mask  # [B, T] each
            hanzi, unknown = mask * is_chinese[label], mask * (label == vocabulary.unk_id)
            parts = (losses.nll * mask, mask, losses.nll * hanzi, hanzi, unknown)
            sums[losses.indices] = np.stack([part.sum(-1) for part in parts], axis=-1)
        return list(sums)

    totals: list[float] = np.sum(answer_all(measure, pairs, TOGETHER * size), axis=0).tolist()
    return totals


TASK = CoupletTask()
