"""Indexes to read postings from: made by tantivy, or byte by byte from the format's description.

`Corpus` is a set of documents with their postings by plain counting. `write_index` is an
independent writer of small indexes in formats 5, 6 and 7: a trie without sharing as dictionary,
full widths, one meta a group. `decode` is a plain reader of one posting list.
"""

from __future__ import annotations

import json
import random
import struct
import uuid
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import tantivy

BASIC, FREQ, POSITION = "basic", "freq", "position"


# --- documents and the truth


def documents(seed: int, n: int, n_words: int = 400) -> list[str]:
    """Texts whose words have many kinds of document frequency, length and script."""
    rng = random.Random(seed)
    words = [f"w{k}" for k in range(n_words)]
    weights = [1 / (k + 1) for k in range(n_words)]
    texts = [
        [] if rng.random() < 0.05 else rng.choices(words, weights, k=rng.randint(1, 30))
        for _ in range(n)
    ]
    for df in (1, 2, 3, 127, 128, 129, 256, 257):
        for doc in rng.sample(range(n), min(df, n)):
            texts[doc] += [f"exactly{df}"] * rng.choice([1, 1, 1, 2, 9, 300])
    odd = [
        "检索",
        "检索增强",
        "生成",
        "🙂",
        "🙂🙃",
        "\U0010ffff",
        "\u00e9",
        "e\u0301",
        "x" * 300,
        "0",
    ]
    odd += ["many" + chr(33 + k) for k in range(60)] + ["many" + chr(0x4E00 + k) for k in range(70)]
    for word in odd:
        texts[rng.randrange(n)] += [word] * rng.randint(1, 3)
    texts[rng.randrange(n)] += ["often"] * 70_000
    texts[rng.randrange(n)] += [f"long{k}" for k in range(2_000)] + ["often"] * 129
    return [" ".join(text) for text in texts]


def count(texts: list[str], record: str = FREQ) -> dict[bytes, list[tuple[int, int]]]:
    """Term -> (document, frequency), both ascending, by splitting at white space."""
    found = defaultdict(list)
    for doc, text in enumerate(texts):
        for word, tf in Counter(text.split()).items():
            found[word.encode()].append((doc, tf if record != BASIC else 1))
    return dict(sorted(found.items()))


