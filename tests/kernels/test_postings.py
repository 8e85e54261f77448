"""Postings read from tantivy's files against counting, and against tantivy's own answers."""

from itertools import pairwise

import numpy as np
import pytest
import tantivy

import reference_postings as ref
from ragcore_kernels import blocks, fieldnorms, fst, terminfos, unions
from ragcore_kernels._jit import JIT, compiled_count
from ragcore_kernels.postings import FIELD_LENGTHS, Csr, TantivyPostings, encode

N_DOCS = 700 if JIT else 260
RECORDS = ("freq", "position", "basic")


def as_dict(terms, csr):
    """Term -> (document, frequency) of what was read."""
    offsets, data = terms
    words = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    lists = [
        list(zip(csr.docs[a:b].tolist(), csr.tfs[a:b].tolist(), strict=True))
        for a, b in pairwise(csr.offsets)
    ]
    return dict(zip(words, lists, strict=True))


@pytest.fixture(scope="module", params=RECORDS)
def made(request, tmp_path_factory):
    """Three segments, deletes in two of them, and the texts in the order of the index."""
    parts = [ref.documents(seed, N_DOCS) for seed in (1, 2)] + [ref.documents(3, 300, 50)]
    path = tmp_path_factory.mktemp("index") / "index"
    index = ref.build(path, parts, request.param, dead=("w30", "w399"))
    read = TantivyPostings.open(path, "body", verify=True)
    assert read.n_segments == 3
    firsts = TantivyPostings.open(path, "id")  # the commit of a segment decides its place
    starts = np.cumsum([0, *map(len, parts)])
    rows = firsts.postings(firsts.lookup([f"d{s}".encode() for s in starts[:3]])).docs
    texts = [text for k in np.argsort(rows) for text in parts[k]]
    return path, index, texts, request.param, read.read_all()


def test_read_all__equals_counting(made):
    path, _, texts, record, (terms, csr) = made
    read = TantivyPostings.open(path, "body")
    truth = ref.count(texts, record)
    found = as_dict(terms, csr)
    assert list(found) == list(truth)
    assert found == truth
    assert csr.offsets.dtype == np.int64
    assert csr.docs.dtype == csr.tfs.dtype == np.int32
    assert read.n_docs == len(texts)
    assert read.record == record
    for one, two in zip(terms, read.terms(), strict=True):
        assert np.array_equal(one, two)
    if record != "basic":
        lengths = np.array([len(text.split()) for text in texts])
        assert np.array_equal(read.lengths(csr), lengths)
        assert read.total_tokens == lengths.sum()
        assert np.array_equal(read.fieldnorms(), encode(lengths))
    else:
        with pytest.raises(ValueError, match="record 'basic'"):
            read.lengths(csr)


def test_lookup__finds_what_is_there_and_nothing_else(made):
    path, _, texts, record, _ = made
    read = TantivyPostings.open(path, "body")
    truth = ref.count(texts, record)
    absent = [b"", b"w", b"manyz!", b"\xff", b"exactly", b"x" * 299, b"x" * 301, "检".encode()]
    some = list(truth)[:: 1 if JIT else 29]
    terms = [*absent, *some, *some[:3]]
    ordinals = read.lookup(terms)
    assert ordinals.shape == (len(terms), 3)
    assert (ordinals[: len(absent)] == -1).all()
    assert (ordinals[len(absent) :].max(1) >= 0).all()
    csr = read.postings(ordinals)
    places = np.arange(len(terms) + 1)  # a name for each, as terms stand there twice
    names = np.frombuffer("".join(map(chr, places[:-1] + 0x4E00)).encode(), np.uint8)
    found = as_dict((3 * places, names), csr)
    for k, term in enumerate(terms):
        assert found[chr(k + 0x4E00).encode()] == truth.get(term, [])
    again = read.postings(ordinals, threads=2)
    assert np.array_equal(again.docs, csr.docs)
    assert np.array_equal(again.tfs, csr.tfs)
    assert np.array_equal(again.offsets, csr.offsets)
    empty = read.postings(read.lookup([]))
    assert empty.docs.size == 0
    assert empty.offsets.tolist() == [0]


