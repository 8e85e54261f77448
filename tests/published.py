"""Suites, runs and judgments by rows, and of public collections what no importer brings.

Nothing of a collection is kept here: each is read from the shared folder and brought to the
engine's own columns.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import importers
import tables
from ragcore import schema

Row = dict[str, Any]

STATED = pa.struct([("state", pa.string()), ("value", pa.string()), ("text", pa.string())])


def table_of(rows: list[Row], wanted: pa.Schema, *names: str) -> pa.Table:
    """Rows as a table of some columns of a schema."""
    return pa.Table.from_pylist(rows, schema=pa.schema([wanted.field(name) for name in names]))


def suite(folder: Path, rows: list[Row], *names: str, chunks: list[Row] | None = None) -> Path:
    """A suite folder with the columns `names` of the cases, and chunks of id and text."""
    tables.write_suite(folder, table_of(rows, schema.CASES, "case_id", *names))
    if chunks is not None:
        kept = table_of(chunks, schema.CHUNKS, *chunks[0])
        tables.write_ipc(kept, folder / "chunks.arrow")
    return folder


def run(rows: list[Row], *names: str) -> pa.Table:
    """Traces with the columns `names`."""
    return table_of(rows, schema.RUNS, "case_id", *names)


def judgments(rows: list[Row]) -> pa.Table:
    """Verdicts; what a row does not say is null."""
    return table_of(
        rows, schema.JUDGMENTS, "case_id", "relation", "claim", "evidence", "verdict", "judge",
        "rung", "adjudicated",
    )  # fmt: skip


EXPERT_SUPPORT = {"Complete": "yes", "Partial": "partial", "Incomplete": "partial"}
EXPERT_CORRECT = {
    "Definitely correct": "yes", "Probably correct": "yes", "Unsure": "unclear",
    "Likely incorrect": "no", "Definitely incorrect": "no",
}  # fmt: skip


def expertqa(data: Path, folder: Path) -> tuple[Path, pa.Table, pa.Table]:
    """ExpertQA: answers cut into claims, with the experts' labels as verdicts of domain experts.

    What the experts left open (`N/A`, nothing) is no verdict; `Missing` support means that the
    claim cites nothing, which the citations show by themselves.
    """
    answers = pl.read_parquet(data / "expertqa" / "answers.parquet")
    claims = pl.read_parquet(data / "expertqa" / "claims.parquet").sort("answer_id", "claim_index")
    by_answer = {key[0]: own for key, own in claims.group_by("answer_id", maintain_order=True)}
    cases, traces, verdicts = [], [], []
    for answer in answers.iter_rows(named=True):
        name = answer["answer_id"]
        own = by_answer[name].to_dicts() if name in by_answer else []
        cases.append({"case_id": name, "slices": [("field", answer["field"])], "lang": "en"})
        traces.append(
            {
                "case_id": name,
                "claims": [{"text": c["claim"], "sentence": i, "factual": True}
                           for i, c in enumerate(own)],
                "citations": [{"claim": i, "id": f"{name}:{number}"}
                              for i, c in enumerate(own) for number in c["cited"]],
            }
        )  # fmt: skip
        for i, claim in enumerate(own):
            base = {"case_id": name, "claim": i, "judge": "expert", "rung": "domain"}
            if word := EXPERT_CORRECT.get(claim["correctness"] or ""):
                verdicts.append(base | {"relation": "correct", "verdict": word})
            if word := EXPERT_SUPPORT.get(claim["support"] or ""):
                given = [f"{name}:{number}" for number in claim["cited"]]
                verdicts.append(
                    base | {"relation": "cites", "verdict": word, "evidence": given}
                )  # fmt: skip
    made = suite(folder, cases, "lang", "slices")
    return made, run(traces, "claims", "citations"), judgments(verdicts)


def scifact(
    world: importers.World, folder: Path, depth: int = 10
) -> tuple[Path, pa.Table, pa.Table]:
    """SciFact's 300 test claims: BM25's best `depth` abstracts as context, labels as verdicts.

    An abstract that the annotators did not mark says neither, by the collection's rule: `no`.
    """
    given = world.made.judgments["annotators"]
    names = ("case_id", "relation", "claim", "evidence", "verdict", "judge", "rung", "adjudicated")
    verdicts = [{name: row.get(name) for name in names} for row in given.to_pylist()]
    bare = dataclasses.replace(world.made, chunks=None)
    made = importers.write(folder, bare, judged=False)
    ranked = world.shared["runs"].filter((pl.col("system") == "bm25") & (pl.col("rank") <= depth))
    rows = [
        {"case_id": str(key[0]), "context": [{"id": one} for one in part["doc_id"]]}
        for key, part in ranked.sort("rank").group_by("query_id", maintain_order=True)
    ]  # fmt: skip
    marked = {(one["case_id"], one["evidence"][0]) for one in verdicts}
    verdicts += [
        {"case_id": row["case_id"], "claim": 0, "relation": "chunk_entails_reference",
         "evidence": [item["id"]], "verdict": "no", "judge": "not marked", "rung": "rule"}
        for row in rows for item in row["context"] if (row["case_id"], item["id"]) not in marked
    ]  # fmt: skip
    return made, run(rows, "context"), judgments(verdicts)
