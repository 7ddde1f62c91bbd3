"""Write whole couplets with their 横批. (The code: paddle_dialog/commands/compose.py.)"""

import sys

from paddle_dialog.commands.console import run_script

if __name__ == "__main__":
    sys.exit(run_script("compose"))
