"""The fixed answers to turns that speak of self-harm, abuse or violence at home, which no model writes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import yaml

from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.tasks.empathetic.config import CareConfig
from paddle_dialog.text.characters import LANGUAGES, LanguageName, language_of, simplified

Kind = Literal["self_harm", "abuse", "violence"]
KINDS: tuple[Kind, ...] = get_args(Kind)  # a turn of two kinds gets the first one's answer
GAP = "…"

_SHIPPED = Path(__file__).parent / "texts"
# The blank that YAML makes of it, in Chinese.
_LINE_END = re.compile(r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])")
_APOSTROPHES = frozenset("'’‘´`ʼ＇")
_LOOKALIKES = str.maketrans("!@$013", "iasoie")
_INSIDE = re.compile("(?<=[a-z])[!@$013](?=[a-z])")  # k!ll
_STRETCHED = re.compile(r"([a-z])\1\1+")  # dieeee
_SPELLED = re.compile("(?<![a-z0-9])(?:[a-z][ ,]){2,}[a-z](?![a-z0-9])")  # k i l l
_SELF = re.compile("(?<![a-z])(my|him|her|them|your)[ ,](?=sel(?:f|ves)(?![a-z]))")
_SEPARATORS = re.compile("[ ,]+")
_SIGN = re.compile(r"[^\w ]|_")
_SIGN_OF_FORM = re.compile(rf"[^\w\n ()|{GAP}^$@]")

# A normalised text has one blank, or one comma where there was any sign, between its words.
_WORD = re.compile("[a-z0-9]+|[^a-z0-9 ,]")
_RUN = re.compile("[a-z0-9]+(?: [a-z0-9]+)*|[^a-z0-9 ]")
_START, _END = "(?<![a-z0-9])", "(?![a-z0-9])"
_BETWEEN = rf"[ ]?(?:(?:{_START}[a-z0-9]+{_END}|[\u3400-\u9fff])[ ]?)"  # and how often
_WORDS_OF_GAP = 3
_BORDERS = {"^": "(?<![^,])", "$": "(?![^,])"}

_SET = re.compile(r"@(\w+)\s*=")
_PIECE = re.compile(rf"\(([^()]*)\)|@(\w+)|([^()|{GAP}@]+)")
_ELEMENT = re.compile(rf"\(([^()]*)\)|@(\w+)|({GAP}[{GAP} ]*)|([\^$])|([^()|{GAP}^$@]+)")


class _Fault(ValueError):
    """What is wrong with a phrase, as the end of a sentence that begins with it."""


class Pattern:
    """A phrase to look for; its regular expression is made when a text first has what it needs.

    Args:
        phrase: normalised.
        sets: the alternatives of each name.
        separator: an expression for what may be between its words or hanzi.
        kind: of what it speaks.
        is_topic: whether it does not count in a story.
    """

    def __init__(
        self, phrase: str, sets: Mapping[str, str], separator: str, kind: Kind, is_topic: bool
    ) -> None:
        self.kind = kind
        self.is_topic = is_topic
        self._phrase = phrase
        self._sets = sets
        self._separator = separator
        self._needed = _needed(phrase, sets)
        self.has_hanzi = not phrase.replace(GAP, "").isascii()

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        return re.compile(_expression(self._phrase, self._sets, self._separator))

    def spans(self, text: Text) -> list[tuple[int, int]]:
        """Return where the phrase occurs in a text."""
        if self.has_hanzi and not text.has_hanzi:
            return []
        for choice in self._needed:
            if not text.has_any(choice):
                return []
        return [match.span() for match in self._expression.finditer(text.normalised)]


class Text:
    """A text to look for phrases in."""

    def __init__(self, text: str) -> None:
        self.normalised = normalised(text)
        self.has_hanzi = not self.normalised.isascii()
        words = _WORD.findall(self.normalised)
        self._words_and_letters = f" {' '.join(words)} {''.join(words)}"
        self._known: dict[tuple[str, ...], bool] = {}

    def has_any(self, choice: tuple[str, ...]) -> bool:
        """Return whether a text has one of the Latin words, with blanks around, or hanzi."""
        found = self._known.get(choice)
        if found is None:
            found = any(map(self._words_and_letters.__contains__, choice))
            self._known[choice] = found
        return found


class Phrases:
    """What speaks of each kind, and what is not meant so.

    Args:
        phrases: each is found whatever its case and width, with simplified or traditional characters, and with blanks
            or signs inside; a Latin one as whole words.
        exceptions: a phrase that has characters in common with one of these does not count; no signs are allowed
            inside them. Those that are a topic mark a story: with one of them no phrase that is a topic counts.
    """

    def __init__(self, phrases: Iterable[Pattern], exceptions: Iterable[Pattern] = ()) -> None:
        phrases, exceptions = list(phrases), list(exceptions)
        self._phrases = {kind: [phrase for phrase in phrases if phrase.kind == kind] for kind in KINDS}
        self._idioms = [idiom for idiom in exceptions if not idiom.is_topic]
        self._stories = [story for story in exceptions if story.is_topic]

    def kind(self, text: str) -> Kind | None:
        """Return of what a text speaks; None where it has no phrase outside of the exceptions."""
        read = Text(text)
        for kind, phrases in self._phrases.items():
            if any(self._is_meant(phrase, read) for phrase in phrases):
                return kind
        return None

    def _is_meant(self, phrase: Pattern, text: Text) -> bool:
        spans = phrase.spans(text)
        if not spans or (phrase.is_topic and any(story.spans(text) for story in self._stories)):
            return False
        idioms = [span for idiom in self._idioms for span in idiom.spans(text)]
        return any(all(end <= first or last <= start for first, last in idioms) for start, end in spans)


def read_phrases(path: Path, separator: str = "[ ,]") -> Iterator[Pattern]:
    """Read phrases from a UTF-8 file, one a line; docs/care.md describes the form.

    Args:
        separator: the signs that may be between the words or hanzi of a phrase.
    """
    rows = [(number, line.strip()) for number, line in read_lines(path)]
    rows = [(number, line) for number, line in rows if line and not line.startswith("#")]
    plain = _plain("\n".join(line for _, line in rows), _SIGN_OF_FORM).replace(",", " ")
    plain = re.sub(" {2,}", " ", plain)
    for mark in "(|)":
        plain = plain.replace(f" {mark}", mark).replace(f"{mark} ", mark)
    kind, sets = KINDS[0], dict[str, str]()
    for (number, line), phrase in zip(rows, plain.split("\n"), strict=True):
        try:
            if line.startswith("["):
                kind = _kind_of(line)
            elif match := _SET.match(line):
                sets[match[1]] = _alternatives(phrase.removeprefix(f"@{match[1]}").strip(), sets)
            else:
                yield Pattern(phrase, sets, separator, kind, is_topic=line.startswith("?"))
        except _Fault as fault:
            raise UserError(f"{path}:{number}: {line[:40]!r} {fault}") from fault


def _kind_of(line: str) -> Kind:
    name = line.strip("[] ")
    if name not in KINDS:
        raise _Fault(f"is no kind; there are {', '.join(f'[{kind}]' for kind in KINDS)}")
    return name


def _alternatives(text: str, sets: Mapping[str, str]) -> str:
    """Return alternatives with those of the sets that they name."""
    parts = text.split("|") if "@" in text else []
    if any("@" in part[1:] for part in parts):
        raise _Fault("has a name beside a word in parentheses; write it as an alternative by itself")
    return "|".join(_set(part[1:], sets) if part.startswith("@") else part for part in parts) or text


def _set(name: str, sets: Mapping[str, str]) -> str:
    if name not in sets:
        raise _Fault(f"names @{name}, which no line above gives; write @{name} = this | that")
    return sets[name]


def _needed(phrase: str, sets: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Return what a text needs to have a phrase: one of each tuple, Latin words between blanks."""
    phrase = phrase.replace("^", "").replace("$", "")
    if _PIECE.sub("", phrase).strip(f" {GAP}"):
        raise _Fault("has parentheses that do not match; write alternatives as (this|that)")
    needed = []
    for group, name, letters in _PIECE.findall(phrase):
        text = _set(name, sets) if name else _alternatives(group, sets) or letters.strip()
        if text and not (text[0] == "|" or text[-1] == "|" or "||" in text):
            text = f" {text.replace('|', ' | ')} " if text.isascii() else text.replace(" ", "")
            needed.append(tuple(text.split("|")))
    if not needed or phrase.strip()[0] == GAP or phrase.strip()[-1] == GAP:
        raise _Fault(f"has no letters to look for; give a phrase, with {GAP} only between words")
    return tuple(sorted(needed, key=len))


