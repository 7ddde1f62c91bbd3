"""Count a model's parameters. (The code: paddle_dialog_commands/summary.py.)"""

import sys

from paddle_dialog_commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("summary"))
