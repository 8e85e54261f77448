"""The fast BM25 kernel against the plain one, bit for bit; its vector code against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcore_kernels import (
    bm25,
    bm25_batches,
    bm25_finish,
    bm25_pack,
    bm25_scan,
    bm25_windows,
    vectors,
)
from ragcore_kernels._jit import JIT, address_of, compiled_count, kernel
from ragcore_kernels.bm25 import LENGTHS, VARIANTS, Collection, Scorer
from ragcore_kernels.vectors import CHUNK, WINDOW

KS = (1, 2, 10, 11, 100, 1_000)
SHARES = (0.6, 0.3, 0.1, 0.04, 0.02, 0.004, 0.0005)


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Every collection goes to the fast kernel, and short lists may be dense or have pointers."""
    monkeypatch.setattr(bm25, "FAST_DOCS", 1)
    monkeypatch.setattr(bm25_pack, "POINTED", 4)


def random_collection(rng, n_docs, n_terms, alike=False):
    """Lists of every density; some counts above 255; or documents that are all the same."""
    offsets, docs, tfs = [0], [], []
    for term in range(n_terms):
        share = 1.0 if alike else SHARES[term % len(SHARES)] * rng.uniform(0.2, 1.2)
        there = np.flatnonzero(rng.random(n_docs) < share) if n_docs else np.zeros(0, int)
        docs.append(there)
        counts = np.ones(there.size) if alike else rng.geometric(0.6, there.size)
        counts[rng.random(there.size) < (0 if alike else 0.01)] = 400
        tfs.append(counts)
        offsets.append(offsets[-1] + there.size)
    docs, tfs = np.concatenate(docs).astype(np.int32), np.concatenate(tfs).astype(np.int32)
    lengths = np.bincount(docs, weights=tfs, minlength=n_docs).astype(np.int32)
    if not alike:
        lengths += rng.integers(0, 40, n_docs).astype(np.int32)
    return Collection(np.array(offsets), docs, tfs, lengths)


def random_queries(rng, n_terms, n, most):
    sizes = rng.integers(0, most + 1, n)
    terms = rng.integers(-1, n_terms, sizes.sum())  # with repeats
    return np.concatenate([[0], np.cumsum(sizes)]), terms


def both(scorer, *arguments, **options):
    """Hits of the fast kernel, checked against the plain one and against two threads."""
    fast = scorer.search(*arguments, **options)
    packed, scorer._packed = scorer._packed, None
    plain = scorer.search(*arguments, **options)
    scorer._packed = packed
    assert packed is not None
    two = scorer.search(*arguments, **options, threads=2)
    for name in ("docs", "scores", "counts"):
        assert np.array_equal(getattr(fast, name), getattr(plain, name)), name
        assert np.array_equal(getattr(two, name), getattr(plain, name)), name
    return fast


