"""What all command-line tools share: their common arguments, and errors as plain lines with exit statuses."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from paddle_dialog.errors import UserError

# Warnings of Paddle and its dependencies that mean nothing to a user, such as a missing compiler cache.
warnings.filterwarnings("ignore", module="paddle|_distutils_hack|jieba|pkg_resources")

# NumPy reads this on import. A search multiplies a few rows at a time, which a second thread only slows down.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from paddle_dialog.config.schema import ExperimentConfig
    from paddle_dialog.recipes import LoadedModel, Recipe

DONE, INTERNAL_ERROR, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
MAX_LINE = 1 << 24  # bytes of a line of standard input
# Packages by what brings them: nothing but the distribution itself (""), or an extra; all others come with `train`.
PACKAGES = {
    "": ("numpy", "yaml", "safetensors", "sentencepiece"),
    "serve": ("fastapi", "uvicorn", "h11", "starlette", "pydantic", "anyio", "prometheus_client"),
    "pretrained": ("paddleformers", "transformers"),
}


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line, as the tools report all bad input."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with status 2."""
        self.exit(BAD_INPUT, f"error: {message}; see {self.prog} --help\n")


class TaskParser(OneLineParser):
    """A parser that also takes the arguments of the task of the recipe or of the weights.

    The recipe, which it has read, is in `recipe`, the values of those arguments are in `task_options`.
    """

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Look for the recipe, add the arguments of its task, and parse."""
        words = sys.argv[1:] if args is None else args
        first = OneLineParser(prog=self.prog, add_help=False)
        first.add_argument("-c", "--config")
        first.add_argument("-o", "--override", action="append", default=[])
        first.add_argument("--weights")
        named, _ = first.parse_known_args(words)
        recipe = None if named.config is None and named.weights is None else _recipe_of(named)
        shared = len(self._actions)
        if recipe is not None:
            recipe.task.add_arguments(self)
        arguments = super().parse_intermixed_args(words, namespace)
        arguments.recipe = recipe
        names = (action.dest for action in self._actions[shared:])
        arguments.task_options = {name: getattr(arguments, name) for name in names}
        return arguments


def program_parser(
    description: str | None, parser_class: type[OneLineParser] = OneLineParser
) -> OneLineParser:
    """Return a parser without arguments, from a program's docstring: its purpose, a blank line, an example."""
    purpose, _, example = (description or "").strip().partition("\n\n")
    return parser_class(description=purpose, epilog=f"example: {example}")


def base_parser(
    description: str | None, parser_class: type[OneLineParser] = OneLineParser, config_required: bool = True
) -> OneLineParser:
    """Return a parser with `-c`, `-o` and `--device`.

    Args:
        description: the tool's docstring: its purpose, a blank line, an example.
        parser_class: `TaskParser` where the recipe's task may have arguments of its own.
        config_required: whether the tool needs `-c`; else it needs that or `--weights`.
    """
    parser = program_parser(description, parser_class)
    if parser_class is TaskParser:
        parser.description = (
            f"{parser.description} With -c, --help shows the arguments of the recipe's task too."
        )
    parser.add_argument(
        "-c",
        "--config",
        required=config_required,
        help="the recipe: a YAML file, the name of one that ships, or the folder of a run or a bundle",
    )
    if not config_required:
        parser.add_argument(
            "--weights",
            metavar="DIR",
            help="the folder of a run or a bundle, with its own settings (default: those that ship with the recipe, "
            "or where none do its run's)",
        )
        parser.add_argument(
            "--paddle", action="store_true", help="answer through Paddle's network, also where NumPy would"
        )
    parser.add_argument(
        "-o",
        "--override",
        action="append",
        default=[],
        metavar="section.key=value",
        help="overrides a setting of the recipe; may be given again",
    )
    parser.add_argument(
        "--help-config",
        nargs="?",
        const="",
        metavar="SECTION",
        help="explain the recipe's keys, all or those of a section such as training, and exit",
    )
    parser.add_argument("--device", default="auto", help="auto (default), cpu, gpu or gpu:N")
    return parser


def run_tool(
    main: Callable[[argparse.Namespace], int | None],
    parser: argparse.ArgumentParser,
    words: Sequence[str] | None = None,
) -> int:
    """Parse the command line, run a tool, and turn errors into its exit status.

    Returns:
        0 done, 2 bad input (one plain line on stderr), 130 interrupted, 1 internal error (with traceback).
    """
    try:
        _prepare_streams()
        arguments = parser.parse_intermixed_args(words)
        if getattr(arguments, "help_config", None) is not None:
            print(explain_config(arguments))
            return DONE
        status = main(arguments) or DONE
        sys.stdout.flush()  # here, where a full disk is reported
        return status
    except UserError as error:
        note(f"error: {error}")
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "paddle_dialog":
            return _report_fault()
        note(f"error: {how_to_install(error.name)}")
        return BAD_INPUT
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has exited, as in `… | head`
        _discard(sys.stdout)
        return DONE
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            return _report_fault()
        if error.filename is None:  # nothing more is written there at the end
            _discard(sys.stdout)
        note(f"error: {error.filename or 'the output'}: {error.strerror}")
        return BAD_INPUT
    except Exception:
        return _report_fault()


