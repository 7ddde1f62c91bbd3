"""The queue of the server: what is decoded together, what is refused, what is dropped."""

import asyncio
import logging
import math
import threading

import pytest
from serving_toys import PATIENCE, EchoEndpoint, eventually

from paddle_dialog.serving.batcher import NO_ANSWER, SLOW, STEPS_PER_SECOND, Batcher, Busy, decode_here
from paddle_dialog.serving.config import BatchingConfig
from paddle_dialog.serving.endpoint import Job, NoResult
from paddle_dialog.serving.telemetry import LOGGER, Metrics


@pytest.fixture
def endpoint():
    return EchoEndpoint()


@pytest.fixture
def start():
    started = []

    def make(*decoders, seconds=math.inf, **settings):
        decoders = decoders or [decode_here]
        batcher = Batcher(BatchingConfig(**settings), Metrics(), decoders, seconds)
        started.append(batcher)
        batcher.start()
        eventually(lambda: batcher._idle == len(decoders))
        return batcher

    yield make
    for batcher in started:
        batcher.close()


async def blocked(batcher, endpoint, *jobs):
    """Submit jobs while the worker is busy with another one; return their tasks once all wait."""
    endpoint.open.clear()
    first = asyncio.ensure_future(batcher.submit(endpoint, Job("first", None)))
    assert await asyncio.to_thread(endpoint.busy.wait, PATIENCE)
    tasks = [asyncio.ensure_future(batcher.submit(endpoint, job)) for job in jobs]
    await asyncio.sleep(0)
    return [first, *tasks]


def answers(batcher, endpoint, *jobs):
    """Return what becomes of the other one and of jobs that wait for it."""

    async def scenario():
        tasks = await blocked(batcher, endpoint, *jobs)
        endpoint.open.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(scenario())


def test_jobs_that_wait_together_are_decoded_together(start, endpoint):
    batcher = start(max_batch=3)
    found = answers(batcher, endpoint, *(Job(str(number), 0) for number in range(5)))
    assert found == [{"echo": text} for text in ["first", "0", "1", "2", "3", "4"]]
    assert endpoint.batches == [["first"], ["0", "1", "2"], ["3", "4"]]
    size = batcher._metrics.registry.get_sample_value
    assert size("paddle_dialog_batch_size_sum", {"task": "echo"}) == 6
    assert size("paddle_dialog_batch_size_count", {"task": "echo"}) == 3


def test_decoders_that_are_free_share_what_waits(start, endpoint):
    batches, both = [], threading.Barrier(2)

    def decode(endpoint, items, settings, tell):
        batches.append(len(items))
        both.wait(PATIENCE)
        return [{"echo": item} for item in items]

    batcher = start(decode, decode)

    async def scenario():
        with batcher._changed:  # all of them wait before a decoder takes any
            asked = [asyncio.ensure_future(batcher.submit(endpoint, Job(str(n), 0))) for n in range(5)]
            await asyncio.sleep(0)
        return await asyncio.gather(*asked)

    assert [answer["echo"] for answer in asyncio.run(scenario())] == [*"01234"]
    assert sorted(batches) == [2, 3]


def test_a_wait_that_is_given_up_is_not_decoded_and_frees_its_place(start, endpoint):
    batcher = start(max_batch=4, queue=2)

    async def scenario():
        first, leaves, stays = await blocked(batcher, endpoint, Job("leaves", 0), Job("stays", 0))
        leaves.cancel()
        await asyncio.gather(leaves, return_exceptions=True)
        new = asyncio.ensure_future(batcher.submit(endpoint, Job("new", 0)))
        await asyncio.sleep(0)
        endpoint.open.set()
        return await asyncio.gather(first, stays, new)

    asyncio.run(scenario())
    assert endpoint.batches == [["first"], ["stays", "new"]]
    assert batcher._metrics.registry.get_sample_value("paddle_dialog_abandoned_total") == 1


