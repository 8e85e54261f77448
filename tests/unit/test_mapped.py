"""Ranked measures where chunks hold several items and items lie in several chunks."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest

import reference_evidence as reference
import tables
from ragcore import schema, score
from ragcore.errors import UsageError
from ragcore.measures import engine
from ragcore.measures.mapped import MappedHits

ITEM = dict.fromkeys(schema.EVIDENCE.names)


def write_suite(folder, cases, chunks, **columns):
    """A suite of cases {id: [(grade, {chunk: ...}, more)]} whose quotes make that mapping.

    The text of a chunk names all items that it holds; an item of no chunk has a place that none
    fills.
    """
    texts = {chunk: [] for chunk in chunks}
    lists, n = [], 0
    for items in cases.values():
        own = []
        for grade, covering, *more in items:
            place = {"quote": f"item{n}."} if covering else {"start": n, "end": 10**6}
            n += 1
            for chunk in covering:
                texts[chunk].append(place["quote"])
            own.append({
                **ITEM, "doc_id": "all", **place, "relevance": grade,
                "required": grade > 0, **(more[0] if more else {}),
            })  # fmt: skip
        lists.append(own)
    table = pa.table({
        "chunk_id": list(texts), "doc_id": ["all"] * len(texts),
        "text": pa.array([" ".join(t) for t in texts.values()], pa.large_string()),
    })  # fmt: skip
    folder = tables.write_suite(folder, pa.table({
        "case_id": list(cases), "evidence": pa.array(lists, pa.list_(schema.EVIDENCE)), **columns,
    }))  # fmt: skip
    tables.write_ipc(table, folder / "chunks.arrow")
    return folder


def world(seed, n_cases=8, n_chunks=10):
    draw = random.Random(seed)
    chunks = [f"c{i}" for i in range(n_chunks)]
    cases = {
        f"q{q}": [
            (draw.choice([0, 1, 1, 2, 3]), draw.sample(chunks, draw.choice([0, 1, 1, 2, 3])))
            for _ in range(draw.randint(0, 5))
        ]
        for q in range(n_cases)
    }  # fmt: skip
    run = {q: draw.sample([*chunks, "x", "y"], draw.randint(0, n_chunks)) for q in cases}
    return cases, chunks, run


def nested(run):
    return pa.table({"case_id": list(run), "ranked": pa.array(list(run.values()),
                                                              pa.list_(pa.string()))})  # fmt: skip


NAMES = [
    ("nDCG@3", "nDCG", 3, 1), ("nDCG", "nDCG", None, 1), ("P@4", "P", 4, 1), ("R@2", "R", 2, 1),
    ("R", "R", None, 1), ("R(rel=2)@5", "R", 5, 2), ("AP", "AP", None, 1), ("AP@3", "AP", 3, 1),
    ("AP(rel=2)", "AP", None, 2), ("RR", "RR", None, 1), ("Success@2", "Success", 2, 1),
    ("R_capped@2", "R_capped", 2, 1), ("Rprec", "Rprec", None, 1), ("SetP", "SetP", None, 1),
    ("SetF", "SetF", None, 1), ("SetAP", "SetAP", None, 1), ("IPrec@0.5", "IPrec", None, 1),
    ("binG", "binG", None, 1), ("SetR", "R", None, 1),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("threads", [1, 2])
def test_measures__are_those_of_plain_python(tmp_path, monkeypatch, seed, threads):
    monkeypatch.setattr(engine, "SERIAL_ROWS", 0)
    cases, chunks, run = world(seed)
    folder = write_suite(tmp_path / "s", cases, chunks)
    scores = score(
        nested(run), suite=folder, measures=[n[0] for n in NAMES], no_relevant="na", threads=threads
    )
    for case, items in cases.items():
        for text, name, k, rel in NAMES:
            wanted = reference.measure(name, reference.Topic(run[case], items, rel), k)
            got = scores.value(text, case)
            if wanted is None:
                assert got is None, (case, text)
            else:
                assert got == pytest.approx(float(wanted), abs=1e-15), (case, text)


def test_measures__by_hand(tmp_path):
    """Two chunks hold item A (grade 2); the second also B (1); C is in no chunk that is found."""
    cases = {"q": [(2, ["a", "b"]), (1, ["b"]), (3, ["z"])]}
    folder = write_suite(tmp_path / "s", cases, ["a", "b", "z"])
    names = ["R@1", "R@2", "P@1", "P@2", "AP", "nDCG@2", "NumRel", "NumRelRet", "Judged@3",
             "R_capped@1", "retrieval.coverage", "micro(R@2)"]  # fmt: skip
    scores = score(nested({"q": ["a", "b", "x"]}), suite=folder, measures=names)
    means = scores.means()
    assert means["R@1"] == pytest.approx(1 / 3)
    assert means["R@2"] == means["micro(R@2)"] == pytest.approx(2 / 3)
    assert means["retrieval.coverage"] == means["R@2"]
    assert means["P@1"] == means["P@2"] == 1.0
    assert means["AP"] == pytest.approx((1 + 1) / 3)
    assert means["nDCG@2"] == pytest.approx((2 + 1 / math.log2(3)) / (3 + 2 / math.log2(3)))
    assert means["NumRel"] == 3
    assert means["NumRelRet"] == 2
    assert means["Judged@3"] == pytest.approx(2 / 3)
    assert means["R_capped@1"] == 1.0


def test_gain__of_a_duplicate_is_0(tmp_path):
    folder = write_suite(tmp_path / "s", {"q": [(1, ["a", "b"]), (1, ["c"])]}, ["a", "b", "c"])
    names = ["nDCG@2", "ERR@2", "RBP@2", "P@2", "R@2"]
    one = score(nested({"q": ["a", "b"]}), suite=folder, measures=names).means()
    other = score(nested({"q": ["a", "x"]}), suite=folder, measures=names).means()
    for name in ("nDCG@2", "ERR@2", "RBP@2", "R@2"):
        assert one[name] == other[name]
    assert (one["P@2"], other["P@2"]) == (1.0, 0.5)


PLAIN = [
    *(f"{n}{k}" for n in ("nDCG", "nDCG_exp", "AP", "RR", "R", "R_capped", "Success", "RBP", "ERR",
                          "Judged") for k in ("", "@1", "@3")),
    "P@1", "P@4", "Rprec", "Bpref", "IPrec@0.3", "11pt_avg", "Unjudged@3", "NumQ", "NumRet",
    "NumRel", "NumRelRet", "num_nonrel_judged_ret", "SetP", "SetR", "SetF", "SetAP", "utility",
    "binG", "AP(rel=2)", "P(rel=2)@3", "nDCG(gains={1: 5})@3", "AP(judged_only=True)",
    "nDCG(judged_only=True)@3", "R(judged_only=True)@2", "retrieval.coverage",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("depth", [None, 3])
def test_one_to_one__is_the_plain_path_bit_for_bit(tmp_path, seed, depth):
    draw = random.Random(seed)
    chunks = [f"c{i}" for i in range(12)]
    cases = {
        f"q{q}": [(draw.choice([0, 1, 2, 3, -1]), [c])
                  for c in draw.sample(chunks, draw.randint(0, 7))]
        for q in range(8)
    }  # fmt: skip
    run = {q: draw.sample([*chunks, "x"], draw.randint(0, 12)) for q in cases}
    mapped = write_suite(tmp_path / "mapped", cases, chunks)
    lists = [
        [{**ITEM, "doc_id": c, "relevance": g, "required": g > 0} for g, (c,) in items]
        for items in cases.values()
    ]
    plain = tables.write_suite(tmp_path / "plain", pa.table({
        "case_id": list(cases), "evidence": pa.array(lists, pa.list_(schema.EVIDENCE)),
    }))  # fmt: skip
    ours = score(nested(run), suite=mapped, measures=PLAIN, max_depth=depth)
    theirs = score(nested(run), suite=plain, measures=PLAIN, max_depth=depth)
    assert isinstance(ours._pending[0][3], MappedHits)
    assert not isinstance(theirs._pending[0][3], MappedHits)
    assert ours.table().drop_columns(["run"]).equals(theirs.table().drop_columns(["run"]))
    rows = [s.summary().to_pylist() for s in (ours, theirs)]
    assert [{**r, "run": ""} for r in rows[0]] == [{**r, "run": ""} for r in rows[1]]


def test_stale__is_told_and_not_scored(tmp_path):
    gone = {"quote": "seven swans", "start": None, "end": None}
    cases = {
        "part": [(1, ["a"]), (1, [], gone)], "whole": [(1, [], gone)],
        "fine": [(1, ["b"])], "needed": [(1, [], gone), (0, ["a"])],
    }  # fmt: skip
    folder = write_suite(tmp_path / "s", cases, ["a", "b"])
    run = nested({case: ["a", "b"] for case in cases})
    scores = score(run, suite=folder, measures=["R", "retrieval.coverage", "P@1"])
    assert scores.value("R", "part") == 1.0
    assert scores.state("R", "whole") == "disputed"
    assert scores.state("R", "needed") == "na"
    assert scores.state("retrieval.coverage", "needed") == "disputed"
    assert scores.value("retrieval.coverage", "fine") == 1.0
    audit = scores.audits[0]
    assert audit.counts["evidence items stale"] == 3
    assert audit.counts["evidence items in no chunk"] == 0
    (said,) = [w for w in audit.warnings if "stale" in w]
    assert said.startswith(
        "3 evidence item(s) stale, not scored: 'part' item 1 of 'all' (quote-gone)"
    )


def test_items__in_no_chunk_are_missed_and_told(tmp_path):
    cases = {"q": [(1, []), (0, ["a"])]}
    folder = write_suite(tmp_path / "s", cases, ["a"])
    scores = score(nested({"q": ["a"]}), suite=folder, measures=["R", "AP", "NumRel"])
    assert scores.means() == {"R": 0.0, "AP": 0.0, "NumRel": 1.0}
    assert scores.audits[0].counts["evidence items in no chunk"] == 1
    assert any("no chunk contains" in w for w in scores.audits[0].warnings)


def test_measures__without_meaning_are_refused(tmp_path):
    folder = write_suite(tmp_path / "s", {"q": [(1, ["a", "b"])]}, ["a", "b"])
    run = nested({"q": ["a"]})
    with pytest.raises(UsageError, match="infAP has no meaning"):
        score(run, suite=folder, measures=["infAP"])
    with pytest.raises(UsageError, match="no bound where chunks"):
        score(run, suite=folder, measures=["AP"], bounds=["holes"])


def test_run__of_flat_rows_and_of_repeated_documents(tmp_path):
    cases = {"q": [(1, ["a", "b"]), (2, ["b", "c"])], "unjudged": []}
    folder = write_suite(tmp_path / "s", cases, ["a", "b", "c"])
    flat = {"q": {"c": 1.0, "b": 1.0, "a": 2.0}}
    scores = score(flat, suite=folder, measures=["AP", "nDCG"])
    listed = score(nested({"q": ["a", "c", "b"]}), suite=folder, measures=["AP", "nDCG"])
    assert scores.means() == listed.means()
    twice = nested({"q": ["a", "a", "c"]})
    kept = score(twice, suite=folder, measures=["AP"], duplicates="first")
    assert kept.value("AP", "q") == 1.0


def test_ceilings__do_not_promise_more_than_there_is(tmp_path):
    cases, chunks, run = world(3)
    folder = write_suite(tmp_path / "s", cases, chunks)
    names = ["P@4", "R@2", "AP", "RBP", "ERR", "nDCG@3"]
    scores = score(nested(run), suite=folder, measures=names)
    tops = scores.runs[0].ceilings()
    values = scores.runs[0].values
    ok = scores.runs[0].states == schema.OK
    assert (values[ok] <= tops[ok] + 1e-12).all()
