"""Train a model. (The code: paddle_dialog/commands/train.py.)"""

from this_checkout import run_script

run_script("train")
