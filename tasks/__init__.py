"""The tasks, a folder each; `PADDLE_DIALOG_TASKS` names folders of further ones, separated as in `PATH`."""

import os

__path__ += filter(None, os.environ.get("PADDLE_DIALOG_TASKS", "").split(os.pathsep))
