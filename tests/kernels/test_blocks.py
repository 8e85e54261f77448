"""Posting lists of every width, length and format against an encoder and decoder of our own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference_postings as ref
from ragcore_kernels import blocks
from ragcore_kernels._jit import JIT, address_of
from ragcore_kernels.postings import TantivyPostings, UnsupportedFormat
from ragcore_kernels.segments import RECORDS

quiet = settings(derandomize=True, deadline=None, max_examples=80 if JIT else 12)
TOP = 2**31 - 1


def decode(data, df, record, strict, n_docs=TOP, base=0, padding=64):
    """What the kernel makes of one list; None if it refuses it."""
    memory = np.frombuffer(bytes(8) + data + bytes(padding), np.uint8).copy()
    docs, tfs = np.full((2, df + 2), -7, np.int32)
    ends = np.array([len(data)])
    bad = blocks.decode_lists(
        *(address_of(memory) + 8, address_of(memory) + memory.size, n_docs, base),
        *(RECORDS[record], int(strict), 0, 1, np.array([df]), np.array([0]), ends),
        *(np.array([1]), address_of(docs), address_of(tfs)),
    )
    assert docs[0] == docs[-1] == tfs[0] == tfs[-1] == -7  # nothing beside
    if bad == 0:
        return None
    return list(zip((docs[1:-1] - base).tolist(), tfs[1:-1].tolist(), strict=True))


gaps = st.sampled_from([1, 1, 1, 2, 5, 127, 128, 129, 300, 16_384, 70_000, 2**21, 2**23])
freqs = st.sampled_from([1, 1, 1, 2, 3, 127, 128, 16_383, 16_384, 70_000, 2**21, 2**24, TOP])
lengths = st.sampled_from([1, 2, 3, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 400])


@quiet
@given(
    df=lengths, data=st.data(), record=st.sampled_from(sorted(RECORDS)), strict=st.booleans(),
    padding=st.sampled_from([0, 1, 63, 64, 200]), first=st.sampled_from([0, 0, 1, 200]),
)  # fmt: skip
def test_decode_lists__equals_the_encoder(df, data, record, strict, padding, first):
    steps = data.draw(st.lists(gaps, min_size=1, max_size=20))
    counts = data.draw(st.lists(freqs, min_size=1, max_size=20))
    docs = first + np.cumsum([0, *np.resize(steps, df - 1)])
    docs = docs[docs < TOP - 5]
    tfs = np.resize(counts, docs.size) if record != "basic" else np.ones(docs.size, int)
    rows = list(zip(docs.tolist(), tfs.tolist(), strict=True))
    raw = ref.encode(rows, record, strict)
    assert ref.decode(raw, len(rows), record, strict) == rows
    assert decode(raw, len(rows), record, strict, base=3, padding=padding) == rows
    last = int(docs[-1])
    assert decode(raw, len(rows), record, strict, last + 1, padding=padding) == rows
    assert decode(raw, len(rows), record, strict, last, padding=padding) is None


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("width", range(32) if JIT else (1, 7, 24, 25, 31))
def test_unpacking__of_every_width(width, strict):
    rng = np.random.default_rng(width)
    most = max(1, min(2**width, TOP // 300))
    docs = np.cumsum(rng.integers(0, most, 256) + 1) - strict
    tfs = np.minimum(rng.integers(0, 2**width, 256) + 1, TOP)
    rows = list(zip(docs.tolist(), tfs.tolist(), strict=True))
    for record in sorted(RECORDS):
        raw = ref.encode(rows, record, strict, (width, width))
        found = decode(raw, 256, record, strict)
        assert found == (rows if record != "basic" else [(doc, 1) for doc, _ in rows])


def test_lists__that_contradict_themselves_are_refused():
    rows = [(3 * k, 1 + k % 5) for k in range(300)]
    for record in sorted(RECORDS):
        for strict in (True, False):
            raw = bytearray(ref.encode(rows, record, strict))
            assert decode(bytes(raw), 300, record, strict) is not None
            assert decode(bytes(raw), 300, record, not strict) is None
            assert decode(bytes(raw), 301, record, strict) is None
            assert decode(bytes(raw), 299, record, strict) is None
            assert decode(bytes(raw[:-1]), 300, record, strict) is None
            assert decode(bytes(raw) + b"\x81", 300, record, strict) is None
            for other in RECORDS.keys() - {record}:
                assert decode(bytes(raw), 300, other, strict) is None
            for at in (1, 4, 5) if record == "basic" else (1, 4, 5, 6):  # last document, widths
                changed = raw.copy()
                changed[at] ^= 0x21
                assert decode(bytes(changed), 300, record, strict) is None
    long = ref.varint(1 << 35)
    for padding in (0, 64):
        for tail, df in (
            (ref.varint(5) + ref.varint(0), 1),  # a frequency of nothing
            (ref.varint(5) + ref.varint(2**31), 1),
            (ref.varint(2**31) + ref.varint(1), 1),
            (long + ref.varint(1), 1),
            (ref.varint(1) + long, 1),
            (b"\0" * 9 + b"\x81" + b"\x81", 1),
            (b"\0" * 70 + b"\x81" + b"\x81", 1),
            (ref.varint(4) + ref.varint(0) + b"\x81\x81", 2),  # the same document twice
            (b"\x01\x01", 1),
            (b"\x81\x81\x01", 1),
        ):
            assert decode(tail, df, "freq", True, padding=padding) is None


def test_wide_numbers__that_leave_int32_are_refused():
    def raw(deltas, tfs, last):
        entry = last.to_bytes(4, "little") + bytes([64 | 31, 32, 0, 255])
        return ref.varint(8) + entry + ref.packed(deltas, 31) + ref.packed(tfs, 32)

    ones, none = [0] * 128, [0] * 127
    assert decode(raw([2**30, *none], ones, 2**30 + 127), 128, "freq", True) is not None
    assert decode(raw([2**30, *none], [2**31, *none], 2**30 + 127), 128, "freq", True) is None
    assert decode(raw([2**30, *none], [TOP, *none], 2**30 + 127), 128, "freq", True) is None
    wraps = [2**31 - 1, 2**31 - 1, 2, *none[1:]]  # comes round to a document that can be
    assert decode(raw(wraps, ones, 127), 128, "freq", True) is None


@pytest.mark.parametrize("version", [5, 6, 7])
@pytest.mark.parametrize("record", sorted(RECORDS))
def test_formats__are_read_alike(tmp_path, record, version):
    texts = ref.documents(7, 300, 60)[: 300 if JIT else 150]
    truth = ref.count(texts, record)
    path = tmp_path / "index"
    ref.write_index(path, truth, len(texts), record, version)
    read = TantivyPostings.open(path, "body", verify=True)
    (offsets, data), csr = read.read_all()
    assert data.tobytes() == b"".join(truth)
    assert np.diff(offsets).tolist() == [len(term) for term in truth]
    assert csr.docs.tolist() == [doc for rows in truth.values() for doc, _ in rows]
    assert csr.tfs.tolist() == [tf for rows in truth.values() for _, tf in rows]
    assert read.lookup(list(truth))[:, 0].tolist() == list(range(len(truth)))
    assert (read.fieldnorms() == 1).all()
    if record != "basic":
        assert read.lengths(csr).tolist() == [len(text.split()) for text in texts]
    for file in path.glob("*.[ti]*"):
        body, _ = ref.split_footer(file.read_bytes())
        file.write_bytes(ref.with_footer(body, 5 if version > 5 else 6))
    other = TantivyPostings.open(path, "body", verify=True)
    with pytest.raises(UnsupportedFormat, match="does not end where the dictionary says"):
        other.read_all()


def test_documents__beyond_a_billion(tmp_path):
    docs = [0, 5, 2**30, *range(2**31 - 300, 2**31 - 2)]
    rows = {b"a": [(doc, 1 + k % 3) for k, doc in enumerate(docs)], b"b": [(2**31 - 2, 2**31 - 1)]}
    ref.write_index(tmp_path / "index", rows, 2**31 - 1)
    read = TantivyPostings.open(tmp_path / "index", "body")
    _, csr = read.read_all()
    assert csr.docs.tolist() == [*docs, 2**31 - 2]
    assert csr.tfs[-1] == 2**31 - 1
    assert read.n_docs == 2**31 - 1


def test_dictionaries__with_the_empty_term_and_all_bytes(tmp_path):
    words = [
        b"",
        *(bytes([k]) for k in range(256)),
        *(b"ab" + bytes([k]) for k in range(0, 256, 3)),
    ]
    words += [b"ab" + bytes([k]) for k in range(33)] + [b"\xff" * k for k in (2, 300)]
    words = sorted(set(words))
    rows = {word: [(k, 1)] for k, word in enumerate(words)}
    ref.write_index(tmp_path / "index", rows, len(words))
    read = TantivyPostings.open(tmp_path / "index", "body")
    assert read.terms()[1].tobytes() == b"".join(words)
    assert read.lookup(words)[:, 0].tolist() == list(range(len(words)))
    assert (read.lookup([b"abc\0", b"\xff" * 299, b"\0\0"]) == -1).all()


def test_dictionaries__with_terms_longer_than_any(tmp_path):
    for size, fits in ((200, True), (65_535, True), (65_536, False))[: 3 if JIT else 1]:
        path = tmp_path / str(size)
        if size > 900:  # the writer is recursive: a chain of nodes by hand
            write_chain(path, size)
        else:
            ref.write_index(path, {b"z" * size: [(0, 1)]}, 1)
        read = TantivyPostings.open(path, "body")
        if fits:
            assert read.terms()[1].tobytes() == b"z" * size
            assert read.lookup([b"z" * size, b"z" * (size - 1)]).tolist() == [[0], [-1]]
            assert read.read_all()[1].docs.tolist() == [0]
        else:
            with pytest.raises(UnsupportedFormat, match="damaged dictionary"):
                read.terms()


def write_chain(path, size):
    """An index of one term of `size` times z: a node a byte, the last leads to address 0."""
    ref.write_index(path, {b"z": [(0, 1)]}, 1)
    (file,) = path.glob("*.term")
    body, _ = ref.split_footer(file.read_bytes())
    part = body[: -4 - int.from_bytes(body[-4:], "little")]
    store = int.from_bytes(part[-16:-8], "little")
    after = part[len(part) - 16 - store :]
    head = (2).to_bytes(8, "little") + bytes(8)
    nodes = b"\0\x10z\x80" + b"z\xc0" * (size - 1)
    root = len(head) + len(nodes) - 1
    fst = head + nodes + (1).to_bytes(8, "little") + root.to_bytes(8, "little")
    file.write_bytes(ref.with_footer(ref.composite({0: fst + after}), 7))
