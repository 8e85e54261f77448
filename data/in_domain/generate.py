"""Write the Arrow files of the in-domain suite: ``python data/in_domain/generate.py [--out DIR]``.

``--check FAMILY`` says what is wrong with what an author wrote, and counts the query types. Vectors
come from `vectors.parquet`, by the text that they are of; ``--embed`` makes those that it lacks.
The recorded runs and their judgments are made anew each time.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import recorded
import vectors
from authored import FAMILIES, LANGS, TYPES, Document, cases, complaints, documents
from ragcore import schema
from ragcore.suite_files import Row, write_suite
from ragcore.text import words

VERSION = "in-domain.1"
SNAPSHOT = "2025-06"
ABOUT: dict[str, Any] = {
    "name": "in_domain",
    "title": "Quillon: documentation, policies, release notes, tables and changelogs of a product",
    "version": VERSION,
    "kind": "in-domain (authored, unreviewed)",
    "licence": "Apache-2.0",
    "source": "authored for this project with a language model; the company and its product are "
    "made up",
    "labels": "authored with the questions, by quote and block; checked by rule, not by a person",
    "cannot_show": [
        "how real users ask: every question was made up, and none was reviewed by a person",
        "how well texts of other kinds, lengths or languages are found",
        "that a gain here is a gain in production: the cases are no sample of any traffic",
    ],
    "languages": list(LANGS),
    "splits": ["validation", "test"],
    "filters": ["lang", "acl"],
    "strategies": ["bm25", "dense-exact", "hybrid-exact"],
    "candidate_k": 40,
    "context_k": 5,
    "measures": ["R@5", "nDCG@10", "R@1", "RR", "Success@5", "AP", "context.coverage"],
    "by": ["type", "lang", "split"],
    "budget_unit": "words and pairs of characters",
    "generator": "python data/in_domain/generate.py",
}
_CHUNKS = pa.schema([*schema.CHUNKS, pa.field("vector", vectors.KIND)])
_CASES = pa.schema(
    [*schema.CASES, pa.field("reviewed", pa.bool_()), pa.field("vector", vectors.KIND)]
)
_METADATA = {
    b"snapshot": SNAPSHOT.encode(),
    b"chunker": b"one block a chunk",
    b"embedding": b"multilingual-e5-small, 4 bits, float16, passages as title and text",
}


def chunk_rows(document: Document) -> Iterator[Row]:
    """The blocks of a document in both languages; each language is a document of its own."""
    about = document.about
    for lang in LANGS:
        title = about["title"][lang]
        for block, (start, end, text) in enumerate(document.places(lang)):
            yield {
                "chunk_id": f"{document.id}:{lang}:{block}", "doc_id": f"{document.id}.{lang}",
                "doc_version": about["version"], "page": document.blocks[block].get("page", 1),
                "block_first": block, "block_last": block, "start": start, "end": end,
                "title": title, "text": text, "n_tokens": len(words(text)),
                "sha256": hashlib.sha256(text.encode()).digest(),
                "valid_from": about["valid_from"], "valid_until": about.get("valid_until"),
                "topic": about["topic"], "authority": about["authority"],
                "source_family": about["source_family"], "lang": lang, "form": about["form"],
                "acl": about.get("acl"), "deleted": False,
            }  # fmt: skip


def case_row(case: dict[str, Any], lang: str, known: dict[str, Document]) -> Row:
    """A case in one language."""
    evidence = [
        {
            "doc_id": f"{item['doc']}.{lang}", "doc_version": known[item["doc"]].about["version"],
            "block": item["block"], "quote": item["quote"][lang], "role": item["role"],
            "relevance": item["relevance"], "required": item["required"],
            "claim": item.get("claim"), "in_snapshot": True,
        }
        for item in case.get("evidence", [])
    ]  # fmt: skip
    claims = [
        {"text": claim[lang], "required": claim.get("required", True),
         "vital": claim.get("required", True), "high_stakes": claim.get("high_stakes", False)}
        for claim in case.get("claim", [])
    ]  # fmt: skip
    documents_of = {item["doc"] for item in case.get("evidence", []) if item["required"]}
    slices = {"documents": str(len(documents_of)), **case.get("slices", {})}
    return {
        "case_id": case["id"], "lang": lang, "split": case["split"],
        "question": case["question"][lang], "as_of": case["as_of"], "topic": case.get("topic"),
        "principals": case["principals"], "type": case["type"], "slices": sorted(slices.items()),
        "answerable": case["answerable"], "expected_state": case["expected_state"],
        "expected_value": case.get("expected_value"), "references": [case["reference"][lang]],
        "claims": claims, "evidence": evidence, "prohibited": [],
        "consequence": "high" if slices.get("risk") == "high" else "ordinary",
        "judge_required": "rule", "status": "unreviewed", "origin": "model",
        "label_version": VERSION, "snapshot": SNAPSHOT, "reviewed": False,
    }  # fmt: skip


def rows() -> tuple[list[Row], list[Row]]:
    """Chunks and cases, without vectors."""
    known = documents()
    chunks = [row for one in known.values() for row in chunk_rows(one)]
    listed = [case for family in FAMILIES for case in cases(family)]
    return chunks, [case_row(case, lang, known) for case in listed for lang in LANGS]


def keys(chunks: list[Row], asked: list[Row]) -> list[list[tuple[str, tuple[str, str]]]]:
    """What the vector of each chunk and of each question is kept under, and of."""
    passages = [(vectors.PASSAGE, f"{row['title']} {row['text']}") for row in chunks]
    questions = [(vectors.QUESTION, row["question"]) for row in asked]
    return [[(vectors.key_of(*pair), pair) for pair in pairs] for pairs in (passages, questions)]


def check(family: str) -> bool:
    """Print what is wrong with a family, and how much there is of each type."""
    said = list(complaints(family))
    for line in said:
        print(line)
    listed = cases(family)
    for kind in TYPES:
        of = Counter(one["split"] for one in listed if kind in one["type"])
        print(f"{kind:24} {of.total():3}  test {of['test']}, validation {of['validation']}")
    print(f"{len(listed)} cases, {len(said)} complaints")
    return not said


def main() -> None:
    """Parse, check or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--check", choices=FAMILIES)
    parser.add_argument("--embed", action="store_true")
    chosen = parser.parse_args()
    if chosen.check:
        sys.exit(not check(chosen.check))
    chunks, asked = rows()
    wanted = keys(chunks, asked)
    if chosen.embed:
        vectors.embed(dict(pair for pairs in wanted for pair in pairs))
    kept = vectors.read()
    for table, pairs in zip((chunks, asked), wanted, strict=True):
        for row, (key, (_, text)) in zip(table, pairs, strict=True):
            if key not in kept:
                sys.exit(f"no vector of {text[:60]!r}: say --embed")
            row["vector"] = kept[key]
    files = {"cases.arrow": (asked, _CASES, {}), "chunks.arrow": (chunks, _CHUNKS, _METADATA)}
    write_suite(chosen.out, {**files, **recorded.tables(files, ABOUT)}, ABOUT)


if __name__ == "__main__":
    main()
