"""Prepare the dialogues that the empathetic weights were trained on; each command writes JSON lines.

python tools/weights/empathetic/prepare.py everyday conversations.jsonl.xz everyday.jsonl.xz
python tools/weights/empathetic/prepare.py mixture edos.jsonl.xz mixture.jsonl.xz --beside ed.tar.gz:train
python tools/weights/empathetic/prepare.py mixed empatheticdialogues.tar.gz:train train.jsonl.xz
python tools/weights/empathetic/prepare.py shortened conversations.jsonl short.jsonl
python tools/weights/empathetic/prepare.py labelled cped.jsonl.xz emotions.jsonl

`everyday` takes the conversations of the corpora that the weights began with from a file of `source` and `turns`.
`mixture` lays EDOS beside other dialogues: its turns with a label of EmpatheticDialogues, for the emotion alone.
`mixed` adds small talk, and examples that follow the end of another conversation, to make the model attend to recent
turns. `shortened` cuts every second turn, the listener's, of a corpus whose replies are essays. `labelled` makes an
example for the emotion alone of each turn of conversations with `turns`, `emotions` and `speakers`, as CPED has them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np

from paddle_dialog.command_line import run_tool
from paddle_dialog.data.files import Record, read_records
from paddle_dialog.tasks.empathetic.data.dialogue import Dialogue, known_emotion, read_dialogues, read_turns
from paddle_dialog.tasks.empathetic.data.emotions import CHINESE_EMOTIONS, EMOTIONS

MAX_TURN = 60  # characters after which the lines of one speaker begin another turn
STOCK = 12  # characters up to which a first sentence is often a mere formula
OVER = 1.5  # how much a single sentence may exceed the limit before it is cut inside
_SENTENCE = re.compile(r".*?(?:[。！？!?…]+[”’」』）)\"]*|$)", re.DOTALL)
_CLAUSE = re.compile(r"[，,；;：:、]")
EVERYDAY = ("self_dialogue", "xdailydialog", "synthetic_persona_chat")
_SOURCED = '{"source": name, "turns": [turn, …]}'
_EDOS = '{"turns": [turn, …], "label": label}'
_LABELLED = '{"turns": [turn, …], "emotions": [label, …], "speakers": [name, …]}'


def changed_subjects(dialogues: Sequence[Dialogue], rate: float, seed: int) -> list[Dialogue]:
    """Return examples that follow the end of another conversation.

    Args:
        dialogues: to take them from.
        rate: how many are made, as a share of `dialogues` in 0–1; fewer where a conversation would follow itself or
            an example without a reply.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    count = round(rate * len(dialogues))
    before = rng.choice(len(dialogues), count, replace=False)
    after = rng.choice(len(dialogues), count, replace=False)
    made = []
    for first, then in zip(before, after, strict=True):
        earlier, later = dialogues[first], dialogues[then]
        if earlier.target and earlier.context[0] != later.context[0]:  # of two conversations
            context = [*earlier.context, earlier.target, *later.context]
            made.append(Dialogue(context, later.target, later.emotion))
    return made


def shortened(reply: str, limit: int) -> str:
    """Return the first one or two sentences of a reply that have at most `limit` characters.

    If two are too long, the first remains; if it is a formula like "I understand.", the second does. A sentence far
    longer than the limit ends at the last comma before it.
    """
    if len(reply) <= limit:
        return reply
    sentences = [match.group() for match in _SENTENCE.finditer(reply) if match.group()]
    first, second = (*sentences, "", "")[:2]
    if second and len(first) + len(second) <= limit:
        return (first + second).strip()
    if second and len(first) <= STOCK and len(second) <= limit * OVER:
        return second.strip()
    if len(first) <= limit * OVER:
        return first.strip()
    clauses = [match.start() for match in _CLAUSE.finditer(first, 0, limit)]
    return first[: clauses[-1] if clauses else limit].strip() + "。"


def labelled_turns(record: Record) -> list[Dialogue]:
    """Return the turns of a conversation as examples of their emotion, without a reply.

    Lines that one speaker says one after the other with the same emotion are one turn, joined by commas.
    """
    labels = [known_emotion(str(label), CHINESE_EMOTIONS) for label in record["emotions"]]
    lines = list(zip(record["turns"], record["speakers"], labels, strict=True))
    made = []
    for (_, emotion), group in groupby(lines, lambda line: line[1:]):
        joined = ""
        for line, *_ in group:
            if len(joined) >= MAX_TURN:
                made.append(Dialogue([f"{joined}。"], "", emotion))
                joined = ""
            joined = f"{joined}，{line}" if joined else line
        made.append(Dialogue([f"{joined}。"], "", emotion))
    return made


def as_record(dialogue: Dialogue) -> Record:
    """Return an example as a line of a file of dialogues."""
    record = {"context": dialogue.context, "target": dialogue.target or None}
    others = {"emotion": dialogue.emotion, "situation": dialogue.situation}
    return record | {name: value for name, value in others.items() if value is not None}


def records(arguments: argparse.Namespace) -> Iterator[Record]:
    """Yield the lines that a command writes."""
    if arguments.command == "mixed":
        dialogues = read_dialogues(arguments.source, arguments.language)
        talk = read_dialogues("small_talk", arguments.language) * arguments.small_talk
        made = changed_subjects(dialogues, arguments.changed_subjects, arguments.seed)
        yield from map(as_record, [*dialogues, *talk, *made])
    elif arguments.command == "everyday":
        sourced = read_records(arguments.source, lambda record: (record["source"], record["turns"]), _SOURCED)
        yield from ({"turns": turns} for source, turns in sourced if source in EVERYDAY)
    elif arguments.command == "mixture":
        yield from map(as_record, read_dialogues(arguments.beside))
        taught = read_records(arguments.source, lambda record: (record["turns"], record["label"]), _EDOS)
        for turns, label in taught:
            if label in EMOTIONS:
                yield {"context": turns, "target": None, "emotion": label}
    elif arguments.command == "shortened":
        for turns in read_turns(arguments.source):
            yield {"turns": [shortened(t, arguments.characters) if n % 2 else t for n, t in enumerate(turns)]}
    else:
        for dialogues in read_records(arguments.source, labelled_turns, _LABELLED):
            yield from map(as_record, dialogues)


def write(path: str, lines: Iterable[Record]) -> int:
    """Write JSON lines, compressed as the name of the file says; return how many."""
    opened = {"xz": lzma.open, "gz": gzip.open}.get(path.rsplit(".", 1)[-1], open)
    count = 0
    with opened(path, "wt", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def main(arguments: argparse.Namespace) -> None:
    """Write the file and print its number of lines."""
    print(f"{arguments.output}: {write(arguments.output, records(arguments)):,} lines")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("everyday", "mixture", "mixed", "shortened", "labelled"))
    parser.add_argument("source", help="dialogues")
    parser.add_argument("output", help="the file to write")
    parser.add_argument("--beside", default="sample", help="the dialogues of a mixture")
    parser.add_argument("--language", choices=("en", "zh"), default="en", help="of small talk")
    parser.add_argument("--changed-subjects", type=float, default=0.05, help="share of the examples")
    parser.add_argument("--small-talk", type=int, default=3, help="how often it is added")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--characters", type=int, default=40, help="of a shortened turn")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