def _prepare_streams() -> None:
    """Open what the shell has closed (`<&-`, `2>&-`), and write UTF-8 in any locale."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        raise UserError("the output is closed; leave >&- out, or write to /dev/null")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the bytes of a path may not be UTF-8
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError as error:
        raise UserError("the current folder was removed; change to another one") from error


def note(text: str) -> None:
    """Print a line on stderr; where that cannot be written, the work is done all the same."""
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: Any) -> None:
    """Let all that is still written to a stream go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def explain_config(arguments: argparse.Namespace) -> str:
    """Explain the keys that `--help-config` asks about, of the recipe's task or of a tool's own `config_class`."""
    from paddle_dialog.config.typed import explain

    if hasattr(arguments, "config_class"):
        return explain(arguments.config_class(), arguments.help_config)
    recipe = _recipe_of(arguments)
    return explain(recipe.task.config_class, arguments.help_config, recipe.values)


def _recipe_of(arguments: argparse.Namespace) -> Recipe:
    """Return the recipe that `-c`, `--weights` and `-o` name, which a `TaskParser` has read already."""
    from paddle_dialog.recipes import named_recipe

    read: Recipe | None = getattr(arguments, "recipe", None)
    if read is not None:
        return read
    with notes_on_stderr():
        return named_recipe(arguments.config, getattr(arguments, "weights", None), arguments.override)


def _report_fault() -> int:
    """Report the exception that is being handled."""
    note(
        f"{traceback.format_exc()}error: this is a fault of paddle_dialog; please report it with the lines above"
    )
    return INTERNAL_ERROR


def how_to_install(module: str) -> str:
    """Return one sentence for a module that cannot be found."""
    package = module.partition(".")[0]
    extra = next((extra for extra, packages in PACKAGES.items() if package in packages), "train")
    if not extra:
        return f"{package} is not installed, though others need it; install paddle_dialog with its requirements again"
    option = " --pretrained" if extra == "pretrained" else ""
    return (
        f"{package} is not installed; it comes with the extra {extra}: pip install 'paddle_dialog[{extra}]', "
        f"or in a checkout bash tools/setup_env.sh{option}"
    )


def checked_text(text: str) -> str:
    """Return an argument unless a terminal of another encoding has garbled it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            "a text on the command line is not UTF-8; set the terminal to UTF-8 or use --input"
        ) from error
    return text


def typed_lines(hint: str) -> Iterator[str | None]:
    """Iterate over the lines typed on a terminal until Ctrl-D; None for one that is not text."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (lets the user edit the line)
    note(hint)
    prompt = "> " if sys.stdout.isatty() else ""  # the prompt goes to stdout, like the answers
    while True:
        try:
            yield input(prompt)
        except EOFError:
            note("")
            return
        except UnicodeDecodeError:
            yield None


def piped_lines() -> Iterator[tuple[int, str | None]]:
    """Iterate over the numbered lines of standard input as UTF-8, whatever the locale; None for one that is not."""
    stdin = getattr(sys.stdin, "buffer", None) or io.BytesIO()
    for number, raw in enumerate(iter(lambda: stdin.readline(MAX_LINE + 1), b""), start=1):
        if len(raw) > MAX_LINE:
            raise UserError(f"standard input:{number}: the line has more than {MAX_LINE:,} bytes; break it")
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, None


def integer_from(minimum: int, maximum: int = 1000) -> Callable[[str], int]:
    """Return an argparse type: whole numbers from `minimum` to `maximum`."""

    def parse(text: str) -> int:
        if not (text.isdecimal() and len(text) < 12 and minimum <= int(text) <= maximum):
            raise argparse.ArgumentTypeError(f"'{text:.40}' is not a whole number of {minimum} to {maximum}")
        return int(text)

    return parse


@contextlib.contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Show the library's log messages as plain lines on stderr."""
    logger = logging.getLogger("paddle_dialog")
    handler, before = logging.StreamHandler(sys.stderr), (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def load_named_model(arguments: argparse.Namespace) -> tuple[ExperimentConfig, LoadedModel]:
    """Load the recipe and the model that `-c`, `-o`, `--weights` and `--device` ask for.

    The model is as its bundle describes it; the recipe decides on decoding and seed. The weights taken
    are named on stderr.
    """
    from paddle_dialog.recipes import load_answering

    recipe = _recipe_of(arguments)
    with notes_on_stderr():
        model = load_answering(recipe, arguments.device, arguments.paddle)
        _ = model.predictor  # built here, where its messages are shown
    note(f"weights: {model.folder}")
    return recipe.config(), model
