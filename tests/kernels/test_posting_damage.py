"""Damaged, foreign and changing indexes: an error that says what, never a crash or a wrong number.

Without a CRC a change can go unseen only where a file says a thing once. So `verify` must find
every change; without it, what is read of a changed file must be whole lists of documents that
exist, and the sums of documents' lengths must be able to tell most changes.
"""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import reference_postings as ref
from ragcore_kernels import fst, segments
from ragcore_kernels._jit import JIT
from ragcore_kernels.postings import TantivyPostings, UnsupportedFormat

TERMS = [b"", b"w1", b"w59", b"exactly257", "检索".encode(), b"many!", b"absent"]
KINDS = ("term", "idx", "fieldnorm", "del", "json")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    parts = [ref.documents(seed, 300 if JIT else 150, 60) for seed in (1, 2)]
    parts = [[t.replace("often " * 69_000, "").split("long9 ")[0] for t in p] for p in parts]
    path = tmp_path_factory.mktemp("index") / "index"
    ref.build(path, parts, "freq", dead=("w30",))
    return path


def everything(path, verify=False):
    """All that can be read of an index, in one list of bytes."""
    read = TantivyPostings.open(path, "body", verify=verify)
    (offsets, data), csr = read.read_all()
    arrays = [offsets, data, csr.offsets, csr.docs, csr.tfs, read.alive(), read.fieldnorms()]
    arrays += [read.lengths(csr), read.lookup(TERMS), read.postings(read.lookup(TERMS)).docs]
    assert csr.docs.size == 0 or 0 <= csr.docs.min() <= csr.docs.max() < read.n_docs
    assert csr.tfs.size == 0 or csr.tfs.min() >= 1
    inner = np.ones(csr.docs.size, bool)
    inner[csr.offsets[:-1]] = False
    assert (np.diff(csr.docs)[inner[1:]] > 0).all()
    numbers = [read.n_docs, read.n_deleted, read.total_tokens]
    return [array.tobytes() for array in arrays], numbers, read.segment_ids


def outcome(path, whole, verify):
    """ "equal", "refused" or "other"."""
    try:
        return "equal" if everything(path, verify) == whole else "other"
    except UnsupportedFormat:
        return "refused"


def changed(data, rng):
    """The bytes with one changed; now and then a few, or an end cut off."""
    data = bytearray(data)
    if rng.random() < 0.05:
        return bytes(data[: rng.randrange(len(data))])
    for _ in range(rng.choice([1, 1, 1, 4])):
        at = rng.randrange(len(data))
        data[at] ^= rng.choice([1 << rng.randrange(8), rng.randrange(1, 256), 255])
    return bytes(data)


def in_body(before, after):
    """Whether a file differs ahead of its footer."""
    size = len(ref.split_footer(before)[0])
    return before[:size] != after[:size]


@pytest.mark.parametrize("kind", KINDS)
def test_damage__is_equal_or_refused(made, tmp_path, kind):
    path = tmp_path / "index"
    shutil.copytree(made, path)
    rng = random.Random(kind)
    whole = everything(path)
    seen = {"equal": 0, "refused": 0, "other": 0}
    for _ in range(120 if JIT else 3):
        file = rng.choice(sorted(p for p in path.glob(f"*.{kind}") if p.name[0] != "."))
        before = file.read_bytes()
        file.write_bytes(changed(before, rng))
        seen[outcome(path, whole, False)] += 1
        if kind != "json":
            # tantivy's versions are outside the CRC, and nothing is read by them
            strict = outcome(path, whole, True)
            assert strict != "other"
            assert strict == "refused" or not in_body(before, file.read_bytes())
        file.write_bytes(before)
    assert everything(path) == whole
    assert not JIT or seen["refused"] > sum(seen.values()) // 3
    if kind == "json":
        assert seen["other"] == 0


def rewritten(path, kind, version=7, change=lambda body: body):
    """Put another body or version into every file of a kind, with a CRC that fits."""
    for file in path.glob(f"*.{kind}"):
        body, _ = ref.split_footer(file.read_bytes())
        file.write_bytes(ref.with_footer(change(bytearray(body)), version))


@pytest.fixture
def small(tmp_path):
    """A small index of our own writing, and its terms."""
    rows = ref.count([f"a b{k % 7} c c" for k in range(300)])
    ref.write_index(tmp_path / "small", rows, 300)
    return tmp_path / "small"


def refusal(path, field="body"):
    with pytest.raises(UnsupportedFormat) as error:
        TantivyPostings.open(path, field, verify=True).read_all()
    return str(error.value)


