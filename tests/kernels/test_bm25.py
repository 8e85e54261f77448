"""BM25 scoring and exact top k: against plain Python, tantivy, and numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import bm25, bm25_formulas, bm25_plain
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.bm25 import LENGTHS, VARIANTS, Collection, Scorer
from reference_bm25 import Documents, byte_length, rounded

DELTAS = {"bm25l": 0.5, "bm25+": 1.0}


def collection_of(documents, **more):
    offsets, docs, tfs, lengths = documents.postings()
    return Collection(
        np.array(offsets, np.int64), np.array(docs, np.int32), np.array(tfs, np.int32),
        np.array(lengths, np.int32), **more,
    )  # fmt: skip


def words(*texts):
    """Documents and the code of each word."""
    codes = {}
    for text in texts:
        for word in text.split():
            codes.setdefault(word, len(codes))
    return Documents([[codes[w] for w in t.split()] for t in texts], len(codes)), codes


def one(scorer, query, k, **options):
    hits = scorer.search([0, len(query)], query, k, **options)
    n = hits.counts[0]
    assert (hits.docs[0, n:] == -1).all()
    assert (hits.scores[0, n:] == 0).all()
    return hits.docs[0, :n].tolist(), hits.scores[0, :n].tolist()


def ordered(scores, k):
    """(docs, float32 scores) by the rule: score descending, document ascending."""
    pairs = sorted((-rounded(s), d) for d, s in scores.items())[:k]
    return [d for _, d in pairs], [-s for s, _ in pairs]


# --- by hand and published


def test_search__of_the_golden_corpora():
    documents, codes = words("lamp oil", "lamp wick", "rope", "tent")
    docs, scores = one(Scorer(collection_of(documents)), [codes["lamp"]], 10)
    assert docs == [0, 1]
    assert scores == pytest.approx([0.609969519] * 2, abs=1e-7)
    documents, codes = words("alpha", "alpha alpha beta gamma delta")
    docs, scores = one(Scorer(collection_of(documents), k1=0.9, b=0.4), [codes["alpha"]], 10)
    assert docs == [1, 0]
    assert scores == pytest.approx([0.220643922, 0.2086813], abs=1e-7)


@pytest.mark.parametrize(
    ("texts", "query", "found"),
    [
        (["a b", "b c"], "b", [0, 1]),
        ([], "", []),
        ([], "a", []),
        (["", ""], "a", []),
        (["", "x y"], "x", [1]),
        (["x"], "", []),
    ],
)
@pytest.mark.parametrize("k", [0, 1, 10])
def test_search__of_next_to_nothing(texts, query, found, k):
    documents, codes = words(*texts)
    for variant in VARIANTS:
        scorer = Scorer(collection_of(documents), variant=variant)
        docs, scores = one(scorer, [codes.get(w, -1) for w in query.split()], k)
        assert docs == found[:k]
        assert all(math.isfinite(s) for s in scores)
    assert scorer.search([0], [], k).docs.shape == (0, k)


def test_lengths__of_one_byte_tie_and_exact_ones_do_not():
    texts = ["alpha " + " ".join(f"f{n}_{i}" for i in range(n - 1)) for n in range(40, 49)]
    documents, codes = words(*texts)
    query = [codes["alpha"]]
    docs, scores = one(Scorer(collection_of(documents), lengths="tantivy"), query, 9)
    assert docs == list(range(9))
    assert [scores[i] == scores[i + 1] for i in range(8)] == [True, False] * 4
    docs, scores = one(Scorer(collection_of(documents)), query, 9)
    assert len(set(scores)) == 9


def test_stored_lengths__are_the_closed_form():
    lengths = np.concatenate([np.arange(5_000), [2_013_265_943, 2_013_265_944, 2_147_483_647]])
    expected = [byte_length(int(n)) for n in lengths[:-1]] + [2_013_265_944]
    assert bm25_formulas.stored_lengths(lengths).tolist() == expected
    assert bm25_formulas.stored_lengths(lengths[:5_000]).tolist() == expected[:5_000]
    assert bm25_formulas.STORED_LENGTHS[[0, 39, 40, 47, 48, 55, 56, 255]].tolist() == [
        0, 39, 40, 54, 56, 84, 88, 2_013_265_944,
    ]  # fmt: skip


def test_search__finds_a_document_whose_score_is_0():
    documents, codes = words("a b", "a", "a c")
    scorer = Scorer(collection_of(documents), variant="robertson")
    assert one(scorer, [codes["a"]], 5) == ([0, 1, 2], [0.0, 0.0, 0.0])
    assert one(scorer, [codes["a"], codes["c"]], 2)[0] == [2, 0]
    assert one(scorer, [codes["a"]], 5, weights=[0.0]) == ([], [])


def test_search__with_lengths_of_0():
    """Postings with lengths that say nothing: every norm is 1."""
    arrays = [np.array([0, 2]), np.array([0, 1], np.int32), np.array([1, 2], np.int32)]
    collection = Collection(*arrays, np.zeros(2, np.int32))
    for variant in VARIANTS:
        docs, scores = one(Scorer(collection, variant=variant, b=1.0), [0], 5)
        assert sorted(docs) == [0, 1]
        assert np.isfinite(scores).all()


def test_statistics__of_an_index_that_counts_more():
    documents, codes = words("a b", "b c c", "a")
    plain = collection_of(documents)
    more = collection_of(documents, n_docs_stat=7, df=plain.df + 2, avgdl=4.5)
    part = Scorer(more).explain([codes["a"]], 0).parts[0]
    assert (part.df, part.avgdl) == (4, 4.5)
    assert part.idf == math.log(1 + (7 - 4 + 0.5) / (4 + 0.5))
    value = part.idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 4.5))
    assert part.contribution == rounded(value)


# --- plain Python


texts = st.lists(st.lists(st.integers(0, 5), max_size=12), max_size=9)
queries = st.lists(
    st.lists(st.tuples(st.integers(-1, 5), st.sampled_from([1.0, 0.0, 0.5, 2.25])), max_size=5),
    max_size=4,
)


@settings(max_examples=150 if JIT else 25)
@given(
    texts, queries, st.sampled_from(VARIANTS), st.sampled_from(LENGTHS), st.integers(0, 12),
    st.sampled_from([(1.2, 0.75), (0.9, 0.4), (0.0, 1.0), (2.0, 0.0)]), st.integers(0, 511),
    st.booleans(),
)  # fmt: skip
def test_search__equals_plain_python(texts, asked, variant, lengths, k, pair, mask, filtered):
    documents = Documents(texts, 6)
    scorer = Scorer(
        collection_of(documents), variant=variant, lengths=lengths, k1=pair[0], b=pair[1]
    )
    eligible = np.array([mask >> d & 1 for d in range(len(texts))], bool) if filtered else None
    offsets = np.cumsum([0, *map(len, asked)])
    terms = [t for query in asked for t, _ in query]
    weights = [w for query in asked for _, w in query]
    hits = scorer.search(offsets, terms, k, weights=weights, eligible=eligible)
    again = scorer.search(offsets, terms, k, weights=weights, eligible=eligible, threads=2)
    for name in ("docs", "scores", "counts"):
        assert np.array_equal(getattr(hits, name), getattr(again, name))
    for q, query in enumerate(asked):
        truth = documents.scores(query, variant, lengths, *pair, DELTAS.get(variant, 0.0))
        if eligible is not None:
            truth = {d: s for d, s in truth.items() if eligible[d]}
        n = hits.counts[q]
        assert n == min(k, len(truth))
        found = dict(zip(hits.docs[q, :n].tolist(), hits.scores[q, :n].tolist(), strict=True))
        exact = {}
        for d in truth:
            codes, loads = [t for t, _ in query], [w for _, w in query]
            told = scorer.explain(codes, d, loads)
            exact[d] = told.score
            assert told.score == rounded(sum(p.contribution for p in told.parts))
            assert told.score == pytest.approx(truth[d], rel=3e-7, abs=1e-30)
        assert (list(found), list(found.values())) == ordered(exact, k)


def test_explain__names_what_entered():
    documents, codes = words("a b b", "b c", "c")
    scorer = Scorer(collection_of(documents), lengths="tantivy")
    told = scorer.explain([codes["b"], -1, codes["c"]], 0, [1.0, 1.0, 2.0])
    assert [(p.term, p.tf, p.df, p.weight) for p in told.parts] == [
        (codes["b"], 2, 2, 1.0), (-1, 0, 0, 1.0), (codes["c"], 0, 2, 2.0),
    ]  # fmt: skip
    assert {(p.length, p.avgdl) for p in told.parts} == {(3, 2.0)}
    assert [p.contribution > 0 for p in told.parts] == [True, False, False]
    docs, scores = one(scorer, [codes["b"], -1, codes["c"]], 3, weights=[1.0, 1.0, 2.0])
    assert told.score == scores[docs.index(0)]


def test_scorer__prepares_only_what_it_is_told():
    documents, codes = words("a b b", "b c", "c")
    whole = Scorer(collection_of(documents))
    part = Scorer(collection_of(documents), terms=[codes["c"], codes["b"], codes["b"]])
    query = [codes["b"], codes["c"], -1]
    assert one(part, query, 3) == one(whole, query, 3)
    with pytest.raises(ValueError, match=r"term 0 was not prepared"):
        part.search([0, 1], [codes["a"]], 3)


# --- other people's arithmetic


def test_search__scores_as_tantivy_does(tmp_path):
    import tantivy

    rng = np.random.default_rng(5)
    n = 400 if JIT else 60
    drawn = [np.minimum(rng.zipf(1.3, rng.integers(1, 90)), 300).tolist() for _ in range(n)]
    texts = [" ".join(f"w{t}" for t in text) for text in drawn]
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_unsigned_field("number", stored=True)
    schema = builder.build()
    index = tantivy.Index(schema, path=str(tmp_path))
    writer = index.writer(num_threads=1)
    for d, text in enumerate(texts):
        writer.add_document(tantivy.Document.from_dict({"text": text, "number": d}, schema))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    documents, codes = words(*texts)
    scorer = Scorer(collection_of(documents), lengths="tantivy")
    # its idf is ln(1 + x) in float32, with few right digits where x is small
    common = {name for name, code in codes.items() if documents.df[code] > n / 2}
    for size in (1, 2, 5, 9):
        for _ in range(6):
            names = sorted({*rng.choice(texts[rng.integers(n)].split(), size)} - common)
            if not names:
                continue
            clauses = [
                (tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", name))
                for name in names
            ]
            found = searcher.search(tantivy.Query.boolean_query(clauses), limit=n).hits
            theirs = {searcher.doc(at)["number"][0]: np.float32(s) for s, at in found}
            docs, scores = one(scorer, [codes[name] for name in names], n)
            assert set(docs) == set(theirs)
            for d, score in zip(docs, scores, strict=True):
                assert abs(theirs[d] - np.float32(score)) <= 4 * np.spacing(np.float32(score))
            behind = np.array([theirs[d] for d in docs])
            assert (np.diff(behind) <= 4 * np.spacing(behind[1:])).all()


# --- refused


def test_bad_input__is_refused_with_found_and_wanted():
    documents, _ = words("a b b", "b c", "c")
    good = collection_of(documents)
    for options, message in (
        ({"k1": -1.0}, "k1 is -1.0; wanted a number from 0, finite"),
        ({"k1": math.nan}, "k1 is nan"),
        ({"k1": math.inf}, "k1 is inf"),
        ({"b": 1.5}, "b is 1.5; wanted a number from 0, at most 1"),
        ({"b": -0.1}, "b is -0.1"),
        ({"variant": "bm26"}, "variant is 'bm26'; wanted one of tantivy"),
        ({"lengths": "long"}, "lengths is 'long'; wanted one of exact"),
        ({"delta": 1.0}, "delta is 1.0 but tantivy has none"),
        ({"variant": "bm25l", "delta": -1.0}, "delta is -1.0"),
        ({"terms": [3]}, r"a term is 3; wanted codes in 0\.\.2"),
        ({"terms": [-1]}, "a term is -1"),
        ({"terms": [0.5]}, "terms are float64"),
    ):
        with pytest.raises(ValueError, match=message):
            Scorer(good, **options)
    scorer = Scorer(good)
    for arguments, options, message in (
        (([0, 1], [0], -1), {}, "k is -1"),
        (([0, 1], [3], 1), {}, r"a term is 3; wanted codes in -1\.\.2"),
        (([0, 1], [-2], 1), {}, "a term is -2"),
        (([0, 2], [0], 1), {}, "offsets run from 0 to 2; wanted 0 to 1"),
        (([0.0, 1.0], [0], 1), {}, "offsets are float64"),
        (([0, 1], [0], 1), {"weights": [-1.0]}, "a weight is -1.0; wanted finite"),
        (([0, 1], [0], 1), {"weights": [math.nan]}, "a weight is nan"),
        (([0, 1], [0], 1), {"weights": [1.0, 2.0]}, r"weights are \[2\]"),
        (([0, 1], [0], 1), {"eligible": [True]}, r"eligible is bool\[1\]; wanted bool\[3\]"),
        (([0, 1], [0], 1), {"eligible": [1, 1, 1]}, r"eligible is int64\[3\]"),
        (([0, 1], [0], 1), {"threads": 0}, "threads is 0"),
    ):
        with pytest.raises(ValueError, match=message):
            scorer.search(*arguments, **options)
    with pytest.raises(ValueError, match=r"doc is 3; wanted a number in 0\.\.2"):
        scorer.explain([0], 3)


def test_collection__refuses_what_is_no_collection():
    i32, i64 = np.int32, np.int64
    offsets, docs, tfs = np.array([0, 2], i64), np.array([0, 1], i32), np.array([1, 1], i32)
    lengths = np.array([1, 1], i32)
    Collection(offsets, docs, tfs, lengths)
    for arrays, message in (
        ((offsets.astype(i32), docs, tfs, lengths), r"offsets is int32\[2\]; wanted int64"),
        ((offsets, docs.astype(i64), tfs, lengths), r"docs is int64\[2\]; wanted int32"),
        ((offsets, docs, tfs[:1], lengths), "1 tfs for 2 docs"),
        ((offsets, docs, tfs, -lengths), "a length is -1"),
        ((np.array([0, 3]), docs, tfs, lengths), "offsets run from 0 to 3; wanted 0 to 2"),
    ):
        with pytest.raises(ValueError, match=message):
            Collection(*arrays)
    for more, message in (
        ({"n_docs_stat": 1}, "n_docs_stat is 1; wanted at least the largest df, 2"),
        ({"avgdl": math.nan}, "avgdl is nan"),
        ({"avgdl": -1.0}, "avgdl is -1.0"),
        ({"df": np.array([1, 2])}, r"df is int64\[2\]"),
        ({"df": np.array([-1])}, r"least -1"),
    ):
        with pytest.raises(ValueError, match=message):
            Collection(offsets, docs, tfs, lengths, **more)
    for bad, counts in (([1, 0], [1, 1]), ([0, 0], [1, 1]), ([0, 2], [1, 1]), ([-1, 0], [1, 1]),
                        ([0, 1], [1, 0])):  # fmt: skip
        broken = Collection(offsets, np.array(bad, i32), np.array(counts, i32), lengths)
        with pytest.raises(ValueError, match="the list of term 0 breaks the contract"):
            Scorer(broken)


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__are_compiled_once():
    documents, _ = words("a b b", "b c", "c")
    writeable = collection_of(documents)
    read_only = Collection(*(np.array(a) for a in (
        writeable.offsets, writeable.docs, writeable.tfs, writeable.lengths,
    )))  # fmt: skip
    for collection in (writeable, read_only):
        scorer = Scorer(collection)
        scorer.search(np.array([0, 1]), np.array([0]), 2)
        scorer.search([0, 1], [0], np.int32(2), weights=[1], eligible=np.ones(3, bool))
    for module in (bm25, bm25_plain):
        for name, value in vars(module).items():
            if type(getattr(value, "_cache", None)).__name__ == "_Cache":
                assert compiled_count(value) == 1, name