@pytest.mark.skipif(not JIT, reason="the same code, a hundred times slower")
def test_threads__do_not_change_a_thing(made):
    read, one = TantivyPostings.open(made[0], "body"), made[4][1]
    for threads in (2, 7):
        _, other = read.read_all(threads)
        assert np.array_equal(one.docs, other.docs)
        assert np.array_equal(one.tfs, other.tfs)
        assert np.array_equal(one.offsets, other.offsets)


def test_tantivy__says_the_same_of_terms_and_deletes(made):
    path, index, texts, _, (terms, csr) = made
    read = TantivyPostings.open(path, "body")
    searcher = index.searcher()
    dfs = {term.decode(): len(rows) for term, rows in as_dict(terms, csr).items()}
    assert dict(searcher.terms_with_prefix("body", "")) == dfs
    some = list(dfs)[:: 1 if JIT else 11]
    assert [searcher.doc_freq("body", term) for term in some] == [dfs[term] for term in some]
    dead = np.array([bool({"w30", "w399"} & set(text.split())) for text in texts])
    assert np.array_equal(read.alive(), ~dead)
    assert read.n_deleted == dead.sum() > 0
    assert searcher.num_docs == read.n_docs - read.n_deleted


def test_scores__of_tantivy_follow_from_what_is_read(made):
    path, index, _, record, (terms, csr) = made
    read = TantivyPostings.open(path, "body")
    searcher = index.searcher()
    f32 = np.float32
    average = f32(f32(read.total_tokens) / f32(read.n_docs))
    norms = FIELD_LENGTHS.astype(f32)[read.fieldnorms()]
    k = f32(1.2) * (f32(1) - f32(0.75) + f32(0.75) * norms / average)
    alive = read.alive()
    rows = as_dict(terms, csr)
    for term in list(rows)[:: 3 if JIT else 31]:
        docs, tfs = (np.array(column) for column in zip(*rows[term], strict=True))
        n = docs.size
        idf = f32(np.log(np.float64(f32(1) + f32(read.n_docs - n + 0.5) / f32(n + 0.5))))
        tfs = tfs.astype(f32)
        scores = idf * f32(2.2) * (tfs / (tfs + k[docs]))
        query = tantivy.Query.term_query(index.schema, "body", term.decode())
        hits = searcher.search(query, limit=n).hits
        found = {int(read.bases[a.segment_ord]) + a.doc: s for s, a in hits}
        assert sorted(found) == docs[alive[docs]].tolist()
        if record == "basic":
            continue  # scored otherwise: a frequency is not known
        expected = scores[alive[docs]]
        got = np.array([found[d] for d in sorted(found)], f32)
        assert (np.abs(got - expected) <= 2 * np.spacing(expected)).all()


def test_merged__segments_read_by_the_ids_of_their_documents(tmp_path):
    texts = [text.replace("often " * 1_000, "") for text in ref.documents(5, 200)]
    parts = [texts[k : k + 20] for k in range(0, 200, 20)]
    index = ref.build(tmp_path / "index", parts, "freq", dead=("w5",))
    read, ids = (TantivyPostings.open(tmp_path / "index", field) for field in ("body", "id"))
    assert read.n_segments < len(parts)
    names = as_dict(*ids.read_all())
    order = {rows[0][0]: int(name[1:]) for name, rows in names.items()}
    assert sorted(order) == list(range(read.n_docs))
    truth = ref.count([texts[order[doc]] for doc in range(read.n_docs)])
    assert as_dict(*read.read_all()) == truth
    searcher = index.searcher()
    for doc in range(0, read.n_docs, 17):
        segment = int(np.searchsorted(read.bases, doc, "right")) - 1
        address = tantivy.DocAddress(segment, int(doc - read.bases[segment]))
        assert searcher.doc(address)["id"] == [f"d{order[doc]}"]


