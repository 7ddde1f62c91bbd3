"""Reading, typing, cross-checking and dumping of configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.config.loader import build, dump, read_config
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

    def problems(self) -> Iterator[tuple[str, str]]:
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

    def problems(self) -> Iterator[tuple[str, str]]:
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


def built(**mapping: Any) -> Config:
    return build(Config, {"task": "couplet", **mapping}, "x.yaml")


def refusal(**mapping: Any) -> str:
    with pytest.raises(UserError) as caught:
        built(**mapping)
    return str(caught.value)


def write(folder: Path, text: str, name: str = "x.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read_refusal(path: Path, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        read_config(path, overrides)
    return str(caught.value)


def with_override(folder: Path, override: str) -> dict[str, Any]:
    return read_config(write(folder, "task: couplet\n"), [override])


# --- typing


def test_defaults_fill_what_the_mapping_leaves_out() -> None:
    assert built() == Config(task="couplet")


def test_values_of_every_type_are_kept() -> None:
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


@pytest.mark.parametrize(
    ("mapping", "line"),
    [
        ({"training": {"epochs": True}}, "training.epochs: must be an integer (at least 1), found true"),
        ({"training": {"epochs": 2.0}}, "training.epochs: must be an integer (at least 1), found 2.0"),
        ({"training": {"epochs": 0}}, "training.epochs: must be an integer (at least 1), found 0"),
        ({"training": {"epochs": None}}, "training.epochs: must be an integer (at least 1), found null"),
        ({"training": {"shuffle": 1}}, "training.shuffle: must be true or false, found 1"),
        ({"training": {"rate": 0}}, "training.rate: must be a number (above 0 and at most 1), found 0"),
        (
            {"training": {"rate": 1.5}},
            "training.rate: must be a number (above 0 and at most 1), found 1.5",
        ),
        (
            {"training": {"rate": "fast"}},
            'training.rate: must be a number (above 0 and at most 1), found "fast"',
        ),
        ({"training": {"clip": float("nan")}}, "training.clip: must be a number or null, found NaN"),
        ({"training": {"clip": "1e999"}}, 'training.clip: must be a number or null, found "1e999"'),
        ({"training": {"clip": False}}, "training.clip: must be a number or null, found false"),
        (
            {"training": {"betas": [0.5, 2]}},
            "training.betas[1]: must be a number (at least 0 and at most 1), found 2",
        ),
        (
            {"training": {"betas": 0.5}},
            "training.betas: must be a list, each item a number (at least 0 and at most 1), found 0.5",
        ),
        ({"training": {"schedule": "cos"}}, 'training.schedule: must be one of none, noam, on, found "cos"'),
        (
            {"training": {"schedule": True}},
            "training.schedule: must be one of none, noam, on, found true; put it in quotes",
        ),
        ({"task": 7}, "task: must be text, found 7; put it in quotes"),
        ({"note": [1, {}]}, "note: must be text or null, found [1, …]"),
        ({"weights": {"bleu": -1}}, "weights.bleu: must be a number (at least 0), found -1"),
        ({"weights": {2: 1}}, "weights: its keys must be text, found 2; put it in quotes"),
        ({"model": {"hidden": 2}}, "model.name: missing; must be one of lstm, gru, transformer"),
        (
            {"model": {"name": "rnn"}},
            'model.name: must be one of lstm, gru, transformer, found "rnn"',
        ),
        (
            {"model": "lstm"},
            'model: must be a section with a name out of lstm, gru, transformer, found "lstm"',
        ),
        (
            {"members": [{"name": "gru", "hiden": 3}]},
            "members[0].hiden: unknown key of gru; did you mean hidden?",
        ),
        ({"model": {"name": "gru", "zzz": 3}}, "model.zzz: unknown key of gru; known keys: name, hidden"),
        ({"trainig": {}}, "trainig: unknown key; did you mean training?"),
        ({"training": {True: 1}}, "training.true: unknown key; known keys: epochs, rate, clip, shuffle, "),
        ({"extra": 5}, "extra: must be a section (keys: epochs, rate, clip, shuffle, betas, "),
        ({"training": None}, "training: must be a section (keys: epochs, "),
    ],
)
def test_a_wrong_value_is_told_in_one_line(mapping: dict[str, Any], line: str) -> None:
    message = refusal(**mapping)
    assert message.startswith(f"x.yaml: {line}")
    assert "\n" not in message
    if not line.endswith(" "):
        assert message == f"x.yaml: {line}"


def test_a_missing_required_key_names_its_type() -> None:
    with pytest.raises(UserError, match=r"^x\.yaml: task: missing; must be text$"):
        build(Config, {}, "x.yaml")


def test_every_problem_is_told_at_once() -> None:
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


def test_a_cross_check_waits_for_types_and_bounds() -> None:
    assert refusal(model={"name": "transformer", "heads": 0}) == (
        "x.yaml: model.heads: must be an integer (at least 1), found 0"
    )


@dataclass
class Whole:
    part: TransformerConfig = field(default_factory=lambda: TransformerConfig(width=5))
    parts: list[TransformerConfig] = field(default_factory=lambda: [TransformerConfig(width=3)])

    def problems(self) -> Iterator[tuple[str, str]]:
        yield "part.width", "is odd"
        yield "", "is no good"


def test_defaults_are_cross_checked_and_a_relative_key_may_go_deeper() -> None:
    with pytest.raises(UserError) as caught:
        build(Whole, {}, "x.yaml")
    assert str(caught.value).splitlines() == [
        "x.yaml: 4 problems:",
        "part.heads: must divide width (5), found 2",
        "parts[0].heads: must divide width (3), found 2",
        "part.width: is odd",
        "the top level: is no good",
    ]


@dataclass
class Unsupported:
    value: int | str = 0


def test_an_unsupported_field_type_is_the_programs_error() -> None:
    with pytest.raises(TypeError, match="union"):
        build(Unsupported, {"value": 1}, "x.yaml")


# --- environment


def test_the_environment_fills_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUS", "/data")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("ABSENT", raising=False)
    assert built(note="${CORPUS}/a${ABSENT:-b}${EMPTY:-c}${EMPTY}$d").note == "/data/abc$d"
    assert built(note="$${CORPUS}").note == "${CORPUS}"


def test_the_environment_fills_numbers_and_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EPOCHS", "3")
    config = built(training={"epochs": "${EPOCHS}", "clip": "${CLIP_UNSET:-null}"}, note="${EPOCHS}")
    assert (config.training.epochs, config.training.clip, config.note) == (3, None, "3")
    assert built(model={"name": "${MODEL_UNSET:-gru}"}).model == LstmConfig("gru")


def test_an_unset_variable_is_a_problem_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ABSENT", raising=False)
    assert refusal(note="${ABSENT}/x", task="${1}").splitlines() == [
        "x.yaml: 2 problems:",
        "task: '${1}' has a malformed ${…}; write ${NAME}, ${NAME:-default}, or $${ for a literal ${",
        "note: environment variable ABSENT is not set; set it or write ${ABSENT:-default}",
    ]


# --- files


def test_a_file_is_read_with_its_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufefftask: couplet\ntraining:\n  rate: 1e-3\n  epochs: 2\n")
    mapping = read_config(
        path, ["training.epochs=5", "training.rate=1e-4", "model.name=gru", "training.epochs=6"]
    )
    config = build(Config, mapping, str(path))
    assert config.training == TrainingConfig(epochs=6, rate=1e-4)
    assert config.model == LstmConfig("gru")


def test_an_unknown_override_key_is_refused(tmp_path: Path) -> None:
    mapping = with_override(tmp_path, "training.epoch=3")
    with pytest.raises(UserError, match=r"^x: training\.epoch: unknown key; did you mean epochs\?$"):
        build(Config, mapping, "x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("null", None),
        ("", None),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ("{a: 1}", {"a": 1}),
        ("a.tsv", "a.tsv"),
        ('"3"', "3"),
        ("2024-01-02", "2024-01-02"),
        ("2024-13-45", "2024-13-45"),
        (r"C:\data\new.tsv", r"C:\data\new.tsv"),
        ("Act 1: rain", "Act 1: rain"),
        ("a: b: c", "a: b: c"),
        ("a=b", "a=b"),
        ("[open", "[open"),
        ("#1.tsv", "#1.tsv"),
        ("a #b", "a #b"),
        ("- a", "- a"),
        ("*", "*"),
        ("&a b", "&a b"),
        ("---", "---"),
        ("晚风摇树树还挺", "晚风摇树树还挺"),
    ],
)
def test_an_override_value_is_yaml_or_plain_text(tmp_path: Path, text: str, value: object) -> None:
    found = with_override(tmp_path, f"a.b={text}")["a"]["b"]
    assert found == value
    assert type(found) is type(value)


def test_an_override_passes_through_an_empty_section_but_not_through_a_value(tmp_path: Path) -> None:
    path = write(tmp_path, "a: null\nb: 3\nc: [1]\n")
    assert read_config(path, ["a.x.y=1"])["a"] == {"x": {"y": 1}}
    assert read_refusal(path, "b.x=1") == (
        "-o b.x=1: b is a single value, not a section; override b as a whole"
    )
    assert read_refusal(path, "c.0=1") == "-o c.0=1: c is a list, not a section; override c as a whole"


def test_an_override_changes_one_of_two_aliased_sections(tmp_path: Path) -> None:
    path = write(tmp_path, "a: &s {x: {y: 1}}\nb: *s\n")
    assert read_config(path, ["b.x.y=2"]) == {"a": {"x": {"y": 1}}, "b": {"x": {"y": 2}}}


@pytest.mark.parametrize("override", ["training", "=3", "training.=3", ".epochs=3", "a..b=3"])
def test_a_malformed_override_is_refused(tmp_path: Path, override: str) -> None:
    message = read_refusal(write(tmp_path, "task: couplet\n"), override)
    assert message == f"-o {override}: must be section.key=value, for example training.epochs=3"


def test_an_override_with_a_duplicate_key_is_refused(tmp_path: Path) -> None:
    assert "'x' stands twice" in read_refusal(write(tmp_path, "a: 1\n"), "b={x: 1, x: 2}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("task: couplet\ntraining: [1\n", ", line 3: not valid YAML: "),
        ("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", ", line 5: key 'c' stands twice (first on line 3); keep one"),
        ("a: 1\nb: \x07\n", ", line 2: not valid YAML: special characters are not allowed"),
        ("a: 1\nb: !!bool maybe\n", ", line 2: not valid YAML: 'maybe' cannot be read as bool"),
        ("a: 1\nb: !!int ''\n", ", line 2: not valid YAML: '' cannot be read as int"),
        ("a: 1\n---\nb: 1\n", ", line 2: not valid YAML: "),
        ("a: 1\nb: !python/name:os.system x\n", ", line 2: not valid YAML: "),
        ("[" * 5000, ": not readable: its lists or mappings are nested too deeply"),
        ("- a\n", ": must be a mapping of sections (key: value lines), found a list"),
        ("# nothing\n", ": must be a mapping of sections (key: value lines), it is empty"),
    ],
)
def test_an_unreadable_file_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path, text)
    message = read_refusal(path)
    assert message.startswith(f"{path}{told}")
    assert "\n" not in message


def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    missing, binary = tmp_path / "no.yaml", tmp_path / "latin.yaml"
    binary.write_bytes(b"a: \xff\n")
    assert read_refusal(missing) == f"{missing}: no such file; give the path of a YAML configuration"
    assert read_refusal(binary) == f"{binary}: not UTF-8 text (byte 3); save it as UTF-8"
    assert read_refusal(tmp_path).startswith(f"{tmp_path}: cannot be read: ")


def test_yaml_merge_keys_may_be_overridden(tmp_path: Path) -> None:
    path = write(tmp_path, "a: &s {x: 1, y: 2}\nb: &t {<<: *s, x: 3}\nc: {<<: *t, y: 4}\n")
    assert read_config(path, [])["c"] == {"x": 3, "y": 4}


def test_a_base_is_merged_below(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    write(tmp_path, "task: a\ntraining: {epochs: 1, betas: [1, 2], rate: 0.5}\n", "shared/root.yaml")
    write(tmp_path, "base: root.yaml\ntraining: {epochs: 2}\nnote: n\n", "shared/middle.yaml")
    path = write(tmp_path, "base: shared/middle.yaml\ntraining: {betas: [3]}\n")
    assert read_config(path, ["note=m"]) == {
        "task": "a",
        "training": {"epochs": 2, "betas": [3], "rate": 0.5},
        "note": "m",
    }


def test_a_base_section_of_another_name_is_replaced(tmp_path: Path) -> None:
    write(tmp_path, "model: {name: transformer, width: 16}\nextra: {name: same, a: 1}\n", "base.yaml")
    path = write(tmp_path, "base: base.yaml\nmodel: {name: lstm}\nextra: {name: same, b: 2}\n")
    assert read_config(path, []) == {
        "model": {"name": "lstm"},
        "extra": {"name": "same", "a": 1, "b": 2},
    }


def test_a_wrong_base_is_refused(tmp_path: Path) -> None:
    a = write(tmp_path, "base: b.yaml\n", "a.yaml")
    b = write(tmp_path, "base: ./a.yaml\n", "b.yaml")
    assert read_refusal(a).startswith(f"{b}: base: the files are each other's base ({a} → {b} → {a})")
    itself = write(tmp_path, "base: itself.yaml\n", "itself.yaml")
    assert "each other's base" in read_refusal(itself)
    lost = write(tmp_path, "base: gone.yaml\n", "lost.yaml")
    assert read_refusal(lost).startswith(f"{lost}: base {tmp_path / 'gone.yaml'}: no such file")
    number = write(tmp_path, "base: 3\n", "number.yaml")
    assert read_refusal(number) == f"{number}: base: must be the name of a YAML file, found 3"


# --- dump


def test_a_dump_is_whole_and_in_field_order() -> None:
    config = Config("couplet", model=TransformerConfig(), note="$${X} 上联")
    text = dump(config)
    assert text.startswith("task: couplet\nmodel:\n  name: transformer\n  width: 8\n  heads: 2\ntraining:\n")
    assert list(yaml.safe_load(text)) == [each.name for each in dataclasses.fields(Config)]
    assert "note: $$${X} 上联" in text
    assert build(Config, yaml.safe_load(text), "x") == config


def test_a_shared_section_is_dumped_twice_not_aliased() -> None:
    shared = TrainingConfig()
    text = dump(Config("couplet", training=shared, extra=shared))
    assert "&" not in text
    assert "*" not in text


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [
        "null",
        "no",
        "1e-3",
        "3",
        "2024-01-01",
        "${A}",
        "$${",
        "$$${X:-y}",
        "a: b",
        "# c",
        "<<",
        "=",
        "~",
        "\u2028",
    ]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
MODELS = st.builds(
    LstmConfig, name=st.sampled_from(["lstm", "gru"]), hidden=st.integers(min_value=1)
) | st.builds(
    lambda heads, times: TransformerConfig(width=heads * times, heads=heads), *[st.integers(1, 9)] * 2
)
TRAININGS = st.builds(
    TrainingConfig,
    epochs=st.integers(min_value=1),
    rate=st.floats(0, 1, exclude_min=True),
    clip=st.none() | FLOATS,
    shuffle=st.booleans(),
    betas=st.lists(st.floats(0, 1), max_size=3),
    schedule=st.sampled_from(["none", "noam", "on"]),
    warmup=st.integers(min_value=1),
)


@settings(deadline=None, max_examples=150)
@given(
    st.builds(
        Config,
        task=TEXT,
        model=MODELS,
        training=TRAININGS,
        weights=st.dictionaries(TEXT, st.floats(0, allow_infinity=False), max_size=3),
        members=st.lists(MODELS, max_size=2),
        note=st.none() | TEXT,
        extra=st.none() | TRAININGS,
    )
)
def test_a_dump_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, config: Config) -> None:
    path = tmp_path_factory.mktemp("dump") / "config.yaml"
    path.write_bytes(dump(config).encode("utf-8"))
    assert build(Config, read_config(path, []), "x") == config
    assert build(Config, yaml.safe_load(dump(config)), "x") == config
