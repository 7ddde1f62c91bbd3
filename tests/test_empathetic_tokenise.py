"""Published tokenisation of dialogue turns, and back to readable text."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_dialog.tasks.empathetic.data.language import (
    ABBREVIATIONS,
    CONTRACTIONS,
    TYPOGRAPHIC,
    detokenise,
    tokenise,
)


def test_the_table_of_published_rules_and_back():
    table = (Path(__file__).parent / "data" / "tokens.tsv").read_text(encoding="utf-8")
    for kind, text, expected in (line.split("\t") for line in table.splitlines()):
        found = " ".join(tokenise(text)) if kind == "tokenise" else detokenise(text.split())
        assert found == expected
    assert tokenise("") == tokenise(" \t ") == [] and detokenise([]) == ""
    assert tokenise("I’m sure that’s “it”…") == tokenise("I'm sure that's \"it\"...")


def test_every_contraction_is_written_out():
    for short, long in CONTRACTIONS.items():
        assert " ".join(tokenise(short)) == long.replace("cannot", "can not")


def test_emoji_are_words_of_their_own():
    assert tokenise("great😀day 👍🏽!") == ["great", "😀", "day", "👍🏽", "!"]
    assert tokenise("❤️") == ["❤️"]


@settings(deadline=None, max_examples=200)
@given(st.text())
def test_no_token_is_empty_or_has_a_blank_and_no_character_is_lost(text):
    tokens = tokenise(text)
    assert all(token and not token.split()[1:] and token == token.strip() for token in tokens)
    kept = "".join(tokens).replace("``", '"').replace("''", '"')
    plain = text.translate(TYPOGRAPHIC).lower()
    if not any(short in plain for short in CONTRACTIONS):
        assert kept == "".join(plain.split()).replace("``", '"').replace("''", '"')


_WORDS = ["i", "home", "well", "3", "1,000", "5:30", "can't", "won't", "she's", "they'll", "don't", "u", "it"]
_WORDS += ["dogs'", "gonna", "would've", "(yes)", "[no", "a-b", "and/or", "$5", "20%", "he'd", "'cause"]
_ENDS = ["", ".", "...", "..", "!", "?", ",", ";", ":", "?!", ".)", "--", "!!", " .", " :)"]


@cache
def _nltk():
    treebank = pytest.importorskip("nltk.tokenize.treebank").TreebankWordTokenizer()
    punkt = pytest.importorskip("nltk.tokenize.punkt")
    parameters = punkt.PunktParameters()
    parameters.abbrev_types = set(ABBREVIATIONS)
    return punkt.PunktSentenceTokenizer(parameters), treebank


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(_WORDS), st.sampled_from(_ENDS)), max_size=12))
def test_same_tokens_as_the_treebank_tokeniser_of_nltk(pieces):
    sentences, treebank = _nltk()
    # Not compared: a period after a number, initial or abbreviation, where Punkt looks further than one word.
    text = " ".join(word + (end if len(word) > 1 and word[0].isalpha() else "!") for word, end in pieces)
    written_out = text
    for short, long in CONTRACTIONS.items():
        written_out = written_out.replace(short, long)
    expected = [token for part in sentences.tokenize(written_out) for token in treebank.tokenize(part)]
    assert tokenise(text) == expected


_TOKENS = [
    "i",
    "he",
    "is",
    "not",
    ":",
    ")",
    "(",
    ".",
    "...",
    "``",
    "''",
    "'s",
    "can",
    "na",
    "$",
    "5",
    ",",
    "😀",
]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from(_TOKENS), max_size=15))
def test_detokenised_text_has_no_stray_blanks(tokens):
    text = detokenise(tokens)
    assert text == text.strip()
    assert "  " not in text
    assert " ," not in text
