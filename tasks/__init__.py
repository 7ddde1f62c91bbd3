"""The tasks, a folder each; `PADDLE_DIALOG_TASKS` names folders of further ones, separated as in `PATH`."""

import os

if __name__ == "tasks":  # found by its place in a checkout
    raise ImportError("this folder is the package paddle_dialog.tasks; import it by that name")

__path__ += filter(None, os.environ.get("PADDLE_DIALOG_TASKS", "").split(os.pathsep))