def test_empty__indexes_and_fields(tmp_path):
    ref.build(tmp_path / "none", [])
    ref.build(tmp_path / "bare", [["", "", ""]])
    for name, n_docs in (("none", 0), ("bare", 3)):
        read = TantivyPostings.open(tmp_path / name, "body", verify=True)
        (offsets, data), csr = read.read_all()
        assert (read.n_docs, read.total_tokens, read.n_deleted) == (n_docs, 0, 0)
        assert offsets.tolist() == csr.offsets.tolist() == [0]
        assert data.size == csr.docs.size == csr.tfs.size == 0
        assert read.lengths(csr).tolist() == [0] * n_docs
        assert (read.lookup([b"a", b""]) == -1).all()
        csr = read.postings(read.lookup([b"a", b""]), threads=2)
        assert csr.offsets.tolist() == [0, 0, 0]
        assert read.alive().all()


def test_postings__refuses_ordinals_that_are_not_there(tmp_path):
    ref.build(tmp_path / "index", [["a b"], [""]])
    read = TantivyPostings.open(tmp_path / "index", "body")
    full = [s for s in range(2) if read.lookup([b"a"])[0, s] >= 0]
    good = read.lookup([b"a", b"b"])
    assert read.postings(good).docs.size == 2
    bad = good.copy()
    bad[1, full] = 2
    with pytest.raises(ValueError, match="expected less than 2"):
        read.postings(bad)
    bad[1, full], bad[1, 1 - full[0]] = 1, 0
    with pytest.raises(ValueError, match="expected ordinals of -1"):
        read.postings(bad)
    with pytest.raises(ValueError, match=r"expected \(n, 2\)"):
        read.postings(good[:, :1])
    with pytest.raises(ValueError, match="offsets"):
        read.lookup_columns(np.array([0, 5]), np.zeros(4, np.uint8))


def test_encode__is_the_largest_id_not_above():
    assert FIELD_LENGTHS[:40].tolist() == list(range(40))
    assert FIELD_LENGTHS[[40, 41, 47, 48, 55, 56, 255]].tolist() == [
        40, 42, 54, 56, 84, 88, 2_013_265_944,
    ]  # fmt: skip
    lengths = np.array([0, 39, 40, 41, 42, 70_000, 2**31 - 1])
    assert (FIELD_LENGTHS[encode(lengths)] <= lengths).all()
    assert encode(FIELD_LENGTHS).tolist() == list(range(256))
    with pytest.raises(ValueError, match="length -1"):
        encode(np.array([-1]))


def test_csr__holds_what_was_asked():
    csr = Csr(np.zeros(1, np.int64), *np.zeros((2, 0), np.int32))
    assert csr.offsets.size == 1


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__have_one_specialisation(tmp_path):
    ref.build(tmp_path / "one", [["a b a"]])
    ref.build(tmp_path / "two", [["a b"], ["a c"]])
    for name in ("one", "two"):
        read = TantivyPostings.open(tmp_path / name, "body")
        (offsets, data), csr = read.read_all(2)
        read.lengths(csr)
        found = read.lookup_columns(offsets, data)
        assert np.array_equal(found, read.lookup([b"a", b"b", b"c"][: offsets.size - 1]))
        for array in (offsets, data, found):
            array.flags.writeable = False
        again = read.postings(read.lookup_columns(offsets, data))
        assert np.array_equal(again.docs, read.postings(found[::-1][::-1]).docs)
        assert np.array_equal(again.docs, read.postings(found.astype(np.int32)).docs)
        assert np.array_equal(again.docs, csr.docs)
    for module in (blocks, fieldnorms, fst, terminfos, unions):
        for name, value in vars(module).items():
            if type(getattr(value, "_cache", None)).__name__ == "_Cache":
                assert compiled_count(value) == 1, name
