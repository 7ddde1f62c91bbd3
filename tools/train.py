"""Train a model. (The code: paddle_dialog/commands/train.py.)"""

import sys

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("train"))
