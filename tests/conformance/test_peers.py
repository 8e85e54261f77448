"""Small inputs on which the field's tools part ways: ours is the documented reference on all."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragcore
import reference
from conformance import shapes
from conformance.shapes import Case
from ragcore.errors import RagcoreError

RECORDS = {record["id"]: record for record in shapes.load("peers-observed.jsonl")}

TOLERANCE = 1e-12

NAMES = {"ndcg": "nDCG", "ndcg_exp": "nDCG_exp", "map": "AP", "mrr": "RR", "recall": "R",
         "precision": "P", "hit": "Success"}  # fmt: skip

UNDEFINED = "undefined"
"""How the reference begins where an exponential gain overflows."""

TYPES: dict[str | None, Any] = {
    None: lambda value: value,
    "np.float32": np.float32,
    "np.int64": np.int64,
    "int": int,
    "float": float,
    "bool": bool,
}

EMPTY = {"empty.run": {"allow_empty": True}, "missing.disjoint": {"allow_empty": True}}
"""A run with nothing for any judged case is refused unless that is meant, as here."""


def ours(name: str) -> str:
    """Our name of a measure: ``ndcg@10`` is ``nDCG@10``."""
    base, at, cut = name.partition("@")
    return NAMES[base] + at + cut


MEASURES = [
    *("nDCG", "nDCG@2", "nDCG@10", "nDCG_exp@2", "nDCG_exp@10", "AP", "AP@2", "RR", "RR@10"),
    *("R@2", "R@10", "P@2", "P@10", "Success@1", "Success@10"),
]


def lines_of(record: Case) -> tuple[str, str]:
    """The run and the judgements as text, with the record's oddities of format."""
    form, seen = record["options"].get("fmt"), Counter[str]()
    lines = []
    for topic, doc, value in record["run"]:
        seen[topic] += 1
        fields = [topic, "Q0", doc, str(seen[topic]), str(value), "tag"]
        lines.append(("\t" if form == "tabs" else " ").join(fields[: 5 if form == "five" else 6]))
    judged = [f"{topic} 0 {doc} {grade}" for topic, doc, grade in record["qrels"]]
    if form == "tabs":
        judged = [line.replace(" ", "\t") for line in judged]
    end = {"crlf": "\r\n", "blank": "\n\n"}.get(form, "\n")
    return tuple("".join(line + end for line in part) for part in (lines, judged))


