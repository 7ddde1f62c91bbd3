"""Composed couplets of a random model: what was asked for stands there, rules are kept or named, proposals differ."""

import json

import pytest
from command import run_here
from composing_toys import CHARACTERS, composing_toy
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.errors import UserError
from tasks.couplet.composing.composer import NoneFound
from tasks.couplet.composing.proposals import Proposal, choose
from tasks.couplet.composing.themes import usual_themes
from tasks.couplet.composing.tone_schemes import broken_tones
from tasks.couplet.form import form_report
from tasks.couplet.rules import broken_rules

TOY = composing_toy()
PATTERNS = ["4", "5", "7", "4+5", "4+7", "5+5+5"]


def clauses(text):
    return text.split("，")


def check(proposal, predictor=TOY):
    """Check that a proposal is of one shape and names all rules that it breaks."""
    form = form_report(proposal.first, proposal.second)
    assert proposal.form == form and form.length_equal and form.punctuation_aligned
    broken = [
        *broken_tones(proposal.first),
        *broken_rules(proposal.first, proposal.second, form, predictor.rules),
    ]
    assert list(proposal.relaxed) == broken


def share_four(one, other):
    def stretches(p):
        return {
            c[i : i + 4] for line in (p.first, p.second) for c in clauses(line) for i in range(len(c) - 3)
        }

    return stretches(one) & stretches(other)


@settings(max_examples=25, deadline=None)
@given(
    name=st.text(CHARACTERS + "李明钰", max_size=2),
    place=st.integers(1, 4),
    pattern=st.sampled_from(PATTERNS),
    theme=st.sampled_from(["", "春节", "围棋"]),
    seed=st.integers(0, 99),
)
def test_names_and_themes_stand_and_rules_are_kept_or_named(name, place, pattern, theme, seed):
    if pattern == "4" and theme and place > 2:
        place = 1
    place = place if name else 1
    found = TOY.compose(theme, name, place, pattern=pattern, count=3, seed=seed)
    assert 1 <= len(found) <= 3
    for proposal in found:
        check(proposal)
        assert [len(clause) for clause in clauses(proposal.first)] == [int(n) for n in pattern.split("+")]
        for line, character in zip((proposal.first, proposal.second), name, strict=False):
            assert line.replace("，", "")[place - 1] == character
        if theme:
            words = usual_themes()[theme].words
            assert any(word in proposal.first or word in proposal.second for word in words)
        if not name:
            assert proposal.relaxed == ()
        assert len(proposal.scrolls) == 5 and proposal.scroll == proposal.scrolls[0]
    assert not any(share_four(a, b) for i, a in enumerate(found) for b in found[:i])


def test_a_character_that_cannot_stand_is_named():
    (proposal, *_) = TOY.compose(name="江", place=7)  # 平, where the 上联 must end 仄
    assert proposal.first.endswith("江") and "first_final_tone" in proposal.relaxed
    (proposal, *_) = TOY.compose(name="江江")
    assert proposal.first[0] == proposal.second[0] == "江"
    assert "no_shared_character" in proposal.relaxed


def test_a_name_of_five_stands_over_three_couplets_of_each_proposal():
    found = TOY.compose(name="春江花月夜", count=2, length=9)
    assert [(p.set, p.part) for p in found] == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    for group in (found[:3], found[3:]):
        assert "".join(p.first[0] + p.second[0] for p in group)[:5] == "春江花月夜"
        assert len({p.first.index("，") for p in group}) == 1
    record = found[4].as_dict()
    assert (record["set"], record["part"]) == (2, 2) and str(found[4]).startswith("2.2\t花")


def test_a_seed_gives_the_same_and_another_one_others():
    assert TOY.compose(seed=3) == TOY.compose(seed=3)
    assert TOY.compose(seed=3) != TOY.compose(seed=4)


def test_own_words_stand_in_a_line_and_own_scrolls_replace_the_models():
    for proposal in TOY.compose("象牙塔", scroll="小园春色"):
        assert "象牙塔" in proposal.first or "象牙塔" in proposal.second
        assert proposal.scroll == "小园春色" and len(proposal.scrolls) == 5


