"""A trained couplet model that answers one line of a couplet with the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from paddle_dialog.bundle.low_rank import changed
from paddle_dialog.bundle.trained import TrainedModel
from paddle_dialog.data.records import Record
from paddle_dialog.decoding.interface import Hypothesis
from paddle_dialog.errors import UserError
from paddle_dialog.predictor import GenerationPredictor, check_request
from paddle_dialog.text.characters import is_hanzi
from paddle_dialog.text.simplified import simplified_line
from tasks.couplet.candidate import CoupletPrediction, notes_of
from tasks.couplet.config import CoupletConfig
from tasks.couplet.known.index import BOTH, COUPLET_INDEX, CoupletIndex, Known, Line
from tasks.couplet.line_search import LineRequest, LineSearch
from tasks.couplet.marks import knows_marks
from tasks.couplet.rerank import Reranker, ReverseModel
from tasks.couplet.reward import REWARD, RewardModel
from tasks.couplet.rules.character_table import CharacterTable
from tasks.couplet.rules.constraints import Rules, broken_rules, describe, read_banned_words
from tasks.couplet.rules.direction import TO_FIRST, TO_SECOND, Direction
from tasks.couplet.rules.form import form_report
from tasks.couplet.rules.locks import check_locks, parse_template

if TYPE_CHECKING:
    from paddle import nn

    from paddle_dialog.config.schema import DecodingConfig


NO_INDEX = (
    "this bundle has no index of its training corpus; take the shipped pretrained/couplet, or make one by "
    "tools/export.py --data"
)


class CoupletPredictor(GenerationPredictor):
    """Answers 上联 with 下联, and 下联 with 上联 where the model was trained for both.

    Args:
        config: decoding settings and the length the model was made for.
        model: that was trained.
        reverse: scores the 上联 of a candidate; by default the model itself.

    Attributes:
        vocabulary: of both lines.

    Raises:
        UserError: `rerank.reverse` is not 0, and neither `reverse` nor the model scores a 上联.
    """

    has_reference = True

    def __init__(
        self, config: CoupletConfig, model: TrainedModel, reverse: ReverseModel | None = None
    ) -> None:
        self.config: CoupletConfig = config
        (self.vocabulary,) = model.vocabularies.values()
        self._trained = model
        self.step_model = model.step_model(config.model, len(self.vocabulary))
        backwards = self._reverse_models(reverse) if config.rerank.reverse else {}
        reranker = Reranker(config.rerank, backwards, lambda: self.reward)
        self._table = CharacterTable(self.vocabulary)
        self._search = LineSearch(config, self.step_model, self._table, lambda: self.network, reranker)

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

    @cached_property
    def reward(self) -> RewardModel | None:
        """The reward model of 下联; None where the bundle has none."""
        content = self._trained.files.get(REWARD)
        if content is None:
            return None
        trained = self._trained.with_weights(changed(self._trained.weights, content, REWARD))
        return RewardModel(trained.step_model(self.config.model, len(self.vocabulary)), self.vocabulary)

    @cached_property
    def couplet_index(self) -> CoupletIndex | None:
        """The index of the training corpus; None where the bundle has none."""
        content = self._trained.files.get(COUPLET_INDEX)
        return None if content is None else CoupletIndex.from_bytes(content, COUPLET_INDEX)

    def nearest_known(self, first: str, second: str, compared: Sequence[Line] = BOTH) -> Known | None:
        """Return the couplet of the training corpus that is nearest to another, see `CoupletIndex.nearest`.

        Raises:
            UserError: the bundle has no index of the corpus.
        """
        if self.couplet_index is None:
            raise UserError(NO_INDEX)
        return self.couplet_index.nearest(first, second, compared)

    def predict(
        self,
        lines: Sequence[str],
        n_best: int | None = None,
        lock: Mapping[int, str] | None = None,
        template: str | None = None,
        templates: Sequence[str | None] | None = None,
        rules: Rules | None = None,
        decoding: DecodingConfig | None = None,
        direction: Direction = TO_SECOND,
        distance: float | None = None,
        known: bool = False,
        valued: bool = True,
    ) -> list[list[CoupletPrediction]]:
        """Write 下联 under rules.

        Args:
            lines: 上联; blanks are dropped and punctuation is unified before the model sees them.
            n_best: candidates for each, best first; the config's number by default.
            lock: position (0 is the first) → character that every answer has there.
            template: the same as text, ？ where any character may stand, e.g. ？？？？花更红.
            templates: one for each line, instead of `template`.
            rules: of form; those of the config by default.
            decoding: how to search; as the config says by default.
            direction: `TO_FIRST` where the lines are 下联 and 上联 are wanted.
            distance: of several candidates, instead of the config's `choice.distance`.
            known: whether each candidate is to name the couplet of the training corpus nearest to it.
            valued: whether the reward model may order 下联 of several clauses, which takes a wide beam.

        Returns:
            The candidates of each line, at least one.

        Raises:
            UserError: a line is empty, has no hanzi, or is longer than the model allows, a locked character
                does not fit a line, the model was not trained for the direction, or it has no index of its corpus;
                or a number is out of its range.
        """
        check_request(lines, n_best)
        if distance is not None and not 0 <= distance <= 1:
            raise UserError(f"distance is {distance}; give a share from 0 to 1")
        direction.check_known(self.vocabulary)
        if known and self.couplet_index is None:
            raise UserError(NO_INDEX)
        given = [self._checked(line, direction) for line in lines]
        shapes = [template] * len(given) if templates is None else templates
        locks = [self._locks(line, lock, shape, direction) for line, shape in zip(given, shapes, strict=True)]
        decoding = self.config.decoding if decoding is None else decoding
        rules = self.rules if rules is None else rules
        wanted = decoding.n_best if n_best is None else n_best
        apart = self.config.choice.distance if distance is None else distance
        request = LineRequest(rules, decoding, wanted, apart, direction, valued)
        answers: list[list[CoupletPrediction]] = []
        for start in range(0, len(given), decoding.batch_size):
            batch = slice(start, start + decoding.batch_size)
            found = self._search.candidates(given[batch], locks[batch], request)
            for line, candidates in zip(given[batch], found, strict=True):
                answers.append([self._prediction(line, *c, rules, direction, known) for c in candidates])
        return answers

    def check(self, line: str, template: str | None = None, direction: Direction = TO_SECOND) -> str:
        """Return the given line as the model reads it.

        Raises:
            UserError: `predict` would refuse line, template or direction.
        """
        direction.check_known(self.vocabulary)
        checked = self._checked(line, direction)
        self._locks(checked, None, template, direction)
        return checked

    def greedy(self, sources: Sequence[np.ndarray]) -> list[str]:
        """Answer encoded lines by greedy search, to show a model in training."""
        found = self._search.greedy(sources)
        return ["".join(self.vocabulary.decode(hypotheses[0].tokens)) for hypotheses in found]

    def predict_records(
        self,
        texts: Sequence[str],
        n_best: int | None = None,
        template: str | None = None,
        second: bool = False,
        known: bool = False,
    ) -> Iterable[Record]:
        """Answer as JSON records: `{"first": …, "predictions": [{"text", "score", "form"}, …]}`.

        A `template` holds for all texts. With `second` they are 下联, stand under "second", and 上联 are written.
        With `known` a prediction has the nearest couplet of the training corpus, `{"first", "second", "distance"}`.
        """
        direction, key = (TO_FIRST, "second") if second else (TO_SECOND, "first")
        answers = self.predict(texts, n_best, template=template, direction=direction, known=known)
        for text, predictions in zip(texts, answers, strict=True):
            yield {key: text, "predictions": [prediction.as_dict() for prediction in predictions]}

    def format_record(self, record: Record) -> str:
        """Format a line and its answers, several candidates one below the other with their scores."""
        predictions, given = record["predictions"], record["second" if "second" in record else "first"]
        notes = [notes_of(prediction) for prediction in predictions]
        if len(predictions) == 1:
            return f"{given}\t{predictions[0]['text']}{notes[0]}"
        scored = (
            f"  {p['score']:8.4f}  {p['text']}{note}" for p, note in zip(predictions, notes, strict=True)
        )
        return "\n".join([given, *scored])

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
        rerank = self.config.rerank
        others = {
            "reverse": rerank.reverse,
            "tone_opposed": rerank.tone_opposed,
            "consensus": rerank.consensus,
        }
        others["reward"] = rerank.reward if self.reward is not None else 0.0
        weights = ", ".join(f"{name} {weight:g}" for name, weight in others.items() if weight)
        ordered = f", {rerank.candidates} candidates ordered by {weights} too" if weights else ""
        return f"{search}, {describe(self.config.rules)}{ordered}"

    def _reverse_models(self, given: ReverseModel | None) -> dict[Direction, ReverseModel]:
        """Return for each direction the model that scores the given line."""
        models: dict[Direction, ReverseModel] = {}
        if knows_marks(self.vocabulary):
            for direction, back in ((TO_SECOND, TO_FIRST), (TO_FIRST, TO_SECOND)):
                models[direction] = ReverseModel(self.step_model, self.vocabulary, back.source)
        if given is not None:
            models[TO_SECOND] = given
        if not models:
            raise UserError(
                "rerank.reverse: this bundle knows only 下联 for 上联; name a bundle trained on swapped pairs by "
                "rerank.reverse_weights, or take the shipped pretrained/couplet"
            )
        return models

    def _checked(self, text: str, direction: Direction) -> str:
        line, limit, name = simplified_line(text), self.longest_line, direction.given
        if not line:
            raise UserError(f"the {name} is empty; give a line of Chinese characters, e.g. 晚风摇树树还挺")
        if not any(is_hanzi(character) for character in line):
            raise UserError(f"'{text[:40]}' has no Chinese character; give a {name} such as 晚风摇树树还挺")
        if len(line) > limit:
            raise UserError(
                f"the {name} '{line[:20]}…' has {len(line)} characters, and this model reads up to {limit}; "
                "shorten it (data.max_length and decoding.max_length of the config set the limit)"
            )
        return line

    def _locks(
        self, line: str, lock: Mapping[int, str] | None, template: str | None, direction: Direction
    ) -> dict[int, str]:
        locks = parse_template(template, line, direction.given) if template is not None else {}
        for place, character in check_locks(lock or {}, line, direction.given).items():
            if locks.setdefault(place, character) != character:
                raise UserError(
                    f"position {place} is '{locks[place]}' in the template and '{character}' in lock; take one"
                )
        if locks and self.config.decoding.engine == "reference":
            raise UserError("the reference engine cannot lock characters; take decoding.engine: fast")
        return locks

    def _prediction(
        self,
        line: str,
        text: str,
        hypothesis: Hypothesis,
        rules: Rules,
        direction: Direction,
        with_known: bool,
    ) -> CoupletPrediction:
        pair = direction.pair(line, text)
        form, broken, known = form_report(*pair), [], None
        if self.config.decoding.engine != "reference":
            broken = broken_rules(line, text, form, rules, direction)
        if with_known:
            known = self.nearest_known(*pair, ["first" if direction.writes_first else "second"])
        return CoupletPrediction(text, hypothesis.score, form, broken, known)
