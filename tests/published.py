"""Public collections as suites, runs and judgments: what the tests of real data score.

Nothing of a collection is kept here: each is read from the shared folder and brought to the
engine's own columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

import importers
import public_suites
import tables
from ragcore import schema
from ragcore.public import clapnq as _clapnq
from ragcore.public import mtrag as _mtrag
from ragcore.public import nomiracl_zh as _nomiracl
from ragcore.public import scifact as _scifact

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


def nomiracl(data: Path, folder: Path) -> tuple[Path, Mapping[str, pa.Table]]:
    """NoMIRACL in Chinese: 250 + 250 questions, the answers of eleven systems."""
    suite = _nomiracl.build(public_suites.read(data / "nomiracl_zh"))
    return public_suites.write(folder, dataclasses.replace(suite, chunks=None)), suite.runs


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


def clapnq(data: Path, folder: Path) -> tuple[Path, dict[str, pa.Table]]:
    """CLAPNQ's development half, and rankings of its 600 passages."""
    suite = _clapnq.build(public_suites.read(data / "clapnq"))
    ranked = pl.read_parquet(data / "clapnq" / "runs.parquet")
    made = public_suites.write(folder, suite)
    return made, {name: _ranking(own) for name, own in _systems(ranked)}


def _systems(ranked: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(str(k[0]), own) for k, own in ranked.group_by("system", maintain_order=True)]


def _ranking(own: pl.DataFrame) -> pa.Table:
    rows = [
        {"case_id": str(key[0]),
         "ranked": [{"id": r["doc_id"], "score": r["score"]} for r in part.iter_rows(named=True)]}
        for key, part in own.sort("rank").group_by("query_id", maintain_order=True)
    ]  # fmt: skip
    return run(rows, "ranked")


def mtrag(data: Path, folder: Path) -> tuple[Path, Mapping[str, pa.Table]]:
    """MTRAG's rated turns: 159 tasks, three systems."""
    suite = _mtrag.rated(public_suites.read(data / "mtrag"))
    return public_suites.write(folder, dataclasses.replace(suite, chunks=None)), suite.runs


def scifact(data: Path, folder: Path, depth: int = 10) -> tuple[Path, pa.Table, pa.Table]:
    """SciFact's 300 test claims: BM25's best `depth` abstracts as context, labels as verdicts.

    An abstract that the annotators did not mark says neither, by the collection's rule: `no`.
    """
    suite = _scifact.build(public_suites.read(data / "scifact"))
    given = suite.judgments["annotators"]
    names = ("case_id", "relation", "claim", "evidence", "verdict", "judge", "rung", "adjudicated")
    verdicts = [{name: row.get(name) for name in names} for row in given.to_pylist()]
    made = public_suites.write(folder, dataclasses.replace(suite, chunks=None), judged=False)
    ranked = pl.read_parquet(data / "scifact" / "runs.parquet").filter(
        (pl.col("system") == "bm25") & (pl.col("rank") <= depth)
    )
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


def qasper(data: Path, folder: Path) -> Path:
    """QASPER's questions and labels, as that collection scores them."""
    made = importers.built(data, "qasper")
    return tables.write_suite(folder, made.cases)
