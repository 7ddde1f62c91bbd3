"""Measure a trained model. (The code: paddle_dialog/commands/evaluate.py.)"""

from this_checkout import run_script

run_script("evaluate")