@pytest.mark.parametrize("kind", ["term", "idx"])
@pytest.mark.parametrize("version", [4, 8, 10**30])
def test_versions__unknown_are_named(small, kind, version):
    rewritten(small, kind, version)
    said = refusal(small)
    assert f"format {str(version)[:20]} of tantivy 0.22.0; this reader knows 5, 6, 7" in said
    assert f".{kind}" in said


def test_versions__must_agree_in_a_segment(small):
    rewritten(small, "idx", 6)
    assert "another version than" in refusal(small)


def dictionary(at, value):
    """A change of the field's part of a dictionary, `at` bytes from its end."""

    def change(body):
        size = int.from_bytes(body[-4:], "little") + 4
        end = len(body) - size
        body[end - at : end - at + len(value)] = value
        return bytes(body)

    return change


@pytest.mark.parametrize(("at", "value", "said"), [
    (4, b"\2", "dictionary type 2; this reader knows type 1"),
    (8, b"\2", "dictionary version 2"),
    (16, b"\xff" * 8, "a dictionary cut off"),
    (16, b"\0" * 8, "a dictionary cut off"),
    (16, b"\x20" + b"\0" * 7, "counts of terms that differ"),
])  # fmt: skip
def test_dictionaries__of_another_kind_are_named(small, at, value, said):
    rewritten(small, "term", change=dictionary(at, value))
    assert said in refusal(small)


@pytest.mark.parametrize(("change", "said"), [
    (lambda m: m["schema"][0].update(type="json_object"), "field 'body' of type 'json_object'"),
    (lambda m: m["schema"][0].update(name="title"), "fields title; this reader knows one field"),
    (lambda m: m["schema"].append(m["schema"][0]), "fields body, body"),
    (lambda m: m["schema"][0]["options"].update(indexing=None), "is not indexed"),
    (lambda m: m["schema"][0]["options"]["indexing"].update(record="all"), "record 'all'"),
    (lambda m: m["schema"][0]["options"]["indexing"].update(record="position"), "cannot|not end"),
    (lambda m: m["schema"][0]["options"]["indexing"].update(record="basic"), "cannot|not end"),
    (lambda m: m["schema"][0]["options"]["indexing"].update(fieldnorms=True), "fieldnorm"),
    (lambda m: m["schema"][0]["options"]["indexing"].update(fieldnorms=1), "'fieldnorms' is 1"),
    (lambda m: m["segments"].append(m["segments"][0]), "a segment named twice"),
    (lambda m: m["segments"][0].update(max_doc=0), "a segment of 0 documents"),
    (lambda m: m["segments"][0].update(max_doc="9"), "'max_doc' is 9"),
    (lambda m: m["segments"][0].update(max_doc=2**31), "a segment of 2147483648 documents"),
    (lambda m: m["segments"][0].update(max_doc=299), "cannot be"),
    (lambda m: m["segments"][0].update(segment_id="../../x"), "segment '../../x'"),
    (lambda m: m["segments"][0].update(deletes={"num_deleted_docs": 1}), "no 'opstamp'"),
    (lambda m: m["segments"][0].update(
        deletes={"num_deleted_docs": 1, "opstamp": 1}), "names a file that is missing"),
    (lambda m: m["segments"][0].update(
        deletes={"num_deleted_docs": 301, "opstamp": 1}), "out of range"),
    (lambda m: m.pop("schema"), "no 'schema'"),
    (lambda m: m["segments"][0].pop("deletes"), "no 'deletes'"),
    (lambda m: m.update(segments={}), "'segments' is {}"),
])  # fmt: skip
def test_meta__that_says_what_is_not_is_refused(small, change, said):
    meta = json.loads((small / "meta.json").read_text())
    change(meta)
    (small / "meta.json").write_text(json.dumps(meta))
    found = refusal(small)
    assert any(part in found for part in said.split("|")), found


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '{"schema": []}', "\xff"])
def test_meta__that_is_no_meta_is_refused(small, text):
    (small / "meta.json").write_bytes(text.encode("latin-1"))
    assert "meta.json" in refusal(small)


@pytest.mark.parametrize("kind", ["term", "idx"])
def test_files__cut_off_anywhere_are_refused(small, kind):
    (file,) = small.glob(f"*.{kind}")
    whole = file.read_bytes()
    for size in range(0, len(whole), 3 if JIT else 97):
        file.write_bytes(whole[:size])
        refusal(small)
    for bad in (b"\0" * 4, whole[-8:], b"{}" + b"\2\0\0\0" + whole[-4:], b"\xff" * 8 + whole[-4:]):
        file.write_bytes(bad)
        refusal(small)


