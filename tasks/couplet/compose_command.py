"""Write whole couplets with their 横批, without a 上联: from a theme, from a name, or from nothing.

python tools/compose.py -c configs/couplet.yaml --theme 春节 --name 李明 --count 3
"""

from __future__ import annotations

import argparse
import json

from paddle_dialog.command_line import base_parser, checked_text, integer_from, load_named_model
from paddle_dialog.errors import UserError


def main(arguments: argparse.Namespace) -> None:
    """Print the couplets, best first."""
    # Imported late, so that `--help` and a faulty config need not wait for it.
    from paddle_dialog.tasks.couplet.composing.composer import ComposingPredictor
    from paddle_dialog.tasks.couplet.composing.request import read_request

    request = read_request(
        arguments.theme,
        arguments.name,
        arguments.place,
        arguments.length,
        arguments.pattern,
        arguments.count,
        arguments.scroll,
    )
    predictor = load_named_model(arguments)[1].predictor
    if not isinstance(predictor, ComposingPredictor):
        raise UserError(
            "only a model of couplets writes couplets; name a couplet config, e.g. configs/couplet.yaml"
        )
    *_, found = predictor.compose_in_parts(request)
    for proposal in found:
        if arguments.json:
            print(json.dumps(proposal.as_dict(), ensure_ascii=False), flush=True)
        else:
            print(str(proposal), flush=True)


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__, config_required=False)
    parser.add_argument(
        "--theme",
        type=checked_text,
        default="",
        metavar="WORDS",
        help="what the couplets speak of: usual themes such as 春节 or 书房, or other words, blanks between them",
    )
    parser.add_argument(
        "--name",
        type=checked_text,
        default="",
        metavar="TEXT",
        help="its characters stand in 上联 and 下联 by turns; more than two make several couplets",
    )
    parser.add_argument(
        "--place",
        type=integer_from(1),
        default=1,
        metavar="N",
        help="where the name's characters stand, 1 (default) is first; punctuation is not counted",
    )
    parser.add_argument("--length", type=integer_from(1), metavar="N", help="characters of a line, 4 to 15")
    parser.add_argument("--pattern", metavar="N+N", help="characters of the clauses, e.g. 4+7")
    parser.add_argument("--count", type=integer_from(1), default=5, metavar="N", help="proposals (default 5)")
    parser.add_argument("--scroll", type=checked_text, metavar="TEXT", help="a 横批 of one's own")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a couplet; -o seed=N gives other couplets"
    )
    return parser
