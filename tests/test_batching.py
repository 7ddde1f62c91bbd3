"""Batches by length: every example once, reproducible, resumable, shared fairly; and their padding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.data.batching import LengthBucketSampler, pad_batch
from paddle_dialog.errors import UserError

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=70)
OPTIONS = st.fixed_dictionaries(
    {"batch_size": st.integers(1, 9), "shuffle": st.booleans(), "seed": st.integers(0, 5)}
    | {"bucket_batches": st.integers(1, 4)}
)
PROPERTY = settings(deadline=None, max_examples=80)


def batches_of(lengths, epoch=0, **options):
    return list(LengthBucketSampler(lengths, **options).batches(epoch))


def waste(lengths, batches):
    cells = sum(len(batch) * lengths[batch].max() for batch in batches)
    return 1 - lengths.sum() / cells


@PROPERTY
@given(LENGTHS, OPTIONS)
def test_every_index_once_in_sorted_batches_of_which_one_at_most_is_short(lengths, options):
    sampler = LengthBucketSampler(lengths, **options)
    batches = list(sampler.batches(0))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert len(batches) == len(sampler)
    assert sum(len(batch) < options["batch_size"] for batch in batches) <= 1
    for batch in batches:
        assert [lengths[index] for index in batch] == sorted(lengths[index] for index in batch)


@PROPERTY
@given(LENGTHS, OPTIONS, st.integers(0, 4))
def test_batches_depend_on_arguments_and_epoch_alone_whatever_is_skipped(lengths, options, epoch):
    sampler = LengthBucketSampler(np.array(lengths), **options)
    list(sampler.batches(epoch + 1))
    whole = list(sampler.batches(epoch))
    assert whole == batches_of(lengths, epoch, **options)
    for skip in range(len(sampler) + 1):
        assert list(sampler.batches(epoch, skip)) == whole[skip:]


@PROPERTY
@given(LENGTHS, OPTIONS, st.integers(1, 4))
def test_replicas_share_the_steps_of_one_with_the_larger_batch(lengths, options, replicas):
    shares = [batches_of(lengths, **options, num_replicas=replicas, rank=r) for r in range(replicas)]
    alone = batches_of(lengths, **{**options, "batch_size": options["batch_size"] * replicas})
    assert {len(share) for share in shares} == {len(alone)}
    for whole, *parts in zip(alone, *shares, strict=True):
        together = [index for part in parts for index in part]
        assert max(map(len, parts)) - min(map(len, parts)) <= 1 and min(map(len, parts)) >= 1
        if len(whole) >= replicas:
            assert together == whole
        else:
            assert set(together) == set(whole) and len(together) == replicas


def test_without_shuffling_the_order_is_by_length_then_position():
    assert batches_of([3, 1, 2, 1, 3], batch_size=2, shuffle=False) == [[1, 3], [2, 0], [4]]


def test_two_columns_sort_groups_of_like_targets_by_source():
    lengths = [[2, 9], [1, 5], [2, 3], [1, 4]]
    assert batches_of(lengths, batch_size=4, shuffle=False) == [[3, 1, 2, 0]]
    # Four batches make two groups: targets 3 and 4, and targets 5 and 9.
    assert batches_of(lengths, batch_size=1, shuffle=False) == [[3], [2], [1], [0]]


def test_epochs_and_seeds_differ_in_batches_and_in_their_order():
    lengths = np.arange(200) % 7
    seen = [batches_of(lengths, epoch, batch_size=4, seed=seed) for seed in (0, 1) for epoch in (0, 1)]
    for n, one in enumerate(seen):
        assert [lengths[b[0]] for b in one] != sorted(lengths[b[0]] for b in one)
        for other in seen[:n]:
            assert {frozenset(b) for b in one} != {frozenset(b) for b in other}


def test_pools_save_padding():
    lengths = np.random.default_rng(0).integers(3, 34, 5000)
    unsorted = [list(range(start, min(start + 50, 5000))) for start in range(0, 5000, 50)]
    assert waste(lengths, unsorted) > 0.4
    assert waste(lengths, batches_of(lengths, batch_size=50, bucket_batches=20)) < 0.06
    assert waste(lengths, batches_of(lengths, batch_size=50, shuffle=False)) < 0.02
    # Of lengths that have nothing to do with each other.
    two = np.random.default_rng(0).integers(3, 34, (20000, 2))
    batches = batches_of(two, batch_size=50, bucket_batches=400)
    assert waste(two[:, 0], batches) < 0.1 and waste(two[:, 1], batches) < 0.1


def test_no_example_makes_no_batch_and_an_empty_one_a_column():
    with pytest.raises(UserError, match="no example"):
        LengthBucketSampler([], 1)
    ids, lengths = pad_batch([[]], pad_id=0)
    assert (ids.tolist(), lengths.tolist()) == ([[0]], [0])


@PROPERTY
@given(
    st.lists(st.lists(st.integers(0, 99), max_size=8), min_size=1, max_size=9),
    st.sampled_from([list, np.array]),
)
def test_padded_rows_give_the_sequences_back(sequences, kind):
    given_sequences = [np.array(s, np.int32) if kind is np.array else s for s in sequences]
    ids, lengths = pad_batch(given_sequences, pad_id=-1)
    assert ids.dtype == np.int64
    assert [row[:n].tolist() for row, n in zip(ids, lengths, strict=True)] == sequences
    assert all((row[n:] == -1).all() for row, n in zip(ids, lengths, strict=True))
    assert ids.shape[1] == max(1, *lengths)
