"""What stands in the training corpus: the index against looking at every couplet, and as its users meet it."""

import numpy as np
import pytest
from command import records, run_here
from couplet_toys import LEVEL, OBLIQUE, composing_toy, toy
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from serving_toys import post, served

from paddle_dialog.bundle.folder import load_bundle
from paddle_dialog.errors import UserError
from paddle_dialog.serving.config import LimitsConfig
from paddle_dialog.tasks.couplet.couplets import (
    BOTH,
    COUPLET_INDEX,
    Couplet,
    CoupletIndex,
    index_bytes,
    read_couplets,
)
from paddle_dialog.tasks.couplet.task import TASK

PAIRS = st.integers(1, 6).flatmap(
    lambda size: st.tuples(*[st.text("春山雨水月，", min_size=size, max_size=size)] * 2)
)


def index_of(*pairs, most_bytes=10_000_000):
    return CoupletIndex.from_bytes(index_bytes([Couplet(*pair) for pair in pairs], most_bytes), "an index")


def unlike(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


@settings(deadline=None, max_examples=100)
@given(st.lists(PAIRS, min_size=1, max_size=12), PAIRS, st.sampled_from([["first"], ["second"], BOTH]))
def test_the_nearest_couplet_is_that_of_looking_at_each(pairs, asked, compared):
    same = [pair for pair in pairs if len(pair[0]) == len(asked[0])]
    known = index_of(*pairs).nearest(*asked, compared)
    if not same:
        assert known is None
        return
    places = [("first", "second").index(name) for name in compared]

    def far(pair):
        return min((unlike(pair[p], asked[p]), unlike(pair[1 - p], asked[1 - p])) for p in places)

    assert known is not None and (known.first, known.second) in same
    assert far((known.first, known.second)) == min(map(far, same))
    assert known.distance == min(map(far, same))[0]


def test_a_whole_line_a_near_one_and_characters_nobody_used():
    index = index_of(("一帆风顺年年好", "万事如意步步高"), ("春风得意马蹄疾", "瑞雪迎春燕语新"))
    whole = {"first": "一帆风顺年年好", "second": "万事如意步步高", "distance": 0}
    assert index.nearest("", "万事如意步步高", ["second"]).as_dict() == whole
    assert index.nearest("春风得意花千树", "万事称心步步高").distance == 1 + 1
    assert index.nearest("春风得意马蹄疾", "万事如意步步龘").distance == 0
    assert index.nearest("龘龘龘龘龘龘龘", "龘龘龘龘龘龘龘").distance == 7
    assert index.nearest("一 帆风顺年年好", "").distance == 0
    assert index.nearest("一帆", "万事") is None


def test_the_shortest_lines_stay_where_not_all_fit():
    random = np.random.default_rng(0)
    draw = lambda size: "".join(chr(0x4E00 + number) for number in random.integers(0, 3000, size))  # noqa: E731
    pairs = [(draw(size), draw(size)) for size in (2, 3, 5) for _ in range(200)]
    whole = index_bytes([Couplet(*pair) for pair in pairs])
    part = index_of(*pairs, most_bytes=len(whole) - 1)
    assert index_of(*pairs).lengths == [2, 3, 5] and part.lengths == [2, 3]
    assert all(part.nearest(*pair, BOTH).distance == 0 for pair in pairs if len(pair[0]) < 5)
    with pytest.raises(UserError, match="the shortest couplets alone is larger than 100 bytes"):
        index_of(*pairs, most_bytes=100)


def test_what_is_no_index_is_refused():
    content = index_bytes([Couplet("春雨", "秋霜")])
    for wrong in (b"", b"text", save({"other": np.zeros(1, np.uint8)})):
        with pytest.raises(UserError, match=r"an index: holds no index of couplets \(.*make it anew"):
            CoupletIndex.from_bytes(wrong, "an index")
    tensors = load(content)
    damaged = [
        {**tensors, "pairs.2": tensors["pairs.2"][:-9]},
        {**tensors, "pairs.3": tensors["pairs.2"]},
        {**tensors, "characters": tensors["characters"][:3]},
    ]
    for wrong in damaged:
        index = CoupletIndex.from_bytes(save(wrong), "an index")
        with pytest.raises(UserError, match=r"an index: its index of couplets is damaged"):
            index.unpack()


def test_candidates_name_the_nearest_couplet():
    predictor = toy(LEVEL + OBLIQUE, marks=True)
    text = predictor.predict(["雨水月"])[0][0].text
    above = predictor.predict(["雨水山"], second=True)[0][0].text
    with pytest.raises(UserError, match="no index"):
        predictor.nearest_known("雨", "春")
    content = index_bytes([Couplet("鸟老客", text), Couplet(above, "鸟老春")])
    predictor._trained.files = {COUPLET_INDEX: content}
    predictor.__dict__.pop("couplet_index", None)
    (found,) = predictor.predict(["雨水月"], known=True)[0]
    assert (found.known.first, found.known.second, found.known.distance) == ("鸟老客", text, 0)
    (found,) = predictor.predict(["雨水山"], second=True, known=True)[0]
    assert (found.known.first, found.known.distance) == (above, 0)
    (found,) = predictor.predict(["雨水"], known=True)[0]
    assert found.known is None and "known" not in found.as_dict()
    (record,) = predictor.predict_records(["雨水月"], known=True)
    assert predictor.format_record(record).endswith(f"\tstands in the corpus: 鸟老客 / {text}")
    record["predictions"][0]["known"]["distance"] = 2
    assert predictor.format_record(record).endswith(f"\tdiffers in 2 from the corpus: 鸟老客 / {text}")


def test_answers_and_composed_couplets_and_human_ones_name_the_nearest():
    predictor = composing_toy()

    def answers():
        with served(predictor, *TASK.endpoints(LimitsConfig())) as client:
            _, answered = post(client, "couplet", first="雨水月", n_best=2)
            _, composed = post(client, "compose", count=2, seed=3)
            _, judged = post(client, "form", first="雨水月", second="山江春")
            return answered["predictions"], composed["couplets"], judged

    answered, composed, judged = answers()
    assert not any("known" in one for one in (*answered, *composed, judged))
    text = answered[0]["text"]
    pairs = [("鸟老客", "山江秋"), ("老鸟客", text), (composed[0]["first"], composed[1]["second"])]
    predictor._trained.files = {COUPLET_INDEX: index_bytes([Couplet(*pair) for pair in pairs])}
    predictor.__dict__.pop("couplet_index")
    answered, composed, judged = answers()
    assert answered[0]["known"] == {"first": "老鸟客", "second": text, "distance": 0}
    near = min(unlike(answered[1]["text"], second) for second in ("山江秋", text))
    assert answered[1]["known"]["distance"] == near
    assert judged["known"] == {"first": "鸟老客", "second": "山江秋", "distance": 1}
    for one in composed:  # others than before: lines that stand in the corpus count less
        known = one["known"]
        assert known["distance"] == min(unlike(one[name], known[name]) for name in ("first", "second"))


def test_the_index_ships_in_a_bundle_and_answers_on_the_command_line(tmp_path):
    shipped = tmp_path / "shipped"  # the weights that ship, with an index of the sample
    outcome = run_here("export", "--weights", "pretrained/couplet", "--output", shipped, "--data", "sample")
    assert outcome.status == 0, outcome.stderr
    content = load_bundle(shipped).extra[COUPLET_INDEX]
    sample = read_couplets("sample")
    assert content == index_bytes(sample)
    arguments = ("predict", "-c", "configs/couplet.yaml", "--weights", shipped, sample[0].first, "--known")
    (record,) = records(run_here(*arguments, "--json"))
    (prediction,) = record["predictions"]
    text = prediction["text"]
    near = [unlike(text, pair.second) for pair in sample if len(pair.second) == len(text)]
    assert prediction["known"]["distance"] == min(near)
    assert Couplet(prediction["known"]["first"], prediction["known"]["second"]) in sample
    told = run_here(*arguments).stdout.strip()
    assert told.endswith(f"the corpus: {prediction['known']['first']} / {prediction['known']['second']}")
