"""CLAPNQ, development half: questions of which half have their answer in one passage, half do not.

Evidence is the sentences that an annotator's answer rests on, as quotes with their places; blocks
are sentences. The pool is the passages of these questions alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from ragcore import schema
from ragcore.errors import InputError
from ragcore.public.checks import FLAG, TEXTS, WHOLES, Tables, refuse_unknown, table
from ragcore.public.columns import documents, evidence, states, typed
from ragcore.public.files import as_published, frame, json_lines, read_text
from ragcore.public.imported import Imported, counted

FILES = ("clapnq_dev_answerable.jsonl", "clapnq_dev_unanswerable.jsonl")
"""The official files: questions that their passage answers, and such that it does not."""

_KINDS: dict[str, dict[str, Any]] = {
    "corpus": {"doc_id": pl.String, "title": pl.String, "text": pl.String,
               "sentences": pl.List(pl.String)},
    "queries": {"query_id": pl.String, "text": pl.String, "answerable": pl.Boolean},
    "qrels": {"query_id": pl.String, "doc_id": pl.String},
    "answers": {"query_id": pl.String, "doc_id": pl.String, "annotator": pl.Int32,
                "text": pl.String, "sentence_index": pl.List(pl.Int32)},
}  # fmt: skip


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `qrels` and `answers`.

    Every sentence that an annotator's answer rests on is required: all of them lie in one passage,
    and annotators differ in how much of it they take.

    Raises
    ------
    InputError
        If a table is not as it should be, or a row names what is not there.
    """
    corpus = table(tables, "corpus", "doc_id", "title", "text", key="doc_id", sentences=TEXTS)
    queries = table(tables, "queries", "query_id", "text", key="query_id", answerable=FLAG)
    qrels = table(tables, "qrels", "query_id", "doc_id")
    answers = table(tables, "answers", "query_id", "doc_id", "text", sentence_index=WHOLES)
    names = queries["query_id"]
    for where, rows in (("qrels", qrels), ("answers", answers)):
        refuse_unknown(rows, where, "query_id", names, "queries")
        refuse_unknown(rows, where, "doc_id", corpus["doc_id"], "corpus")
    n = len(queries)
    items, n_gone = _items(corpus, qrels, answers)
    bare = items.filter(pl.col("quote").is_null())
    told = answers.filter(pl.col("text") != "")
    said = dict(told.group_by("query_id", maintain_order=True).agg("text").iter_rows())
    cases = typed(
        {
            "case_id": names,
            "lang": ["en"] * n,
            "question": queries["text"],
            "answerable": queries["answerable"],
            "expected_state": states(queries["answerable"]),
            "references": [said.get(name, []) for name in names],
            "evidence": evidence(names, items, "qrels"),
        },
        schema.CASES,
    )
    sizes = corpus["sentences"].list.len().to_list()
    chunks = documents(
        corpus, "en", block_first=[0] * len(corpus), block_last=[max(s - 1, 0) for s in sizes],
        start=[0] * len(corpus), end=corpus["text"].str.len_chars(),
    )  # fmt: skip
    notes = (
        f"{counted(len(answers) - len(told), 'answer')} of {len(answers):,} without a text: no "
        "reference",
        f"{counted(len(bare), 'question')} with nothing but the passage as evidence, as no answer "
        "says its sentences",
        f"{counted(n_gone, 'sentence')} not found in the passage's text: quotes without a place",
        f"{counted(int(corpus['text'].is_duplicated().sum()), 'passage')} with the text of "
        "another: only the one that a question came with is labelled",
        "gains are over sentences, several a passage: published figures of nDCG count the passage "
        "once",
    )
    return Imported(cases, chunks, {}, {}, notes)


def _items(
    corpus: pl.DataFrame, qrels: pl.DataFrame, answers: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Evidence of every question, and how many sentences have no place in their passage."""
    texts = {name: (text, own) for name, _, text, own in corpus.iter_rows()}
    places = {name: _places(*texts[name]) for name in set(answers["doc_id"])}
    judged = set(qrels.iter_rows())
    chosen: dict[tuple[str, str], set[int]] = {}
    for query, document, _, indices in answers.iter_rows():
        if (query, document) not in judged:
            raise InputError(
                "answers", f"passage {document!r} for {query!r}", "one that qrels has for it"
            )
        n = len(texts[document][1])
        wrong = [one for one in indices if not 0 <= one < n]
        if wrong:
            raise InputError(
                "answers", f"sentence {wrong[0]} of {document!r} for {query!r}",
                f"one of its {n} sentences, from 0",
            )  # fmt: skip
        chosen.setdefault((query, document), set()).update(indices)
    rows: list[dict[str, Any]] = []
    for query, document in qrels.iter_rows():
        base = {"key": query, "doc_id": document, "relevance": 1, "required": True}
        own = sorted(chosen.get((query, document), ()))
        rows += [
            base | {"block": at, "quote": texts[document][1][at]} | places[document][at]
            for at in own
        ] or [base]
    kinds = {"key": pl.String, "doc_id": pl.String, "relevance": pl.Int8,
             "required": pl.Boolean, "block": pl.Int32, "quote": pl.String, "start": pl.Int32,
             "end": pl.Int32}  # fmt: skip
    items = pl.DataFrame(rows, kinds)
    return items, items.filter(pl.col("quote").is_not_null() & pl.col("start").is_null()).height


def _places(text: str, sentences: list[str]) -> list[dict[str, int | None]]:
    """Where each sentence stands, in code points, looked for from the end of the one before."""
    ends, out = [0], []
    for sentence in sentences:
        at = text.find(sentence, ends[-1])
        ends.append(at + len(sentence) if at >= 0 else ends[-1])
        out.append({"start": at, "end": ends[-1]} if at >= 0 else {"start": None, "end": None})
    return out


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of the two files of the development half.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _KINDS}
    for name in FILES:
        path, answerable = folder / name, name == FILES[0]
        for number, one in json_lines(read_text(folder, name), path):
            with as_published(path, "a question with its passage", number):
                (passage,) = one["passages"]
                query, document = one["id"], f"p:{one['id']}"
                rows["queries"].append(
                    {"query_id": query, "text": one["input"], "answerable": answerable}
                )
                own = {key: passage[key] for key in ("title", "text", "sentences")}
                rows["corpus"].append({"doc_id": document} | own)
                if answerable:
                    rows["qrels"].append({"query_id": query, "doc_id": document})
                    rows["answers"] += [
                        {"query_id": query, "doc_id": document, "annotator": at,
                         "text": given["answer"],
                         "sentence_index": _indices(own["sentences"], given["selected_sentences"])}
                        for at, given in enumerate(one["output"])
                    ]  # fmt: skip
    return {name: frame(rows[name], kinds, folder) for name, kinds in _KINDS.items()}


def _indices(sentences: list[str], selected: list[str]) -> list[int]:
    """Numbers of the selected sentences; ValueError for one that the passage does not have."""
    return [sentences.index(one) for one in selected]