def _expression(phrase: str, sets: Mapping[str, str], separator: str) -> str:
    expression, separated = "", ""
    for group, name, gap, border, letters in _ELEMENT.findall(phrase):
        if gap:
            expression += f"{_BETWEEN}{{0,{_WORDS_OF_GAP * gap.count(GAP)}}}?"
        elif border:
            expression += _BORDERS[border]
        else:
            alternatives = _set(name, sets) if name else _alternatives(group, sets)
            expression += separated + (_any_of(alternatives, separator) or _literal(letters, separator))
        separated = "" if gap or border == "^" else f"{separator}?"
    return expression


def _any_of(alternatives: str, separator: str) -> str:
    if not alternatives:
        return ""
    return f"(?:{'|'.join(_literal(each, separator) for each in alternatives.split('|'))})"


def _literal(text: str, separator: str) -> str:
    """Return the expression of words, of which the Latin ones are whole, or hanzi, at borders of clauses or not."""
    start, end = _BORDERS["^"] * text.startswith("^"), _BORDERS["$"] * text.endswith("$")
    runs = (
        f"{_START}{run.replace(' ', separator)}{_END}" if run.isascii() else run
        for run in _RUN.findall(text.strip("^$ "))
    )
    return start + f"{separator}?".join(runs) + end