def build(
    path: Path, parts: list[list[str]], record: str = FREQ, dead: tuple[str, ...] = ()
) -> tantivy.Index:
    """An index with a segment for each part; documents with a word of `dead` are deleted."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("body", tokenizer_name="white", index_option=record)
    builder.add_unsigned_field("number", stored=True)
    builder.add_json_field("json", tokenizer_name="white")
    schema = builder.build()
    path.mkdir()
    index = tantivy.Index(schema, str(path))
    white = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    index.register_tokenizer("white", white)
    writer = index.writer(15_000_000, 1)
    doc = 0
    for part in parts:
        for text in part:
            writer.add_document(tantivy.Document(id=f"d{doc}", body=text))
            doc += 1
        writer.commit()
    for word in dead:
        writer.delete_documents_by_query(tantivy.Query.term_query(schema, "body", word))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index


# --- a writer of its own


def varint(value: int) -> bytes:
    """Seven bits a byte, the last byte marked."""
    out = bytearray()
    while value > 127:
        out.append(value & 127)
        value >>= 7
    return bytes([*out, value | 128])


def packed(values: list[int], width: int) -> bytes:
    """A block of 128 numbers in four lanes, as one big integer a lane."""
    lanes = [
        sum(v << r * width for r, v in enumerate(values[lane::4])).to_bytes(4 * width, "little")
        for lane in range(4)
    ]
    return b"".join(lane[4 * j : 4 * j + 4] for j in range(width) for lane in lanes)


def encode(
    postings: list[tuple[int, int]], record: str, strict: bool, widen: tuple[int, int] = (0, 0)
) -> bytes:
    """One posting list; blocks are at least `widen` bits wide."""
    one = int(strict)
    full = len(postings) // 128 * 128
    entries, blocks, before = b"", b"", -1 if strict else 0
    for k in range(0, full, 128):
        docs, tfs = zip(*postings[k : k + 128], strict=True)
        deltas = [a - b - one for a, b in zip(docs, [before, *docs], strict=False)]
        stored = [tf - one for tf in tfs]
        width = max(widen[0], *(d.bit_length() for d in deltas))
        tf_width = max(widen[1], *(t.bit_length() for t in stored))
        entries += struct.pack("<IB", docs[-1], width | 64 * one)
        blocks += packed(deltas, width)
        if record != BASIC:
            entries += bytes([tf_width])
            entries += struct.pack("<I", sum(tfs) & 0xFFFFFFFF) if record == POSITION else b""
            entries += b"\0\xff"
            blocks += packed(stored, tf_width)
        before = docs[-1]
    out = varint(len(entries)) + entries + blocks if full else b""
    before = max(before, 0)
    for doc, _ in postings[full:]:
        out += varint(doc - before)
        before = doc
    if record != BASIC:
        out += b"".join(varint(tf) for _, tf in postings[full:])
    return out


def decode(data: bytes, df: int, record: str, strict: bool) -> list[tuple[int, int]]:
    """One posting list, read bit by bit."""

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] & 128:
                return value

    def block(width: int) -> list[int]:
        nonlocal at
        part, at = data[at : at + 16 * width], at + 16 * width
        lanes = [
            int.from_bytes(
                b"".join(part[16 * j + 4 * m : 16 * j + 4 * m + 4] for j in range(width)), "little"
            )
            for m in range(4)
        ]
        return [lanes[i % 4] >> i // 4 * width & (1 << width) - 1 for i in range(128)]

    at, docs, tfs, one = 0, [], [], int(strict)
    size = {BASIC: 5, FREQ: 8, POSITION: 12}[record]
    if df >= 128:
        skip = number()
        entries = [data[at + k : at + k + size] for k in range(0, skip, size)]
        at += skip
        before = -1 if strict else 0
        for entry in entries:
            for delta in block(entry[4] & 63):
                before += delta + one
                docs.append(before)
            tfs += [v + one for v in block(entry[5])] if record != BASIC else [1] * 128
    before = docs[-1] if docs else 0
    for _ in range(df % 128):
        before += number()
        docs.append(before)
    tfs += [number() if record != BASIC else 1 for _ in range(df % 128)]
    assert at == len(data)
    return list(zip(docs, tfs, strict=True))


def _trie(terms: list[bytes]) -> tuple[bytes, int]:
    """Nodes of a trie over ascending terms, and where the root ends."""
    out = bytearray(struct.pack("<QQ", 2, 0))

    def node(begin: int, end: int, depth: int) -> int:
        final = len(terms[begin]) == depth
        at, children = begin + final, []
        while at < end:
            stop = at
            while stop < end and terms[stop][depth] == terms[at][depth]:
                stop += 1
            children.append((terms[at][depth], node(at, stop, depth + 1), at - begin))
            at = stop
        if not children:
            return 0
        n, low = len(children), len(out)
        out.extend(b"\0" * 4 if final else b"")
        for _, _, number in reversed(children):
            out.extend(struct.pack("<I", number))
        for _, address, _ in reversed(children):
            out.extend(struct.pack("<I", low - address if address else 0))
        out.extend(bytes(value for value, _, _ in reversed(children)))
        if n > 32:
            table = bytearray(b"\xff" * 256)
            for k, (value, _, _) in enumerate(children):
                table[value] = k
            out.extend(table)
        out.append(4 << 4 | 4)
        if n > 63:
            out.append(n % 256 or 1)
        out.append((n if n <= 63 else 0) | 64 * final)
        return len(out) - 1

    root = node(0, len(terms), 0)
    return bytes(out), root


def _infos(lists: list[bytes], dfs: list[int]) -> bytes:
    """Where lists lie: 32 bits for a df, 40 for an offset, 3 for positions that are not there."""
    starts = [0]
    for data in lists:
        starts.append(starts[-1] + len(data))
    metas, bits = b"", b""
    for k in range(0, len(lists), 256):
        metas += struct.pack("<QIQIQI", len(bits), dfs[k], starts[k], len(lists[k]), 0, 0)
        metas += bytes([32, 40, 3])
        group, at = 0, 0
        for t in range(k + 1, min(k + 256, len(lists)) + 1):
            group |= starts[t] - starts[k] << at
            if t < min(k + 256, len(lists)):
                group |= dfs[t] << at + 43
            at += 75
        bits += group.to_bytes(at // 8 + 1, "little")
    return struct.pack("<QQ", len(metas), len(lists)) + metas + bits


def with_footer(body: bytes, version: int, minor: int = 22) -> bytes:
    """A file of the index."""
    numbers = {"major": 0, "minor": minor, "patch": 0, "index_format_version": version}
    text = json.dumps({"version": numbers, "crc": zlib.crc32(body)}).encode()
    return body + text + struct.pack("<II", len(text), 1337)


def split_footer(data: bytes) -> tuple[bytes, dict]:
    """What stands before the footer of a file, and the footer."""
    size = struct.unpack("<I", data[-8:-4])[0]
    return data[: -8 - size], json.loads(data[-8 - size : -8])


def composite(parts: dict[int, bytes]) -> bytes:
    """Parts of fields, and their directory."""
    directory, before, at = varint(len(parts)), 0, 0
    for field, data in parts.items():
        directory += varint(at - before) + struct.pack("<I", field) + varint(0)
        before, at = at, at + len(data)
    return b"".join(parts.values()) + directory + struct.pack("<I", len(directory))


def write_index(
    path: Path,
    postings: dict[bytes, list[tuple[int, int]]],
    n_docs: int,
    record: str = FREQ,
    version: int = 7,
    widen: tuple[int, int] = (0, 0),
    lists: list[bytes] | None = None,
) -> None:
    """An index of one segment and one field "body" without field norms."""
    path.mkdir(parents=True)
    name = uuid.UUID(int=zlib.crc32(path.name.encode()))
    lists = lists or [encode(p, record, version >= 6, widen) for p in postings.values()]
    nodes, root = _trie(list(postings))
    store = _infos(lists, [len(p) for p in postings.values()])
    term = nodes + struct.pack("<QQ", len(postings), root) + store
    term += struct.pack("<QII", len(store), 1, 1)
    total = sum(tf for p in postings.values() for _, tf in p)
    parts = {"term": term, "idx": struct.pack("<Q", total) + b"".join(lists)}
    for kind, part in parts.items():
        whole = with_footer(composite({0: part}), version)
        (path / f"{name.hex}.{kind}").write_bytes(whole)
    options = {"indexing": {"record": record, "fieldnorms": False, "tokenizer": "white"}}
    field = {"name": "body", "type": "text", "options": options}
    segment = {"segment_id": str(name), "max_doc": n_docs, "deletes": None}
    (path / "meta.json").write_text(json.dumps({"segments": [segment], "schema": [field]}))
