"""Fit the reader of turns to labelled turns and write the file that ships with the task.

PYTHONPATH=. python tools/weights/empathetic/turn_fitting.py --written FILE --references FILE --corpora FILE … \
  --held-out FILE --output tasks/empathetic/texts/turns_en.safetensors

A line of `--written` is act, mood, care, the reply before, and the turn; `-` is a label that is not known. One of
`--references` has the same labels and a key, corpus:hash, which finds previous reply and turn in `--corpora`.
`--held-out` has lines of a writer who has seen none of the others, which the thresholds of care are chosen on.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paddle_dialog.command_line import run_tool
from paddle_dialog.data.eight_bits import EightBitWeights, quantize
from paddle_dialog.data.files import read_lines, read_records
from paddle_dialog.errors import UserError
from paddle_dialog.linear_classifier import LinearSettings, fit_classifier, sparse_rows
from paddle_dialog.tasks.empathetic.turns import ACTS, BUCKETS, CARES, MOODS, TurnReader, turn_features

LABELS: tuple[tuple[str, ...], ...] = (ACTS, MOODS, CARES)
PENALTY = 10.0  # C of the logistic regressions, chosen on turns held out
HELD_OUT = 5  # one in this many turns fits the scale of the probabilities
# Of the held-out turns that ask for care, by which the thresholds are set: those that are asked about at least, and
# those that get the whole answer (docs/care.md).
FOUND = (0.85, 0.7)
UNKNOWN = "-"
_BLANKS = re.compile(r"\s+")


class LabelledTurn(NamedTuple):
    """A turn with the indices of its labels, -1 where one is not known."""

    labels: tuple[int, ...]
    previous: str
    turn: str


def key_of(corpus: str, previous: str, turn: str) -> str:
    """Return the key of a turn of a corpus, whose text is not this project's to ship."""
    both = "\t".join([previous, turn])
    return f"{corpus}:{hashlib.sha1(both.encode()).hexdigest()[:12]}"


def read_written(path: str) -> list[LabelledTurn]:
    """Read labelled turns with their texts."""
    found = []
    for number, line in read_lines(path):
        fields = line.rstrip("\n").split("\t")
        if len(fields) != 5:
            raise UserError(
                f"{path}:{number}: give act, mood, care, the reply before and the turn, between tabs"
            )
        found.append(LabelledTurn(_labels(fields[:3], f"{path}:{number}"), fields[3], fields[4]))
    return found


def read_references(path: str, corpora: Sequence[str]) -> list[LabelledTurn]:
    """Read labels of turns of corpora, with the texts from there."""
    wanted = {}
    for number, line in read_lines(path):
        *labels, key = line.split()
        wanted[key] = _labels(labels, f"{path}:{number}")
    names = {key.partition(":")[0] for key in wanted}
    found = {}
    for corpus in corpora:
        for previous, turn in _turns(corpus):
            for name in names:
                if (key := key_of(name, previous, turn)) in wanted:
                    found[key] = LabelledTurn(wanted[key], previous, turn)
    print(f"{path}: {len(found):,} of {len(wanted):,} turns found", file=sys.stderr)
    return list(found.values())


def _labels(names: Sequence[str], where: str) -> tuple[int, ...]:
    for name, known in zip(names, LABELS, strict=True):
        if name != UNKNOWN and name not in known:
            raise UserError(f"{where}: {name!r} is none of {', '.join(known)}")
    return tuple(
        -1 if name == UNKNOWN else known.index(name) for name, known in zip(names, LABELS, strict=True)
    )


def _turns(path: str) -> Iterator[tuple[str, str]]:
    """Yield the reply before and each turn of the dialogues of a JSON Lines file."""
    form = '{"turns": [turn, …]} or {"context": [turn, …]}'
    for turns in read_records(path, lambda record: record.get("turns") or record["context"], form):
        texts = ["", *(_BLANKS.sub(" ", turn).strip() for turn in turns)]
        yield from pairwise(texts)


def fit_reader(turns: Sequence[LabelledTurn]) -> TurnReader:
    """Fit the three heads; each knows the turns that have its label."""
    rows = [turn_features(one.turn, one.previous) for one in turns]
    features = sparse_rows([buckets for buckets, _ in rows], [weights for _, weights in rows], BUCKETS)
    labels = np.array([one.labels for one in turns])  # [N, 3]
    held_out = np.array([zlib.crc32(one.turn.encode()) % HELD_OUT == 0 for one in turns])
    settings = LinearSettings(PENALTY, "log", ratio_power=0.0)
    tables = []
    for head, names in enumerate(LABELS):
        known = labels[:, head] >= 0
        tables.append(
            fit_classifier(features[known], labels[known, head], held_out[known], len(names), settings)
        )
    return TurnReader(EightBitWeights(quantize({"table": np.concatenate(tables, axis=1)})))


def care_thresholds(reader: TurnReader, turns: Sequence[LabelledTurn]) -> list[float]:
    """Return the thresholds by which `FOUND` of the turns that ask for care are found."""
    asking = [one for one in turns if one.labels[2] > 0]
    danger = [1 - float(reader.probabilities(one.turn, one.previous)[2][0]) for one in asking]
    return [float(np.quantile(danger, 1 - found)) for found in FOUND]


def report(reader: TurnReader, turns: Sequence[LabelledTurn]) -> None:
    """Print how many labels of other turns are right, and what is found and stopped of care."""
    found = [reader.probabilities(one.turn, one.previous) for one in turns]
    for head, name in enumerate(("act", "mood", "care")):
        right = [
            one.labels[head] == int(each[head].argmax())
            for one, each in zip(turns, found, strict=True)
            if one.labels[head] >= 0
        ]
        if right:
            print(f"{name}: {np.mean(right):.3f} right of {len(right):,}")
    danger = np.array([1 - float(each[2][0]) for each in found])
    kinds = np.array([one.labels[2] for one in turns])
    for kind, name in enumerate(CARES):
        own = danger[kinds == kind]
        if len(own):
            asked, answered = ((own >= least).sum() for least in reader.thresholds)
            print(
                f"care {name}: {answered} of {len(own):,} get the whole answer, {asked} that or the question"
            )


def main(arguments: argparse.Namespace) -> None:
    """Fit, report what holds on other turns, and write the file."""
    turns = [one for path in arguments.written for one in read_written(path)]
    for path in arguments.references:
        turns += read_references(path, arguments.corpora)
    others = [one for path in arguments.held_out for one in read_written(path)]
    reader = fit_reader(turns)
    if others:
        reader.thresholds = care_thresholds(reader, others)
        print("thresholds of care: {:.4f}, {:.4f}".format(*reader.thresholds))
        report(reader, others)
    Path(arguments.output).write_bytes(reader.to_bytes())


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    several: dict[str, Any] = {"nargs": "*", "default": [], "metavar": "FILE"}
    parser.add_argument("--written", help="labelled turns with their texts", **several)
    parser.add_argument("--references", help="labels of turns of corpora", **several)
    parser.add_argument("--corpora", help="the corpora of the references, JSON Lines", **several)
    parser.add_argument("--held-out", help="turns of other writers", **several)
    parser.add_argument("--output", required=True, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(run_tool(main, make_parser()))
