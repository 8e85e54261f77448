"""QASPER's own archives, read into the tables that the importer takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from ragcore.answers.qasper import FLOAT
from ragcore.public.files import as_published, frame, read_json

ARCHIVES = (
    ("qasper-train-dev-v0.3.tgz", "qasper-train-v0.3.json", "train"),
    ("qasper-train-dev-v0.3.tgz", "qasper-dev-v0.3.json", "dev"),
    ("qasper-test-and-evaluator-v0.3.tgz", "qasper-test-v0.3.json", "test"),
)
"""Archive, member and split."""

_TEXT, _WHOLE, _YES = pl.String, pl.Int64, pl.Boolean
_SCHEMAS: dict[str, dict[str, Any]] = {
    "papers": {"paper_id": _TEXT, "title": _TEXT, "split": _TEXT},
    "corpus": {
        "doc_id": _TEXT, "paper_id": _TEXT, "section_index": _WHOLE, "section": _TEXT,
        "paragraph_index": _WHOLE, "unit": _TEXT, "text": _TEXT,
    },
    "queries": {
        "query_id": _TEXT, "paper_id": _TEXT, "text": _TEXT, "type": _TEXT, "answerable": _YES,
        "lang": _TEXT, "split": _TEXT,
    },
    "answers": {
        "query_id": _TEXT, "annotation_id": _TEXT, "type": _TEXT, "text": _TEXT,
        "spans": pl.List(pl.String), "yes_no": _YES,
    },
    "evidence": {
        "query_id": _TEXT, "annotation_id": _TEXT, "kind": _TEXT, "quote": _TEXT, "doc_id": _TEXT,
        "start_codepoint": _WHOLE, "end_codepoint": _WHOLE, "match": _TEXT,
    },
}  # fmt: skip


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables of the importer, from the two official archives in `folder`.

    Blank paragraphs are no units; the others keep their numbers. Evidence is located as a whole
    unit, else inside one.

    Raises
    ------
    InputError
        If an archive is missing, or its JSON is not of this form.
    """
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _SCHEMAS}
    for archive, member, split in ARCHIVES:
        where, whole = f"{folder / archive}:{member}", read_json(folder, archive, member)
        with as_published(where, "papers by id"):
            papers = list(whole.items())
        for name, paper in papers:
            wanted = "title, abstract, full_text and qas as the collection writes them"
            with as_published(f"{where}: paper {name!r}", wanted):
                _paper(rows, name, paper, split)
    return {name: frame(rows[name], kinds, folder) for name, kinds in _SCHEMAS.items()}


def _paper(rows: dict[str, list[tuple[Any, ...]]], name: str, paper: Any, split: str) -> None:
    rows["papers"].append((name, paper["title"], split))
    units = []
    if paper["abstract"].strip():
        units.append((f"{name}:a:0", name, -1, "Abstract", 0, "abstract", paper["abstract"]))
    headings = set()
    for s, section in enumerate(paper["full_text"]):
        heading = section["section_name"] or ""
        headings.add(heading)
        units += [
            (f"{name}:{s}:{p}", name, s, heading, p, "paragraph", text)
            for p, text in enumerate(section["paragraphs"]) if text.strip()
        ]  # fmt: skip
    rows["corpus"] += units
    texts = [(unit[0], unit[-1]) for unit in units]
    for asked in paper["qas"]:
        question, kinds = asked["question_id"], []
        for annotation in asked["answers"]:
            said, by = annotation["answer"], annotation["annotation_id"]
            kind, text = _answer(said)
            kinds.append(kind)
            rows["answers"].append(
                (question, by, kind, text, said["extractive_spans"], said["yes_no"])
            )
            for field, of in (("evidence", "evidence"), ("highlighted_evidence", "highlight")):
                for quote in said[field]:
                    place = located(quote, texts, headings)
                    rows["evidence"].append((question, by, of, quote, *place))
        told = [kind for kind in kinds if kind not in ("unanswerable", "none")]
        kind = (told or kinds or ["none"])[0]
        rows["queries"].append((question, name, asked["question"], kind, bool(told), "en", split))


def _answer(said: Any) -> tuple[str, str]:
    """The kind of an answer, and its text."""
    if said["unanswerable"]:
        return "unanswerable", ""
    if said["extractive_spans"]:
        return "extractive", ", ".join(said["extractive_spans"])
    if said["free_form_answer"]:
        return "free_form", said["free_form_answer"]
    if said["yes_no"] is not None:
        return "yes_no", "Yes" if said["yes_no"] else "No"
    return "none", ""


def located(
    quote: str, units: Sequence[tuple[str, str]], headings: set[str]
) -> tuple[str | None, int | None, int | None, str]:
    """Where a quote lies in the units of its paper: unit, code points, and how it was found."""
    for name, text in units:
        if text == quote:
            return name, 0, len(text), "exact"
    if FLOAT in quote:
        return None, None, None, "table_or_figure"
    if quote in headings:
        return None, None, None, "section_heading"
    for name, text in units:
        at = text.find(quote) if quote else -1
        if at >= 0:
            return name, at, at + len(quote), "substring"
    return None, None, None, "not_found"