@settings(max_examples=60 if JIT else 6)
@given(
    st.integers(0, 2**32), st.sampled_from([1, 63, 64, 65, 200, 700]), st.sampled_from(VARIANTS),
    st.sampled_from(LENGTHS), st.sampled_from(KS), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_fast__equals_plain_on_small_collections(
    seed, n_docs, variant, lengths, k, weighted, filtered, alike
):
    rng = np.random.default_rng(seed)
    collection = random_collection(rng, n_docs, 14, alike)
    offsets, terms = random_queries(rng, 14, 6, 9)
    weights = rng.choice([0.0, 0.3, 1.0, 2.0, 50.0], terms.size) if weighted else None
    eligible = rng.random(n_docs) < 0.3 if filtered else None
    scorer = Scorer(collection, variant=variant, lengths=lengths)
    both(scorer, offsets, terms, k, weights=weights, eligible=eligible)


@settings(max_examples=25 if JIT else 1)
@given(st.integers(0, 2**32), st.sampled_from(VARIANTS), st.booleans(), st.booleans())
def test_fast__equals_plain_over_windows(seed, variant, weighted, filtered):
    rng = np.random.default_rng(seed)
    n_docs = int(
        rng.choice([WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW + 77][: None if JIT else 3])
    )
    n_terms = 60 if JIT else 7
    collection = random_collection(rng, n_docs, n_terms)
    scorer = Scorer(collection, variant=variant)
    for k in KS if JIT else (10,):
        offsets, terms = random_queries(rng, n_terms, 12 if JIT else 2, 20 if JIT else 4)
        weights = rng.exponential(1.0, terms.size) if weighted else None
        eligible = (rng.random(n_docs) < rng.random()) if filtered else None
        both(scorer, offsets, terms, k, weights=weights, eligible=eligible)


@pytest.mark.parametrize("k", [1, 10, 1_000, 30_000])
def test_fast__with_mass_ties(k):
    n_docs = 2 * WINDOW + 5_000 if JIT else 300
    collection = random_collection(np.random.default_rng(k), n_docs, 3, alike=True)
    scorer = Scorer(collection)
    hits = both(scorer, [0, 1, 3], [0, 1, 2], k)
    found = min(k, n_docs)
    assert hits.counts.tolist() == [found, found]
    assert (hits.docs[:, :found] == np.arange(found)).all()


def test_fast__with_more_terms_than_sums_hold():
    rng = np.random.default_rng(1)
    n_terms = 1_000 if JIT else 150
    collection = random_collection(rng, 900 if JIT else 90, n_terms)
    scorer = Scorer(collection)
    terms = np.arange(n_terms)
    for size in (bm25_windows.MOST_TERMS, bm25_windows.MOST_TERMS + 1, n_terms):
        both(scorer, [0, size, size + 2], np.concatenate([terms[:size], [0, 1]]), 10)


def test_fast__with_extreme_weights():
    rng = np.random.default_rng(2)
    scorer = Scorer(random_collection(rng, 500, 14))
    terms = np.arange(14)
    for weights in (
        np.full(14, 1e308), np.full(14, 1e-320), np.full(14, 5e-324),
        np.geomspace(1e-300, 1e300, 14),
        np.where(terms == 3, 1e6, 1e-6), np.where(terms == 0, 1.0, 0.0),
    ):  # fmt: skip
        with np.errstate(all="ignore"):  # without compilation, NumPy would warn
            both(scorer, [0, 14], terms, 20, weights=weights)
    both(Scorer(random_collection(rng, 500, 14), variant="robertson"), [0, 1, 2], [0, 0], 400)


def test_fast__leaves_what_finds_no_room(monkeypatch):
    """Too few places: documents that tie to within the bounds go to the plain kernel."""
    monkeypatch.setattr(bm25_batches, "SPARE", 2 * CHUNK)
    n_docs = 3 * WINDOW if JIT else 600
    rng = np.random.default_rng(3)
    for alike in (True, False):
        scorer = Scorer(random_collection(rng, n_docs, 8, alike))
        both(scorer, [0, 1, 3, 6, 8], [0, 0, 1, 2, 5, 6, 6, 5], 5)


@pytest.mark.skipif(not JIT, reason="needs many windows")
@pytest.mark.parametrize("rich", [0, 2, 11])
def test_fast__where_windows_are_not_alike(rich):
    """What the first windows promise does not come: a wrong guess is found out."""
    rng = np.random.default_rng(rich)
    n_docs = 12 * WINDOW + 5
    there = np.arange(n_docs) // WINDOW == rich
    offsets, docs, tfs = [0], [], []
    for share in (0.05, 0.001, 0.2):
        own = np.flatnonzero(rng.random(n_docs) < share * np.where(there, 1.0, 0.05))
        docs.append(own)
        tfs.append(1 + 8 * there[own] + rng.geometric(0.5, own.size))
        offsets.append(offsets[-1] + own.size)
    docs, tfs = np.concatenate(docs).astype(np.int32), np.concatenate(tfs).astype(np.int32)
    lengths = rng.integers(40, 90, n_docs).astype(np.int32)
    scorer = Scorer(Collection(np.array(offsets), docs, tfs, lengths))
    for k in (10, 200, 1_000, 5_000):
        both(scorer, [0, 1, 2, 3, 5, 8], [0, 1, 2, 0, 1, 0, 1, 2], k)


def test_fast__prepares_only_what_it_is_told():
    rng = np.random.default_rng(4)
    collection = random_collection(rng, 700, 21)
    whole, part = Scorer(collection), Scorer(collection, terms=[5, 20, 0, 7])
    assert (whole._packed.lists.shape, part._packed.lists.shape) == ((21, 5), (4, 5))
    offsets, terms = [0, 4, 6], [0, 5, 7, 20, 20, -1]
    hits, again = both(whole, offsets, terms, 50), both(part, offsets, terms, 50)
    for name in ("docs", "scores", "counts"):
        assert np.array_equal(getattr(hits, name), getattr(again, name))


def test_fast__with_more_dense_terms_than_rows(monkeypatch):
    monkeypatch.setattr(bm25_pack, "MOST_DENSE", 3)
    rng = np.random.default_rng(5)
    scorer = Scorer(random_collection(rng, 700, 21))
    assert scorer._packed.n_rows == 3
    offsets, terms = random_queries(rng, 21, 5, 12)
    both(scorer, offsets, terms, 30)


@kernel
def scan(sums, plan, n_rows, base, least, totals, masks, chunks):
    """See `vectors.scan_rows`."""
    return vectors.scan_rows(sums, plan, n_rows, base, least, totals, masks, chunks)


@kernel
def bits_of(bits, address):
    """Lowest bit and count, after a prefetch of what is not there."""
    vectors.prefetch(address)
    return vectors.lowest_bit(bits), vectors.bit_count(bits)


@pytest.mark.parametrize("n_rows", [0, 1, 2, 3, 4, 5, 6, 7, 13])
def test_scan_rows__adds_compares_and_clears(n_rows):
    rng = np.random.default_rng(n_rows)
    rows = bm25_pack.aligned(n_rows * bm25_pack.STRIDE + 1, np.uint8)
    rows[:] = rng.integers(0, 256, rows.size)
    sums, totals = bm25_pack.aligned(WINDOW, np.uint16), bm25_pack.aligned(WINDOW, np.uint16)
    sums[:] = rng.integers(0, 2_000, WINDOW)
    plan = np.stack([np.arange(n_rows) * bm25_pack.STRIDE, rng.integers(1, 4_000, n_rows)], 1)
    place = np.array([vectors.place_in_row(d) for d in range(WINDOW)])
    assert sorted(place) == list(range(WINDOW))
    truth = sums.astype(np.int64)
    for at, multiplier in plan.tolist():
        truth += (rows[at + place].astype(np.int64) * multiplier) >> 8
    least = int(np.sort(truth)[-200])
    masks, chunks = np.zeros(WINDOW // CHUNK, np.uint64), np.zeros(WINDOW // CHUNK, np.int64)
    where = [address_of(a) for a in (sums, plan, rows, totals, masks, chunks)]
    n = scan(where[0], where[1], n_rows, where[2], least, *where[3:])
    found = {
        int(chunks[c]) * CHUNK + bit
        for c in range(n) for bit in range(CHUNK) if int(masks[c]) >> bit & 1
    }  # fmt: skip
    assert found == set(np.flatnonzero(truth >= least).tolist())
    assert all(totals[d] == truth[d] for d in found)
    assert not sums.any()


def test_bits__lowest_and_count():
    for bits in (1, 12, 1 << 63, (1 << 64) - 1):
        lowest = (bits & -bits).bit_length() - 1
        assert bits_of(np.uint64(bits), 0) == (lowest, bits.bit_count())


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_kernels__are_compiled_once():
    rng = np.random.default_rng(6)
    scorer = Scorer(random_collection(rng, 200, 14))
    both(scorer, [0, 2], np.array([0, 3], np.int32), np.int64(3), eligible=np.ones(200, bool))
    both(scorer, [0, 0], [], 3, weights=[])
    for module in (bm25_pack, bm25_windows, bm25_scan, bm25_finish):
        for name, value in vars(module).items():
            if type(getattr(value, "_cache", None)).__name__ == "_Cache":
                assert compiled_count(value) == 1, name
