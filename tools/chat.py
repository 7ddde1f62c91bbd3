"""Talk with a trained empathetic model. (The code: paddle_dialog/commands/chat.py.)"""

import sys

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("chat"))
