"""The fixed answer to a turn that speaks of self-harm, which no model writes.

python -m tasks.empathetic.care -c configs/empathetic.yaml --input dialogues.jsonl

prints the turns of a file that speak of it, to try a list of phrases on conversations. A line is a turn, or
`{"turns": [turn, …]}`, of which the speaker's are read, or `{"context": [turn, …]}`, of which the last is read.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml

from paddle_dialog.command_line import base_parser, run_tool
from paddle_dialog.data.files import read_lines
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import load_config
from paddle_dialog.text.language import LANGUAGES, LanguageName, language_of
from paddle_dialog.text.simplified import simplified
from tasks.empathetic.config import CareConfig, EmpatheticConfig

_SHIPPED = Path(__file__).parent / "texts"
_LINE_END = re.compile(
    r"(?<=[^\x00-\u2fff]) (?=[^\x00-\u2fff])"
)  # the blank that YAML makes of it, in Chinese
GAP = "…"
_APOSTROPHES = frozenset("'’‘´`ʼ＇")
_SEPARATORS = re.compile("[ ,]+")
# A normalised text has one blank, or one comma where there was any sign, between its words.
_START, _END = "(?<![a-z0-9])", "(?![a-z0-9])"
_GAP = rf"[ ]?(?:(?:{_START}[a-z0-9]+{_END}|[\u3400-\u9fff])[ ]?){{0,3}}?"


class Phrases:
    """Phrases that are looked for in texts, and idioms that are not meant.

    Args:
        phrases: each is found whatever its case and width, with simplified or traditional characters, and with blanks
            or signs inside; a Latin one as whole words.
        exceptions: a phrase inside one of these does not count; no signs are allowed inside them.
    """

    def __init__(self, phrases: Iterable[str], exceptions: Iterable[str] = ()) -> None:
        self._phrases = [_parts(phrase) for phrase in phrases]
        self._exceptions = [_parts(idiom) for idiom in exceptions]

    def finds(self, text: str) -> bool:
        """Return whether a text has one of the phrases, outside of the exceptions."""
        text = _normalised(text)
        found = _spans(self._phrases, text, "[ ,]?")
        idioms = _spans(self._exceptions, text, "[ ]?") if found else []
        return any(not any(first <= start and end <= last for first, last in idioms) for start, end in found)


def read_phrases(path: Path, key: str) -> list[str]:
    """Return the phrases of a UTF-8 file, one a line; blank lines and lines with # are passed over.

    Raises:
        UserError: the file cannot be read, holds no phrase, or a line has nothing to look for; it names the setting.
    """
    try:
        found = list(_phrases_of(path))
    except UserError as error:
        raise UserError(f"{key}: {error}") from error
    if not found:
        raise UserError(f"{key}: {path} holds no phrase; give one a line, or {key}: null for those that ship")
    return found


def _phrases_of(path: Path) -> Iterator[str]:
    for number, line in read_lines(path):
        phrase = line.strip()
        if not phrase or phrase.startswith("#"):
            continue
        if not all(_parts(phrase)):
            raise UserError(
                f"{path}:{number}: {phrase[:40]!r} has no letters to look for; give a phrase, with {GAP} only "
                "between words"
            )
        yield phrase


def _normalised(text: str) -> str:
    """Return lower-case simplified text with a blank, or a comma where there was a sign, between words."""
    plain = simplified(unicodedata.normalize("NFKC", text)).casefold()
    return _SEPARATORS.sub(lambda run: "," if "," in run[0] else " ", "".join(map(_letter, plain)))


def _letter(char: str) -> str:
    if char.isalnum():
        return char
    if char.isspace():
        return " "
    is_invisible = unicodedata.category(char) in ("Cc", "Cf", "Mn")
    return "" if is_invisible or char in _APOSTROPHES else ","


def _parts(phrase: str) -> list[str]:
    """Return the letters of a phrase between its gaps."""
    return [_SEPARATORS.sub("", _normalised(part)) for part in phrase.split(GAP)]


def _spans(phrases: Iterable[list[str]], text: str, inside: str) -> list[tuple[int, int]]:
    """Return where phrases stand in a normalised text, with `inside` allowed between their letters."""
    letters = _SEPARATORS.sub("", text)
    near = (parts for parts in phrases if all(part in letters for part in parts))  # saves most patterns
    patterns = (_GAP.join(_pattern(part, inside) for part in parts) for parts in near)
    return [match.span() for pattern in patterns for match in re.finditer(pattern, text)]


def _pattern(letters: str, inside: str) -> str:
    start = _START if letters[0].isascii() else ""
    end = _END if letters[-1].isascii() else ""
    return start + inside.join(map(re.escape, letters)) + end


class CareResponder:
    """Answers turns that speak of self-harm.

    Args:
        phrases: that speak of it.
        answers: the sentence in each language.
    """

    def __init__(self, phrases: Phrases, answers: Mapping[LanguageName, str]) -> None:
        self._phrases = phrases
        self._answers = answers

    def answer(self, turn: str, language: LanguageName) -> str | None:
        """Return the sentence for a turn; None where it does not speak of self-harm.

        Args:
            turn: the speaker's newest; earlier ones do not count, so that a conversation can go on.
            language: of the answer where that of the turn cannot be told.
        """
        if not self._phrases.finds(turn):
            return None
        return self._answers[language_of(turn) or language]


def care_responder(config: CareConfig) -> CareResponder:
    """Return what the settings describe.

    Raises:
        UserError: a file cannot be read or is not of its form.
    """
    phrases = read_phrases(_file(config.phrases, "care_phrases.txt"), "care.phrases")
    exceptions = read_phrases(_file(config.exceptions, "care_exceptions.txt"), "care.exceptions")
    return CareResponder(
        Phrases(phrases, exceptions), _read_answers(_file(config.answers, "care_answers.yaml"))
    )


def _file(own: str | None, name: str) -> Path:
    return _SHIPPED / name if own is None else Path(own)


def _read_answers(path: Path) -> dict[LanguageName, str]:
    """Read the sentences.

    Raises:
        UserError: the file cannot be read or lacks a language.
    """
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
    unknown = [str(name) for name in content if name not in LANGUAGES]
    if unknown:
        raise UserError(f"{where}: '{unknown[0][:40]}' is no language; there are {', '.join(LANGUAGES)}")
    answers: dict[LanguageName, str] = {}
    for language in LANGUAGES:
        sentence = content.get(language)
        if not isinstance(sentence, str) or not sentence.strip():
            raise UserError(f"{where}: has no sentence for '{language}'; {form}")
        answers[language] = _LINE_END.sub("", " ".join(sentence.split()))
    return answers


def main(arguments: argparse.Namespace) -> None:
    """Print the turns that are found, and on stderr how many there are."""
    _, config = load_config(arguments.config, arguments.override)
    if not isinstance(config, EmpatheticConfig):
        raise UserError(f"{arguments.config}: care belongs to the task 'empathetic'; name a config of it")
    care = care_responder(config.care)
    turns = found = 0
    for _, line in read_lines(arguments.input):
        for turn in _speaker_turns(line):
            turns += 1
            if care.answer(turn, config.language) is not None:
                found += 1
                print(turn)
    print(f"{found:,} of {turns:,} turns ({found / max(turns, 1):.3%})", file=sys.stderr)


def _speaker_turns(line: str) -> Iterator[str]:
    """Yield the turns of a line that the speaker says."""
    try:
        record = json.loads(line)
    except ValueError:
        record = line
    if isinstance(record, dict):
        turns = record.get("turns")
        spoken = turns[::2] if isinstance(turns, list) else record.get("context", [])[-1:]
        yield from (turn for turn in spoken if isinstance(turn, str))
    elif line.strip():
        yield line


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--input", metavar="FILE", required=True, help="the turns; `.xz` and `.gz` too")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
