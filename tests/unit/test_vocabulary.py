"""The audit of unknown terms: counts against plain sets, and the reason of every silence."""

from __future__ import annotations

import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from ragcore import vocabulary
from ragcore.analysis import Analyzer, analyzer_for
from ragcore.errors import UsageError
from ragcore.vocabulary import audit

CHINESE = ["明天可能下大雪", "大雪节气的风俗", "夏天很热"]


def lookup(passages, analyzer):
    terms = {term for line in analyzer.batch(passages) for term in line.split()}
    return lambda asked: [term in terms for term in asked]


@pytest.mark.parametrize(
    ("question", "lang", "reason"),
    [
        ("大雪", "default", ""), ("snow 大雪", "default", ""),
        (None, "default", "no tokens"), ("", "default", "no tokens"), ("?! …", "en", "no tokens"),
        ("to be or not to be", "en", "only stop words"), ("冬至", "default", "all terms unknown"),
        ("frost", "default", "all terms unknown"),
        ("雪", "default", vocabulary.SINGLE), ("雪、山", "default", vocabulary.SINGLE),
        ("雪 frost", "default", "all terms unknown"), ("x", "default", "all terms unknown"),
    ],
)  # fmt: skip
def test_reasons__of_questions_that_find_nothing(question, lang, reason):
    analyzer = analyzer_for(lang)
    found = audit([question], analyzer, lookup(CHINESE, analyzer))
    assert found.questions[0].reason == reason
    assert found.reasons == ({reason: 1} if reason else {})
    assert found.n_without_hit == bool(reason)


def test_reasons__an_index_that_leaves_chinese_whole():
    whole = Analyzer("none")
    found = audit(["大雪", "大雪？TV", "what frost 雪"], whole, lookup(CHINESE, whole))
    assert [q.reason for q in found.questions] == [
        vocabulary.SCRIPT, vocabulary.SCRIPT, "all terms unknown",
    ]  # fmt: skip
    assert found.lines()[0].startswith("100% of query tokens are out of vocabulary (6 of 6;")
    assert audit(["夏天很热"], whole, lookup(CHINESE, whole)).lines() == []


def test_reasons__the_default_tokeniser_of_tantivy():
    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    index = tantivy.Index(schema)
    writer = index.writer(15_000_000, 1)
    for text in CHINESE:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    found = audit(
        ["大雪"], Analyzer("none"), lambda terms: [searcher.doc_freq("text", t) > 0 for t in terms]
    )
    assert found.lines() == [
        "100% of query tokens are out of vocabulary (1 of 1; 1 of 1 distinct terms)",
        f"100% of questions find nothing (1 of 1): {vocabulary.SCRIPT}: 1",
    ]


def test_reasons__the_index_may_differ_from_the_analyzer():
    found = audit(["大雪"], Analyzer(), lambda terms: [False] * len(terms), segmented=False)
    assert found.questions[0].reason == vocabulary.SCRIPT


def test_audit__tells_terms_and_counts():
    analyzer = Analyzer()
    found = audit(
        ["the frost, the snow", "snow ice ice", None], analyzer, lookup(["the snow"], analyzer)
    )
    first, second, third = found.questions
    assert first.tokens == ("the", "frost", "the", "snow")
    assert (first.known, first.unknown) == (("the", "snow"), ("frost",))
    assert (second.known, second.unknown, second.reason) == (("snow",), ("ice",), "")
    assert (third.tokens, third.reason) == ((), "no tokens")
    assert (found.n_tokens, found.n_unknown, found.n_terms, found.n_unknown_terms) == (7, 3, 4, 2)
    assert found.lines() == [
        "42.9% of query tokens are out of vocabulary (3 of 7; 2 of 4 distinct terms)",
        "33.3% of questions find nothing (1 of 3): no tokens: 1",
    ]


def test_audit__of_nothing_asks_nothing():
    def never(terms):
        raise AssertionError(terms)

    for questions in ([], ["?"], [None]):
        found = audit(questions, Analyzer(), never)
        assert (found.n_tokens, found.n_without_hit) == (0, len(questions))
    assert audit([], Analyzer(), never).lines() == []


def test_audit__refuses_a_lookup_that_answers_too_little():
    with pytest.raises(UsageError, match="for 2 terms"):
        audit(["a b"], Analyzer(), lambda terms: [True])


def test_share__is_never_rounded_to_all_or_none():
    known = {f"t{i}" for i in range(9_999)}
    question = " ".join(sorted(known)) + " x"
    found = audit([question], Analyzer(), lambda terms: [t in known for t in terms])
    assert found.lines()[0].startswith("0.1% of query tokens")
    found = audit([question], Analyzer(), lambda terms: [t not in known for t in terms])
    assert found.lines()[0].startswith("99.9% of query tokens")


@given(
    st.lists(st.text("ab 雪山?", max_size=8)), st.sets(st.sampled_from(["a", "b", "雪", "雪山"]))
)
def test_audit__adds_up(questions, known):
    found = audit(questions, Analyzer(), lambda terms: [t in known for t in terms])
    tokens = [t for q in found.questions for t in q.tokens]
    assert found.n_tokens == len(tokens)
    assert found.n_unknown == sum(t not in known for t in tokens)
    assert found.n_without_hit == sum(not known.intersection(q.tokens) for q in found.questions)
    for q in found.questions:
        assert {*q.known} | {*q.unknown} == {*q.tokens}
        assert {*q.known} == known.intersection(q.tokens)
        assert bool(q.reason) == (not q.known)
