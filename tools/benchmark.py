"""Measure how fast a recipe trains and answers on this machine. (The code: paddle_dialog/commands/benchmark.py.)"""

import sys

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("benchmark"))
