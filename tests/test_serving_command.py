"""tools/serve.py as an operator starts and ends it."""

import json
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from command import Outcome, children, run_here, start
from serving_toys import PATIENCE, eventually


def words(trained, *overrides):
    """Return the command line of a server of the tiny LSTM."""
    model = trained["lstm"]
    own = (f"models.couplet.weights={model.folder / 'best'}", f"models.couplet.config={model.config}")
    every = (*own, "models.empathetic=null", "port=0", *overrides)
    return ("serve", "-c", "configs/serve.yaml", *(part for one in every for part in ("-o", one)))


def begin(trained, *overrides):
    """Return the process of a server of the tiny LSTM."""
    return start(*words(trained, *overrides))


def serve(trained, *overrides):
    """Return the running server and its address."""
    process = begin(trained, *overrides)
    line = process.stdout.readline().decode()
    assert line.startswith("serving on http://127.0.0.1:"), (line, process.stderr.read().decode())
    return process, line.removeprefix("serving on ").strip()


def ended(pid):
    """Return whether a process has ended, whoever has yet to take note of it."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


@pytest.fixture
def decoding(trained):
    """Yield a server with two decoders: its process, fork_server, client and what it had to say."""
    process, address = serve(trained, "workers=2")
    (fork_server,) = children(process.pid)
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        eventually(lambda: client.get("/readyz").status_code == 200 and len(children(fork_server)) == 2)
        yield process, fork_server, client
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert not Path(f"/proc/{fork_server}").exists()
    died = "error: the process that forks the decoders has died" in err.decode()
    assert process.returncode == died and "Traceback" not in err.decode(), err.decode()
    assert "天山" not in err.decode()


def texts(record):
    return [prediction["text"] for prediction in record["predictions"]]


def ask(client):
    return client.post("/v1/couplet", json={"first": "天山春红风", "n_best": 2})


@contextmanager
def asked_together(client, count, after_each=lambda: None):
    """Ask so many times at once; the answers that are yielded are complete after the block."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(ask(client))) for _ in range(count)]
    for thread in threads:
        thread.start()
        after_each()
    yield answers
    for thread in threads:
        thread.join()


def metric(client, name):
    return re.search(rf"^paddle_dialog_{name} (\S+)$", client.get("/metrics").text, re.MULTILINE)[1]


linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere one thread decodes")


@linux
def test_sigterm_answers_what_was_accepted_and_ends_well(decoding, trained):
    process, fork_server, client = decoding
    assert str(trained["lstm"].folder) not in client.get("/v1/models").text
    stopped = children(fork_server)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with asked_together(client, 3, lambda: time.sleep(0.2)) as answers:
        eventually(lambda: metric(client, "queue_length") == "1.0")  # the decoders have the others
        process.send_signal(signal.SIGTERM)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(answers[0].json()["predictions"]) == 2
    process.wait(PATIENCE)
    with pytest.raises(httpx.ConnectError):
        client.get("/healthz")


@linux
def test_all_decoders_answer_alike_and_a_batch_is_shared_among_them(decoding, trained):
    _process, fork_server, client = decoding
    first, second = children(fork_server)
    os.kill(first, signal.SIGSTOP)  # what it is given waits; the other answers the rest
    with asked_together(client, 6) as answers:
        eventually(lambda: answers)
        os.kill(first, signal.SIGCONT)
    assert {answer.status_code for answer in answers} == {200}
    told = run_here("predict", "-c", trained["lstm"].config, "--n-best", 2, "--json", "天山春红风")
    for record in [answer.json() for answer in answers]:
        assert texts(record) == texts(json.loads(told.stdout))
    assert children(fork_server) == [first, second]


@linux
def test_requests_of_a_decoder_that_dies_are_refused_and_it_is_replaced(decoding):
    _process, fork_server, client = decoding
    stopped = children(fork_server)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    # Each batch is of one request, since nothing waits long for company.
    with asked_together(
        client, 2, lambda: eventually(lambda: metric(client, "queue_length") == "0.0")
    ) as answers:
        time.sleep(0.2)
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)
    assert {answer.status_code for answer in answers} <= {200, 503}
    lost = [answer for answer in answers if answer.status_code == 503]
    assert lost and {answer.headers["retry-after"] for answer in lost} == {"1"}
    assert all("has died; try again" in answer.text for answer in lost)
    assert [ask(client).status_code for _ in range(4)] == [200] * 4
    eventually(lambda: len(children(fork_server)) == 2)
    assert not set(stopped) & set(children(fork_server))
    assert float(metric(client, "lost_total")) >= 1


