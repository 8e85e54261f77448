"""Coverage by document, by block and by span side by side, and the credit that documents give."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

import reference_evidence as reference
import tables
from ragcore import schema, score
from unit.test_evidence import CHUNK, ITEM, chunk_table, random_document, random_item

NAMES = [
    "retrieval.coverage_document", "retrieval.coverage_block", "retrieval.coverage_span",
    "retrieval.overcredit",
]  # fmt: skip


def suite_of(folder, cases, chunks, toml='name = "s"\n'):
    lists = [[{**ITEM, **i} for i in items] for items in cases.values()]
    folder = tables.write_suite(folder, pa.table({
        "case_id": list(cases), "evidence": pa.array(lists, pa.list_(schema.EVIDENCE)),
    }), toml)  # fmt: skip
    tables.write_ipc(chunk_table(chunks), folder / "chunks.arrow")
    return folder


def nested(run):
    kind = pa.list_(pa.string())
    return pa.table({"case_id": list(run), "ranked": pa.array(list(run.values()), kind)})


def grains(item, chunks, ratio):
    """Chunks of the item's document, those that touch it, those that hold it; None: unknown."""
    names = {c["chunk_id"] for c in chunks}
    ours = [c for c in chunks if reference.document(c) == item["doc_id"]]
    if not ours:
        named = [c for c in chunks if c["chunk_id"] == item.get("chunk_id")]
        home = {reference.document(c) for c in named}
        pool = [c for c in chunks if reference.document(c) in home]
        ours = named
    else:
        pool = ours
    if not ours:
        own = item.get("chunk_id") or item["doc_id"]
        return {own}, None, None
    document = {c["chunk_id"] for c in pool}
    right = [
        c for c in ours
        if None in (c.get("doc_version"), item.get("doc_version"))
        or c["doc_version"] == item["doc_version"]
    ]  # fmt: skip
    block, quote = item.get("block"), reference.fold(item.get("quote") or "")
    placed = item.get("start") is not None
    place = item.get("start"), item.get("end")

    def meets(need):
        return {
            c["chunk_id"] for c in right
            if reference.stretch(c)
            and min(reference.stretch(c)[1], place[1]) - max(reference.stretch(c)[0], place[0])
            >= need
        }  # fmt: skip

    touched = held = None
    known = any(reference.stretch(c) for c in pool)
    if block is not None and any(reference.blocks(c) for c in pool):
        touched = {
            c["chunk_id"] for c in right
            if reference.blocks(c) and reference.blocks(c)[0] <= block <= reference.blocks(c)[1]
        }  # fmt: skip
    elif placed and known:
        touched = meets(1)
    if quote and any(c.get("text") is not None for c in right):
        _, covering = reference.where(item, chunks, ratio)
        held = set(covering) & names
        texts = {c["chunk_id"]: reference.fold(c.get("text") or "") for c in right}
        if not any(quote in texts.get(c, "") for c in held):
            # By place only where no block took the item first, as the labels say.
            whole = (
                placed
                and known
                and not (block is not None and any(reference.blocks(c) for c in pool))
            )
            held = meets(_need(place, ratio)) if whole else set()
    elif placed and known:
        held = meets(_need(place, ratio))
    return document, touched, held


def _need(place, ratio):
    return max(1, math.ceil(ratio * (place[1] - place[0]) - 1e-9))


@pytest.mark.parametrize("seed", range(25))
def test_grains__are_those_of_plain_python(tmp_path, seed):
    draw = random.Random(seed)
    texts, chunks = {}, []
    for i in range(3):
        texts[f"d{i}"], own = random_document(draw, f"d{i}")
        chunks += own
    cases = {
        f"q{q}": [{**random_item(draw, texts), "required": draw.random() < 0.8}
                  for _ in range(draw.randint(0, 4))]
        for q in range(10)
    }  # fmt: skip
    for items in cases.values():  # one place twice counts once, which is tested elsewhere
        places = {tuple(i.get(n) for n in ITEM if n not in ("required", "in_snapshot")): i
                  for i in items}  # fmt: skip
        items[:] = places.values()
    ratio = draw.choice([1.0, 0.4])
    names = [*(c["chunk_id"] for c in chunks), "elsewhere", "x"]
    run = {q: draw.sample(names, draw.randint(0, min(6, len(names)))) for q in cases}
    folder = suite_of(tmp_path, cases, chunks, f'name = "s"\noverlap = {ratio}\n')
    scores = score(nested(run), suite=folder, measures=NAMES)
    for case, items in cases.items():
        found = set(run[case])
        kept = [i for i in items if i["required"] and i.get("in_snapshot") is not False]
        kept = [i for i in kept if not reference.where(i, chunks, ratio)[0]]
        levels = [grains(i, chunks, ratio) for i in kept]
        spans = [(d, s) for d, _, s in levels if s is not None]
        wanted = {
            NAMES[0]: [bool(d & found) for d, _, _ in levels],
            NAMES[1]: [bool(t & found) for _, t, _ in levels if t is not None],
            NAMES[2]: [bool(s & found) for _, s in spans],
            NAMES[3]: [bool(d & found) and not s & found for d, s in spans],
        }
        for name, hits in wanted.items():
            got = scores.value(name, case)
            if not hits:
                assert got is None, (case, name, items)
            else:
                assert got == pytest.approx(sum(hits) / len(hits)), (case, name, items)


def test_overcredit__of_a_chunk_that_lacks_the_exception(tmp_path):
    """The rule is found, its exception in the next chunk is not: the document has both."""
    rule, but = "Rooms cost 750 at most.", "Directors may spend more."
    chunks = [
        {**CHUNK, "chunk_id": "a", "doc_id": "d", "text": rule, "block_first": 0},
        {**CHUNK, "chunk_id": "b", "doc_id": "d", "text": but, "block_first": 1},
    ]
    items = [
        {"doc_id": "d", "quote": rule, "block": 0, "required": True},
        {"doc_id": "d", "quote": but, "block": 1, "required": True},
    ]
    folder = suite_of(tmp_path, {"q": items}, chunks)
    scores = score(nested({"q": ["a", "z"]}), suite=folder, measures=NAMES)
    assert [scores.mean(n) for n in NAMES] == [1.0, 0.5, 0.5, 0.5]
    assert scores.runs[0].quotients()[1].ravel().tolist() == [2.0] * 4


def test_grains__that_no_label_says_are_missing(tmp_path):
    chunks = [{**CHUNK, "chunk_id": "a", "doc_id": "d"}]
    folder = suite_of(tmp_path, {"q": [{"doc_id": "d", "required": True}], "none": []}, chunks)
    scores = score(nested({"q": ["a"], "none": []}), suite=folder, measures=NAMES)
    assert [scores.state(n, "q") for n in NAMES] == ["ok", "missing", "missing", "missing"]
    assert [scores.state(n, "none") for n in NAMES] == ["na"] * 4
    bare = score({"q": {"a": 1.0}}, suite=folder, measures=NAMES)
    assert bare.state(NAMES[0], "q") == "missing"
