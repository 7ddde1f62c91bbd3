"""tools/train.py whose process of rank 1 is killed in step 8, before it shares its gradients."""

import itertools
import os
import signal

from paddle_dialog.commands.console import run_script
from paddle_dialog.training import run
from paddle_dialog.training.distributed import rank

whole = run.average_gradients
steps = itertools.count(1)


def average_gradients(*arguments):
    if next(steps) == 8 and rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments)


run.average_gradients = average_gradients
run_script("train")
