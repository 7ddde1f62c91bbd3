"""tools/serve.py as an operator starts and ends it."""

import signal
import socket
import threading

import httpx
import pytest
from command import run_here, start
from serving_toys import PATIENCE, eventually


def serve(trained, *overrides, **options):
    """The running server and its address."""
    model = trained["lstm"]
    process = start(
        "serve",
        "-c",
        "configs/serve.yaml",
        *(
            part
            for override in (
                f"models.couplet.weights={model.folder / 'best'}",
                f"models.couplet.config={model.config}",
                "models.empathetic=null",
                "port=0",
                *overrides,
            )
            for part in ("-o", override)
        ),
        **options,
    )
    line = process.stdout.readline().decode()
    assert line.startswith("serving on http://127.0.0.1:"), (line, process.stderr.read().decode())
    return process, line.removeprefix("serving on ").strip()


def test_sigterm_answers_what_was_accepted_and_ends_well(trained):
    # The first of a batch waits for company: when the signal comes, all are in the queue.
    process, address = serve(
        trained, "batching.max_batch=4", "batching.max_wait_ms=5000", "limits.seconds=120"
    )
    answers = []
    try:
        with httpx.Client(base_url=address, timeout=PATIENCE) as client:
            eventually(lambda: client.get("/readyz").status_code != 503)
            card = client.get("/v1/models").json()["models"][0]["card"]

            def ask():
                answers.append(client.post("/v1/couplet", json={"first": "天山春红风", "n_best": 2}))

            threads = [threading.Thread(target=ask) for _ in range(3)]
            for thread in threads:
                thread.start()
            eventually(lambda: "queue_length 3.0" in client.get("/metrics").text)
            process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join()
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(answers[0].json()["predictions"]) == 2
    assert process.returncode == 0, err.decode()
    assert "Traceback" not in err.decode() and "天山" not in err.decode()
    assert str(trained["lstm"].folder) not in card and "train.tsv" in card
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/healthz")


def test_a_taken_port_is_told(trained):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        model = trained["lstm"]
        outcome = run_here(
            "serve",
            *("-c", "configs/serve.yaml", "-o", "models.empathetic=null", "-o", f"port={port}"),
            *("-o", f"models.couplet.weights={model.folder / 'best'}"),
            *("-o", f"models.couplet.config={model.config}"),
        )
    assert outcome.status == 2
    assert f"error: cannot listen on 127.0.0.1, port {port}: " in outcome.stderr


def test_a_damaged_bundle_ends_the_server_with_a_sentence(trained, tmp_path):
    import shutil

    folder = tmp_path / "best"
    shutil.copytree(trained["lstm"].folder / "best", folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    process, _ = serve(trained, f"models.couplet.weights={folder}")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    lines = [line for line in err.decode().splitlines() if line.startswith("error: ")]
    assert len(lines) == 1 and "is damaged" in lines[0] and "Traceback" not in err.decode()
