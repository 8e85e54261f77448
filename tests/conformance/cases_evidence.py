"""Cases about evidence: what was retrieved is judged, never what the reference says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import indexes
import tables
from conformance import shapes
from conformance.registry import handles
from conformance.shapes import Case
from ragcore import score


@handles("RC-108")
def the_retrieved_units_are_scored(case: Case, folder: Path) -> None:
    sample, expected = case["input"]["sample"], case["expected"]
    texts = dict(zip(sample["reference_context_ids"], sample["reference_contexts"], strict=True))
    texts |= dict(zip(sample["retrieved_context_ids"], sample["retrieved_contexts"], strict=True))
    items = [
        {"doc_id": one, "relevance": 1, "required": True, "quote": quote}
        for one in sample["reference_context_ids"] for quote in (None, texts[one])
    ]  # fmt: skip
    run = pa.table({"case_id": ["q"], "ranked": [sample["retrieved_context_ids"]]})
    names = ["SetR", "SetP", "retrieval.coverage", "retrieval.coverage_span"]
    for at, form in enumerate((items[::2], items[1::2])):  # by id, and by the quote
        suite = tables.write_suite(
            folder / str(at), pa.table({"case_id": ["q"], "evidence": pa.array([form])})
        )
        chunks = pa.table({"chunk_id": list(texts), "text": list(texts.values())})
        tables.write_ipc(chunks, suite / "chunks.arrow")
        means = score(run, suite=suite, measures=names).means()
        assert shapes.near(means["SetR"], expected["id_recall"], case["tolerance"])
        assert shapes.near(means["SetP"], expected["id_precision"], case["tolerance"])
        assert means["retrieval.coverage"] == 0.0
        gold = pa.table({"case_id": ["q"], "ranked": [sample["reference_context_ids"]]})
        assert set(score(gold, suite=suite, measures=names[:3]).means().values()) == {1.0}


@handles("RC-136")
def titles_are_indexed_with_texts(case: Case, folder: Path) -> None:
    doc, expected = case["input"]["doc"], case["expected"]
    columns = {"title": [doc["title"]]}
    index = indexes.make(folder / "i", {doc["docid"]: doc["text"]}, columns=columns)
    asked = indexes.ask({"title": doc["title"], "text": doc["text"]})
    for rows in indexes.ranked(index, asked).values():
        assert [name for name, _ in rows] == [doc["docid"]]
    assert "fields=" + ",".join(index.manifest["lexical"]["fields"]) == expected["report"]
    assert " and ".join(index.manifest["lexical"]["fields"]) == expected["indexed_text"]
    # The paragraph is the unit, whatever article it is of.
    article, _ = doc["docid"].split("#")
    suite = tables.write_suite(folder / "s", pa.table({
        "case_id": ["q"], "evidence": [tables.evidence((doc["docid"], 1, True))],
    }))  # fmt: skip
    chunks = pa.table({
        "chunk_id": [doc["docid"], f"{article}#2"], "doc_id": [article, article],
    })  # fmt: skip
    tables.write_ipc(chunks, suite / "chunks.arrow")
    for found, recall in (([doc["docid"]], 1.0), ([f"{article}#2"], 0.0)):
        run = pa.table({"case_id": ["q"], "ranked": [found]})
        assert score(run, suite=suite, measures=["R"]).mean("R") == recall
