"""Analyzers: specs, stems and stop words as tantivy gives them, long tokens, segmenters."""

from __future__ import annotations

import sys
from collections import Counter

import pyarrow.parquet as pq
import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st

from ragcore import analysis
from ragcore.analysis import LANGUAGES, MAX_TOKEN_BYTES, Analyzer, analyzer_for
from ragcore.errors import UsageError


def test_analyzers__of_names():
    assert analyzer_for("default") == analyzer_for("zh") == Analyzer()
    assert analyzer_for("en") == Analyzer(stem="english", stop="english")
    assert analyzer_for("en", stop="none") == Analyzer(stem="english")
    assert analyzer_for("en", stem="none", stop="none") == Analyzer()
    assert analyzer_for("default", stop="en") == Analyzer(stop="english")
    assert analyzer_for("ar") == Analyzer(stem="arabic")
    assert analyzer_for("zh", segmenter="jieba") == Analyzer("jieba")
    for name in LANGUAGES:
        assert analyzer_for(name).stem == LANGUAGES[name]


@pytest.mark.parametrize(
    ("lang", "options", "says"),
    [
        ("xx", {}, "no analyzer 'xx'"), ("en", {"stem": "klingon"}, "no stemmer for 'klingon'"),
        ("en", {"stem": "English"}, "no stemmer for 'English'"),
        ("default", {"stop": "arabic"}, "no list of stop words for 'arabic'"),
        ("zh", {"segmenter": "trigram"}, "no segmenter 'trigram'"),
    ],
)  # fmt: skip
def test_analyzers__unknown_ones_are_refused(lang, options, says):
    with pytest.raises(UsageError, match=says):
        analyzer_for(lang, **options)


def test_spec__is_canonical():
    assert Analyzer().spec() == "words:1+nfkc+casefold+bigram"
    assert analyzer_for("en").spec() == "words:1+nfkc+casefold+bigram+stop:english+stem:english"
    for segmenter in analysis.SEGMENTERS:
        for lang in ("default", *LANGUAGES):
            made = analyzer_for(lang, segmenter=segmenter)
            assert Analyzer.parse(made.spec()) == made


@pytest.mark.parametrize(
    "spec",
    [
        "", "words:1", "words:1+nfkc+casefold", "words:1+nfkc+casefold+bigram+stem:english+x",
        "words:01+nfkc+casefold+bigram", "words:1+casefold+nfkc+bigram",
        "words:2+nfkc+casefold+none", "words:1+nfkc+casefold+bigram+a:b",
        "words:1+nfkc+casefold+bigram+stem:english+stop:english",
        "words:1+nfkc+casefold+bigram+stem:", "words:x+nfkc+casefold+bigram",
    ],
)  # fmt: skip
def test_spec__others_are_refused(spec):
    with pytest.raises(UsageError):
        Analyzer.parse(spec)


def test_tokens__are_stemmed_after_stop_words():
    text = "The connected cafés were NOT running, 2016年大雪"
    assert Analyzer().tokens(text) == [
        "the", "connected", "cafés", "were", "not", "running", "2016", "年大", "大雪",
    ]  # fmt: skip
    assert analyzer_for("en").tokens(text) == [
        "connect", "café", "were", "run", "2016", "年大", "大雪",
    ]  # fmt: skip
    assert analyzer_for("en").tokens("the, a -- of") == Analyzer().tokens("?!") == []
    assert analyzer_for("en").tokens("") == []


@given(st.text(st.characters(max_codepoint=127)))
def test_tokens__of_ascii_are_those_of_tantivy_without_its_limit(text):
    plain = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    plain = plain.filter(tantivy.Filter.lowercase()).build()
    assert Analyzer().tokens(text) == plain.analyze(text)


def test_batch__joins_and_counts():
    counts = Counter()
    batch = analyzer_for("en").batch(["Running dogs", None, "", "the", "大雪节"], counts)
    assert batch == ["run dog", "", "", "", "大雪 雪节"]
    assert counts == {"texts": 5, "empty": 3}
    assert Analyzer().batch([]) == []


@pytest.mark.parametrize("stem", [None, "english"])
def test_batch__keeps_long_tokens_and_cuts_the_longest(stem):
    analyzer, counts = Analyzer(stem=stem), Counter()
    long = "x" * 5_000
    assert analyzer.batch([long], counts) == [long]
    assert counts["cut"] == 0
    exact, beyond, wide = "x" * MAX_TOKEN_BYTES, "x" * (MAX_TOKEN_BYTES + 1), "é" * 40_000
    batch = analyzer.batch([exact, f"a {beyond} b", f"{wide} c"], counts)
    assert batch == [exact, f"a {exact} b", f"{'é' * (MAX_TOKEN_BYTES // 2)} c"]
    assert counts["cut"] == 2


def test_batch__the_longest_token_is_found_by_tantivy_and_a_longer_one_is_not():
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    schema = builder.build()
    index = tantivy.Index(schema)
    index.register_tokenizer(
        "whitespace", tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    )
    writer = index.writer(15_000_000, 1)
    for text in Analyzer().batch(["y" * (MAX_TOKEN_BYTES + 9)]), ["z" * (MAX_TOKEN_BYTES + 1)]:
        writer.add_document(tantivy.Document(text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    terms = [term for term, _ in index.searcher().terms_with_prefix("text", "")]
    assert terms == ["y" * MAX_TOKEN_BYTES]


def test_jieba__cuts_chinese_into_words():
    pytest.importorskip("rjieba")
    analyzer = analyzer_for("zh", segmenter="jieba")
    assert analyzer.tokens("我们中出了一个叛徒 in 2016年") == analyzer.tokens(
        "我们中出了一个叛徒  In 2016年！"
    )
    assert "叛徒" in analyzer.tokens("我们中出了一个叛徒")
    assert analyzer.environment().keys() == {"unicode", "rjieba"}


def test_jieba__missing_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)
    analysis._segmenter.cache_clear()
    with pytest.raises(UsageError, match="pip install rjieba"):
        analyzer_for("zh", segmenter="jieba").tokens("大雪")
    assert Analyzer().tokens("大雪") == ["大雪"]


def test_environment__names_what_tokens_rest_on():
    assert Analyzer().environment().keys() == {"unicode"}
    assert analyzer_for("en").environment().keys() == {"unicode", "tantivy"}


def test_batch__of_real_chinese_holds_every_character(shared_data):
    table = pq.read_table(shared_data / "nomiracl_zh" / "corpus.parquet").slice(0, 200)
    for text, tokens in zip(
        table["text"].to_pylist(), Analyzer().batch(table["text"].to_pylist()), strict=True
    ):
        han = {c for c in text if "\u4e00" <= c <= "\u9fff"}
        assert han <= set(tokens)
        assert all(len(t) <= 2 for t in tokens.split() if "\u4e00" <= t[0] <= "\u9fff")
