"""SciFact in its BEIR form: claims as questions, abstracts as chunks, verdicts as judgments.

The cases are the 300 test claims, as the published figures are of them. The annotators' rationales
are sentences by number of a split that this form does not have: labels point at abstracts.
"""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public.imported import Imported
from ragcore.public.reading import (
    Tables,
    documents,
    evidence_of,
    held_file,
    in_order,
    json_lines,
    many,
    refuse_twice,
    refuse_unknown,
    taken,
    typed,
)

ARCHIVE = "scifact.zip"
VERDICTS = {"SUPPORT": "yes", "CONTRADICT": "contradicts"}
"""What the annotators say of a claim by an abstract, and what that is as a verdict."""
SCORED = "test"


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `qrels` and `claims`.

    Raises
    ------
    InputError
        If a table or a column is missing, a judgement names what is not there, or a label is new.
    """
    corpus = taken(tables, "corpus", "doc_id", "title", "text")
    queries = taken(tables, "queries", "query_id", "text", "answerable", "split", "verdict")
    qrels = taken(tables, "qrels", "query_id", "doc_id", "relevance")
    claims = taken(tables, "claims", "query_id", "doc_id", "sentences", "label")
    refuse_twice("queries", queries["query_id"], "claim")
    for name, rows in (("qrels", qrels), ("claims", claims)):
        refuse_unknown(name, rows["query_id"], queries["query_id"], "claim")
        refuse_unknown(name, rows["doc_id"], corpus["doc_id"], "abstract")
    refuse_unknown("claims", claims["label"], pl.Series(list(VERDICTS)), "label")
    kept = queries.filter(pl.col("split") == SCORED)
    names = kept["query_id"]
    own = [in_order(rows, "query_id", names.to_list()) for rows in (qrels, claims)]
    n = len(kept)
    cases = typed(
        {
            "case_id": names,
            "lang": ["en"] * n,
            "split": [SCORED] * n,
            "question": kept["text"],
            "type": [["claim"]] * n,
            "answerable": kept["answerable"],
            "expected_state": ["answer" if one else "abstain" for one in kept["answerable"]],
            "claims": [[{"text": text, "required": True}] for text in kept["text"]],
            "evidence": evidence_of(names.to_list(), own[0].rename({"query_id": "case_id"})),
            "verdict": kept["verdict"],
        },
        schema.CASES,
    )
    notes = (
        f"{many(len(queries) - n, 'claim')} of the training half with "
        f"{many(len(qrels) - len(own[0]), 'judgement')} and "
        f"{many(len(claims) - len(own[1]), 'rationale')}: no cases, as the published figures are "
        f"of the {n} test claims",
        f"{many(len(own[1]), 'rationale')}: their sentences are numbers only, kept in the verdicts,"
        " as this form does not say where a sentence ends; labels point at abstracts",
        "an abstract that nobody marked says nothing of a claim, by the collection's rule; no "
        "verdict is recorded for it",
    )
    return Imported(cases, documents(corpus, "en"), {}, {"annotators": _verdicts(own[1])}, notes)


def _verdicts(claims: pl.DataFrame) -> pa.Table:
    """A verdict a claim and abstract: what the abstract says of the claim."""
    sets = claims.group_by("query_id", "doc_id", "label", maintain_order=True).agg("sentences")
    n = len(sets)
    rationale = [
        "sentences " + " or ".join(",".join(map(str, one)) for one in group)
        for group in sets["sentences"].to_list()
    ]
    columns = {
        "case_id": sets["query_id"],
        "relation": ["chunk_entails_reference"] * n,
        "claim": [0] * n,
        "evidence": [[one] for one in sets["doc_id"]],
        "verdict": [VERDICTS[one] for one in sets["label"]],
        "judge": ["annotators"] * n,
        "rung": ["human"] * n,
        "rationale": rationale,
    }
    return typed(columns, schema.JUDGMENTS)


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of BEIR's archive `scifact.zip`.

    Raises
    ------
    InputError
        If the archive or a file in it is missing or broken.
    """
    path = held_file(folder, ARCHIVE)
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {
                name: archive.read(f"scifact/{name}").decode("utf-8")
                for name in ("corpus.jsonl", "queries.jsonl", "qrels/train.tsv", "qrels/test.tsv")
            }
        corpus = json_lines(parts["corpus.jsonl"], f"{path}: corpus.jsonl")
        asked = json_lines(parts["queries.jsonl"], f"{path}: queries.jsonl")
        qrels = _judgements(parts)
        return {
            "corpus": pl.DataFrame(
                {"doc_id": [one["_id"] for one in corpus],
                 "title": [one["title"] for one in corpus],
                 "text": [one["text"] for one in corpus]}
            ),
            "qrels": qrels,
            **_asked(asked, dict(qrels.select("query_id", "split").iter_rows())),
        }  # fmt: skip
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise InputError(
            path, f"not as BEIR has it: {error}", "BEIR's archive of SciFact"
        ) from None


def _judgements(parts: dict[str, str]) -> pl.DataFrame:
    rows = [
        {"query_id": query, "doc_id": document, "relevance": int(grade), "split": split}
        for split in ("train", "test")
        for query, document, grade in list(
            csv.reader(io.StringIO(parts[f"qrels/{split}.tsv"]), delimiter="\t")
        )[1:]
    ]
    return pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String,
                               "relevance": pl.Int32, "split": pl.String})  # fmt: skip


def _asked(asked: list[dict[str, Any]], split_of: dict[str, str]) -> dict[str, pl.DataFrame]:
    """Claims, and what the annotators said of each: it stands in the claim's metadata."""
    queries, claims = [], []
    for one in asked:
        said = [
            (document, label["sentences"], label["label"])
            for document, labels in one["metadata"].items() for label in labels
        ]  # fmt: skip
        kinds = {label for _, _, label in said}
        queries.append({
            "query_id": one["_id"], "text": one["text"], "answerable": bool(said),
            "split": split_of.get(one["_id"]),
            "verdict": "/".join(sorted(kinds)) or "NOT_ENOUGH_INFO",
        })  # fmt: skip
        claims += [
            {"query_id": one["_id"], "doc_id": document, "sentences": sentences, "label": label}
            for document, sentences, label in said
        ]
    kinds_of = {"query_id": pl.String, "doc_id": pl.String, "sentences": pl.List(pl.Int32),
                "label": pl.String}  # fmt: skip
    return {"queries": pl.DataFrame(queries), "claims": pl.DataFrame(claims, kinds_of)}