@linux
def test_a_decoder_that_dies_while_it_waits_costs_no_request(decoding):
    _process, fork_server, client = decoding
    for pid in children(fork_server):
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: ended(pid))
    assert [ask(client).status_code for _ in range(4)] == [200] * 4
    assert metric(client, "lost_total") == "0.0"


@linux
def test_a_server_that_can_replace_no_decoder_ends(decoding):
    process, fork_server, _ = decoding
    os.kill(fork_server, signal.SIGKILL)
    process.wait(PATIENCE)  # and says why in one line, see the fixture


def test_what_is_no_http_is_refused(decoding):
    _process, _fork_server, client = decoding
    bad_length = b"POST /v1/couplet HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n"
    for sent in (b"GET /v1/models HTTP/1.1\r\n\r\n", bad_length, b"\x16\x03\x01"):
        place = client.base_url.host, client.base_url.port
        with socket.create_connection(place, PATIENCE) as connection:
            connection.sendall(sent + b"\r\n\r\n")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
        assert answer.startswith(b"HTTP/1.1 400 ") and b"Traceback" not in answer, sent


@linux
def test_a_decoder_that_is_stopped_is_replaced_and_the_server_still_ends(trained):
    process, address = serve(trained, "workers=2", "limits.seconds=1")
    (fork_server,) = children(process.pid)
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        eventually(lambda: client.get("/readyz").status_code == 200 and len(children(fork_server)) == 2)
        stopped = children(fork_server)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        assert ask(client).status_code in (503, 504)
        eventually(lambda: ask(client).status_code == 200)
    os.kill(next(pid for pid in children(fork_server) if not ended(pid)), signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "a decoder has not answered in time" in err.decode()
    assert not Path(f"/proc/{fork_server}").exists()


@linux
def test_decoders_end_with_a_server_that_is_killed(trained):
    process, _ = serve(trained, "workers=2")
    (fork_server,) = children(process.pid)
    eventually(lambda: len(children(fork_server)) == 2)
    decoders = children(fork_server)
    process.kill()
    process.communicate(timeout=PATIENCE)  # ends when nobody holds its pipes any more
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (fork_server, *decoders)))


def test_probes_are_answered_while_the_models_load(trained):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = begin(trained, f"port={port}")
    found = []

    def is_ready():
        with suppress(httpx.TransportError):
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
                answers = [client.get("/healthz"), ask(client), client.get("/readyz")]
            found.append([(answer.status_code, answer.headers.get("retry-after")) for answer in answers])
        return found and found[-1][-1][0] == 200

    try:
        eventually(is_ready)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
    assert found[0] == [(200, None), (503, "1"), (503, "1")] and found[-1][-1] == (200, None)
    assert {alive for alive, *_ in found} == {(200, None)}


def test_a_server_for_everyone_says_so(trained):
    process = begin(trained, "host=0.0.0.0")
    assert process.stdout.readline().startswith(b"serving on http://0.0.0.0:")
    process.terminate()
    assert b"host 0.0.0.0 without api_key: everyone" in process.communicate(timeout=PATIENCE)[1]


def test_a_taken_port_is_told(trained):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = run_here(*words(trained, f"port={port}")).error_line()
    assert f"error: cannot listen on 127.0.0.1, port {port}: " in line


def test_a_damaged_bundle_ends_the_server_with_a_sentence(trained, tmp_path):
    folder = tmp_path / "best"
    shutil.copytree(trained["lstm"].folder / "best", folder)
    (folder / "model.safetensors").write_bytes(b"no weights")
    process = begin(trained, f"models.couplet.weights={folder}")
    out, err = (stream.decode() for stream in process.communicate(timeout=PATIENCE))
    assert out == "" and "is damaged" in Outcome(process.returncode, out, err).error_line()
