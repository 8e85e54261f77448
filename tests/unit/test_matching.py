"""Answers compared by surface, against formulas of their own and the answers of public sets."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcore.answers import matching
from ragcore.answers.matching import Share
from ragcore.answers.normal import normal, squad, tokens
from ragcore.errors import UsageError

texts = st.text(st.sampled_from("aAtheTHE .,!?'-15中国，。１Éß "), max_size=14) | st.text(
    max_size=12
)

# --- rules told in another way


def plain_squad(text):
    kept = [c for c in text.lower() if c not in string.punctuation]
    words = re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", "".join(kept)).strip())
    return [word for word in words if word]


def plain_f1(predicted, expected):
    """By multiset arithmetic over the distinct tokens; None for 0/0."""
    counts, wanted = Counter(predicted), Counter(expected)
    common = sum(min(n, wanted[token]) for token, n in counts.items())
    if not common:
        return None if not predicted and not expected else Fraction(0)
    precision, recall = Fraction(common, len(predicted)), Fraction(common, len(expected))
    return 2 * precision * recall / (precision + recall)


def answers_of(path, prefix=""):
    table = pq.read_table(path, columns=["query_id", "text"]).to_pydict()
    found = {}
    for name, text in zip(table["query_id"], table["text"], strict=True):
        if name.startswith(prefix):
            found.setdefault(name, []).append(text)
    return found


# --- normal forms


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The  Quick, brown\tfox!", "quick brown fox"),
        ("ＡＢＣ，１２３", "abc 123"),
        ("《红楼梦》。", "红楼梦"),
        ("A", "a"), ("A.", "a"), ("The The", "the the"), ("?!", "?!"), ("…", "..."), ("👍", "👍"),
        ("", ""), (" \u3000\t", ""),
        ("1.5", "1.5"), ("1,000.", "1000"), ("v2.1.3", "v2.1.3"), (".5", "5"), ("U.S.", "us"),
        ("well-known", "wellknown"), ("an apple a day", "apple day"),
        ("¿Qué?", "qué"), ("¥100", "100"), ("A型血", "a型血"), ("Straße", "strasse"),
        ("第 5 页", "第5页"),
        ("ω-force，2016年", "ωforce 2016年"), ("１，０００．５元", "1000.5元"),
    ],
)  # fmt: skip
def test_normal__of_hard_texts(text, wanted):
    assert normal(text) == wanted


def test_normal__drops_articles_of_english_only():
    assert normal("il a the book", "fr") == "il a the book"
    assert normal("the 红", "en-GB") == "红"
    assert normal("the 红", "zh") == normal("the 红") == "the红"


def test_normal__parts_or_joins_words():
    assert normal("well-known: 1,234.5", parted=True) == "well known 1234.5"
    assert normal("1990–1995") == "19901995"


@given(texts)
def test_normal__is_stable_and_empty_only_for_white_space(text):
    found = normal(text, "zh")
    assert normal(found, "zh") == found
    assert "".join(tokens(text, "zh")) == found.replace(" ", "")
    for lang in ("en", None):
        assert (normal(text, lang) == "") == (not normal(text, "zh"))


@given(texts)
def test_squad__equals_the_rules_told_plainly(text):
    assert squad(text).split() == plain_squad(text) == tokens(text, form="squad")


def test_tokens__of_mixed_text():
    assert tokens("光荣和ω-force，2016年！") == [*"光荣和", "ωforce", "2016", "年"]
    assert tokens("กิน 5%") == ["ก\u0e34", "น", "5"]
    assert tokens("東京タワー") == list("東京タワー")


# --- F1 and its parts


@given(texts, st.lists(texts, max_size=4))
def test_best__equals_fractions(prediction, references):
    for form in ("house", "squad"):
        predicted = tokens(prediction, form=form)
        values = [plain_f1(predicted, tokens(each, form=form)) for each in references]
        found = matching.best(prediction, references, form=form)
        known = [value for value in values if value is not None]
        if not known:
            assert not found.denominator
            assert math.isnan(found.value)
        else:
            assert Fraction(*found) == max(known)
            assert found.value == float(max(known))


@given(texts, texts)
def test_overlap__has_the_identities(left, right):
    there, back = matching.overlap(left, right), matching.overlap(right, left)
    assert there.share() == back.share()
    assert there.share("precision") == back.share("recall")
    assert there.common <= min(there.predicted, there.expected)
    if tokens(left):
        assert Fraction(*matching.best(left, [right, left])) == 1


def test_best__chooses_by_what_is_asked():
    references = ["one two three four", "one"]
    assert matching.best("one two", references) == Share(4, 6)
    assert matching.best("one two", references, "precision") == Share(2, 2)
    assert matching.best("one two", references, "recall") == Share(1, 1)
    assert matching.best("x", []) == Share(0, 0)


def test_squad_f1__of_published_examples():
    # Answers without tokens: version 2.0 asks whether both have none.
    assert matching.squad_f1("", [""]) == 1.0
    assert matching.squad_f1("The", ["a"]) == 1.0
    assert matching.squad_f1("x", [""]) == 0.0
    assert matching.squad_f1("the cat sat", ["a cat", "dog"]) == pytest.approx(2 / 3)
    assert math.isnan(matching.squad_f1("x", []))


# --- the answers of public sets


def test_f1__of_english_answers_is_squads(shared_data):
    """Every answer of XQuAD against its neighbour, and every sentence of ClapNQ's answers."""
    answers = [
        each[0] for each in answers_of(shared_data / "xquad/answers.parquet", "en:").values()
    ]
    assert len(answers) == 1190
    pairs = list(pairwise(answers)) + [(each, each) for each in answers]
    long = list(answers_of(shared_data / "clapnq/answers.parquet").values())
    pairs += [(each[0].split(". ")[0], text) for each in long for text in each]
    house = other = 0
    for predicted, expected in pairs:
        wanted = plain_f1(plain_squad(predicted), plain_squad(expected))
        value = matching.squad_f1(predicted, [expected])
        assert value == (1.0 if wanted is None else float(wanted))
        ours = matching.best(predicted, [expected])
        if (predicted + expected).isascii():
            house += 1
            other += Fraction(*ours) != wanted
    assert house > 2500
    assert other == 0


