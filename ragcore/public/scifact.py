"""SciFact in its BEIR form: claims as questions, abstracts as chunks, verdicts as judgments.

The cases are the 300 test claims, as the published figures are of them. The annotators' rationales
are sentences by number of a split that this form does not have: labels point at abstracts.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import polars as pl
import pyarrow as pa

from ragcore import schema
from ragcore.public.checks import (
    FLAG,
    WHOLE,
    WHOLES,
    Tables,
    refuse_grades,
    refuse_unknown,
    table,
)
from ragcore.public.columns import coded, documents, evidence, in_order, states, typed
from ragcore.public.files import as_published, fields, frame, held, json_lines
from ragcore.public.imported import Imported, counted

ARCHIVE = "scifact.zip"
VERDICTS = {"SUPPORT": "yes", "CONTRADICT": "contradicts"}
"""What the annotators say of a claim by an abstract, and what that is as a verdict."""
HALVES = ("train", "test")
SCORED = "test"


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `qrels` and `claims`.

    Raises
    ------
    InputError
        If a table is not as it should be, or a row names what is not there.
    """
    corpus = table(tables, "corpus", "doc_id", "title", "text", key="doc_id")
    queries = table(
        tables, "queries", "query_id", "text", "split", "verdict", key="query_id", maybe=["split"],
        answerable=FLAG,
    )  # fmt: skip
    qrels = table(tables, "qrels", "query_id", "doc_id", relevance=WHOLE)
    claims = table(tables, "claims", "query_id", "doc_id", "label", sentences=WHOLES)
    for name, rows in (("qrels", qrels), ("claims", claims)):
        refuse_unknown(rows, name, "query_id", queries["query_id"], "queries")
        refuse_unknown(rows, name, "doc_id", corpus["doc_id"], "corpus")
    refuse_unknown(claims, "claims", "label", pl.Series(list(VERDICTS)))
    refuse_grades(qrels, "qrels")
    kept = queries.filter(pl.col("split") == SCORED)
    names = kept["query_id"]
    own = [in_order(rows, "query_id", names) for rows in (qrels, claims)]
    n = len(kept)
    cases = typed(
        {
            "case_id": names,
            "lang": ["en"] * n,
            "split": [SCORED] * n,
            "question": kept["text"],
            "type": [["claim"]] * n,
            "answerable": kept["answerable"],
            "expected_state": states(kept["answerable"]),
            "claims": [[{"text": text, "required": True}] for text in kept["text"]],
            "evidence": evidence(names, own[0].rename({"query_id": "key"}), "qrels"),
            "verdict": coded(kept["verdict"]),
        },
        schema.CASES,
    )
    notes = (
        f"{counted(len(queries) - n, 'claim')} of the training half with "
        f"{counted(len(qrels) - len(own[0]), 'judgement')} and "
        f"{counted(len(claims) - len(own[1]), 'rationale')}: no cases, as the published figures "
        f"are of the {n} test claims",
        f"{counted(len(own[1]), 'rationale')}: their sentences are numbers only, kept in the "
        "verdicts, as this form does not say where a sentence ends; labels point at abstracts",
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
    path = held(folder, ARCHIVE)
    parts = {}
    with as_published(path, "BEIR's archive of SciFact"), zipfile.ZipFile(path) as archive:
        for name in ("corpus.jsonl", "queries.jsonl", *(f"qrels/{one}.tsv" for one in HALVES)):
            parts[name] = archive.read(f"scifact/{name}").decode("utf-8")
    corpus, where = [], f"{path}:corpus.jsonl"
    for number, one in json_lines(parts["corpus.jsonl"], where):
        with as_published(where, "an abstract", number):
            corpus.append((one["_id"], one["title"], one["text"]))
    qrels = pl.concat([_judgements(parts, path, split) for split in HALVES])
    split_of = dict(qrels.select("query_id", "split").iter_rows())
    kinds = {"doc_id": pl.String, "title": pl.String, "text": pl.String}
    return {
        "corpus": frame(corpus, kinds, where),
        "qrels": qrels,
        **_asked(parts["queries.jsonl"], f"{path}:queries.jsonl", split_of),
    }


def _judgements(parts: dict[str, str], path: Path, split: str) -> pl.DataFrame:
    name, rows = f"qrels/{split}.tsv", []
    where = f"{path}:{name}"
    for number, (query, document, grade) in list(fields(parts[name], where, 3))[1:]:
        with as_published(where, "claim, abstract and grade", number):
            rows.append((query, document, int(grade), split))
    return frame(rows, {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32,
                        "split": pl.String}, where)  # fmt: skip


def _asked(text: str, where: str, split_of: dict[str, str]) -> dict[str, pl.DataFrame]:
    """Claims, and what the annotators said of each: it stands in the claim's metadata."""
    queries, claims = [], []
    for number, one in json_lines(text, where):
        with as_published(where, "a claim with its labels", number):
            name = one["_id"]
            own = [
                (name, document, label["sentences"], label["label"])
                for document, labels in one["metadata"].items() for label in labels
            ]  # fmt: skip
            verdict = "/".join(sorted({label for *_, label in own})) or "NOT_ENOUGH_INFO"
            queries.append((name, one["text"], bool(own), split_of.get(name), verdict))
            claims += own
    kinds = {"query_id": pl.String, "text": pl.String, "answerable": pl.Boolean,
             "split": pl.String, "verdict": pl.String}  # fmt: skip
    kinds_of = {"query_id": pl.String, "doc_id": pl.String, "sentences": pl.List(pl.Int32),
                "label": pl.String}  # fmt: skip
    return {"queries": frame(queries, kinds, where), "claims": frame(claims, kinds_of, where)}
