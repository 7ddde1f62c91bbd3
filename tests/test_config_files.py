"""Configuration files, their bases and the overrides laid over them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from paddle_dialog.config.loader import read_config
from paddle_dialog.config.typed import build
from paddle_dialog.errors import UserError

# Ten lines that unfold to a thousand million values.
UNFOLDING = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@dataclass
class TrainingConfig:
    epochs: int = 1
    rate: float = 0.5


@dataclass
class Config:
    task: str
    training: TrainingConfig = field(default_factory=TrainingConfig)


def write(folder: Path, text: str, name: str = "x.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read_refusal(path: Path | str, *overrides: str) -> str:
    with pytest.raises(UserError) as caught:
        read_config(path, overrides)
    return str(caught.value)


def with_override(folder: Path, override: str) -> dict[str, Any]:
    return read_config(write(folder, "task: couplet\n"), [override])


def test_a_file_is_read_with_its_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufefftask: couplet\ntraining:\n  rate: 1e-3\n  epochs: 2\n")
    mapping = read_config(path, ["training.epochs=5", "training.rate=1e-4", "training.epochs=6"])
    assert build(Config, mapping, str(path)) == Config("couplet", TrainingConfig(epochs=6, rate=1e-4))


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
        ("[" * 2000, ": not readable: its lists or mappings are nested too deeply"),
        ("a: &x\n  b: *x\n", ", line 1: not valid YAML: its lists or mappings hold themselves"),
        (UNFOLDING, ", line 1: not valid YAML: it has "),
        (re.sub(r"(\[.*])", r"{<<: \1}", UNFOLDING), ", line 1: not valid YAML: it has "),
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
    assert read_config(path, []) == {"model": {"name": "lstm"}, "extra": {"name": "same", "a": 1, "b": 2}}


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
