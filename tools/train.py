"""Train a model.

python tools/train.py -c configs/couplet_lstm.yaml -o data.train=couplets.tsv -o data.dev=dev.tsv
"""

from __future__ import annotations

import argparse
import sys

from paddle_dialog.command_line import DONE, INTERRUPTED, base_parser, run_tool


def main(arguments: argparse.Namespace) -> int:
    """Trains what the config says; 130 where the run was stopped by a signal."""
    from paddle_dialog.config import load_config
    from paddle_dialog.device import select_device
    from paddle_dialog.training.run import Run

    task, config = load_config(arguments.config, arguments.override)
    select_device(arguments.device)
    run = Run(task, config, arguments.resume, arguments.overwrite)
    progress = run.train()
    summary = f"{run.folder}: step {progress.step}"
    if progress.curve:
        summary += f", best dev perplexity {progress.best_perplexity:.3f} at step {progress.best_step}"
    print(summary)
    return INTERRUPTED if run.interrupted else DONE


if __name__ == "__main__":
    parser = base_parser(__doc__)
    parser.add_argument("--resume", metavar="auto|DIR", help="continue the run in output_dir, or in DIR")
    parser.add_argument("--overwrite", action="store_true", help="begin anew although output_dir holds a run")
    sys.exit(run_tool(main, parser))
