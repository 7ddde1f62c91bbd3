"""Starts a command from its script in `tools/`, or as a subcommand of `paddle-dialog`."""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from typing import Any, NoReturn

from paddle_dialog.command_line import BAD_INPUT, DONE, run_tool

COMMANDS = ("predict", "serve", "evaluate", "train", "export", "benchmark", "summary")


def command_modules() -> dict[str, str]:
    """Return the module of each command by its name: those of the library, then those that tasks bring."""
    from paddle_dialog.recipes import task_commands  # needs packages whose absence only `run_tool` explains

    return {name: f"paddle_dialog.commands.{name}" for name in COMMANDS} | task_commands()


def run_script(name: str) -> NoReturn:
    """Run a command with the arguments of this process, and exit with its status."""
    command = _command(name)
    sys.exit(run_tool(command.main, command.make_parser(), sys.argv[1:]))


def main() -> int:
    """Run `paddle-dialog COMMAND …`; return the exit status."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(_usage())
        return DONE
    if name == "--version":
        from importlib.metadata import version  # takes a tenth of the start of a command

        print(version("paddle_dialog"))
        return DONE
    if name not in COMMANDS and name not in (commands := command_modules()):
        near = difflib.get_close_matches(name, commands, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
        print(f"error: '{name}' is no command of paddle-dialog; {hint}", file=sys.stderr)
        return BAD_INPUT
    command = _command(name)
    parser = command.make_parser()
    # Its help mentions `paddle-dialog` and recipes by name.
    parser.prog = f"paddle-dialog {name}"
    example = parser.epilog.replace(f"python tools/{name}.py", parser.prog)
    parser.epilog = re.sub(r"\bconfigs/([\w/]+)\.yaml", r"\1", example)
    return run_tool(command.main, parser, arguments)


def _command(name: str) -> Any:
    return importlib.import_module(
        f"paddle_dialog.commands.{name}" if name in COMMANDS else command_modules()[name]
    )


def _usage() -> str:
    """List the commands with their purposes."""
    lines = ["usage: paddle-dialog COMMAND …", ""]
    for name, module in command_modules().items():
        purpose = (importlib.import_module(module).__doc__ or "").partition("\n")[0]
        lines.append(f"  {name:<11}{purpose}")
    return "\n".join([*lines, "", "See paddle-dialog COMMAND --help."])