def test_f1__of_chinese_answers_counts_characters(shared_data):
    """Each human answer of CMRC 2018 against the first: characters by a plain loop."""
    answers = answers_of(shared_data / "cmrc2018/answers.parquet")
    run, n, perfect = "", 0, 0
    for texts_of in answers.values():
        for text in texts_of[1:]:
            plain = []
            for each in (text, texts_of[0]):
                row, run = [], ""
                for c in each:
                    if "\u4e00" <= c <= "\u9fff":
                        row += [run, c] if run else [c]
                        run = ""
                    elif c.isascii() and c.isalnum():
                        run += c.lower()
                    else:  # leave what is neither to the other tests
                        row = None
                        break
                if row is not None and run:
                    row.append(run)
                plain.append(row)
            if None in plain:
                continue
            wanted = plain_f1(*plain)
            assert Fraction(*matching.best(text, [texts_of[0]])) == wanted
            n, perfect = n + 1, perfect + (wanted == 1)
    assert n > 3000
    assert 0 < perfect < n


def test_contains__of_every_answer_in_its_passage(shared_data):
    """An answer cut from a passage is contained in it: checked where words are not cut."""
    for lang, least in (("en", 1185), ("zh", 1180)):
        table = pq.read_table(shared_data / "xquad/answers.parquet").to_pylist()
        corpus = pq.read_table(shared_data / "xquad/corpus.parquet").to_pylist()
        passages = {row["doc_id"]: row["text"] for row in corpus}
        rows = [row for row in table if row["doc_id"].startswith(f"{lang}:")]
        found = sum(matching.contains(passages[row["doc_id"]], [row["text"]]) for row in rows)
        assert found >= least, (lang, found)


# --- containment and equality


@pytest.mark.parametrize(
    ("text", "reference", "wanted"),
    [
        ("museum", "US", False),
        ("the museum opened because of us all", "US", True),
        ("the U.S. army", "US", True),
        ("a well-known man", "known", True),
        ("1.5 kg", "1", False), ("1.5 kg", "5", False), ("1,500 men", "500", False),
        ("1,500 men", "1500", True), ("15个", "5", False), ("共15个", "15", True),
        ("中国人民", "国人", True), ("anything", "?!", False), ("what?!", "?!", False),
        ("anything", "", False), ("", "x", False), ("Queen", "The The", False),
        ("x x y", "x y", True), ("x y", "y x", False),
    ],
)  # fmt: skip
def test_contains__on_token_boundaries(text, reference, wanted):
    assert matching.contains(text, [reference]) is wanted


@given(texts, st.lists(texts, max_size=3))
def test_exact__implies_normalised_implies_contained(text, references):
    strict = matching.exact(text, references)
    same = matching.exact_normalised(text, references)
    assert same or not strict
    assert matching.exact_normalised(text, references, form="squad") or not strict
    if same and tokens(text):
        assert matching.contains(text, references)
        assert Fraction(*matching.best(text, references)) == 1


# --- batches


def test_batches__equal_the_single_calls_and_tell_what_is_missing():
    predictions = ["Café.", None, "x", "a b", ""]
    references = [["café"], ["y"], [], ["c", "b"], [""]]
    assert matching.exact_batch(predictions, references).tolist() == [1, -1, -1, 1, 1]
    strict = matching.exact_batch(predictions, references, strict=True)
    assert strict.tolist() == [0, -1, -1, 0, 1]
    assert matching.contains_batch(predictions, references).tolist() == [1, -1, -1, 1, 0]
    shares = matching.best_batch(predictions, references)
    assert shares.tolist() == [[2, 2], [-1, 0], [0, 0], [2, 2], [0, 0]]
    assert shares.dtype == np.int64
    assert matching.exact_batch([], []).size == 0
    squads = matching.exact_batch(["A b"], [["b"]], form="squad")
    assert squads.tolist() == [1]


def test_batches__refuse_what_does_not_pair():
    with pytest.raises(UsageError, match="1 predictions, but 2 lists"):
        matching.exact_batch(["x"], [["x"], ["y"]])
    with pytest.raises(UsageError, match="references are one string"):
        matching.best_batch(["x"], ["xyz"])


@given(texts, st.lists(texts, max_size=4), st.sampled_from([None, "en", "zh"]))
def test_contained__is_contains_one_by_one(text, strings, lang):
    strings = [*strings, text[1:4], text.upper(), "costs 1,500"]
    many = matching.Contained()
    for one in (text, f"It Costs 1500! {text}", text.encode("ascii", "ignore").decode()):
        wanted = [each for each in strings if matching.contains(one, [each], lang)]
        assert many(one, strings, lang) == wanted
        assert many(one, strings, lang) == wanted
