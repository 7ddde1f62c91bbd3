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

# Warnings of our dependencies that mean nothing to a user: a missing compiler cache, and PaddleNLP's deprecated
# ways of importing and of copying a tensor.
for _message in (
    "No ccache found",
    "Setuptools is replacing distutils",
    "pkg_resources",
    "To copy construct",
):
    warnings.filterwarnings("ignore", message=_message)

# NumPy reads this on import. A search multiplies a few rows at a time, which a second thread only slows down.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

if TYPE_CHECKING:
    from paddle_dialog.bundle.loading import LoadedModel
    from paddle_dialog.config.schema import ExperimentConfig
    from paddle_dialog.recipes import Recipe

DONE, INTERNAL_ERROR, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
# The extra of the distribution that brings each package which only some commands need.
EXTRAS = {
    "train": (
        *("paddle", "paddlenlp", "visualdl", "matplotlib", "sacrebleu", "nrclex", "sklearn", "scipy"),
        *("datasets", "huggingface_hub", "pyarrow", "aistudio_sdk", "setuptools", "tool_helpers", "filelock"),
    ),
    "serve": ("fastapi", "uvicorn", "h11", "starlette", "pydantic", "anyio", "prometheus_client"),
    "dev": ("ToJyutping", "pypinyin"),
    "pretrained": ("paddleformers", "transformers"),
}


class OneLineParser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line, as the tools report all bad input.

    Attributes:
        needs_model: whether `-c` or `--weights` must be given.
    """

    needs_model = False

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with status 2."""
        self.exit(BAD_INPUT, f"error: {message}; see {self.prog} --help\n")

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command line, and check that it names a model where one is needed."""
        arguments = super().parse_intermixed_args(args, namespace)
        if self.needs_model and arguments.config is None and arguments.weights is None:
            self.error("no model is named; give -c/--config or --weights")
        return arguments


class TaskParser(OneLineParser):
    """A parser that also takes the arguments of the task of the recipe or of the weights.

    The recipe, which it has read, is in `recipe`, the values of those arguments are in `task_options`.
    """

    def parse_intermixed_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Look for the recipe first.

        Raises:
            UserError: it cannot be read.
        """
        words = sys.argv[1:] if args is None else args
        first = OneLineParser(prog=self.prog, add_help=False)
        first.add_argument("-c", "--config")
        first.add_argument("-o", "--override", action="append", default=[])
        first.add_argument("--weights")
        named, _ = first.parse_known_args(words)
        options = OneLineParser(add_help=False)
        recipe = None if named.config is None and named.weights is None else _recipe_of(named)
        if recipe is not None:
            recipe.task.add_arguments(options)
            recipe.task.add_arguments(self)
        arguments = super().parse_intermixed_args(words, namespace)
        arguments.recipe = recipe
        arguments.task_options = {name: getattr(arguments, name) for name in vars(options.parse_args([]))}
        return arguments


def program_parser(
    description: str | None, parser_class: type[OneLineParser] = OneLineParser
) -> OneLineParser:
    """Return a parser without arguments that is told a program's docstring: its purpose, a blank line, an example."""
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
        parser.needs_model = True
        parser.add_argument(
            "--weights",
            metavar="DIR",
            help="the folder of a run or a bundle, with its own settings (default: those that ship with the recipe, "
            "or where none do its run's)",
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

    Args:
        words: the command line, by default that of the process.

    Returns:
        0 done, 2 bad input (one plain line on stderr), 130 interrupted, 1 internal error (with traceback).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Chinese is printed in any locale, and so are the bytes of a path that is not UTF-8.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        arguments = parser.parse_intermixed_args(words)
        if getattr(arguments, "help_config", None) is not None:
            print(explain_config(arguments))
            return DONE
        status = main(arguments) or DONE
        sys.stdout.flush()  # here, where a full disk is told
        return status
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "paddle_dialog":
            return _report_fault()
        print(f"error: {how_to_install(error.name)}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has exited, as in `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            return _report_fault()
        if error.filename is None:  # nothing more is written there at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"error: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT
    except Exception:
        return _report_fault()


def explain_config(arguments: argparse.Namespace) -> str:
    """Explain the keys that `--help-config` asks about, of the recipe's task or of a tool's own `config_class`."""
    from paddle_dialog.config.explain import explain

    if hasattr(arguments, "config_class"):
        return explain(arguments.config_class(), arguments.help_config)
    return explain(_recipe_of(arguments).task.config_class, arguments.help_config)


def _recipe_of(arguments: argparse.Namespace) -> Recipe:
    """Return the recipe that `-c`, `--weights` and `-o` name, which a `TaskParser` has read already."""
    from paddle_dialog.bundle.loading import named_recipe

    read: Recipe | None = getattr(arguments, "recipe", None)
    if read is not None:
        return read
    with notes_on_stderr():
        return named_recipe(arguments.config, getattr(arguments, "weights", None), arguments.override)


def _report_fault() -> int:
    """Report the exception that is being handled."""
    traceback.print_exc()
    print("error: this is a fault of paddle_dialog; please report it with the lines above", file=sys.stderr)
    return INTERNAL_ERROR


def how_to_install(module: str) -> str:
    """Return one sentence for a module that cannot be found.

    Args:
        module: its name as an import gives it, e.g. `paddle.nn`.
    """
    package = module.partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            option = f" --{extra}" if extra in ("dev", "pretrained") else ""
            return (
                f"{package} is not installed; it comes with the extra {extra}: pip install 'paddle_dialog[{extra}]', "
                f"or in a checkout bash tools/setup_env.sh{option}"
            )
    return f"{package} is not installed, though others need it; install paddle_dialog with its requirements again"


def checked_text(text: str) -> str:
    """Return an argument unless a terminal of another encoding has garbled it."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UserError(
            "a text on the command line is not UTF-8; set the terminal to UTF-8 or use --input"
        ) from error
    return text


def typed_lines(note: str) -> Iterator[str | None]:
    """Iterate over the lines typed on a terminal until Ctrl-D; None for one that is not text.

    Args:
        note: shown at the beginning, on stderr.
    """
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (lets the user edit the line)
    print(note, file=sys.stderr)
    prompt = "> " if sys.stdout.isatty() else ""  # the prompt goes to stdout, like the answers
    while True:
        try:
            yield input(prompt)
        except EOFError:
            print(file=sys.stderr)
            return
        except UnicodeDecodeError:
            yield None


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


def load_model(arguments: argparse.Namespace) -> tuple[ExperimentConfig, LoadedModel]:
    """Load the recipe and the model that `-c`, `-o`, `--weights` and `--device` ask for.

    The model is as its bundle describes it; the recipe decides on decoding and seed. The weights taken
    are named on stderr. See `named_recipe` and `find_weights`.

    Raises:
        UserError: the config, the device or the weights cannot be used.
    """
    from paddle_dialog.bundle import loading
    from paddle_dialog.device import select_device

    recipe = _recipe_of(arguments)
    config = recipe.config()
    select_device(arguments.device)
    folder = loading.find_weights(recipe)
    with notes_on_stderr():
        model = loading.load_model(folder, recipe.task, config)
        _ = model.predictor  # built here, where its messages are shown
    print(f"weights: {folder}", file=sys.stderr)
    return config, model
