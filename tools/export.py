"""Make a bundle that ships from the model of a run. (The code: paddle_dialog/commands/export.py.)"""

from this_checkout import run_script

run_script("export")
