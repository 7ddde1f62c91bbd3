"""Pre-trained models that write couplets: read as Transformers reads them, fine-tuned, resumed, answered, exported.

`.venv-pretrained/bin/pytest tests/pretrained`; see docs/pretrained.md.
"""

import hashlib
import itertools
import json
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from checkpoints import MERGED, PROMPT, write_checkpoint
from command import records, run_here, start, texts
from fine_tuning import LORA, recipe
from safetensors.numpy import load_file

import paddle_dialog
from paddle_dialog.config.models import PretrainedConfig
from paddle_dialog.models.pretrained_base import characters
from paddle_dialog.recipes import load_model

# What PyTorch computes with the very same files: `tests/pretrained/checkpoints.py FOLDER`, then with `--ask`
# (torch 2.13.0, transformers 5.3.0).
TRANSFORMERS = {
    "llama": (
        [-3.14894, -1.04746, 0.89882, 1.12964, 2.83386, 0.97726, 5.86378, -2.34218],
        [106, 271, 256, 256, 236, 65, 240, 166],
    ),
    "ernie": (
        [0.16969, 0.6732, -2.70018, 4.27792, -5.25815, 1.09584, 0.18956, -2.86877],
        [33, 33, 33, 33, 33, 33, 205, 205],
    ),
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def network_of(folder):
    return load_model(folder).trained.network


def first_logits(network, ids=PROMPT):
    """Return the logits of all tokens after some of the model's own."""
    import paddle

    with paddle.no_grad():
        return network.all_logits(network.begin([ids])[0])[0, -1].numpy()


@pytest.mark.parametrize("shape", TRANSFORMERS)
def test_logits_and_greedy_tokens_are_those_of_transformers(shape, tmp_path):
    import paddle

    base = write_checkpoint(tmp_path / shape, shape, ["山水春秋"] * 9, size=330)
    before = sorted(base.iterdir())
    network = _fresh(base)
    logits, greedy = TRANSFORMERS[shape]
    np.testing.assert_allclose(first_logits(network)[:8], logits, atol=2e-5)

    # With the cache, beside a longer row: the shorter one's padding changes nothing.
    with paddle.no_grad():
        hidden, state = network.begin([PROMPT, [*PROMPT, 7, 8, 9]])
        token = int(network.all_logits(hidden)[0, len(PROMPT) - 1].argmax())
        found = [token]
        for _ in range(7):
            hidden, state = network.extend(paddle.to_tensor([[token], [token]]), state)
            token = int(network.all_logits(hidden)[0, -1].argmax())
            found.append(token)
    assert found == greedy
    assert sorted(base.iterdir()) == before  # the library leaves nothing there


@pytest.mark.parametrize("name", ["whole", "lora"])
def test_learns_32_couplets_and_answers_under_rules(name, request, couplets):
    tuned = request.getfixturevalue(name)
    perplexity = float(tuned.log.rsplit("dev perplexity ", 1)[1].split()[0])
    assert perplexity < 1.05
    firsts = [first for first, _ in couplets]
    answers = texts(run_here("predict", "-c", tuned.config, "--json", *firsts))
    assert [own[0] for own in answers] == [second for _, second in couplets]

    ruled = ["-c", tuned.config, "-o", "rules.enabled=true", "--json", "--n-best", "3", *firsts[:4]]
    for first, own in zip(firsts, records(run_here("predict", *ruled)), strict=False):
        assert len(own["predictions"]) == 3
        for candidate in own["predictions"]:
            assert len(candidate["text"]) == len(first) and not set(candidate["text"]) & set(first)
    evaluated = json.loads(run_here("evaluate", "-c", tuned.config, "--json").stdout)
    assert evaluated["perplexity"] == pytest.approx(perplexity, abs=2e-3)


@pytest.mark.parametrize("shape", ["llama", "ernie"])
def test_merged_words_are_no_characters(shape, folder, couplets):
    """Both tokenizers make one token of 春风; lines are read and written in the tokens of 春 and 风."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder / shape)
    known = characters(folder / shape)
    for word in MERGED:
        assert len(tokenizer.encode(word, add_special_tokens=False)) == 1
        assert word not in known
    hanzi = set("".join(first + second for first, second in couplets))
    assert hanzi <= known.keys()
    assert [tokenizer.decode([index]) for index in known.values()] == list(known)


def test_beam_search_finds_what_brute_force_finds(whole):
    """All texts of up to three of four characters, scored by the network on the whole target at once."""
    import paddle

    from paddle_dialog.decoding.processors import ForbiddenTokens
    from paddle_dialog.decoding.search import SearchOptions, decode

    network = network_of(whole.folder / "best")
    vocabulary = network.vocabulary
    letters = vocabulary.encode("春月山水")
    source = np.array([[*vocabulary.encode("旧约梅花"), vocabulary.eos_id]])
    forbidden = set(range(len(vocabulary))) - {*letters, vocabulary.eos_id}
    options = SearchOptions(
        beam_size=400, n_best=12, max_length=3, processors=[ForbiddenTokens([sorted(forbidden)])]
    )
    found = decode(network, source, np.array([5]), options)[0]

    every = [text for size in range(4) for text in itertools.product(letters, repeat=size)]
    width = 4
    target = np.array([[vocabulary.bos_id, *text, *[vocabulary.pad_id] * (3 - len(text))] for text in every])
    label = np.array([[*text, vocabulary.eos_id, *[0] * (3 - len(text))] for text in every])  # [K, 4]
    with paddle.no_grad():
        sources = paddle.to_tensor(np.repeat(source, len(every), 0))
        logits = network(sources, paddle.full([len(every)], 5, "int64"), paddle.to_tensor(target))
        scores = paddle.nn.functional.log_softmax(logits.astype("float64"), axis=-1).numpy()
    picked = np.take_along_axis(scores, label[:, :, None], 2)[:, :, 0]  # [K, 4]
    totals = (picked * (np.arange(width) <= np.array([len(text) for text in every])[:, None])).sum(1)
    best = np.argsort(-totals)[:12]
    assert [tuple(hypothesis.tokens) for hypothesis in found] == [every[place] for place in best]
    np.testing.assert_allclose([h.log_prob for h in found], totals[best], atol=1e-4)


@pytest.mark.parametrize("lora", ["null", LORA])
def test_a_killed_run_resumes_to_the_bit(folder, tmp_path, lora):
    config = recipe(folder, f"killed{len(lora)}", "ernie", lora, 0.01)
    options = ["-c", config, "-o", "training.max_steps=16", "-o", "training.eval_every=8"]
    undisturbed = run_here("train", *options, "-o", f"output_dir={tmp_path / 'undisturbed'}")
    assert undisturbed.status == 0, undisturbed.stderr

    process = start(
        "train", *options, "-o", f"output_dir={tmp_path / 'killed'}", "-o", "training.log_every=1"
    )
    killer = threading.Timer(120, process.kill)
    killer.start()
    for line in process.stderr:
        if b"step 9/" in line:  # the checkpoint of step 7 is whole
            process.send_signal(signal.SIGKILL)
            break
    process.communicate()
    killer.cancel()
    assert process.returncode == -signal.SIGKILL
    resumed = run_here("train", *options, "-o", f"output_dir={tmp_path / 'killed'}", "--resume", "auto")
    assert resumed.status == 0, resumed.stderr
    assert "resumed from" in resumed.stderr and "at step 7" in resumed.stderr
    for name in ("last/model.safetensors", "last/optimizer.safetensors", "best/model.safetensors"):
        assert digest(tmp_path / "killed" / name) == digest(tmp_path / "undisturbed" / name), name


@pytest.mark.parametrize("name", ["whole", "lora"])
def test_the_merged_folder_gives_the_same_logits(name, request, tmp_path):
    """Read by PaddleFormers here; Transformers with PyTorch read it once, to 1e-5 (docs/pretrained.md)."""
    import paddle
    from paddleformers.transformers import AutoConfig, AutoModelForCausalLM

    tuned, merged = request.getfixturevalue(name), tmp_path / "merged"
    card = tuned.base / "README.md"
    card.write_text("# A tiny model\n", encoding="utf-8")
    outcome = run_here("export", "--weights", tuned.folder / "best", "--output", merged, "--merge")
    assert outcome.status == 0, outcome.stderr
    assert (merged / "README.md").read_bytes() == card.read_bytes()
    assert _shapes(merged) == _shapes(tuned.base)
    assert {file.name for file in merged.iterdir()} == {file.name for file in tuned.base.iterdir()}
    expected = first_logits(network_of(tuned.folder / "best"))
    settings = AutoConfig.from_pretrained(str(merged))
    settings.fuse_rms_norm = False
    model = AutoModelForCausalLM.from_pretrained(str(merged), config=settings, dtype="float32")
    model.eval()
    with paddle.no_grad():
        logits = model(paddle.to_tensor([PROMPT]), return_dict=True).logits[0, -1].numpy()
    np.testing.assert_allclose(logits, expected, atol=2e-5)
    before = first_logits(_fresh(tuned.base))
    assert np.abs(before - expected).max() > 0.1  # training has changed it
    assert (
        "exists"
        in run_here("export", "--weights", tuned.folder / "best", "--output", merged, "--merge").error_line()
    )


def _shapes(folder):
    return {name: values.shape for name, values in load_file(folder / "model.safetensors").items()}


def test_a_merged_bundle_whose_base_is_gone_is_as_the_library_writes_it(whole, tmp_path):
    bundle, merged = tmp_path / "bundle", tmp_path / "merged"
    assert run_here("export", "--weights", whole.folder / "best", "--output", bundle).status == 0
    outcome = run_here("export", "--weights", bundle, "--output", merged, "--merge")
    assert outcome.status == 0, outcome.stderr
    assert _shapes(merged).keys() >= _shapes(whole.base).keys()
    other = write_checkpoint(tmp_path / "other", "llama", ["山水春秋"] * 9, size=330)
    again = ["export", "--weights", bundle, "--output", tmp_path / "again", "--merge", other]
    assert "has other weights than the merged model" in run_here(*again).error_line()
    assert not (tmp_path / "again").exists()


def _fresh(base):
    from paddle_dialog.models.pretrained import PretrainedSeq2Seq
    from paddle_dialog.models.pretrained_base import character_vocabulary
    from paddle_dialog.tasks.couplet.prompts import prompt

    config = PretrainedConfig(str(base))
    vocabulary = character_vocabulary(config)
    network = PretrainedSeq2Seq(config, len(vocabulary), vocabulary, prompt)
    network.eval()
    return network


def test_a_bundle_of_lora_is_small_and_knows_its_base(lora, couplets, tmp_path):
    exported = tmp_path / "bundle"
    assert run_here("export", "--weights", lora.folder / "best", "--output", exported).status == 0
    weights = (exported / "model.safetensors").stat().st_size
    assert weights < (lora.base / "model.safetensors").stat().st_size / 2
    text = (exported / "config.yaml").read_text(encoding="utf-8")
    assert str(lora.base) not in text and "pretrained: ernie" in text
    first, second = couplets[0]

    ask = ["predict", "--weights", exported, "--json", "-c", lora.config, first]
    assert texts(run_here(*ask)) == [[second]]
    lost = run_here(*ask, "-o", f"model.pretrained={tmp_path / 'nowhere'}").error_line()
    assert "is no folder, and no hub gives it" in lost and "config.json" in lost
    another = shutil.copytree(lora.base, tmp_path / "another")
    write_checkpoint(another, "ernie", ["".join(pair) for pair in couplets], size=1200, seed=5)
    refused = run_here(*ask, "-o", f"model.pretrained={another}").error_line()
    assert "is not the model that these weights were trained on" in refused


def test_all_weights_need_no_base(whole, couplets, tmp_path):
    moved = shutil.copytree(whole.folder / "best", tmp_path / "moved")
    model = paddle_dialog.load(str(moved))
    first, second = couplets[0]
    assert model.predict([first])[0][0].text == second


def test_served_and_asked_over_http(whole, couplets):
    others = ("empathetic", "empathetic_zh", "poem", "translation", "sentiment", "sentiment_en")
    settings = {f"models.{name}": "null" for name in others} | {
        "models.couplet.weights": whole.folder / "best",
        "models.couplet.config": whole.config,
        "port": 0,
        "workers": 1,
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    process = start("serve", "-c", "configs/serve.yaml", *options, stderr=subprocess.DEVNULL)
    try:
        address = process.stdout.readline().decode().removeprefix("serving on ").strip()
        first, second = couplets[0]
        body = json.dumps({"first": first, "n_best": 2}).encode("utf-8")
        request = urllib.request.Request(f"{address}/v1/couplet", body, {"Content-Type": "application/json"})
        for _ in range(600):
            try:
                with urllib.request.urlopen(request, timeout=120) as reply:
                    answer = json.load(reply)
                break
            except urllib.error.HTTPError as error:
                assert error.code == 503  # the model is still being loaded
                time.sleep(0.2)
        assert answer["predictions"][0]["text"] == second and len(answer["predictions"]) == 2
    finally:
        process.terminate()
        assert process.wait(60) == 0


BAD = {
    "no such name": (
        ["-o", "model.pretrained=nobody/nothing"],
        "'nobody/nothing' is no folder, and no hub gives it",
    ),
    "no GPU": (
        ["--device", "gpu"],
        "--device: is 'gpu', but the installed paddlepaddle (the CPU build) sees 0 GPUs",
    ),
    "bfloat16 of all": (["-o", "model.dtype=bfloat16"], "bfloat16 is of frozen weights"),
    "reference": (["-o", "decoding.engine=reference"], "reference runs the families of this project"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_one_line(case, folder, tmp_path):
    config = recipe(folder, "bad", "llama", "null", 0.01)
    options, message = BAD[case]
    run_folder = tmp_path / "run"
    line = run_here("train", "-c", config, "-o", f"output_dir={run_folder}", *options).error_line()
    assert message in line
    assert not list(run_folder.glob("*/model.safetensors"))


def broken(folder, base, **settings):
    """Copy a checkpoint with other settings."""
    copy = shutil.copytree(base, folder / "broken")
    content = json.loads((copy / "config.json").read_text()) | settings
    (copy / "config.json").write_text(json.dumps(content))
    return copy


def test_bad_folders_are_one_line(folder, tmp_path):
    config = recipe(folder, "bad", "llama", "null", 0.01)

    def message(base):
        options = ["-o", f"model.pretrained={base}", "-o", f"output_dir={tmp_path / 'run'}"]
        line = run_here("train", "-c", config, *options).error_line()
        shutil.rmtree(base)
        return line

    unread = broken(tmp_path, folder / "llama", architectures=["MambaForCausalLM"])
    assert "is a MambaForCausalLM; take a LlamaForCausalLM or a Ernie4_5ForCausalLM" in message(unread)
    silent = broken(tmp_path, folder / "llama")
    (silent / "tokenizer.json").unlink()
    assert "has no tokenizer; put tokenizer.json or tokenizer.model there" in message(silent)
    stranger = broken(tmp_path, folder / "llama", vocab_size=400)
    assert "and the model 400" in message(stranger)
    few = write_checkpoint(tmp_path / "broken", "ernie", ["山水"] * 5, size=400)
    assert "% of the characters in data.train, e.g." in message(few)
    english = write_checkpoint(tmp_path / "broken", "ernie", ["only English here"] * 5, size=400, merged=())
    assert "no hanzi is a token of" in message(english)
