"""Train a model.

python tools/train.py -c configs/couplet_lstm.yaml -o data.train=couplets.tsv -o data.dev=dev.tsv
"""

from __future__ import annotations

import argparse
import sys

from paddle_dialog.command_line import base_parser, run_tool


def main(arguments: argparse.Namespace) -> int:
    """Trains what the config says; 130 where the run was stopped by a signal."""
    from paddle_dialog.config import load_config
    from paddle_dialog.device import select_device
    from paddle_dialog.training.run import Run

    task, config = load_config(arguments.config, arguments.override)
    select_device(arguments.device)
    run = Run(task, config, arguments.resume, arguments.overwrite)
    progress = run.train()
    print(
        f"{run.folder}: step {progress.step}, best dev perplexity {progress.best_perplexity:.3f} "
        f"at step {progress.best_step}"
    )
    return 130 if run.interrupted else 0


if __name__ == "__main__":
    parser = base_parser(__doc__)
    parser.add_argument("--resume", metavar="auto|DIR", help="continue the run in output_dir, or in DIR")
    parser.add_argument("--overwrite", action="store_true", help="begin anew although output_dir holds a run")
    sys.exit(run_tool(main, parser))
