"""Make a bundle that ships from the model of a run. (The code: paddle_dialog_commands/export.py.)"""

import sys

from paddle_dialog_commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("export"))
