"""What the server does with long and slow requests, a full queue and clients that leave."""

import asyncio
import json
import threading

from serving_toys import PATIENCE, EchoEndpoint, eventually, make_app, refusal, running


def test_a_body_without_a_length_is_cut_at_the_limit():
    sent = []

    def endless():
        while True:
            sent.append(1)
            assert len(sent) < 1000
            yield b"a" * 1000

    async def scenario():
        messages = endless()

        async def receive():
            return {"type": "http.request", "body": next(messages), "more_body": True}

        return await call(make_app(EchoEndpoint(), limits={"body_bytes": 5000}), receive)

    assert asyncio.run(scenario())[0]["status"] == 413
    assert len(sent) == 6


def test_a_slow_body_is_refused():
    async def receive():
        await asyncio.sleep(60)

    messages = asyncio.run(call(make_app(EchoEndpoint(), limits={"seconds": 0.05}), receive))
    assert messages[0]["status"] == 408


def test_a_late_answer_is_a_504_and_is_not_decoded_later():
    endpoint = EchoEndpoint()
    with running(make_app(endpoint, limits={"seconds": 1.0})) as client:
        endpoint.open.clear()
        blocking = threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": "a"}})
        blocking.start()
        assert endpoint.busy.wait(PATIENCE)
        sentence = refusal(client.post("/v1/echo", json={"text": "late"}), 504)
        endpoint.open.set()
        blocking.join()
    assert "within 1 seconds" in sentence
    assert endpoint.batches == [["a"]]


def test_a_client_that_leaves_is_dropped_before_decoding():
    endpoint = EchoEndpoint()
    app = make_app(endpoint)
    with running(app):
        endpoint.open.clear()
        first = threading.Thread(
            target=lambda: asyncio.run(call(app, leaving_after(b'{"text": "first"}', None)))
        )
        first.start()
        assert endpoint.busy.wait(PATIENCE)
        asyncio.run(call(app, leaving_after(b'{"text": "gone"}', 0.05)))
        endpoint.open.set()
        first.join()
    assert endpoint.batches == [["first"]]
    left = {"path": "/v1/echo", "method": "POST", "status": "499"}
    assert app.state.metrics.registry.get_sample_value("paddle_dialog_requests_total", left) == 1


def test_a_full_queue_is_a_503_with_retry_after():
    endpoint = EchoEndpoint()
    app = make_app(endpoint, batching={"queue": 1, "max_batch": 1})
    with running(app) as client:
        endpoint.open.clear()
        threads = [
            threading.Thread(target=client.post, args=("/v1/echo",), kwargs={"json": {"text": text}})
            for text in "ab"
        ]
        threads[0].start()
        assert endpoint.busy.wait(PATIENCE)
        threads[1].start()
        queue = "paddle_dialog_queue_length"
        eventually(lambda: app.state.metrics.registry.get_sample_value(queue) == 1)
        response = client.post("/v1/echo", json={"text": "c"})
        endpoint.open.set()
        for thread in threads:
            thread.join()
        assert client.post("/v1/echo", json={"text": "c"}).status_code == 200
    refusal(response, 503)
    assert int(response.headers["retry-after"]) >= 1


def leaving_after(body, seconds):
    """Return a client that sends a body and leaves after some seconds, or never."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await asyncio.sleep(seconds if seconds is not None else 3600)
        return {"type": "http.disconnect"}

    return receive


async def call(app, receive):
    """Return what the application sends to a bare `POST /v1/echo`."""
    sent = []

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/echo",
        "raw_path": b"/v1/echo",
        "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
        "server": ("test", 80),
        "client": ("test", 1),
    }
    await app(scope, receive, send)
    assert not sent or sent[0]["status"] == 499 or json.loads(sent[1]["body"])
    return sent
