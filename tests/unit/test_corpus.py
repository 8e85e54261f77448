"""What there was to find, and whether the query kept what must not change."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pytest

import tables
from ragcore import schema, score

ITEM = dict.fromkeys(schema.EVIDENCE.names)
CHUNK = dict.fromkeys(("chunk_id", "doc_id", "doc_version", "text", "acl", "deleted"))
NAMES = ["corpus.coverage", "corpus.qualifier_preserved"]


def suite_of(folder, cases, chunks, snapshots=None, drop=()):
    columns = {
        n: pa.array([c.get(n) for c in cases], schema.CASES.field(n).type)
        for n in ("case_id", "principals", "snapshot", "question") if n not in drop
    }  # fmt: skip
    lists = [[{**ITEM, **i} for i in c["evidence"]] for c in cases]
    columns["evidence"] = pa.array(lists, pa.list_(schema.EVIDENCE))
    folder = tables.write_suite(folder, pa.table(columns))
    table = pa.table({
        n: pa.array([{**CHUNK, **c}[n] for c in chunks], schema.CHUNKS.field(n).type)
        for n in CHUNK if n not in drop
    })  # fmt: skip
    if snapshots is not None:
        table = table.replace_schema_metadata({"snapshots": json.dumps(snapshots)})
    tables.write_ipc(table, folder / "chunks.arrow")
    return folder


def run_of(cases, **columns):
    kind = pa.list_(pa.string())
    return pa.table({"case_id": cases, "ranked": pa.array([[]] * len(cases), kind), **columns})


def outcome(scores, measure, case):
    state = scores.state(measure, case)
    return scores.value(measure, case) if state == "ok" else state


def one(folder, items, chunks, snapshots=None, drop=(), **case):
    cases = [{"case_id": "q", "evidence": items, **case}]
    folder = suite_of(folder, cases, chunks, snapshots, drop)
    scores = score(run_of(["q"]), suite=folder, measures=NAMES)
    return [outcome(scores, n, "q") for n in NAMES], scores


HERE = {"chunk_id": "a", "doc_id": "d", "doc_version": "v1", "text": "one two three"}
MORE = {"chunk_id": "b", "doc_id": "d", "doc_version": "v1", "text": "four"}
NEED = {"doc_id": "d", "required": True}


@pytest.mark.parametrize(
    ("item", "chunk", "case", "wanted"),
    [
        ({"quote": "two"}, {}, {}, [1.0, 1.0]),
        ({"quote": "three four"}, {}, {}, [1.0, 0.0]),
        ({"quote": "five"}, {}, {}, ["disputed", 0.0]),
        ({"doc_id": "z"}, {}, {}, [0.0, "missing"]),
        ({"doc_version": "v2", "quote": "two"}, {}, {}, [0.0, "missing"]),
        ({"in_snapshot": False, "quote": "two"}, {}, {}, [0.0, "na"]),
        ({"quote": "two"}, {"deleted": True}, {}, [0.0, 1.0]),
        ({"quote": "two"}, {"acl": ["x"]}, {}, [0.0, 1.0]),
        ({"quote": "two"}, {"acl": ["x"]}, {"principals": ["y", "x"]}, [1.0, 1.0]),
        ({"quote": "two"}, {"acl": []}, {"principals": ["x"]}, [0.0, 1.0]),
        ({"quote": "two"}, {}, {"snapshot": "s"}, [1.0, 1.0]),
        ({"quote": "two"}, {}, {"snapshot": "t"}, [0.0, 1.0]),
        ({"quote": "two"}, {}, {"snapshot": "nowhere"}, [1.0, 1.0]),
        ({"required": False, "quote": "two"}, {}, {}, ["na", "na"]),
        ({}, {}, {}, [1.0, "missing"]),
    ],
)
def test_corpus__by_hand(tmp_path, item, chunk, case, wanted):
    found, scores = one(
        tmp_path, [NEED | item], [HERE | chunk, MORE], {"s": ["a", "b"], "t": ["b"]}, **case
    )
    assert found == wanted
    unknown = [w for w in scores.audits[0].warnings if "snapshot 'nowhere'" in w]
    assert len(unknown) == (case.get("snapshot") == "nowhere")


def test_corpus__is_what_it_is_whatever_the_trace_did(tmp_path):
    items = [NEED | {"quote": "two"}]
    cases = [{"case_id": c, "evidence": items} for c in ("lost", "failed")]
    folder = suite_of(tmp_path, cases, [HERE])
    run = run_of(["failed"], error=["timeout"])
    scores = score(run, suite=folder, measures=NAMES)
    assert [scores.mean(n) for n in NAMES] == [1.0, 1.0]
    bare = score({"failed": {"a": 1.0}}, suite=folder, measures=NAMES)
    assert bare.mean(NAMES[0]) == 1.0


def test_corpus__without_chunks_labels_or_texts_is_missing(tmp_path):
    bare = tables.write_suite(tmp_path / "a", pa.table({
        "case_id": ["q"], "evidence": [tables.evidence(("d", 1, True))]}))  # fmt: skip
    scores = score(run_of(["q"]), suite=bare, measures=NAMES)
    assert [outcome(scores, n, "q") for n in NAMES] == ["missing"] * 2
    found, _ = one(tmp_path / "b", [{"doc_id": "d", "quote": "two"}], [HERE, MORE])
    assert found == ["missing", 1.0]  # nothing says what is required: what supports is looked for
    found, _ = one(tmp_path / "c", [NEED | {"quote": "two"}], [HERE], drop=("text",))
    assert found == [1.0, "missing"]
    empty = suite_of(tmp_path / "d", [{"case_id": "q", "evidence": [NEED]}], [])
    scores = score(run_of(["q"]), suite=empty, measures=NAMES)
    assert [outcome(scores, n, "q") for n in NAMES] == [0.0, "missing"]


@pytest.mark.parametrize("seed", range(15))
def test_coverage__is_that_of_plain_python(tmp_path, seed):
    draw = random.Random(seed)
    chunks = [
        {"chunk_id": f"c{n}", "doc_id": f"d{n // 2}", "text": f"w{n}.",
         "doc_version": draw.choice([None, "v1", "v2"]),
         "deleted": draw.choice([None, False, True]),
         "acl": draw.choice([None, None, ["a"], ["b", "c"], []])}
        for n in range(8)
    ]  # fmt: skip
    snapshots = {s: draw.sample([c["chunk_id"] for c in chunks], 5) for s in ("s", "t")}
    cases = [
        {"case_id": f"q{q}", "principals": draw.choice([None, ["a"], ["c"]]),
         "snapshot": draw.choice([None, "s", "t"]),
         "evidence": [
             {"doc_id": f"d{d}", "required": True, "doc_version": draw.choice([None, "v1", "v2"])}
             for d in draw.sample(range(6), draw.randint(0, 4))
         ]} for q in range(12)
    ]  # fmt: skip
    folder = suite_of(tmp_path, cases, chunks, snapshots)
    scores = score(run_of([c["case_id"] for c in cases]), suite=folder, measures=NAMES[:1])

    def there(item, case):
        return any(
            c["doc_id"] == item["doc_id"] and not c["deleted"]
            and (None in (c["doc_version"], item["doc_version"])
                 or c["doc_version"] == item["doc_version"])
            and (case["snapshot"] is None or c["chunk_id"] in snapshots[case["snapshot"]])
            and (c["acl"] is None or set(c["acl"]) & set(case["principals"] or ()))
            for c in chunks
        )  # fmt: skip

    for case in cases:
        hits = [there(item, case) for item in case["evidence"]]
        got = outcome(scores, NAMES[0], case["case_id"])
        assert got == (pytest.approx(sum(hits) / len(hits)) if hits else "na"), case


PAIRS = {
    "kept": ("Is order A-17 of 2024 not paid?", "unpaid? not paid order A-17 2024", 3 / 3),
    "year": ("What did it cost in 2024?", "cost in 2025", 0.0),
    "negator": ("Who is not eligible?", "who is eligible", 0.0),
    "chinese": ("2024年哪些人员不符合条件？", "2024年 不符合 条件", 1.0),
    "nothing": ("What does it cost?", "cost", "na"),
    "no query": ("What did it cost in 2024?", None, "missing"),
    "no question": (None, "cost", "missing"),
}


def test_query__keeps_what_is_protected(tmp_path):
    cases = [{"case_id": c, "question": q, "evidence": []} for c, (q, _, _) in PAIRS.items()]
    folder = suite_of(tmp_path, cases, [HERE])
    run = run_of(list(PAIRS), query=[query for _, query, _ in PAIRS.values()])
    scores = score(run, suite=folder, measures=["query.protected"])
    found = {case: outcome(scores, "query.protected", case) for case in PAIRS}
    assert found == {case: wanted for case, (_, _, wanted) in PAIRS.items()}
    bare = score(run_of(list(PAIRS)), suite=folder, measures=["query.protected"])
    assert outcome(bare, "query.protected", "kept") == "missing"
