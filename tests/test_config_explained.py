"""Every key explains itself: in `--help-config` and over HTTP."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from math import inf, nan
from typing import Literal

import pytest
from command import run_here

from paddle_dialog.config.loader import dump
from paddle_dialog.config.typed import at_least, build, explain, help_of, rate, sections, setting
from paddle_dialog.errors import UserError
from paddle_dialog.recipes import find_task, task_names
from paddle_dialog.serving.config import ServeConfig


@dataclass(frozen=True)
class Round:
    """A round hole."""

    name: Literal["round"] = "round"
    radius: float = setting(2.0, "from the middle | to the rim", above=0.0, maximum=9.0)


@dataclass(frozen=True)
class Square:
    """A square hole."""

    name: Literal["square"] = "square"
    side: int = at_least(1, 3, "its length")


@dataclass(frozen=True)
class Nail:
    """A nail."""

    head: bool = setting(True, "it has one")


@dataclass(frozen=True)
class Peg:
    """A peg and its hole.

    Not part of the help.
    """

    wood: str = setting("oak", "what it is made of")
    label: str | None = setting(None, "what stands on it")
    wear: float = rate(0.5, "how worn it is")
    hole: Round | Square = field(default_factory=Round)
    spares: dict[str, Nail | None] = field(default_factory=dict)


@dataclass(frozen=True)
class PinePeg(Peg):
    """A peg of pine."""

    wood: str = "pine"
    rings: int = at_least(0, 0, "of its tree")


WHOLE = """\
A peg and its hole.
  wood = oak  # text
      what it is made of
  label = null  # text or null
      what stands on it
  wear = 0.5  # a number (at least 0.0 and at most 1.0)
      how worn it is

hole (name: round): A round hole.
  hole.radius = 2.0  # a number (above 0.0 and at most 9.0)
      from the middle | to the rim

hole (name: square): A square hole.
  hole.side = 3  # an integer (at least 1)
      its length

spares.NAME: A nail.
  spares.NAME.head = true  # true or false
      it has one"""


def test_all_keys_with_type_range_default_and_help():
    assert explain(Peg) == WHOLE


def test_one_section_or_one_key_or_the_nearest():
    assert explain(Peg, "hole") == "\n\n".join(WHOLE.split("\n\n")[1:3])
    assert explain(Peg, "wear").splitlines()[1:] == WHOLE.splitlines()[5:7]
    with pytest.raises(UserError, match=r"^--help-config hle: no such section or key; did you mean hole\?$"):
        explain(Peg, "hle")
    with pytest.raises(UserError, match=r"sections: hole, spares\.NAME$"):
        explain(Peg, "training")
    assert help_of(PinePeg, "wood") == "what it is made of"  # declared again without help


@pytest.mark.parametrize("name", [*task_names(), "server"])
def test_every_key_has_help(name):
    cls = ServeConfig if name == "server" else find_task(name).config_class
    keys = [key for section in sections(cls) for key in section.keys]
    assert keys
    for key in keys:
        assert re.match(r"\S.*[^\s.]$", key.help), f"{key.name}: {key.help!r}"
    assert all(section.help for section in sections(cls))
    defaults = [field.default_factory for field in dataclasses.fields(cls)]
    made = [default() for default in defaults if default is not dataclasses.MISSING]
    assert [problem for part in made for problem in getattr(part, "problems", tuple)()] == []


WRONG: list[object] = [0, -1, -(10**23), 2**31, 2**63, 10**23, -1e300, 1e-300, 1e-320, 1e39, 1e308, nan, inf]
WRONG += ["many", "\ud800", "a\0b", [], [1], None, True, {"name": "many"}]


@pytest.mark.parametrize("name", [*task_names(), "server"])
def test_every_key_takes_a_value_or_refuses_it_in_a_line(name):
    cls = ServeConfig if name == "server" else find_task(name).config_class
    rest = {"models": {"couplet": {}}} if name == "server" else {"task": name}
    for section in sections(cls):
        for key in section.keys:
            for value in WRONG:
                given = {key.name.rpartition(".")[2]: value} | ({"name": section.tag} if section.tag else {})
                for part in reversed(key.name.split(".")[:-1]):
                    given = {part: given}
                if key.name.startswith("model.lora."):
                    given["model"]["name"] = "pretrained"
                try:
                    config = build(cls, rest | given, "recipe.yaml")
                except UserError as error:
                    lines = str(error).splitlines()  # it may contradict others, which are named too
                    if given.get("model", {}).get("name") == "pretrained":
                        continue  # whose own defaults contradict the recipe
                    named = any(key.name.rpartition(".")[2] in line for line in lines)
                    assert named and all(len(line) < 500 for line in lines), (key.name, value, lines)
                else:
                    assert dump(config) and value != "a\0b"
                    too_much = isinstance(value, float | int) and abs(value) > 2**31 - 1
                    too_little = isinstance(value, float) and 0 < value < 1e-100 and "above" in key.accepts
                    assert not too_much and not too_little, f"{key.name} takes {value}"


def test_a_network_beyond_the_machine_s_memory_is_refused_before_it_is_built(monkeypatch):
    monkeypatch.setattr("paddle_dialog.processes.total_memory", lambda: 2**29)
    wide = ("-c", "couplet", "-o", "model.width=16384")
    many = ("summary", "-c", "couplet", "--vocab-size")
    said = r"model: its weights would take at least \d+ GiB of memory, and this machine has 0; take fewer"
    for words in (("train", *wide), ("summary", *wide), (*many, 10**6)):
        assert re.search(said, run_here(*words).error_line())
    assert "'10000000' is not a whole number" in run_here(*many, 10**7).error_line()


def test_a_tool_explains_its_recipe_and_the_server_its_settings():
    assert "  port = 8000  # an integer" in run_here("serve", "-c", "serve", "--help-config").stdout
    outcome = run_here("predict", "-c", "couplet", "--help-config", "decoding.beam_size")
    assert outcome.status == 0 and outcome.stderr == ""
    assert outcome.stdout.splitlines()[1:] == [
        "  decoding.beam_size = 10  # an integer (at least 1 and at most 1000)",
        "      hypotheses kept for an input (`beam` only)",
    ]


def test_the_value_of_a_recipe_is_shown_next_to_the_default(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("task: couplet\ntraining: {epochs: 3, epoch: 3}\n", encoding="utf-8")  # faulty, too
    shown = run_here("train", "-c", recipe, "--help-config", "training", "-o", "training.amp=O1").stdout
    assert "\n  training.epochs = 10 (this recipe: 3)  # an integer (at least 1)\n" in shown
    assert "\n  training.amp = none (this recipe: O1)  # " in shown
    assert "\n  training.log_every = 100  #" in shown
