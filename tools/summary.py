"""Count a model's parameters. (The code: paddle_dialog/commands/summary.py.)"""

from this_checkout import run_script

run_script("summary")
