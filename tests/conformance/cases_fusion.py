"""Cases about fusion: ranks, offsets, normalisation, ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore.fuse import Fused, fuse

TOPIC = "t1"


def ways(lists: Sequence[Sequence[str]], folder: Path) -> Iterator[list[Any]]:
    """Lists of ids as runs: mappings, flat rows, recorded lists, text on disk."""
    runs = [{TOPIC: [(doc, float(len(ids) - at)) for at, doc in enumerate(ids)]} for ids in lists]
    yield [shapes.run_mapping(run) for run in runs]
    yield [shapes.run_table(run) for run in runs]
    kind = pa.list_(pa.string())
    yield [pa.table({"case_id": [TOPIC], "ranked": pa.array([list(ids)], kind)}) for ids in lists]
    yield [
        shapes.write_text(folder / f"run{at}.trec", shapes.run_text(run))
        for at, run in enumerate(runs)
    ]


def ranked(fused: Fused) -> list[tuple[str, float]]:
    """The only case's documents and scores."""
    (row,) = fused.table.to_pylist()
    return [(item["id"], item["score"]) for item in row["ranked"]]


@handles("RC-091")
def absent_documents_earn_nothing(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    for runs in ways(given["lists"], folder):
        rows = ranked(fuse(runs, rrf_k=given["k"]))
        assert rows[0][0] == expected["top1"]
        assert {doc for doc, _ in rows} == set(expected["scores"])
        for doc, score in rows:
            assert shapes.near(score, expected["scores"][doc], case["tolerance"]), doc


@handles("RC-093")
def the_offset_is_reported(case: Case, folder: Path) -> None:
    given = case["input"]
    for runs in ways(given["lists"], folder):
        for k in given["k"]:
            expected = case["expected"][f"k={k}"]
            fused = fuse(runs, rrf_k=k)
            assert f"rrf-k {k}," in fused.settings.sentence(2)
            assert f'"rrf_k":{k},'.encode() in fused.table.schema.metadata[b"ragcore.manifest"]
            rows = ranked(fused)
            assert shapes.near(rows[0][1], expected["score"], case["tolerance"])
            if "top1" in expected:
                assert rows[0][0] == expected["top1"]
            else:
                assert [doc for doc, _ in rows[:2]] == expected["top1_tie"]
                assert rows[0][1] == rows[1][1]
                assert shapes.near(dict(rows)["ok"], expected["ok"], case["tolerance"])


@handles("RC-094")
def a_constant_list_is_documented(case: Case, folder: Path) -> None:
    given = case["input"]
    runs = [shapes.run_of(run) for run in given["runs"]]
    others = case["expected"]["ranx_compatible"]  # the constant list adds 0 there, and 1 here
    for form in (shapes.run_mapping, shapes.run_table, shapes.nested_table):
        for how in (given["norm"], "z-score"):
            rows = dict(ranked(fuse([form(run) for run in runs], method="combsum", normalise=how)))
            assert not any(math.isnan(score) for score in rows.values())
            constant = {doc for doc, _ in runs[0][TOPIC]}
            for doc, other in others.items():
                if how == given["norm"]:
                    added = 1.0 if doc in constant else 0.0
                    assert shapes.near(rows[doc], other + added, case["tolerance"]), doc
            assert rows["a"] > rows["c"]  # retrieved by the constant list, and last elsewhere
    assert "all equal has 1 throughout" in " ".join((fuse.__doc__ or "").split())


@handles("RC-095")
def ties_do_not_flicker(case: Case, folder: Path) -> None:
    given, expected = case["input"], case["expected"]
    for runs in ways(given["lists"], folder):
        rows = ranked(fuse(runs, rrf_k=given["k"]))
        assert [doc for doc, _ in rows] == expected["order"]
        assert rows[0][1] == rows[1][1]
        assert shapes.near(rows[0][1], expected["scores"]["a"], case["tolerance"])
    docs = ["a", "b", "c", "d"]
    lists = [docs, ["b", "c", "d", "a"], ["c", "d", "a", "b"], ["d", "a", "b", "c"]]
    seen = set()
    for order in itertools.permutations(lists):
        seen.add(
            tuple(
                ranked(
                    fuse(
                        [
                            shapes.run_mapping(
                                {TOPIC: [(doc, -float(at)) for at, doc in enumerate(ids)]}
                            )
                            for ids in order
                        ]
                    )
                )
            )
        )
    (rows,) = seen
    assert [doc for doc, _ in rows] == sorted(docs, reverse=True)
    assert len({score for _, score in rows}) == 1


def check_fused_topics(case: Case) -> None:
    """The half of RC-040 that is about fusing: topics of one run only are kept, and said."""
    runs = [shapes.run_of(raw) for raw in case["input"]["runs"]]
    every = [topic for run in runs for topic in run]
    for form in (shapes.run_mapping, shapes.run_table, shapes.nested_table):
        fused = fuse([form(run) for run in runs])
        assert fused.table["case_id"].to_pylist() == case["expected"]["fused_topics"]
        last = fused.table.to_pylist()[-1]
        scores = {item["id"]: item["score"] for item in last["ranked"]}
        assert scores.keys() == case["expected"]["t2"].keys()
        assert all(shapes.near(scores[d], s) for d, s in case["expected"]["t2"].items())
        (note,) = [note for note in fused.notes if "in 1 of 2 lists" in note]
        named = note.rpartition(": ")[2].split(", ")
        assert named == [topic for topic in dict.fromkeys(every) if every.count(topic) == 1]
