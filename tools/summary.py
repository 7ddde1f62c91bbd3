"""Count a model's parameters. (The code: paddle_dialog/commands/summary.py.)"""

import sys

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("summary"))
