"""Which models a server serves, what it tells of them, and its settings."""

import pytest
from serving_toys import make_config

from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import ModelSource, load_serve_config
from paddle_dialog.serving.model_cards import without_folders
from paddle_dialog.serving.models import find_models


def test_the_shipped_settings_are_sound(monkeypatch):
    monkeypatch.delenv("PADDLE_DIALOG_API_KEY", raising=False)
    config = load_serve_config("configs/serve.yaml")
    assert config.host == "127.0.0.1" and not config.api_key and not config.log_user_text
    assert set(config.models) == {
        "couplet",
        "empathetic",
        "empathetic_zh",
        "poem",
        "sentiment",
        "sentiment_en",
        "translation",
    }
    monkeypatch.setenv("PADDLE_DIALOG_API_KEY", "k")
    overridden = load_serve_config("configs/serve.yaml", ["models.couplet=null", "batching.max_batch=1"])
    assert overridden.api_key == "k" and overridden.models["couplet"] is None


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("port=70000", "port: must be an integer (at least 0 and at most 65535)"),
        ("batching.max_batch=0", "batching.max_batch"),
        ("limits.seconds=0", "limits.seconds"),
        ("modles={}", "did you mean models?"),
        ("models={}", "names no model"),
        ("models={couplet: null}", "names no model"),
    ],
)
def test_wrong_settings_are_told(override, part):
    with pytest.raises(UserError) as error:
        load_serve_config("configs/serve.yaml", [override])
    assert part in str(error.value)


def test_a_task_without_weights_is_left_out_and_said(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paddle_dialog.shipped.MODELS", tmp_path / "pretrained")
    (tmp_path / "pretrained/empathetic").mkdir(parents=True)
    models = {"couplet": ModelSource(), "empathetic": ModelSource()}
    found, missing = find_models(make_config(models=models))
    assert [(m.task.name, m.folder.name) for m in found] == [("empathetic", "empathetic")]
    assert missing[0].startswith("couplet is not served: no weights: runs/couplet/best")
    (tmp_path / "runs/empathetic/best").mkdir(parents=True)
    found, _ = find_models(make_config(models=models))
    assert found[0].folder.as_posix() == "runs/empathetic/best"


def test_named_weights_must_exist_and_some_model_must_be_left(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("paddle_dialog.shipped.MODELS", tmp_path / "pretrained")
    named = {"couplet": ModelSource(weights="nowhere")}
    with pytest.raises(UserError, match=r"models.couplet.weights: nowhere does not exist"):
        find_models(make_config(models=named))
    with pytest.raises(UserError, match="no model to serve: couplet is not served"):
        find_models(make_config(models={"couplet": ModelSource()}))
    with pytest.raises(UserError, match="'dance' is unknown"):
        find_models(make_config(models={"dance": ModelSource()}))


@pytest.mark.parametrize(
    ("card", "shown"),
    [
        ("training data /home/me/data/train.tsv.xz: 7 couplets", "training data train.tsv.xz: 7 couplets"),
        ("`/srv/a b` and ~/runs/x, ../up/y", "`a b` and x, y"),
        ("C:\\data\\train.tsv", "train.tsv"),
        ("archive /a/b.tar.gz:train", "archive b.tar.gz:train"),
        ("https://example.org/a/b 1/2 and 上联/下联", "https://example.org/a/b 1/2 and 上联/下联"),
    ],
)
def test_a_card_tells_no_path(card, shown):
    assert without_folders(card) == shown
