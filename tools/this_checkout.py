"""What each script of this folder starts with: it runs the code of this checkout, whatever is installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from paddle_dialog.commands.console import run_script

__all__ = ["run_script"]
