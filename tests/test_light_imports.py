"""Answering touches NumPy, PyYAML and safetensors and no other package, and what needs more says so in a line."""

import json
import subprocess
import sys

import paddle
import pytest
from command import ROOT, Outcome

from paddle_dialog.command_line import PACKAGES

pytestmark = pytest.mark.skipif(
    paddle.is_compiled_with_cuda(), reason="the GPU build is asked for its devices"
)
TRAINING = ["paddle", "paddlenlp", "visualdl", "matplotlib", "sacrebleu", "nrclex", "sklearn", "scipy"]
HEAVY = ["ToJyutping", "pypinyin", "filelock", *TRAINING, *PACKAGES["serve"], *PACKAGES["pretrained"]]
# Refuses the packages as if they were not installed, and prints every attempt, even one that was caught.
REFUSE = """
import json, sys
refused, tried = set(json.loads(sys.argv[1])), []
class Refuse:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in refused:
            tried.append(name)
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refuse())
sys.argv = ["paddle-dialog", *sys.argv[2:]]
from paddle_dialog.commands.console import main
status = main()
print("tried:", *tried, file=sys.stderr)
sys.exit(status)
"""


def without(packages, *arguments, stdin=""):
    """Run `paddle-dialog` as if these packages were not installed."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSE, json.dumps(packages), *arguments],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        cwd=ROOT,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize(
    ("arguments", "stdin", "answers"),
    [
        # 龘 stands in no vocabulary, and 𪚥 is a hanzi that common fonts lack.
        (["predict", "couplet", "晚风摇树树还挺", "𪚥龘"], "", 2),
        (["predict", "empathetic", "I lost my dog, Zyx."], "", 1),
        (["chat", "empathetic"], "I won!\n/quit\n", 2),
        (["predict", "poem", "--form", "五绝", "明月𪚥"], "", 3),
        (["predict", "translation", "学而时习之。"], "", 1),
        (["predict", "sentiment_zh", "好𪚥", "差"], "", 2),
        (["predict", "sentiment_en", "dull Zyx"], "", 1),
    ],
    ids=lambda value: "-".join(value[:2]) if isinstance(value, list) else "",
)
def test_the_shipped_models_answer_without_the_training_stack(arguments, stdin, answers):
    tool, name, *words = arguments
    outcome = without(HEAVY, tool, "-c", name, "--weights", f"pretrained/{name}", *words, stdin=stdin)
    assert outcome.status == 0, outcome.stderr
    assert len(outcome.stdout.splitlines()) == answers
    assert outcome.stderr.endswith("tried:\n"), outcome.stderr


@pytest.mark.parametrize(
    ("packages", "arguments", "extra"),
    [
        (HEAVY, ["train", "-c", "couplet_sample"], "train"),
        (HEAVY, ["evaluate", "-c", "couplet", "--data", "sample"], "train"),
        (HEAVY, ["evaluate", "-c", "couplet", "--data", "sample", "--figures", "nowhere"], "train"),
        (HEAVY, ["summary", "-c", "couplet"], "train"),
        (HEAVY, ["predict", "-c", "couplet", "--device", "gpu", "春"], "train"),
        (HEAVY, ["serve", "-c", "serve"], "serve"),
        (["yaml"], ["predict", "-c", "couplet", "春"], None),
    ],
    ids=lambda value: value[0] if isinstance(value, list) and value is not HEAVY else None,
)
def test_a_command_that_needs_more_names_the_extra(packages, arguments, extra):
    outcome = without(packages, *arguments)
    errors = [line for line in outcome.stderr.splitlines() if line.startswith("error: ")]
    assert outcome.status == 2 and len(errors) == 1 and "Traceback" not in outcome.stderr, outcome.stderr
    assert "is not installed" in errors[0]
    assert extra is None or f"pip install 'paddle_dialog[{extra}]'" in errors[0]


def test_settings_are_checked_before_paddle_and_paddlenlp_are_imported():
    outcome = without(["paddlenlp", "paddle"], "train", "-c", "couplet_sample", "-o", "training.epochs=many")
    assert outcome.status == 2 and "training.epochs" in outcome.stderr
    assert outcome.stderr.endswith("tried:\n")