def test_one_faulty_input_does_not_spoil_the_batch(start, endpoint):
    _, one, spoilt, other = answers(start(), endpoint, *(Job(text, 0) for text in ("a", "spoil", "b")))
    assert (one, other) == ({"echo": "a"}, {"echo": "b"})
    assert isinstance(spoilt, NoResult) and str(spoilt) == NO_ANSWER


def test_a_fault_fails_its_batch_alone_and_the_log_quotes_nobody(start, endpoint, monkeypatch, caplog):
    monkeypatch.setattr(logging.getLogger(LOGGER), "propagate", True)
    batcher = start()

    async def scenario():
        with pytest.raises(RuntimeError):
            await batcher.submit(endpoint, Job("fault", 0))
        return await batcher.submit(endpoint, Job("after", 0))

    with caplog.at_level(logging.ERROR, LOGGER):
        assert asyncio.run(scenario()) == {"echo": "after"}
    assert "RuntimeError" in caplog.text and "serving_toys.py" in caplog.text
    assert "['fault']" not in caplog.text


def test_closing_answers_what_waits_and_takes_no_more(start, endpoint):
    batcher = start()

    async def scenario():
        tasks = await blocked(batcher, endpoint, Job("a", 0), Job("b", 0), Job("c", 1))
        closing = asyncio.ensure_future(asyncio.to_thread(batcher.close))
        await asyncio.sleep(0.01)
        endpoint.open.set()
        answers = await asyncio.gather(*tasks)
        await closing
        with pytest.raises(Busy):
            await batcher.submit(endpoint, Job("late", 0))
        return answers

    assert [answer["echo"] for answer in asyncio.run(scenario())] == ["first", "a", "b", "c"]
    assert endpoint.batches == [["first"], ["a", "b"], ["c"]]


def test_slow_jobs_leave_a_decoder_for_others(start):
    long, quick = EchoEndpoint(), EchoEndpoint()
    long.open.clear()
    batcher = start(decode_here, decode_here)

    async def scenario():
        first = [asyncio.ensure_future(batcher.submit(long, Job(text, text, cost=SLOW + 1))) for text in "ab"]
        assert await asyncio.to_thread(long.busy.wait, PATIENCE)
        assert (await batcher.submit(quick, Job("c", None)))["echo"] == "c"
        assert long.batches == [["a"]]  # the other one waits, though a decoder is free
        long.open.set()
        return [(await answer)["echo"] for answer in first]

    assert asyncio.run(scenario()) == ["a", "b"]


def test_slow_jobs_are_decoded_alone(start, endpoint):
    found = answers(start(), endpoint, *(Job(text, None, cost=SLOW + 1) for text in "ab"))
    assert found == [{"echo": text} for text in ("first", "a", "b")]
    assert endpoint.batches == [["first"], ["a"], ["b"]]


def test_a_job_that_would_wait_too_long_is_refused_at_once(start, endpoint):
    batcher = start(seconds=5.0)

    async def scenario():
        asked = await blocked(batcher, endpoint, Job("b", None, int(6 * STEPS_PER_SECOND)))
        with pytest.raises(Busy) as refused:
            await batcher.submit(endpoint, Job("c", None, cost=SLOW + 1))
        quick = asyncio.ensure_future(batcher.submit(endpoint, Job("d", None)))
        await asyncio.sleep(0)
        endpoint.open.set()
        answers = [(await answer)["echo"] for answer in asked]
        with pytest.raises(Busy):
            await quick
        return refused.value.retry_after, answers

    assert asyncio.run(scenario()) == (6, ["first", "b"])


def test_where_no_decoder_is_left_requests_are_refused_and_the_server_ends(start, endpoint):
    def decode(*_):
        raise RuntimeError("the process that forks the decoders has died")

    batcher, told = start(decode), []
    batcher.fail = told.append
    with pytest.raises(Busy, match="the server is ending"):
        asyncio.run(batcher.submit(endpoint, Job("a", None)))
    assert [str(error) for error in told] == ["the process that forks the decoders has died"]
