"""Serve the models over HTTP: a page for people, an API for programs. (The code: paddle_dialog/commands/serve.py.)"""

from this_checkout import run_script

run_script("serve")