def mappings_of(record: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    options = record["options"]
    run: dict[str, Any] = {topic: {} for topic in options.get("dict_extra_empty", ())}
    qrels: dict[str, Any] = {}
    for topic, doc, value in record["run"]:
        number = float(value) if isinstance(value, str) else value
        run.setdefault(topic, {})[doc] = TYPES[options.get("score_type")](number)
    for topic, doc, grade in record["qrels"]:
        qrels.setdefault(topic, {})[doc] = TYPES[options.get("rel_type")](grade)
    return run, qrels


def scored(record: Case, api: str, folder: Path) -> Any:
    if api == "file":
        texts = lines_of(record)
        run = shapes.write_text(folder / "run.trec", texts[0])
        qrels = shapes.write_text(folder / "qrels.trec", texts[1])
    else:
        run, qrels = mappings_of(record)
    return ragcore.score(
        run,
        qrels=qrels,
        measures=MEASURES,
        rel=record["options"].get("rel_level", 1),
        **EMPTY.get(record["id"], {}),
    )


def check(record: Case, api: str, folder: Path) -> None:
    expected = record["reference"]
    if "error" in expected:
        with pytest.raises(RagcoreError):
            scored(record, api, folder)
        return
    scores = scored(record, api, folder)
    assert set(scores.table()["case_id"].to_pylist()) == set(expected["per_query"])
    for topic, values in expected["per_query"].items():
        for name, value in values.items():
            where = (ascii(topic), name)
            if isinstance(value, str):
                assert value.startswith(UNDEFINED), where
                assert scores.state(ours(name), topic) == "na", where
                assert scores.value(ours(name), topic) is None, where
            else:
                assert shapes.near(scores.value(ours(name), topic), value, TOLERANCE), where
    for name, value in expected["mean"].items():
        if isinstance(value, str):
            assert math.isnan(scores.mean(ours(name))), name
        else:
            assert shapes.near(scores.mean(ours(name)), value, TOLERANCE), name


BOTH = [(record, api) for record in RECORDS.values() for api in record["apis"]]


@pytest.mark.parametrize(("record", "api"), BOTH, ids=[f"{r['id']}-{api}" for r, api in BOTH])
def test_score__is_the_reference(record: Case, api: str, tmp_path: Path) -> None:
    check(record, api, tmp_path)


@pytest.mark.usefixtures("conformance")
def test_records__are_all_there() -> None:
    assert len(RECORDS) == 88
    assert set(MEASURES) == {
        ours(name) for record in RECORDS.values() for name in record["reference"].get("mean", {})
    }


FINE = [record for record in RECORDS.values() if "error" not in record["reference"]]


@pytest.mark.parametrize("record", FINE, ids=lambda record: record["id"])
def test_reference__is_the_reference(record: Case) -> None:
    run, qrels = mappings_of(record)
    rel = record["options"].get("rel_level", 1)
    for topic, values in record["reference"]["per_query"].items():
        ranked = reference.order(run.get(topic, {}).items())
        for name, value in values.items():
            mine = reference.score(ours(name), ranked, qrels[topic], rel)
            if isinstance(value, str):
                assert mine is None
            else:
                assert shapes.near(mine, value, TOLERANCE), name


# --- one list by hand, which the tools give five values of nDCG@5


GRADES = {"a": 3, "b": 2, "c": 1}
LIST = ["x", "a", "y", "b", "w"]
BY_HAND = {
    "nDCG@5": 0.5784,
    "nDCG_exp@5": 0.6078,
    "AP@5": 0.3333,
    "P@5": 0.4,
    "R@5": 0.6667,
    "RR@5": 0.5,
}


def test_reference__meets_the_worked_example() -> None:
    for name, value in BY_HAND.items():
        assert shapes.near(reference.score(name, LIST, GRADES), value, 5e-5), name


def test_score__meets_the_worked_example() -> None:
    run = {"q": {doc: -float(rank) for rank, doc in enumerate(LIST)}}
    scores = ragcore.score(run, qrels={"q": GRADES}, measures=list(BY_HAND))
    for name, value in BY_HAND.items():
        assert shapes.near(scores.mean(name), value, 5e-5), name


# --- how far the others are from it


def differs(theirs: dict[str, Any], expected: dict[str, Any], digits: int) -> bool:
    """Whether a tool's answer is another one, at the precision at which it was noted."""
    if "error" in theirs or "error" in expected:
        return ("error" in theirs) != ("error" in expected)
    if set(theirs["per_query"]) != set(expected["per_query"]):
        return True
    for topic, values in theirs["per_query"].items():
        for name, value in values.items():
            wanted = expected["per_query"][topic].get(name)
            if isinstance(wanted, str) or value is None or wanted is None:
                if isinstance(value, float) and math.isfinite(value) and isinstance(wanted, str):
                    return True
                continue
            if not abs(float(value) - wanted) <= 0.6 * 10.0**-digits:
                return True
    return False


PEERS = sorted({peer for record in RECORDS.values() for peer in record["observed"]})


@functools.cache
def ours_is_the_reference(name: str, folder: Path) -> bool:
    for api in RECORDS[name]["apis"]:
        check(RECORDS[name], api, folder)
    return True


@pytest.mark.parametrize("peer", PEERS)
def test_peer__differs_where_the_reference_says_so(
    peer: str, tmp_path: Path, record_property: Any
) -> None:
    seen = [record for record in RECORDS.values() if peer in record["observed"]]
    digits = 4 if re.match("te[0-9]", peer) else 6
    other = [r["id"] for r in seen if differs(r["observed"][peer], r["reference"], digits)]
    record_property("inputs", len(seen))
    record_property("differs", len(other))
    record_property("differs_on", " ".join(other))
    for name in other:
        assert ours_is_the_reference(name, tmp_path)
