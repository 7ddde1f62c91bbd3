"""Finds turns whose emotion is named in them or in the listener's reply, as examples for the emotion's classifier.

python -m tasks.empathetic.fitting.naming conversations.jsonl > named.jsonl

The labels are weak: they come from words (`named_emotions.txt`), not from people. They are for use beside
a corpus like CPED, whose lines are from television, and come from conversations with supportive listeners.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from paddle_dialog.command_line import program_parser, run_tool
from tasks.empathetic.data.conversations import read_turns

MOST = 1500  # turns of one emotion and way of naming
SHORTEST, LONGEST, LONGEST_ANSWERED = (
    4,
    45,
    120,
)  # characters of a turn that names its emotion, or whose reply does
HEARD = 60  # characters of a reply that tell what its writer heard
SEED = 1
_TABLE = "named_emotions.txt"
_LINE = re.compile(r"\[(?P<emotion>\w+)(?P<answered> by the listener)?\] (?P<words>.+)")
_DENIED = re.compile(
    r"(?:不|没|别|无法|怎么|如何|希望|想要|才能|会让|能够)[^，。]{0,4}"
    r"(?:开心|高兴|幸福|平静|放松|轻松|踏实|舒服|安心|难过|伤心|担心|害怕|生气|紧张|焦虑)"
)
_TO_YOU = (
    r"(?:(?:理解|明白|感受到)[你您]的?|[你您](?:感到|会|很|一定|现在|非常|这么|的|们?对)|[让令][你您]"
    r"|(?:听起来|确实|一定|肯定)[^，。]{0,8})[^，。！？]{0,10}?"
)
_ADVICE = re.compile(r"[不用必要别]+(?:太)?担心|希望你|祝你|变得|会让你|帮助你|可以让|帮你|如果|尝试|试着")


def named_turns(conversations: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Iterate over turns and the one emotion that they, or the replies to them, name.

    Args:
        conversations: turns, the speaker's first.
    """
    own, answered = _patterns()
    found: dict[tuple[str, bool], dict[str, None]] = defaultdict(dict)
    for turns in conversations:
        for place, turn in enumerate(turns[::2]):
            label = _only(own, turn)
            if label and SHORTEST <= len(turn) <= LONGEST and not _DENIED.search(turn):
                found[label, False][turn] = None
            reply = turns[2 * place + 1][:HEARD] if 2 * place + 1 < len(turns) else ""
            label = _only(answered, reply)
            if label and SHORTEST <= len(turn) <= LONGEST_ANSWERED and not _ADVICE.search(reply):
                found[label, True][turn] = None
    rng = np.random.default_rng(SEED)
    for (label, _), texts in sorted(found.items()):
        kept = list(texts)
        for place in rng.permutation(len(kept))[:MOST]:
            yield kept[place], label


def _patterns() -> tuple[dict[str, re.Pattern[str]], dict[str, re.Pattern[str]]]:
    """Return what names each emotion in a turn, and in the reply to one."""
    own, answered = {}, {}
    text = importlib.resources.files(__package__).joinpath(_TABLE).read_text(encoding="utf-8")
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, f"{_TABLE}: {line[:40]!r}"
        words = "|".join(map(re.escape, match["words"].split()))
        if match["answered"]:
            answered[match["emotion"]] = re.compile(f"{_TO_YOU}(?:{words})")
        else:
            own[match["emotion"]] = re.compile(words)
    return own, answered


def _only(patterns: dict[str, re.Pattern[str]], text: str) -> str | None:
    """Return the emotion of the only pattern that is found."""
    found = [emotion for emotion, pattern in patterns.items() if pattern.search(text)]
    return found[0] if len(found) == 1 else None


def main(arguments: argparse.Namespace) -> None:
    """Write the turns of some files as lines that `data.train` takes."""
    conversations = (turns for path in arguments.conversations for turns in read_turns(path))
    for turn, label in named_turns(conversations):
        print(json.dumps({"context": [turn], "target": None, "emotion": label}, ensure_ascii=False))


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = program_parser(__doc__)
    parser.add_argument("conversations", metavar="FILE", nargs="+", help="conversations, one a line")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
