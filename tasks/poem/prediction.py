"""Writing poems and running text with a trained model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.bundle.folder import TrainedModel
from paddle_dialog.data.batching import pad_batch
from paddle_dialog.data.files import Record
from paddle_dialog.decoding.interface import Hypothesis, StepModel
from paddle_dialog.decoding.processors import ForbiddenTokens, ForcedPrefix, LogitsProcessor
from paddle_dialog.decoding.search import SearchOptions, decode, search_relaxed, text_log_probs
from paddle_dialog.errors import UserError
from paddle_dialog.models.families import numpy_lm
from paddle_dialog.predictor import GenerationPredictor, Prediction, check_request
from paddle_dialog.tasks.poem.data import (
    FORM_TOKENS,
    MAX_TITLE,
    NEWLINE,
    InputKind,
    PoemConfig,
    VerseConfig,
    characters,
    classical_title,
)
from paddle_dialog.tasks.poem.forms import (
    FORMS,
    RELAXATIONS,
    Form,
    FormChoice,
    FormConstraint,
    FormPlan,
    FormReport,
    FreeVerse,
    TonesAndRhymes,
    form_of,
    form_of_acrostic,
    make_plan,
    place_acrostic,
    place_beginning,
    report_form,
)
from paddle_dialog.text.characters import is_hanzi, normalise_line, read_as_simplified
from paddle_dialog.text.vocabulary import Vocabulary

DRAWN = 24  # poems for each text (strategy: sample), of which the best are shown
# Nats a character by which a title that the model knows makes its poems likelier, at least. Of 50 usual titles (秋思,
# 黄河) one in 20 is below; of 104 of today (超市, 律师) three in four are, others are read: 登月 is of the moon.
MIN_GAIN = 0.075


@dataclass(frozen=True)
class PoemPrediction(Prediction):
    """A text that was written, the beginning included."""

    form: FormReport | None  # what it keeps of the form that was asked for, or that it happens to have
    relaxed: tuple[str, ...] = ()  # rules it could not be held to

    def as_dict(self) -> Record:
        """Return the prediction as it is printed; `relaxed` only where something was."""
        form = None if self.form is None else asdict(self.form)
        record = {"text": self.text, "score": round(self.score, 4), "form": form}
        return {**record, "relaxed": list(self.relaxed)} if self.relaxed else record


class Written(NamedTuple):
    """The poems that were written for one text."""

    poems: list[PoemPrediction]  # best first
    # Nats a character by which the title makes them likelier, in the mean over all that were drawn; None without one.
    gain: float | None = None


@dataclass(frozen=True)
class Prompt:
    """What one text asks for, checked."""

    form: Form | None = None  # that it is held to
    title: str = ""  # its characters
    begin: tuple[str, ...] = ()  # how the text begins
    given: Mapping[int, str] = field(default_factory=dict)  # where a form has given characters

    @property
    def mark(self) -> list[str]:
        """The form's token, which precedes the title."""
        return [] if self.form is None else [FORM_TOKENS[self.form.name]]


