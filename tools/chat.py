"""Talk with a trained empathetic model. (The code: tasks/empathetic/chat_command.py.)"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, whatever is installed

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("chat"))
