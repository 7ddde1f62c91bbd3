"""Pictures: the confusion matrix, and where it is written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import run_here
from empathetic_toys import save_model
from matplotlib import image as images

from paddle_dialog.errors import UserError
from paddle_dialog.figures import FigureFolder, draw_confusion_matrix
from paddle_dialog.metrics import confusion_matrix
from paddle_dialog.tasks.empathetic.data.emotions import EMOTIONS
from paddle_dialog.tasks.empathetic.evaluation import BY_KINSHIP, emotion_report

REX = {"context": ["my dog died .", "oh no !", "he was called Rex ."], "target": "Rex was good ."}
DIALOGUES = [
    REX | {"emotion": "sad"},
    {"context": ["i won $ 5 $ or $_^"], "target": "congratulations !", "emotion": "proud"},
    {"context": ["someone stole my 🏝"], "target": "that is awful .", "emotion": "sad"},
    {"context": ["hello"], "target": "hi"},
]


def test_confusions_are_counted_by_annotated_and_predicted_label():
    assert sorted(BY_KINSHIP) == sorted(EMOTIONS)
    sad, proud, joyful = (EMOTIONS.index(label) for label in ("sad", "proud", "joyful"))
    predicted, gold = np.array([sad, joyful, joyful, proud]), np.array([sad, sad, sad, proud])
    counts = confusion_matrix(predicted, gold, len(EMOTIONS))
    assert counts[sad, sad] == 1 and counts[sad, joyful] == 2 and counts[proud, proud] == 1
    report = emotion_report(counts)
    assert report["n"] == 4 == counts.sum() and report["accuracy"] == 0.5
    assert list(report["emotions"]) == ["proud", "sad"]
    expected = {
        "n": 3,
        "accuracy": pytest.approx(1 / 3),
        "predicted": 1,
        "taken_for": {"joyful": 2, "sad": 1},
    }
    assert report["emotions"]["sad"] == expected


def test_a_right_prediction_darkens_the_diagonal_and_a_wrong_one_its_cell():
    darkest = (8, 48, 107)  # of matplotlib's "Blues"

    def quarters(counts: list[list[int]]) -> np.ndarray:
        image = draw_confusion_matrix(np.array(counts), ["ab", "cd"], "title")
        dark = np.abs(image.astype(int) - darkest).max(axis=2) <= 8
        rows, columns = np.nonzero(dark[:, : int(image.shape[1] * 0.7)])  # without the colour scale
        return np.array([rows.mean(), columns.mean()])

    upper, lower = quarters([[3, 0], [0, 0]]), quarters([[0, 0], [0, 3]])
    right = quarters([[0, 3], [0, 0]])
    assert upper[0] < lower[0] and upper[1] < lower[1]
    assert right[0] == pytest.approx(upper[0], abs=3) and right[1] == pytest.approx(lower[1], abs=3)


def test_a_picture_is_a_png_and_in_visualdl(tmp_path):
    from visualdl import LogReader

    folder, picture = FigureFolder(tmp_path / "new" / "figures"), np.zeros((3, 5, 3), dtype=np.uint8)
    picture[1, 2] = (255, 0, 128)
    folder.add("dot", picture)
    folder.add_json("numbers", {"n": 1, "label": "悲"})
    path = tmp_path / "new" / "figures" / "dot.png"
    np.testing.assert_array_equal((images.imread(path)[:, :, :3] * 255).round().astype(int), picture)
    assert folder.written == [path, path.with_name("numbers.json")]
    assert json.loads(folder.written[1].read_text(encoding="utf-8")) == {"n": 1, "label": "悲"}
    folder.close()
    (log,) = (path.parent / "vdl").iterdir()
    assert "dot" in LogReader(file_path=str(log)).get_tags()["image"]
    with pytest.raises(UserError, match="figures cannot be written"):
        FigureFolder(path)


def test_evaluate_draws_the_emotions(tmp_path):
    recipe, data, folder = (
        save_model(tmp_path, decoding={"max_length": 3}),
        tmp_path / "d.jsonl",
        tmp_path / "f",
    )
    data.write_text("\n".join(map(json.dumps, DIALOGUES)), encoding="utf-8")
    outcome = run_here("evaluate", "-c", recipe, "--data", data, "--figures", folder, "--json")
    assert outcome.status == 0, outcome.stderr
    assert {path.name for path in folder.iterdir()} == {"emotion_confusion.png", "emotions.json", "vdl"}
    report = json.loads((folder / "emotions.json").read_text(encoding="utf-8"))
    assert report["accuracy"] == pytest.approx(json.loads(outcome.stdout)["emotion_accuracy"])
    assert {label: row["n"] for label, row in report["emotions"].items()} == {"proud": 1, "sad": 2}
    refused = run_here("evaluate", "-c", recipe, "--figures", data)  # before the work
    assert "figures cannot be written there" in refused.error_line() and refused.stdout == ""