def normalised(text: str) -> str:
    """Return lower-case simplified text with a blank, or a comma where there was a sign, between words."""
    text = _INSIDE.sub(lambda sign: sign[0].translate(_LOOKALIKES), text.lower())
    text = _plain(text, _SIGN)
    text = _SPELLED.sub(lambda run: _SEPARATORS.sub("", run[0]), _STRETCHED.sub(r"\1", text))
    return _SELF.sub(r"\1", text).strip(" ")


def _plain(text: str, signs: re.Pattern[str]) -> str:
    if not text.isascii():
        text = GAP.join(unicodedata.normalize("NFKC", part) for part in text.split(GAP))
        text = simplified(text)
    text = signs.sub(_sign, text.casefold())
    return _SEPARATORS.sub(lambda run: "," if "," in run[0] else " ", text) if signs is _SIGN else text


def _sign(match: re.Match[str]) -> str:
    char = match[0]
    if char.isspace():
        return " "
    is_invisible = unicodedata.category(char) in ("Cc", "Cf", "Mn")
    return "" if is_invisible or char in _APOSTROPHES else ","


class CareResponder:
    """Answers turns that speak of self-harm, abuse or violence.

    Args:
        answers: the sentence of each kind in each language.
    """

    def __init__(self, answers: Mapping[Kind, Mapping[LanguageName, str]]) -> None:
        self._answers = answers

    @cached_property
    def _phrases(self) -> Phrases:
        return Phrases(
            read_phrases(_SHIPPED / "care_phrases.txt"), read_phrases(_SHIPPED / "care_exceptions.txt", "[ ]")
        )

    def kind(self, turn: str) -> Kind | None:
        """Return of what a turn speaks; None where it asks for no care."""
        return self._phrases.kind(turn)

    def answer(self, turn: str, language: LanguageName) -> str | None:
        """Return the sentence for a turn; None where it asks for no care.

        Args:
            turn: the speaker's newest; earlier ones do not count, so that a conversation can go on.
            language: of the answer where that of the turn is not clear.
        """
        kind = self.kind(turn)
        return self._answers[kind][language_of(turn) or language] if kind else None


def care_responder(config: CareConfig) -> CareResponder:
    """Return what the settings describe."""
    path = _SHIPPED / "care_answers.yaml" if config.answers is None else Path(config.answers)
    return CareResponder(_read_answers(path))


def _read_answers(path: Path) -> dict[Kind, dict[LanguageName, str]]:
    """Read the sentences: of each kind in each language, or in each language for all kinds."""
    where = f"care.answers: {path}"
    form = "give a sentence for each language, e.g. en: Please call 988 …"
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not UTF-8; save the file as UTF-8") from error
    except yaml.YAMLError as error:
        raise UserError(f"{where}: is not YAML; {form}") from error
    if not isinstance(content, dict):
        raise UserError(f"{where}: has no sentences; {form}")
    if not content.keys() & set(KINDS):
        sentences = _sentences(content, where, form)
        return dict.fromkeys(KINDS, sentences)
    unknown = [str(name) for name in content if name not in KINDS]
    if unknown:
        raise UserError(f"{where}: '{unknown[0][:40]}' is no kind; there are {', '.join(KINDS)}")
    answers: dict[Kind, dict[LanguageName, str]] = {}
    for kind in KINDS:
        sentences_of_kind = content.get(kind)
        if not isinstance(sentences_of_kind, dict):
            raise UserError(f"{where}: has no sentences for '{kind}'; {form}")
        answers[kind] = _sentences(sentences_of_kind, f"{where}: {kind}", form)
    return answers


def _sentences(content: Mapping[object, object], where: str, form: str) -> dict[LanguageName, str]:
    unknown = [str(name) for name in content if name not in LANGUAGES]
    if unknown:
        raise UserError(f"{where}: '{unknown[0][:40]}' is no language; there are {', '.join(LANGUAGES)}")
    sentences: dict[LanguageName, str] = {}
    for language in LANGUAGES:
        sentence = content.get(language)
        if not isinstance(sentence, str) or not sentence.strip():
            raise UserError(f"{where}: has no sentence for '{language}'; {form}")
        sentences[language] = _LINE_END.sub("", " ".join(sentence.split()))
    return sentences
