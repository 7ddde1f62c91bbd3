"""The translation task: a sentence to its counterpart in another language, or in another age of the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.batching import TrainingData
from paddle_dialog.data.files import Record, check_writable, write_records
from paddle_dialog.metrics import corpus_bleu, corpus_chrf, token_losses, token_perplexity
from paddle_dialog.processes import answer_all
from paddle_dialog.task import Display, GenerationTask
from paddle_dialog.tasks.translation.data import (
    Pair,
    PairDataset,
    TranslationConfig,
    TranslationDataConfig,
    collate,
    join,
    limit_length,
    read_pairs,
)
from paddle_dialog.tasks.translation.prediction import TranslationPredictor
from paddle_dialog.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.serving.config import LimitsConfig
    from paddle_dialog.tasks.translation.api import TranslationEndpoint

VOCABULARY = "text"  # one vocabulary for both sides
TOGETHER = 4  # batches that a process answers


class TranslationTask(GenerationTask):
    """Translates sentences."""

    name = "translation"
    config_class = TranslationConfig

    def prepare_data(
        self, config: TranslationConfig, vocabularies: Mapping[str, Vocabulary] | None
    ) -> TrainingData:
        settings, dev = config.data, None
        pairs, report = _fitting_pairs(settings, settings.train)
        sides = (side for pair in pairs for side in pair)
        vocabulary = Vocabulary.of_data(settings, sides, (vocabularies or {}).get(VOCABULARY))
        train = PairDataset(pairs, vocabulary).encoded()
        notes = [
            f"training data {settings.train}: {report}",
            f"vocabulary: {len(vocabulary):,} tokens, the four special ones included",
        ]
        if settings.dev is not None:
            pairs, report = _fitting_pairs(settings, settings.dev)
            notes.append(f"dev data {settings.dev}: {report}")
            dev = PairDataset(pairs, vocabulary).encoded()
        return TrainingData(train, dev, {VOCABULARY: vocabulary}, collate, notes)

    def build_network(self, config: TranslationConfig, vocabulary_sizes: Mapping[str, int]) -> nn.Layer:
        from paddle_dialog.models.seq2seq import PointerSeq2Seq

        return PointerSeq2Seq(config.model, vocabulary_sizes[VOCABULARY])

    def build_criterion(self, config: TranslationConfig) -> nn.Layer:
        from paddle_dialog.training.losses import PointerCrossEntropy

        return PointerCrossEntropy()

    def display(
        self, config: TranslationConfig, network: nn.Layer, data: TrainingData, count: int
    ) -> Display:
        examples = data.dev if data.dev is not None else data.train
        assert isinstance(examples.dataset, PairDataset)
        pairs = examples.dataset.pairs[:count]
        predictor = TranslationPredictor(config, TrainedModel.of_network(network, data.vocabularies))
        answers = predictor.greedy([pair.source for pair in pairs])
        return Display(
            [
                f"{predictor.text(pair.source)} → {answer} (reference {predictor.text(pair.target)})"
                for pair, answer in zip(pairs, answers, strict=True)
            ]
        )

    def predictor(self, config: TranslationConfig, model: TrainedModel) -> TranslationPredictor:
        return TranslationPredictor(config, model)

    def evaluate(self, predictor: TranslationPredictor, source: str, predictions: Path | None) -> Record:
        """Measure BLEU, chrF and the likelihood; `copying` holds those of the source itself as a translation."""
        if predictions is not None:
            check_writable(predictions)
        pairs, _ = _fitting_pairs(predictor.config.data, source)

        def answer(part: Sequence[Pair]) -> list[Record]:
            return list(predictor.predict_records([predictor.text(pair.source) for pair in part]))

        def scores(hypotheses: Sequence[Sequence[str]]) -> dict[str, float]:
            references = [pair.target for pair in pairs]
            texts = ([predictor.text(tokens) for tokens in side] for side in (hypotheses, references))
            return {"bleu": corpus_bleu(hypotheses, references), "chrf": corpus_chrf(*texts)}

        records = answer_all(answer, pairs, TOGETHER * predictor.batch_size)
        if predictions is not None:
            references = (predictor.text(pair.target) for pair in pairs)
            write_records(
                predictions, [r | {"reference": t} for r, t in zip(records, references, strict=True)]
            )
        texts = [record["predictions"][0]["text"] for record in records]
        return {
            **self.measure_likelihood(predictor, source),
            **scores(texts if predictor.config.data.tokens == "characters" else [t.split() for t in texts]),
            "copying": scores([pair.source for pair in pairs]),
            "decoding": predictor.decoding_summary(),
        }

    def measure_likelihood(self, predictor: TranslationPredictor, source: str) -> Record:
        """Measure the perplexity per token of the true translations of one source, end tokens included."""
        pairs, report = _fitting_pairs(predictor.config.data, source)
        size = predictor.config.data.batch_size

        def measure(part: Sequence[Pair]) -> list[np.ndarray]:
            """Return for each pair the -log p of its translation, and the number of tokens."""
            from paddle_dialog.training.losses import PointerCrossEntropy

            dataset, sums = PairDataset(part, predictor.vocabulary), np.zeros([len(part), 2])
            criterion, lengths = PointerCrossEntropy(), dataset.lengths
            for losses in token_losses(predictor.network, criterion, dataset, lengths, collate, size):
                sums[losses.indices] = np.stack([losses.nll.sum(-1), losses.batch.mask.sum(-1)], axis=-1)
            return list(sums)

        nll, tokens = np.sum(answer_all(measure, pairs, TOGETHER * size), axis=0)
        return {"n": len(pairs), "pairs": report, "perplexity": token_perplexity(float(nll), int(tokens))}

    def example_inputs(self, config: TranslationConfig, source: str, count: int) -> list[str]:
        unit = config.data.tokens
        return [join(pair.source, unit) for pair in read_pairs(source, unit, config.data.reverse)[:count]]

    def endpoints(self, limits: LimitsConfig) -> list[TranslationEndpoint]:
        from paddle_dialog.tasks.translation.api import TranslationEndpoint  # only a server needs it

        return [TranslationEndpoint(limits)]


def _fitting_pairs(settings: TranslationDataConfig, source: str) -> tuple[list[Pair], str]:
    """Read the pairs that are short enough, and a note for the log."""
    return limit_length(read_pairs(source, settings.tokens, settings.reverse), settings.max_length)


TASK = TranslationTask()