def test_banned_words_are_never_written(tmp_path):
    words = tmp_path / "words.txt"
    usual = TOY.compose(count=5)
    pairs = sorted({line[i : i + 2] for p in usual for line in (p.first, p.second) for i in range(6)})[:12]
    words.write_text("\n".join([*pairs, "春"]), encoding="utf-8")
    found = composing_toy(rules={"banned_words": str(words)}).compose(count=5)
    text = "".join(p.first + "|" + p.second + "|" for p in found)
    assert found and not any(word in text for word in [*pairs, "春"])


def test_a_model_that_can_write_nothing_says_so():
    with pytest.raises(NoneFound, match="the model finds no such couplet"):
        composing_toy("春江").compose()
    with pytest.raises(UserError, match="this bundle knows only 下联 for 上联"):
        composing_toy(marks=False).compose()
    with pytest.raises(UserError, match="would have 19 characters, and this model writes up to 18"):
        TOY.compose(pattern="3+3+3+3+3")


def proposal(first, second, score, fixed=()):
    return Proposal(first, second, score, form_report(first, second), fixed=frozenset(fixed))


def test_the_choice_by_hand():
    best = proposal("春风又绿江南岸", "明月何时照我还", -1)
    same_clause = proposal("昨夜又绿江南草", "何人独上望江楼", -2)
    same_word = proposal("春风一度玉门雪", "何处千秋杨柳楼", -3)
    other = proposal("白云深处有人语", "红叶题时无雁声", -4)
    assert choose([best, same_clause, same_word, other], 2) == [best, other]
    assert choose([best, same_clause, same_word, other], 3) == [best, other, same_word]  # too few others
    assert choose([best, same_clause, same_word, other], 9) == [best, other, same_word]
    named = proposal("春山一度玉门雪", "明日千秋杨柳楼", -2, [0])
    again = proposal("春水六朝金粉梦", "明花三月柳烟城", -3, [0])
    assert choose([named, again], 2) == [named, again]
    assert choose([again], 1, before=[named]) == [again]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """Return the folder of an untrained model with the marks."""
    from paddle_dialog.text.vocabulary import SPECIAL_TOKENS, Vocabulary
    from tasks.couplet.direction import with_marks

    folder = tmp_path_factory.mktemp("composing")
    couplets = folder / "couplets.tsv"
    half = len(CHARACTERS) // 2
    couplets.write_text(f"{CHARACTERS[:half]}，\t{CHARACTERS[half : 2 * half]}，\n" * 4, encoding="utf-8")
    with_marks(Vocabulary([*SPECIAL_TOKENS, "，", *CHARACTERS])).save(folder / "vocabulary.txt")
    settings = [f"data.train={couplets}", f"data.vocabulary={folder / 'vocabulary.txt'}", "data.dev=null"]
    settings += [
        f"output_dir={folder / 'run'}",
        "model.width=16",
        "model.inner_width=16",
        "model.num_heads=2",
    ]
    settings += [
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "training.max_steps=1",
        "data.batch_size=4",
    ]
    chosen = [part for setting in settings for part in ("-o", setting)]
    outcome = run_here("train", "-c", "configs/couplet.yaml", *chosen)
    assert outcome.status == 0, outcome.stderr
    return folder / "run" / "last"


def test_the_command_prints_couplets(bundle):
    given_ = ("-c", "configs/couplet.yaml", "--weights", bundle)
    outcome = run_here("compose", *given_, "--theme", "春节", "--name", "江月", "--count", 2, "--json")
    records = [json.loads(line) for line in outcome.stdout.splitlines()]
    assert outcome.status == 0 and len(records) == 2, outcome.stderr
    for record in records:
        assert {*record} - {"relaxed"} == {"first", "second", "scroll", "score", "form"}
        assert record["first"][0] == "江" and record["second"][0] == "月" and len(record["scroll"]) == 4
    plain = run_here("compose", *given_, "--pattern", "4+5", "--count", 1, "--scroll", "小园春色")
    first, second, scroll = plain.stdout.rstrip("\n").split("\t")
    assert first[4] == second[4] == "，" and len(first) == 10 and scroll == "小园春色"


def test_the_command_refuses_in_one_line(bundle):
    given_ = ("-c", "configs/couplet.yaml", "--weights", bundle)
    assert "the name 'L' has a character" in run_here("compose", *given_, "--name", "L").error_line()
    assert "length 99 has no usual pattern" in run_here("compose", *given_, "--length", 99).error_line()
    assert "only a model of couplets" in run_here("compose", "-c", "configs/poem.yaml").error_line()
