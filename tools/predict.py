"""Answer inputs with a trained model. (The code: paddle_dialog/commands/predict.py.)"""

from this_checkout import run_script

run_script("predict")
