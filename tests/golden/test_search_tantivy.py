"""BM25 on real collections: tantivy's own scores and order, from the very index that we built."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tantivy

from ragcore.analysis import Analyzer, analyzer_for
from ragcore.index.build import build
from ragcore.index.chunks import read_chunks
from ragcore.index.lexical import BODY, ID
from ragcore.index.opened import open_index
from ragcore.index.options import Options
from ragcore.questions import read_questions
from ragcore.retrievers import Lexical

SETS = ("scifact", "cacm", "cranfield", "cmrc2018", "qasper")
MOST_QUESTIONS = 300
K = 50


@pytest.fixture(scope="module", params=SETS)
def made(request, shared_data, tmp_path_factory):
    folder = shared_data / request.param
    corpus = pq.read_table(folder / "corpus.parquet")
    kept = [c for c in ("doc_id", "title", "text") if c in corpus.column_names]
    path = tmp_path_factory.mktemp(request.param) / "index"
    analyzer = analyzer_for("en") if request.param == "cranfield" else Analyzer()
    build(read_chunks(corpus.select(kept)), path, Options(analyzer))
    questions = pq.read_table(folder / "queries.parquet").slice(0, MOST_QUESTIONS)
    return open_index(path), read_questions(questions)


def ulps(a, b):
    """Distance of positive float32 numbers in units of the last place."""
    bits = [np.asarray(x, np.float32).view(np.int32).astype(np.int64) for x in (a, b)]
    return np.abs(bits[0] - bits[1])


def by_tantivy(index, searcher, schema, tokens):
    """Ids and scores as tantivy gives them, ties and all."""
    terms = list(dict.fromkeys(tokens))
    query = tantivy.Query.boolean_query([
        (tantivy.Occur.Should, tantivy.Query.term_query(schema, BODY, term)) for term in terms
    ])  # fmt: skip
    hits = searcher.search(query, limit=K).hits
    return [index.row_of[searcher.doc(a).get_first(ID)] for _, a in hits], [s for s, _ in hits]


def test_bm25__scores_are_tantivys_within_4_ulp_in_the_same_order(made):
    index, questions = made
    lexical = Lexical(index, questions.texts, lengths="tantivy")
    own = tantivy.Index.open(str(index.folder / "tantivy"))
    searcher = own.searcher()
    near_ties = 0
    for q, tokens in enumerate(lexical.tokens):
        docs, scores, counts = lexical.search(q, q + 1, K, None, 1)
        rows, expected = by_tantivy(index, searcher, own.schema, tokens)
        n = int(counts[0])
        assert n == len(rows)
        assert ulps(scores[0, :n], expected).max(initial=0) <= 4
        other = np.flatnonzero(docs[0, :n] != rows)
        if other.size:  # only where tantivy's rounding parts what we tie, or the reverse
            near_ties += 1
            values = dict(zip(docs[0, :n].tolist(), scores[0, :n].tolist(), strict=True))
            for at in other.tolist():
                theirs = values.get(rows[at], expected[at])
                assert ulps(theirs, scores[0, at]) <= 4
    assert near_ties <= 0.02 * len(lexical.tokens), near_ties


def test_bm25__postings_are_our_own_tokens(made):
    index, _ = made
    from ragcore.index import lexical

    texts = lexical.stored(index.folder / "tantivy")
    sources = [f"{t} {x}" if t else x for t, x in (texts[n] for n in index.ids.to_pylist())]
    counts: dict[str, dict[int, int]] = {}
    for row, line in enumerate(index.options.analyzer.batch(sources)):
        for token in line.split(" ") if line else ():
            held = counts.setdefault(token, {})
            held[row] = held.get(row, 0) + 1
    dictionary = index.dictionary
    assert dictionary.offsets.size - 1 == len(counts)
    held = dictionary.collection
    codes = dictionary.codes(list(counts))
    assert (codes >= 0).all()
    for (term, expected), code in zip(counts.items(), codes.tolist(), strict=True):
        a, b = held.offsets[code : code + 2]
        found = dict(zip(held.docs[a:b].tolist(), held.tfs[a:b].tolist(), strict=True))
        assert found == expected, term
    assert pa.types.is_large_string(index.ids.type)
