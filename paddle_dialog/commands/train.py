"""Train a model.

python tools/train.py -c configs/couplet_lstm.yaml -o data.train=couplets.tsv -o data.dev=dev.tsv
"""

from __future__ import annotations

import argparse
import logging
import sys

from paddle_dialog.command_line import DONE, INTERNAL_ERROR, INTERRUPTED, base_parser
from paddle_dialog.processes import usable_cores


def main(arguments: argparse.Namespace) -> int:
    """Train what the config says; 130 where the run was stopped by a signal."""
    from paddle_dialog.device import select_device
    from paddle_dialog.recipes import load_config

    task, config = load_config(arguments.config, arguments.override)
    # PaddleNLP, which takes seconds, is imported once the settings are right.
    from paddle_dialog.training.distributed import is_main, join_processes, lost_connection
    from paddle_dialog.training.progress import Stop
    from paddle_dialog.training.run import Run

    device = select_device(arguments.device)
    join_processes(device)
    try:
        if arguments.resume is not None:
            run = Run.resume(task, config, arguments.resume)
        else:
            run = Run.begin(task, config, arguments.overwrite)
        if device == "cpu":
            _log_idle_cores()
        progress = run.train()
    except (RuntimeError, ValueError) as error:
        if not lost_connection(error):
            raise
        print(
            "error: another process of this run has ended, and so does this one; --resume auto continues from the "
            f"last checkpoint ({str(error).splitlines()[-1].strip()})",
            file=sys.stderr,
        )
        return INTERNAL_ERROR
    status = INTERRUPTED if run.stop is Stop.REQUESTED else DONE
    if not is_main():
        return status
    summary = f"{run.folder}: step {progress.step}"
    if progress.best_figure is not None:
        figure = f"{task.objective.name} {task.objective.show(progress.best_figure)}"
        summary += f", best dev {figure} at step {progress.best_step}"
    print(summary)
    return status


def _log_idle_cores() -> None:
    """Log that one process leaves all cores but one idle: Paddle's operators hardly gain from threads."""
    from paddle_dialog.training.distributed import num_ranks

    cores = usable_cores()
    if num_ranks() == 1 and cores > 1:
        logging.getLogger("paddle_dialog").info(
            "one process uses one of %d cores; python -m paddle.distributed.launch --nproc_per_node %d "
            "tools/train.py … uses all (docs/scaling.md)",
            cores,
            cores,
        )


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.add_argument("--resume", metavar="auto|DIR", help="continue the run in output_dir, or in DIR")
    parser.add_argument("--overwrite", action="store_true", help="begin anew although output_dir holds a run")
    return parser
