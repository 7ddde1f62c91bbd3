"""A trained couplet model that answers 上联."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.records import Record
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.decoding.options import SearchOptions
from paddle_dialog.decoding.processors import ForbiddenTokens, LogitsProcessor
from paddle_dialog.decoding.reference import reference_beam_search
from paddle_dialog.decoding.search import decode
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, Prediction
from paddle_dialog.text.characters import is_hanzi, normalise_line
from paddle_dialog.text.vocabulary import Vocabulary
from tasks.couplet.config import CoupletConfig
from tasks.couplet.data.encoding import encode_sources
from tasks.couplet.rerank import Reranker, ReverseModel
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import Rules, broken_rules, describe, read_banned_words
from tasks.couplet.rules.form import Form, form_report
from tasks.couplet.rules.locks import check_locks, parse_template
from tasks.couplet.rules.search import Candidate, search_by_rules

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import DecodingConfig

# A 下联 never contains padding, unknown or begin.
NO_SPECIAL_TOKENS = ForbiddenTokens([[Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id]])


@dataclass(frozen=True)
class CoupletPrediction(Prediction):
    """A 下联.

    Args:
        form: which rules of the couplet it keeps.
        relaxed: the rules of the config that it could not be held to, see `tasks.couplet.rules.constraints`.
    """

    form: Form
    relaxed: Sequence[str] = ()

    def as_dict(self) -> Record:
        """Return the candidate as the command line prints it; `relaxed` only if rules were relaxed."""
        record = super().as_dict() | {"form": self.form.as_dict()}
        return record | ({"relaxed": list(self.relaxed)} if self.relaxed else {})


class CoupletPredictor(GenerationPredictor):
    """Answers 上联 with 下联.

    Args:
        config: decoding settings and the length the model was made for.
        model: that was trained.
        reverse: scores the 上联 of a candidate; needed where `rerank.reverse` is not 0.

    Attributes:
        vocabulary: of both lines.
    """

    has_reference = True

    def __init__(
        self, config: CoupletConfig, model: TrainedModel, reverse: ReverseModel | None = None
    ) -> None:
        self.config: CoupletConfig = config
        (self.vocabulary,) = model.vocabularies.values()
        self._trained = model
        self.step_model = model.step_model(config.model, len(self.vocabulary))
        self._table = CharacterTable(self.vocabulary)
        self._reranker = Reranker(config.rerank, reverse)

    @property
    def network(self) -> nn.Layer:
        """The trained network in evaluation mode."""
        return self._trained.network

    @cached_property
    def banned_words(self) -> list[str]:
        """The banned words of the config, which count where its rules are switched on."""
        return read_banned_words(self.config.rules.banned_words)

    @cached_property
    def rules(self) -> Rules:
        """The rules of the config."""
        return Rules.of(self.config.rules, self.banned_words)

    def predict(
        self,
        firsts: Sequence[str],
        n_best: int | None = None,
        lock: Mapping[int, str] | None = None,
        template: str | None = None,
        templates: Sequence[str | None] | None = None,
        rules: Rules | None = None,
        decoding: DecodingConfig | None = None,
    ) -> list[list[CoupletPrediction]]:
        """Write 下联 under rules.

        Args:
            firsts: 上联; blanks are dropped and punctuation is unified before the model sees them.
            n_best: candidates for each, best first; the config's number by default.
            lock: position (0 is the first) → character that every 下联 has there.
            template: the same as text, ？ where any character may stand, e.g. ？？？？花更红.
            templates: one for each line, instead of `template`.
            rules: of form; those of the config by default.
            decoding: how to search; as the config says by default.

        Returns:
            The candidates of each line, at least one.

        Raises:
            UserError: a line is empty, has no hanzi, or is longer than the model allows, or a locked character
                does not fit a line.
        """
        lines = [self._checked(first) for first in firsts]
        shapes = [template] * len(lines) if templates is None else templates
        locks = [self._locks(line, lock, shape) for line, shape in zip(lines, shapes, strict=True)]
        decoding = self.config.decoding if decoding is None else decoding
        rules = self.rules if rules is None else rules
        wanted = decoding.n_best if n_best is None else n_best
        options = self._options(decoding, wanted)
        answers: list[list[CoupletPrediction]] = []
        for start in range(0, len(lines), decoding.batch_size):
            batch = slice(start, start + decoding.batch_size)
            found = self._candidates(lines[batch], locks[batch], rules, options)
            found = self._reranker.order(lines[batch], found)
            for line, candidates in zip(lines[batch], found, strict=True):
                answers.append([self._prediction(line, text, h, rules) for text, h in candidates[:wanted]])
        return answers

    def check(self, first: str, template: str | None = None) -> str:
        """Return the 上联 as the model reads it.

        Raises:
            UserError: `predict` would refuse line or template.
        """
        line = self._checked(first)
        self._locks(line, None, template)
        return line

    def greedy(self, sources: Sequence[np.ndarray]) -> list[str]:
        """Write 下联 for encoded 上联 by greedy search, to show a model in training."""
        options = SearchOptions(
            strategy="greedy", max_length=self.config.decoding.max_length, processors=[NO_SPECIAL_TOKENS]
        )
        found = self._decode(sources, options)
        return ["".join(self.vocabulary.decode(hypotheses[0].tokens)) for hypotheses in found]

    def predict_records(
        self, texts: Sequence[str], n_best: int | None = None, template: str | None = None
    ) -> Iterable[Record]:
        """Answer as JSON records: `{"first": …, "predictions": [{"text", "score", "form"}, …]}`.

        A `template` holds for all texts.
        """
        for first, predictions in zip(texts, self.predict(texts, n_best, template=template), strict=True):
            yield {"first": first, "predictions": [prediction.as_dict() for prediction in predictions]}

    def format_record(self, record: Record) -> str:
        """Format a 上联 and its 下联, several candidates one below the other with their scores."""
        predictions = record["predictions"]
        notes = [f"\trelaxed: {', '.join(p['relaxed'])}" if "relaxed" in p else "" for p in predictions]
        if len(predictions) == 1:
            return f"{record['first']}\t{predictions[0]['text']}{notes[0]}"
        scored = (
            f"  {p['score']:8.4f}  {p['text']}{note}" for p, note in zip(predictions, notes, strict=True)
        )
        return "\n".join([record["first"], *scored])

    @property
    def longest_line(self) -> int:
        """Greatest number of characters in a line."""
        return min(self.config.data.max_length, self.config.decoding.max_length)

    def decoding_summary(self) -> str:
        """Describe the search in a few words."""
        settings = self.config.decoding
        search = {
            "beam": f"beam {settings.beam_size}, length penalty {settings.length_penalty}, {settings.engine} engine",
            "greedy": "greedy",
            "sample": f"sampling, temperature {settings.temperature}, top-k {settings.top_k}, "
            f"top-p {settings.top_p}, seed {self.config.seed}",
        }[settings.strategy]
        return f"{search}, {describe(self.config.rules)}"

    def _checked(self, first: str) -> str:
        line, limit = normalise_line(first), self.longest_line
        if not line:
            raise UserError("the 上联 is empty; give a line of Chinese characters, e.g. 晚风摇树树还挺")
        if not any(is_hanzi(character) for character in line):
            raise UserError(f"'{first[:40]}' has no Chinese character; give a 上联 such as 晚风摇树树还挺")
        if len(line) > limit:
            raise UserError(
                f"the 上联 '{line[:20]}…' has {len(line)} characters, and this model reads up to {limit}; "
                "shorten it (data.max_length and decoding.max_length of the config set the limit)"
            )
        return line

    def _locks(self, line: str, lock: Mapping[int, str] | None, template: str | None) -> dict[int, str]:
        locks = parse_template(template, line) if template is not None else {}
        locks.update(check_locks(lock or {}, line))
        if locks and self.config.decoding.engine == "reference":
            raise UserError("the reference engine cannot lock characters; take decoding.engine: fast")
        return locks

    def _options(self, decoding: DecodingConfig, wanted: int) -> SearchOptions:
        pool = wanted
        if self.config.rerank.is_active and decoding.strategy != "greedy":
            pool = max(wanted, self.config.rerank.candidates)
        return SearchOptions.of(decoding, pool, self.config.seed, [NO_SPECIAL_TOKENS])

    def _prediction(self, line: str, text: str, hypothesis: Hypothesis, rules: Rules) -> CoupletPrediction:
        form = form_report(line, text)
        broken = []
        if self.config.decoding.engine != "reference":
            broken = broken_rules(line, text, form, rules)
        return CoupletPrediction(text, hypothesis.score, form, broken)

    def _candidates(
        self,
        lines: Sequence[str],
        locks: Sequence[Mapping[int, str]],
        rules: Rules,
        options: SearchOptions,
    ) -> list[list[Candidate]]:
        """Return texts and hypotheses of a batch, best first."""
        sources = [np.asarray(self.vocabulary.encode(line)) for line in lines]
        if self.config.decoding.engine == "reference":
            found = self._decode(sources, options)
            return [[("".join(self.vocabulary.decode(h.tokens)), h) for h in each] for each in found]

        def search(numbers: Sequence[int], processors: Sequence[LogitsProcessor]) -> list[list[Hypothesis]]:
            chosen = [sources[number] for number in numbers]
            return self._decode(chosen, replace(options, processors=processors))

        return search_by_rules(lines, locks, rules, self._table, search)

    def _decode(self, sources: Sequence[np.ndarray], options: SearchOptions) -> list[list[Hypothesis]]:
        ids, lengths = encode_sources(list(sources))
        settings = self.config.decoding
        if settings.engine == "reference":
            return reference_beam_search(
                self.network, ids, lengths, options.beam_size, options.n_best, settings.max_length
            )
        return decode(self.step_model, ids, lengths, options)