def test_directories__of_fields_are_checked(small):
    (file,) = small.glob("*.idx")
    body, _ = ref.split_footer(file.read_bytes())
    for bad in (
        b"", b"\0\0\0\0", b"\xff" * 4, body[:-4] + b"\xff\xff\xff\x7f", body[:-4] + b"\0\0\0\0",
        body[:-11] + b"\x82" + body[-10:], body[:-11] + b"\1\1" + body[-9:],
        body[:-10] + b"\x7f\xff" + body[-8:], body[:-5] + b"\x81" + body[-4:],
    ):  # fmt: skip
        file.write_bytes(ref.with_footer(bad, 7))
        refusal(small)
    file.write_bytes(ref.with_footer(body, 7))
    assert TantivyPostings.open(small, "body", verify=True).read_all()[1].docs.size


def test_lists__that_leave_a_remainder_are_refused(tmp_path):
    rows = {b"a": [(0, 1)], b"b": [(1, 2)]}
    lists = [ref.encode(row, "freq", True) for row in rows.values()]
    ref.write_index(tmp_path / "a", rows, 3, lists=[lists[0] + b"\x81", lists[1]])
    assert "posting list 0 does not end" in refusal(tmp_path / "a")
    read = TantivyPostings.open(tmp_path / "a", "body")
    assert read.postings(read.lookup([b"b"])).docs.tolist() == [1]  # which is whole
    ref.write_index(tmp_path / "b", rows, 3, lists=[lists[0], lists[1] + b"\x81"])
    assert "posting list 1 does not end" in refusal(tmp_path / "b")
    rewritten(
        tmp_path / "b", "idx", change=lambda body: body[:8] + body[8:-11] + b"\x81" + body[-11:]
    )
    assert "after the last list" in refusal(tmp_path / "b")


def test_missing__files_make_the_reader_look_again(made, tmp_path, monkeypatch):
    path, old = tmp_path / "index", segments._body
    shutil.copytree(made, path)
    whole = everything(path)
    meta = (path / "meta.json").read_text()
    stale = meta.replace(
        json.loads(meta)["segments"][1]["segment_id"], "0" * 8 + "-0000" * 3 + "-" + "0" * 12
    )
    (path / "meta.json").write_text(stale)
    calls = []

    def merged_meanwhile(file: Path, verify: bool):
        calls.append(file)
        if file.name.startswith("0" * 32):
            (path / "meta.json").write_text(meta)  # the writer is done
        return old(file, verify)

    monkeypatch.setattr(segments, "_body", merged_meanwhile)
    assert everything(path) == whole
    (path / "meta.json").write_text(stale)
    monkeypatch.setattr(segments, "_body", old)
    assert "names a file that is missing" in refusal(path)
    with pytest.raises(FileNotFoundError):
        TantivyPostings.open(tmp_path, "body")


def test_open__index_stays_readable_when_its_files_are_gone(made, tmp_path):
    path = tmp_path / "index"
    shutil.copytree(made, path)
    read = TantivyPostings.open(path, "body")
    shutil.rmtree(path)
    assert (
        read.read_all()[1].docs.size == TantivyPostings.open(made, "body").read_all()[1].docs.size
    )


def test_lists__that_overlap_are_refused(tmp_path):
    rows = {f"w{k:03}".encode(): [(k % 9, 1)] for k in range(600)}
    ref.write_index(tmp_path / "index", rows, 9)
    terms = [b"w000", b"w300", b"w599"]
    read = TantivyPostings.open(tmp_path / "index", "body")
    assert read.postings(read.lookup(terms)).docs.tolist() == [0, 3, 5]

    def second_group_like_the_first(body):
        size = int.from_bytes(body[-4:], "little") + 4  # directory of fields
        end = len(body) - size
        store = end - 16 - int.from_bytes(body[end - 16 : end - 8], "little")
        start = store + 16 + 39 + 12  # postings offset of the second meta
        assert int.from_bytes(body[start : start + 8], "little") == 512
        body[start : start + 8] = bytes(8)
        return bytes(body)

    rewritten(tmp_path / "index", "term", change=second_group_like_the_first)
    assert "posting lists that overlap" in refusal(tmp_path / "index")


def test_dictionaries__that_would_fill_memory_are_refused(small, monkeypatch):
    read = TantivyPostings.open(small, "body")
    assert read.terms()[1].size == 16
    monkeypatch.setattr(fst, "list_terms", lambda *_: fst.FULL)
    with pytest.raises(UnsupportedFormat, match="damaged dictionary of terms"):
        read.terms()
