"""The files of the page and of each task's tab: their words, ids and styles keep to docs/tabs.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import ROOT

from paddle_dialog.serving.app import PAGE

TABS = sorted((ROOT / "tasks").glob("*/page"))
tabs = pytest.mark.parametrize("folder", TABS, ids=lambda folder: folder.parent.name)


def text_of(folder: Path, *suffixes: str) -> str:
    files = [file for file in sorted(folder.iterdir()) if file.suffix in suffixes and file.name != "words.js"]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def words_of(folder: Path) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the words in Chinese and in English, each with what is filled in."""
    chinese, english = (folder / "words.js").read_text(encoding="utf-8").split("\n  en: {")
    found = [re.findall(r'^\s+(\w+): "(.*)",$', part, re.M) for part in (chinese, english)]
    zh, en = ({key: sorted(re.findall(r"\{\w+\}", text)) for key, text in part} for part in found)
    return zh, en


@pytest.mark.parametrize("folder", [PAGE, *TABS], ids=lambda folder: folder.parent.name)
def test_both_languages_have_all_words_and_no_other(folder: Path) -> None:
    zh, en = words_of(folder)
    assert len(zh) > 3 and zh == en
    users = [folder, *TABS] if folder == PAGE else [folder]
    used = "tab banned_words first_final_tone" + "".join(
        text_of(user, ".html", ".js") for user in users
    )  # the server names the latter
    assert [key for key in zh if not re.search(rf"\b{key}\b", used)] == []


@tabs
def test_every_word_that_a_tab_names_exists(folder: Path) -> None:
    named = re.findall(
        r'(?:data-(?:text|placeholder|label)=|\bword\(|\.tell\()"(\w+)"', text_of(folder, ".html", ".js")
    )
    assert named and set(named) <= {*words_of(folder)[0], *words_of(PAGE)[0]}


@tabs
def test_ids_and_styles_are_of_the_tab_alone(folder: Path) -> None:
    task = folder.parent.name
    ids = re.findall(r'\bid="([^"]+)"', text_of(folder, ".html", ".js"))
    assert len(ids) == len(set(ids)) and all(name.startswith(f"{task}-") for name in ids)
    for style in folder.glob("*.css"):
        heads = re.findall(r"^[^\s}/].*(?= \{$)", style.read_text(encoding="utf-8"), re.M)
        assert heads and all(head.startswith((f":where(#{task})", f"@keyframes {task}-")) for head in heads)
