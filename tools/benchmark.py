"""Measure how fast a model answers on this machine. (The code: paddle_dialog/commands/benchmark.py.)"""

from this_checkout import run_script

run_script("benchmark")
