"""Count a model's parameters.

python tools/summary.py -c configs/reference/couplet_lstm.yaml --vocab-size 7931
"""

from __future__ import annotations

import argparse
import json
import math

from paddle_dialog.command_line import base_parser, integer_from


def main(arguments: argparse.Namespace) -> None:
    """Print the parameters module by module, and their total; a shared table counts once."""
    from paddle_dialog.config.models import PretrainedConfig
    from paddle_dialog.device import select_device
    from paddle_dialog.processes import check_memory
    from paddle_dialog.recipes import load_config

    task, config = load_config(arguments.config, arguments.override)
    select_device(arguments.device)
    own = isinstance(config.model, PretrainedConfig)  # a pre-trained model brings its vocabulary
    sizes = dict.fromkeys(task.vocabulary_names, 0 if own else arguments.vocab_size)
    check_memory(config.model, sum(sizes.values()), 1)
    network = task.build_network(config, sizes)
    modules: dict[str, int] = {}
    for name, parameter in network.named_parameters():
        module = name.partition(".")[0]
        modules[module] = modules.get(module, 0) + math.prod(parameter.shape)
    total = sum(modules.values())
    if arguments.json:
        print(json.dumps({"total": total, "modules": modules}))
        return
    for module, count in [*modules.items(), ("total", total)]:
        print(f"{module:<24}{count:>14,}")


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument(
        "--vocab-size",
        type=integer_from(5, 1_000_000),
        default=8000,
        metavar="N",
        help="tokens (default 8000)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser
