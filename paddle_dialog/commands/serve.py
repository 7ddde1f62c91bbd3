"""Serve the models over HTTP: a page for people, an API for programs.

python tools/serve.py -c configs/serve.yaml -o port=8080
"""

from __future__ import annotations

import argparse

from paddle_dialog.command_line import base_parser


def main(arguments: argparse.Namespace) -> int:
    """Serve until a signal ends it; return the exit status."""
    from paddle_dialog.serving.server import load_serve_config, serve

    return serve(load_serve_config(arguments.config, arguments.override), arguments.device)


def make_parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = base_parser(__doc__)
    parser.set_defaults(config_class=_config_class)
    return parser


def _config_class() -> type:
    from paddle_dialog.serving.config import ServeConfig

    return ServeConfig
