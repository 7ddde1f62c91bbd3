"""Configurations: files and overrides, typing, cross-checking, dumping; `errors.tsv` has sentences of commands."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal

import pytest
import yaml
from command import written
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.config.loader import dump, read_config
from paddle_dialog.config.typed import MIN_POSITIVE, build
from paddle_dialog.errors import UserError


@dataclass
class LstmConfig:
    name: Literal["lstm", "gru"] = "lstm"
    hidden: int = field(default=4, metadata={"min": 1})


@dataclass
class TransformerConfig:
    name: Literal["transformer"] = "transformer"
    width: int = 8
    heads: int = field(default=2, metadata={"min": 1})

    def problems(self):
        if self.width % self.heads:
            yield "heads", f"must divide width ({self.width}), found {self.heads}"


@dataclass
class TrainingConfig:
    epochs: int = field(default=1, metadata={"min": 1})
    rate: float = field(default=1e-3, metadata={"above": 0, "max": 1})
    clip: float | None = None
    shuffle: bool = True
    betas: list[float] = field(default_factory=lambda: [0.9, 0.98], metadata={"min": 0, "max": 1})
    schedule: Literal["none", "noam", "on"] = "none"
    warmup: int = 0

    def problems(self):
        if self.schedule == "noam" and self.warmup == 0:
            yield "warmup", "must be at least 1 with noam, found 0"


@dataclass
class Config:
    task: str
    model: LstmConfig | TransformerConfig = field(default_factory=LstmConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    weights: dict[str, float] = field(default_factory=dict, metadata={"min": 0})
    members: list[LstmConfig | TransformerConfig] = field(default_factory=list)
    note: str | None = None
    extra: TrainingConfig | None = None


def built(**mapping):
    return build(Config, {"task": "couplet", **mapping}, "x.yaml")


def refusal(**mapping):
    with pytest.raises(UserError) as caught:
        built(**mapping)
    return str(caught.value)


def test_defaults_fill_what_the_mapping_leaves_out():
    assert built() == Config(task="couplet")
    with pytest.raises(UserError, match=r"^x\.yaml: task: missing; must be text$"):
        build(Config, {}, "x.yaml")


def test_values_of_every_type_are_kept():
    config = built(
        model={"name": "transformer", "width": 6, "heads": 3},
        training={"rate": 1, "clip": "2e-3", "shuffle": False, "betas": [0, "1e-1"], "schedule": "on"},
        weights={"bleu": 2},
        members=[{"name": "gru", "hidden": 2}, {"name": "transformer"}],
        extra={"epochs": 3},
    )
    assert config.model == TransformerConfig(width=6, heads=3)
    assert config.training == TrainingConfig(
        rate=1.0, clip=0.002, shuffle=False, betas=[0.0, 0.1], schedule="on"
    )
    assert type(config.training.rate) is float
    assert type(config.training.betas[0]) is float
    assert config.weights == {"bleu": 2.0}
    assert config.members == [LstmConfig("gru", 2), TransformerConfig()]
    assert config.extra == TrainingConfig(epochs=3)


# What is wrong, in YAML, and the beginning of what is said of it, which is all of it unless it ends with …
WRONG = """\
{training: {epochs: true}} → training.epochs: must be an integer (at least 1), found true
{training: {epochs: 2.0}} → training.epochs: must be an integer (at least 1), found 2.0
{training: {epochs: null}} → training.epochs: must be an integer (at least 1), found null
{training: {epochs: {x: 1}}} → training.epochs: must be an integer (at least 1), found a section (keys: x)
{training: {betas: {"0": 1}}} → training.betas: must be a list, each item a number (at least 0 and at …
{training: {shuffle: 1}} → training.shuffle: must be true or false, found 1
{training: {rate: 0}} → training.rate: must be a number (above 0 and at most 1), found 0
{training: {rate: 1.5}} → training.rate: must be a number (above 0 and at most 1), found 1.5
{training: {rate: fast}} → training.rate: must be a number (above 0 and at most 1), found "fast"
{training: {clip: .nan}} → training.clip: must be a number or null, found NaN
{training: {clip: "1e999"}} → training.clip: must be a number or null, found "1e999"
{training: {betas: [0, 2]}} → training.betas[1]: must be a number (at least 0 and at most 1), found 2
{training: {betas: 1}} → training.betas: must be a list, each item a number (at least 0 and at …
{training: {schedule: true}} → training.schedule: must be one of none, noam, on, found true; put it in quotes
{task: 7} → task: must be text, found 7; put it in quotes
{note: [1, {}]} → note: must be text or null, found [1, …]
{weights: {2: 1}} → weights: its keys must be text, found 2; put it in quotes
{model: {hidden: 2}} → model.name: missing; must be one of lstm, gru, transformer
{model: {name: rnn}} → model.name: must be one of lstm, gru, transformer, found "rnn"
{model: lstm} → model: must be a section with a name out of lstm, gru, transformer, found "lstm"
{members: [{name: gru, x: 3}]} → members[0].x: unknown key of gru; known keys: name, hidden
{trainig: {}} → trainig: unknown key; did you mean training?
{training: {true: 1}} → training.true: unknown key; known keys: epochs, rate, clip, shuffle, …
{extra: 5} → extra: must be a section (keys: epochs, rate, clip, shuffle, betas, …
{training: null} → training: must be a section (keys: epochs, …
{model: {name: transformer, heads: 0}} → model.heads: must be an integer (at least 1), found 0
"""


@pytest.mark.parametrize("row", WRONG.splitlines())
def test_a_wrong_value_is_reported_in_one_line(row):
    """A cross-check waits for types and bounds: with no heads it would divide by 0."""
    mapping, _, line = row.partition(" → ")
    message = refusal(**yaml.safe_load(mapping))
    assert "\n" not in message
    assert message.startswith(f"x.yaml: {line[:-1]}") if line[-1] == "…" else message == f"x.yaml: {line}"


def test_every_problem_is_told_at_once():
    message = refusal(
        tsk="couplet",
        model={"name": "transformer", "width": 7, "heads": 2},
        training={"epochs": "many", "warmup": "long", "schedule": "noam"},
        extra={"schedule": "noam"},
    )
    assert message.splitlines() == [
        "x.yaml: 5 problems:",
        "tsk: unknown key; did you mean task?",
        "model.heads: must divide width (7), found 2",
        'training.epochs: must be an integer (at least 1), found "many"',
        'training.warmup: must be an integer, found "long"',
        "extra.warmup: must be at least 1 with noam, found 0",
    ]


@dataclass
class Whole:
    part: TransformerConfig = field(default_factory=TransformerConfig)

    def problems(self):
        yield "part.width", "is odd"
        yield "", "is no good"


def test_a_problem_may_be_of_a_deeper_key_or_of_all():
    with pytest.raises(UserError, match=r"2 problems:\npart\.width: is odd\nthe top level: is no good$"):
        build(Whole, {}, "x.yaml")
    part = {"width": 7, "heads": 2}  # a problem of a section hides none of the whole
    with pytest.raises(UserError, match="3 problems"):
        build(Whole, {"part": part}, "x.yaml")


def test_a_dump_is_whole_and_in_field_order():
    config = Config("couplet", model=TransformerConfig(), note="$${X} 上联")
    text = dump(config)
    assert text.startswith("task: couplet\nmodel:\n  name: transformer\n  width: 8\n  heads: 2\ntraining:\n")
    assert list(yaml.safe_load(text)) == [each.name for each in dataclasses.fields(Config)]
    assert "note: $$${X} 上联" in text


# PyYAML reads three signs of a line's end as blanks.
TEXT = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x85\u2028\u2029"), max_size=12)
    | st.sampled_from(["null", "no", "1e-3", "3", "2024-01-01", "<<", "=", "~", "a: b", "# c"])
    | st.sampled_from(["${A}", "$${", "$$${X:-y}", "$$$${", "${", "${A:-${B}}"])
)
FLOATS = st.floats(max_value=65_536, allow_nan=False, allow_infinity=False)
MODELS = st.builds(
    LstmConfig, name=st.sampled_from(["lstm", "gru"]), hidden=st.integers(1, 65_536)
) | st.builds(
    lambda heads, times: TransformerConfig(width=heads * times, heads=heads), *[st.integers(1, 9)] * 2
)
TRAININGS = st.builds(
    TrainingConfig,
    epochs=st.integers(1, 65_536),
    rate=st.floats(MIN_POSITIVE, 1),
    clip=st.none() | FLOATS,
    shuffle=st.booleans(),
    betas=st.lists(st.floats(0, 1), max_size=3),
    schedule=st.sampled_from(["none", "noam", "on"]),
    warmup=st.integers(1, 65_536),
)


@settings(deadline=None, max_examples=150)
@given(
    st.builds(
        Config,
        task=TEXT,
        model=MODELS,
        training=TRAININGS,
        weights=st.dictionaries(TEXT, st.floats(0, 65_536), max_size=3),
        members=st.lists(MODELS, max_size=2),
        note=st.none() | TEXT,
        extra=st.none() | TRAININGS,
    )
)
def test_a_dump_reads_back_equal(tmp_path_factory, config):
    path = tmp_path_factory.mktemp("dump") / "config.yaml"
    path.write_bytes(dump(config).encode("utf-8"))
    assert build(Config, read_config(path, []), "x") == config
    assert build(Config, yaml.safe_load(dump(config)), "x") == config


@dataclass
class Filled:
    epochs: int = 1
    clip: float | None = 5.0
    note: str | None = None
    model: LstmConfig | TransformerConfig | None = None


def filled(**mapping):
    return build(Filled, mapping, "x.yaml")


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("CORPUS", "/data")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("EPOCHS", "3")
    monkeypatch.delenv("ABSENT", raising=False)


def test_variables_fill_text_numbers_null_and_names():
    assert filled(note="${CORPUS}/a${ABSENT:-b}${EMPTY:-c}${EMPTY}$d").note == "/data/abc$d"
    assert filled(note="${EPOCHS}").note == "3"
    config = filled(epochs="${EPOCHS}", clip="${ABSENT:-null}", model={"name": "${ABSENT:-gru}"})
    assert config == Filled(epochs=3, clip=None, model=LstmConfig("gru"))
    assert filled(note="${ABSENT:-null}").note is None
    assert filled(note="null").note == "null"


def test_variables_that_cannot_be_filled_are_problems_like_others():
    with pytest.raises(UserError) as caught:
        filled(note="${ABSENT}/x", epochs="${1}", model={"name": "${ABSENT}"}, clip="${CORPUS}")
    assert str(caught.value).splitlines() == [
        "x.yaml: 4 problems:",
        "epochs: '${1}' has a malformed ${…}; write ${NAME}, ${NAME:-default}, or $${ for a literal ${",
        'clip: must be a number or null, found "/data"',
        "note: environment variable ABSENT is not set; set it or write ${ABSENT:-default}",
        "model.name: environment variable ABSENT is not set; set it or write ${ABSENT:-default}",
    ]


def read_refusal(path, *overrides):
    with pytest.raises(UserError) as caught:
        read_config(path, overrides)
    return str(caught.value)


TEXTS = ("Act 1: rain", "a: b: c", "a=b", "[open", "#1.tsv", "a #b", "- a", "*", "&a b", "---", "晚风 摇树")
DATES = ("2024-01-02", "2024-13-45", r"C:\data\new.tsv", "a.tsv")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[("3", 3), ("0.5", 0.5), ("null", None), ("", None), ("true", True), ('"3"', "3")],
        *[("[1, 2]", [1, 2]), ("{a: 1}", {"a": 1}), *((text, text) for text in (*TEXTS, *DATES))],
    ],
)
def test_an_override_value_is_yaml_or_plain_text(tmp_path, text, value):
    found = read_config(written(tmp_path, "task: couplet\n"), [f"a.b={text}"])["a"]["b"]
    assert found == value and type(found) is type(value)


def test_an_override_makes_a_section_of_an_empty_one_and_of_a_value(tmp_path):
    path = written(tmp_path, "a: null\nb: 3\nc: [1]\n")
    assert read_config(path, ["a.x.y=1"])["a"] == {"x": {"y": 1}}
    found = read_config(path, ["b.x=1", "c.0=1"])
    assert (found["b"], found["c"]) == ({"x": 1}, {"0": 1})  # which is no number and no list, see `WRONG`
    assert "'x' appears twice" in read_refusal(path, "b={x: 1, x: 2}")


def test_aliased_sections_are_overridden_one_by_one_and_merge_keys_may_be(tmp_path):
    path = written(tmp_path, "a: &s {x: {y: 1}, z: 2}\nb: *s\nc: {<<: *s, z: 3}\n")
    found = read_config(path, ["b.x.y=2"])
    assert found["a"] == {"x": {"y": 1}, "z": 2} and found["b"]["x"] == {"y": 2}
    assert found["c"] == {"x": {"y": 1}, "z": 3}


# Ten lines that unfold to a thousand million keys.
UNFOLDING = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: \x07\n", ", line 2: not valid YAML: special characters are not allowed"),
        ("a: 1\nb: !!int ''\n", ", line 2: not valid YAML: '' cannot be read as int"),
        ("a: 1\n---\nb: 1\n", ", line 2: not valid YAML: "),
        ("[" * 2000, ": not readable: its lists or mappings are nested too deeply"),
        (UNFOLDING, ", line 6: not valid YAML: it has more than 10,000 keys"),
    ],
)
def test_an_unreadable_file_is_named_with_its_line(tmp_path, text, said):
    path = written(tmp_path, text)
    message = read_refusal(path)
    assert message.startswith(f"{path}{said}") and "\n" not in message


def test_a_base_is_merged_below(tmp_path):
    (tmp_path / "shared").mkdir()
    written(tmp_path, "task: a\ntraining: {epochs: 1, betas: [1, 2], rate: 0.5}\n", "shared/root.yaml")
    written(tmp_path, "base: root.yaml\ntraining: {epochs: 2}\nnote: n\n", "shared/middle.yaml")
    path = written(tmp_path, "base: shared/middle.yaml\ntraining: {betas: [3]}\n")
    assert read_config(path, ["note=m"]) == {
        "task": "a",
        "training": {"epochs": 2, "betas": [3], "rate": 0.5},
        "note": "m",
    }


def test_a_base_section_of_another_name_is_replaced(tmp_path):
    written(tmp_path, "model: {name: transformer, width: 16}\nextra: {name: same, a: 1}\n", "base.yaml")
    path = written(tmp_path, "base: base.yaml\nmodel: {name: lstm}\nextra: {name: same, b: 2}\n")
    assert read_config(path, []) == {"model": {"name": "lstm"}, "extra": {"name": "same", "a": 1, "b": 2}}


def test_a_wrong_base_is_refused(tmp_path):
    a = written(tmp_path, "base: b.yaml\n", "a.yaml")
    b = written(tmp_path, "base: ./a.yaml\n", "b.yaml")
    assert read_refusal(a).startswith(f"{b}: base: the files are each other's base ({a} → {b} → {a})")
    itself = written(tmp_path, "base: itself.yaml\n", "itself.yaml")
    assert "each other's base" in read_refusal(itself)
    lost = written(tmp_path, "base: gone.yaml\n", "lost.yaml")
    assert read_refusal(lost).startswith(f"{lost}: base {tmp_path / 'gone.yaml'}: no such file")
