"""A small public collection that is none: its importer, its files, its descriptor."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.public.imported import Imported

TEXTS = {
    "d1": "Rivers carry sand to the sea.", "d2": "Dunes are moved by the wind.",
    "d3": "A lighthouse warns ships of rocks.", "d4": "Tides follow the moon.",
}  # fmt: skip
QUESTIONS = {
    "q1": ("what carries sand", "d1", "carry sand"), "q2": ("what moves dunes", "d2", "the wind"),
    "q3": ("what warns ships", "d3", "warns ships"), "q4": ("what do tides follow", "d4", "moon"),
}  # fmt: skip
DESCRIPTOR = """
name = "shore"
title = "Shore: four sentences"
kind = "public (out of distribution)"
version = "1"
licence = "none"
source = "nowhere"
subset = "all four"
cannot_show = ["anything at all"]
importer = "made_shore"
languages = ["en"]
measures = ["R@1", "nDCG@3"]
strategies = ["bm25", "dense-exact"]
by = ["type"]
candidate_k = 3
context_k = 2
"""


def vector(i: int) -> list[float]:
    return [float(i == k) for k in range(4)]


def build(tables) -> Imported:
    corpus, asked = tables["corpus"], tables["questions"]
    chunks = pa.table({
        "chunk_id": corpus["id"].to_list(), "doc_id": corpus["id"].to_list(),
        "text": corpus["text"].to_list(),
        "vector": pa.array([vector(i) for i in range(len(corpus))], pa.list_(pa.float32(), 4)),
    })  # fmt: skip
    evidence = [
        [{"doc_id": doc, "quote": quote, "relevance": 1, "required": True}]
        for doc, quote in zip(asked["doc"], asked["quote"], strict=True)
    ]
    cases = pa.table({
        "case_id": asked["id"].to_list(), "question": asked["text"].to_list(),
        "split": ["test"] * len(asked), "type": [["even" if i % 2 else "odd"] for i in range(4)],
        "evidence": pa.array(evidence, schema.CASES.field("evidence").type),
        "vector": pa.array([vector((i + 1) % 4) for i in range(4)], pa.list_(pa.float32(), 4)),
    })  # fmt: skip
    return Imported(cases, chunks, notes=("1 of 5 sentences was left out: it was a heading",))


def official(folder: Path):
    """One file, a line a sentence and a line a question."""
    lines = [line.split("\t") for line in (folder / "shore.tsv").read_text().splitlines()]
    return {
        "corpus": pl.DataFrame([line for line in lines if len(line) == 2], ["id", "text"],
                               orient="row"),
        "questions": pl.DataFrame([line for line in lines if len(line) == 4],
                                  ["id", "text", "doc", "quote"], orient="row"),
    }  # fmt: skip


def official_bytes() -> bytes:
    lines = [f"{name}\t{text}" for name, text in TEXTS.items()]
    lines += ["\t".join([name, *asked]) for name, asked in QUESTIONS.items()]
    return ("\n".join(lines) + "\n").encode()


def install(patch) -> None:
    """Make the importer known."""
    module = ModuleType("ragcore.public.made_shore")
    module.build, module.official = build, official  # pyright: ignore[reportAttributeAccessIssue]
    patch.setitem(sys.modules, "ragcore.public.made_shore", module)


def write(home: Path, data: Path, more: str = "", **texts: str) -> Path:
    """The descriptor under `home`, the files under `data`; the suite's folder."""
    folder = data / "shore"
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"id": list(TEXTS), "text": list((TEXTS | texts).values())}).write_parquet(
        folder / "corpus.parquet"
    )
    rows = [(name, *asked) for name, asked in QUESTIONS.items()]
    pl.DataFrame(rows, ["id", "text", "doc", "quote"], orient="row").write_parquet(
        folder / "questions.parquet"
    )
    said = DESCRIPTOR + more
    for name in ("corpus", "questions"):
        path = folder / f"{name}.parquet"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        said += f'\n[files."shore/{name}.parquet"]\nsha256 = "{digest}"\n'
        said += f"bytes = {path.stat().st_size}\n"
    suite = home / "shore"
    suite.mkdir(parents=True, exist_ok=True)
    (suite / "suite.toml").write_text(said)
    return suite