class PoemPredictor(GenerationPredictor):
    """Writes with a trained model."""

    def __init__(self, config: PoemConfig, trained: TrainedModel) -> None:
        self.config: PoemConfig = config
        (self.vocabulary,) = trained.vocabularies.values()
        self._trained = trained
        make = partial(numpy_lm, config.model, len(self.vocabulary))
        self._model: StepModel = trained.fastest(make)
        self.knows_forms = next(iter(FORM_TOKENS.values())) in self.vocabulary

    @cached_property
    def _table(self) -> TonesAndRhymes:
        return TonesAndRhymes(self.vocabulary)

    def predict(
        self,
        texts: Sequence[str],
        n_best: int | None = None,
        seed: int | None = None,
        form: FormChoice | None = None,
        texts_are: InputKind | None = None,
        title: str | None = None,
    ) -> list[list[PoemPrediction]]:
        """Write texts.

        Args:
            texts: what `texts_are` says: beginnings, first characters of the lines, or titles; may be empty.
            n_best: candidates for each, the likeliest first; the config's number by default.
            seed: of the draws; the config's by default.
            form: e.g. 七绝, or `any`, in place of `verse.form`.
            texts_are: in place of `verse.input`.
            title: in place of `verse.title`.

        Returns:
            The candidates of each text, at least one.

        Raises:
            UserError: a text cannot be used as that, or the model does not know the form.
        """
        written = self._answers(texts, n_best, self.verse(form, texts_are, title), seed)
        return [each.poems for each in written]

    def _answers(
        self, texts: Sequence[str], n_best: int | None, verse: VerseConfig, seed: int | None
    ) -> list[Written]:
        check_request(texts, n_best)
        wanted = self.config.decoding.n_best if n_best is None else n_best
        return self.written([self.check(text, verse) for text in texts], wanted, verse, seed)

    def verse(
        self, form: FormChoice | None = None, texts_are: InputKind | None = None, title: str | None = None
    ) -> VerseConfig:
        """Return the section `verse` with what is given in its place."""
        own = self.config.verse
        chosen = own.form if form is None else None if form == "any" else form
        return replace(
            own, form=chosen, input=texts_are or own.input, title=own.title if title is None else title
        )

    def check(self, text: str, verse: VerseConfig) -> Prompt:
        """Return what a text asks for, or raise `UserError` where it cannot be used as `verse` says."""
        form = None if verse.form is None else FORMS[verse.form]
        if not self.knows_forms:
            if form is not None or verse.input != "begin" or verse.title is not None:
                raise UserError(
                    "verse: this model was trained on running text; it can only continue a beginning"
                )
            return Prompt(begin=tuple(characters(self._short(text))))
        text, title = (read_as_simplified(normalise_line(one)) for one in (text, verse.title or ""))
        for given in filter(None, (text, title)):
            if not any(map(is_hanzi, given)):
                raise UserError(
                    f"'{given[:20]}' has no hanzi, and this model writes Chinese verse; give e.g. 秋夜",
                    "verse_not_chinese",
                    text=given[:20],
                )
        if verse.input == "title":
            text, title = "", text
        title = (classical_title(title) or title)[:MAX_TITLE]
        if verse.input == "acrostic":
            form = form_of_acrostic(text, form)
        if form is None:
            return Prompt(title=title, begin=tuple(self._short(text)))
        model, room = self.config.model, MAX_TITLE + 2
        if form.size + room > model.max_positions:
            raise UserError(
                f"verse.form: a {form.name} with its title needs {form.size + room} positions, and this model has "
                f"{model.max_positions}; take a shorter form"
            )
        place = place_acrostic if verse.input == "acrostic" else place_beginning
        return Prompt(form, title, given=place(form, text))

    def written(
        self, prompts: Sequence[Prompt], wanted: int, verse: VerseConfig, seed: int | None = None
    ) -> list[Written]:
        """Write `wanted` poems for each text that `check` has read, and measure what its title gave."""
        seed = self.config.seed if seed is None else seed
        drawn = DRAWN if self.config.decoding.strategy == "sample" else wanted
        if wanted > drawn:
            raise UserError(f"n_best is {wanted}, and {DRAWN} poems are drawn for a text; give up to {DRAWN}")
        options = SearchOptions.of(self.config.decoding, drawn, seed, ())
        answers: list[Written] = []
        for start in range(0, len(prompts), self.batch_size):
            answers += self._search(prompts[start : start + self.batch_size], verse, options)
        return [Written(poems[:wanted], gain) for poems, gain in answers]

    def predict_records(
        self, texts: Sequence[str], n_best: int | None = None, **options: Any
    ) -> Iterable[Record]:
        """Answer as JSON records: `{"begin": …, "predictions": [{"text", "score", "form"}, …]}`.

        Of a title with a word of today, `written_to` is the title that the model was given; null where verse has
        nothing of the kind, or where a title changes its poems so little that they hardly speak of it. The options
        are those of `predict`.
        """
        seed = options.pop("seed", None)
        verse = self.verse(**options)
        for text, (poems, gain) in zip(texts, self._answers(texts, n_best, verse, seed), strict=True):
            yield {
                "begin": text,
                **self.written_to(text, verse, gain),
                "predictions": [poem.as_dict() for poem in poems],
            }

    def written_to(self, text: str, verse: VerseConfig, gain: float | None = None) -> Record:
        """Return what a record has of a title that the model does not know as it is; nothing for any other.

        Args:
            gain: of the poems, see `Written`.
        """
        title = read_as_simplified(normalise_line(text if verse.input == "title" else verse.title or ""))
        classical = classical_title(title)
        if classical == title and gain is not None and gain < MIN_GAIN:
            return {"written_to": None}
        return {} if classical == title else {"written_to": classical}

    def note_of(self, record: Record) -> str | None:
        """Return what became of a title that the model does not know as it is."""
        if "written_to" not in record:
            return None
        if record["written_to"] is None:
            return f"'{record['begin']}': the model knows no verse of this, so the poem may say nothing of it"
        return f"'{record['begin']}': written to the title {record['written_to']}"

    def format_record(self, record: Record) -> str:
        """Return the texts below each other, two lines of verse in one line."""
        shown = []
        for prediction in record["predictions"]:
            note = f"  ({prediction['score']:.3f}"
            note += f"; relaxed: {', '.join(prediction['relaxed'])})" if "relaxed" in prediction else ")"
            text = (
                prediction["text"].replace("。", "。\n").strip() if self.knows_forms else prediction["text"]
            )
            shown.append(text + note if len(record["predictions"]) > 1 or "relaxed" in prediction else text)
        return "\n\n".join(shown) + "\n"

    def decoding_summary(self) -> str:
        """Return how texts are written, in a few words."""
        drawn = f", best of {DRAWN}" if self.config.decoding.strategy == "sample" else ""
        return f"{self.search_summary()}{drawn}"

    def _short(self, text: str) -> str:
        limit = self.config.decoding.max_length
        if len(text) > limit:
            raise UserError(
                f"the beginning '{text[:20]}…' has {len(text)} characters, and texts of up to {limit} are written; "
                "shorten it, or raise decoding.max_length",
                "beginning_long",
                length=len(text),
                limit=limit,
            )
        return text

    def _search(self, prompts: Sequence[Prompt], verse: VerseConfig, options: SearchOptions) -> list[Written]:
        """Write texts; the rules of a form are dropped where they leave nothing to write."""

        def search(numbers: Sequence[int], dropped: tuple[str, ...]) -> Sequence[Written | None]:
            chosen = [prompts[number] for number in numbers]
            plans = [
                None if prompt.form is None else make_plan(prompt.form, prompt.given, verse.rhyme, dropped)
                for prompt in chosen
            ]
            found = self._decoded(chosen, plans, options, verse.title_weight)
            return [each if each.poems else None for each in found]

        answers = []
        for found in search_relaxed(len(prompts), RELAXATIONS, search):
            if found is None:
                raise UserError("verse.form: this model's vocabulary has too few hanzi for a poem of a form")
            answers.append(found)
        return answers

    def _rules(self, prompts: Sequence[Prompt], plans: Sequence[FormPlan | None]) -> list[LogitsProcessor]:
        """Return what holds texts to their forms, or without a form to their beginnings and to characters."""
        forms = [plan for plan in plans if plan is not None]
        if forms:  # one `verse` made all prompts, so that all have a form or none has
            return [FormConstraint(forms, self._table)]
        after = [range(len(prompt.begin), self.config.decoding.max_length + 1) for prompt in prompts]
        beginnings = ForcedPrefix([self.vocabulary.encode(prompt.begin) for prompt in prompts])
        rules: list[LogitsProcessor] = [
            ForbiddenTokens([self._never_written] * len(prompts), after),
            beginnings,
        ]
        if not self.knows_forms:
            return rules
        return [FreeVerse([len(prompt.begin) for prompt in prompts], self._table), *rules]

    def _decoded(
        self,
        prompts: Sequence[Prompt],
        plans: Sequence[FormPlan | None],
        options: SearchOptions,
        title_weight: float,
    ) -> list[Written]:
        """Return the candidates of each text, best first."""
        longest = [self.config.decoding.max_length if plan is None else plan.form.size for plan in plans]
        options = replace(options, processors=self._rules(prompts, plans), max_length=longest)
        source, lengths = pad_batch(
            [self.vocabulary.encode([*prompt.mark, *prompt.title]) for prompt in prompts], Vocabulary.pad_id
        )
        if self.config.decoding.engine == "reference":
            found = self._by_reference(source, lengths, prompts, options)
        else:
            found = decode(self._model, source, lengths, options)
        gains: Sequence[float | None] = [None] * len(prompts)
        if title_weight:
            found, gains = self._ordered(found, prompts, title_weight)
        return [
            Written([self._prediction(hypothesis, prompt, plan) for hypothesis in hypotheses], gain)
            for hypotheses, prompt, plan, gain in zip(found, prompts, plans, gains, strict=True)
        ]

    def _by_reference(
        self, source: np.ndarray, lengths: np.ndarray, prompts: Sequence[Prompt], options: SearchOptions
    ) -> list[list[Hypothesis]]:
        """Search with Paddle's own beam search, which holds texts to nothing."""
        from paddle_dialog.decoding.reference import reference_beam_search  # imports Paddle

        if any(prompt.form is not None or prompt.begin for prompt in prompts):
            raise UserError(
                "the reference engine takes neither a form nor a beginning; give an empty text or a title, or take "
                "decoding.engine: fast"
            )
        (beam,), longest = options.beam_sizes(1), self.config.decoding.max_length
        return reference_beam_search(self.network, source, lengths, beam, options.n_best, longest)

    def _ordered(
        self, found: Sequence[list[Hypothesis]], prompts: Sequence[Prompt], weight: float
    ) -> tuple[list[list[Hypothesis]], list[float | None]]:
        """Order the poems to a title by log p(poem | title) - weight · log p(poem), per character.

        This is mutual information (Li et al. 2016, "A Diversity-Promoting Objective Function", section 3).

        Returns:
            The poems, and for each prompt the gain of `Written`.
        """
        ordered, mean_gains = list(found), list[float | None]([None] * len(found))
        titled = [number for number, prompt in enumerate(prompts) if prompt.title and found[number]]
        if not titled:
            return ordered, mean_gains
        without, lengths = pad_batch(
            [self.vocabulary.encode(prompts[number].mark) for number in titled], Vocabulary.pad_id
        )
        texts = [hypothesis.tokens for number in titled for hypothesis in found[number]]
        rows = [row for row, number in enumerate(titled) for _ in found[number]]
        common = text_log_probs(self._model, without, lengths, texts, rows)
        splits = np.cumsum([len(found[number]) for number in titled])[:-1]
        for number, untitled in zip(titled, np.split(common, splits), strict=True):
            own = found[number]
            sizes = np.array([len(hypothesis.tokens) + 1 for hypothesis in own])
            log_probs = np.array([hypothesis.log_prob for hypothesis in own])
            best_first = np.argsort(-(log_probs - weight * untitled) / sizes, kind="stable")
            ordered[number] = [own[place] for place in best_first]
            mean_gains[number] = float(((log_probs - untitled) / sizes).mean())
        return ordered, mean_gains

    @property
    def _never_written(self) -> list[int]:
        """The tokens that are not characters of a text."""
        marks = [token for token in FORM_TOKENS.values() if token in self.vocabulary]
        marks += [NEWLINE] if self.knows_forms else []
        return [Vocabulary.pad_id, Vocabulary.unk_id, Vocabulary.bos_id, *self.vocabulary.encode(marks)]

    def _prediction(self, hypothesis: Hypothesis, prompt: Prompt, plan: FormPlan | None) -> PoemPrediction:
        tokens = self.vocabulary.decode(hypothesis.tokens)
        tokens[: len(prompt.begin)] = prompt.begin  # characters that the vocabulary does not have
        for place, char in prompt.given.items():
            tokens[place] = char
        text = "".join("\n" if token == NEWLINE else token for token in tokens)
        form = form_of(text) if plan is None else plan.form
        report = None if form is None else report_form(text, form)
        return PoemPrediction(text, hypothesis.score, report, () if plan is None else plan.relaxed)
