"""Talk with a trained empathetic model. (The code: tasks/empathetic/chat_command.py.)"""

from this_checkout import run_script

run_script("chat")
