"""QASPER as a suite whose labels point at papers, and chunks cut out of the papers in any way."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tables
from ragcore import schema

Row = dict[str, Any]


def read(folder: Path, name: str) -> list[Row]:
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def papers(folder: Path) -> dict[str, list[Row]]:
    """Units of every paper in order, each with its block and its first code point.

    The text of a paper is its units with a line break between them.
    """
    out: dict[str, list[Row]] = defaultdict(list)
    at: Counter[str] = Counter()
    for unit in read(folder, "corpus"):
        own = out[unit["paper_id"]]
        own.append({**unit, "block": len(own), "start": at[unit["paper_id"]]})
        at[unit["paper_id"]] += len(unit["text"]) + 1
    return out


def labels(folder: Path, units: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Evidence of every question: paper, quote and, where it was located, block and place."""
    place = {unit["doc_id"]: unit for own in units.values() for unit in own}
    paper_of = {q["query_id"]: q["paper_id"] for q in read(folder, "queries")}
    out: dict[str, list[Row]] = {question: [] for question in paper_of}
    for row in read(folder, "evidence"):
        item = {"doc_id": paper_of[row["query_id"]], "quote": row["quote"], "required": True}
        if row["doc_id"] is not None:
            unit = place[row["doc_id"]]
            item["block"] = unit["block"]
            item["start"] = unit["start"] + row["start_codepoint"]
            item["end"] = unit["start"] + row["end_codepoint"]
        out[row["query_id"]].append(item | {"match": row["match"], "unit": row["doc_id"]})
    return out


def write_cases(folder: Path, evidence: dict[str, list[Row]]) -> None:
    names = schema.EVIDENCE.names
    lists = [[{n: item.get(n) for n in names} for item in items] for items in evidence.values()]
    tables.write_suite(folder, pa.table({
        "case_id": list(evidence), "evidence": pa.array(lists, pa.list_(schema.EVIDENCE)),
    }), 'name = "qasper"\n')  # fmt: skip


def write_chunks(folder: Path, chunks: list[Row]) -> None:
    names = ("chunk_id", "doc_id", "block_first", "block_last", "start", "text")
    columns = {n: pa.array([c[n] for c in chunks], schema.CHUNKS.field(n).type) for n in names}
    tables.write_ipc(pa.table(columns), folder / "chunks.arrow")


# --- chunkings: pieces of a paper as (first unit, last unit, first code point, end)

Piece = tuple[int, int, int, int]


def paragraphs(units: list[Row]) -> Iterator[Piece]:
    for unit in units:
        yield unit["block"], unit["block"], unit["start"], unit["start"] + len(unit["text"])


def pairs(units: list[Row]) -> Iterator[Piece]:
    """Two paragraphs each."""
    for first, last in zip(units[::2], [*units[1::2], units[-1]], strict=False):
        yield first["block"], last["block"], first["start"], last["start"] + len(last["text"])


def windows(units: list[Row]) -> Iterator[Piece]:
    """Paragraphs cut after every third sentence, the last of them said again."""
    for unit in units:
        ends = [m.end() for m in re.finditer(r"[.?!] ", unit["text"])]
        cuts = [0, *(e for e in ends if e < len(unit["text"])), len(unit["text"])]
        for i in range(0, max(len(cuts) - 2, 1), 2):
            stop = cuts[min(i + 3, len(cuts) - 1)]
            yield unit["block"], unit["block"], unit["start"] + cuts[i], unit["start"] + stop


def cut(units: dict[str, list[Row]], how: Callable[[list[Row]], Iterator[Piece]]) -> list[Row]:
    out = []
    for paper, own in units.items():
        whole = "\n".join(unit["text"] for unit in own)
        for n, (first, last, start, end) in enumerate(how(own)):
            name = own[first]["doc_id"] if how is paragraphs else f"{paper}/{how.__name__}/{n:04}"
            out.append({
                "chunk_id": name, "doc_id": paper, "block_first": first, "block_last": last,
                "start": start, "end": end, "text": whole[start:end],
            })  # fmt: skip
    return out


def bm25(questions: list[Row], chunks: list[Row], depth: int = 20) -> dict[str, list[str]]:
    """A plain BM25 inside the paper of each question; ties by id."""
    words = {c["chunk_id"]: re.findall(r"\w+", c["text"].lower()) for c in chunks}
    frequency = Counter(word for own in words.values() for word in set(own))
    mean = sum(map(len, words.values())) / len(words)
    of_paper: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        of_paper[chunk["doc_id"]].append(chunk["chunk_id"])
    counts = {name: Counter(own) for name, own in words.items()}
    out = {}
    for question in questions:
        asked = set(re.findall(r"\w+", question["text"].lower()))
        scores = {}
        for name in of_paper[question["paper_id"]]:
            total = 0.0
            for word in sorted(asked & counts[name].keys()):
                tf, df = counts[name][word], frequency[word]
                idf = math.log(1 + (len(words) - df + 0.5) / (df + 0.5))
                length = 1.2 * (0.25 + 0.75 * len(words[name]) / mean)
                total += idf * tf * 2.2 / (tf + length)
            if total > 0:
                scores[name] = total
        ordered = sorted(scores, key=lambda n: (-scores[n], n))
        out[question["query_id"]] = ordered[:depth]
    return out


def nested(run: dict[str, list[str]]) -> pa.Table:
    return pa.table({
        "case_id": list(run), "ranked": pa.array(list(run.values()), pa.list_(pa.string())),
    })  # fmt: skip
