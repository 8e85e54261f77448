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
from ragcore.public.imported import Imported
from ragcore.public.reading import (
    Tables,
    documents,
    evidence_of,
    held_file,
    json_lines,
    many,
    refuse_twice,
    refuse_unknown,
    taken,
    typed,
)

FILES = ("clapnq_dev_answerable.jsonl", "clapnq_dev_unanswerable.jsonl")
"""The official files: questions that their passage answers, and such that it does not."""


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `qrels` and `answers`.

    Every sentence that an annotator's answer rests on is required: all of them lie in one passage,
    and annotators differ in how much of it they take.

    Raises
    ------
    InputError
        If a table or a column is missing, or a row names what is not there.
    """
    corpus = taken(tables, "corpus", "doc_id", "title", "text", "sentences")
    queries = taken(tables, "queries", "query_id", "text", "answerable")
    qrels = taken(tables, "qrels", "query_id", "doc_id")
    answers = taken(tables, "answers", "query_id", "doc_id", "text", "sentence_index")
    names = queries["query_id"]
    refuse_twice("queries", names, "question")
    refuse_twice("corpus", corpus["doc_id"], "passage")
    for where, rows in (("qrels", qrels), ("answers", answers)):
        refuse_unknown(where, rows["query_id"], names, "question")
        refuse_unknown(where, rows["doc_id"], corpus["doc_id"], "passage")
    n = len(queries)
    evidence, n_gone = _evidence(corpus, qrels, answers)
    bare = evidence.filter(pl.col("quote").is_null())
    told = answers.filter(pl.col("text") != "")
    said = dict(told.group_by("query_id", maintain_order=True).agg("text").iter_rows())
    cases = typed(
        {
            "case_id": names,
            "lang": ["en"] * n,
            "question": queries["text"],
            "answerable": queries["answerable"],
            "expected_state": ["answer" if one else "abstain" for one in queries["answerable"]],
            "references": [said.get(name, []) for name in names],
            "evidence": evidence_of(names.to_list(), evidence),
        },
        schema.CASES,
    )
    sizes = corpus["sentences"].list.len().to_list()
    chunks = documents(
        corpus, "en", block_first=[0] * len(corpus), block_last=[max(s - 1, 0) for s in sizes],
        start=[0] * len(corpus), end=corpus["text"].str.len_chars(),
    )  # fmt: skip
    notes = (
        f"{many(len(answers) - len(told), 'answer')} of {len(answers):,} without a text: no "
        "reference",
        f"{many(len(bare), 'question')} with nothing but the passage as evidence, as no answer "
        "says its sentences",
        f"{many(n_gone, 'sentence')} not found in the passage's text: quotes without a place",
        f"{many(int(corpus['text'].is_duplicated().sum()), 'passage')} with the text of another: "
        "only the one that a question came with is labelled",
        "gains are over sentences, several a passage: published figures of nDCG count the passage "
        "once",
    )
    return Imported(cases, chunks, {}, {}, notes)


def _evidence(
    corpus: pl.DataFrame, qrels: pl.DataFrame, answers: pl.DataFrame
) -> tuple[pl.DataFrame, int]:
    """Evidence of every question, and how many sentences have no place in their passage."""
    texts = {name: (text, own) for name, _, text, own in corpus.iter_rows()}
    places = {name: _places(*texts[name]) for name in set(answers["doc_id"])}
    chosen: dict[tuple[str, str], set[int]] = {}
    for query, document, _, indices in answers.iter_rows():
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
        base = {"case_id": query, "doc_id": document, "relevance": 1, "required": True}
        own = sorted(chosen.get((query, document), ()))
        rows += [
            base | {"block": at, "quote": texts[document][1][at]} | places[document][at]
            for at in own
        ] or [base]
    kinds = {"case_id": pl.String, "doc_id": pl.String, "relevance": pl.Int8,
             "required": pl.Boolean, "block": pl.Int32, "quote": pl.String, "start": pl.Int32,
             "end": pl.Int32}  # fmt: skip
    frame = pl.DataFrame(rows, kinds)
    return frame, frame.filter(pl.col("quote").is_not_null() & pl.col("start").is_null()).height


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
    corpus, queries, qrels, answers = [], [], [], []
    for name in FILES:
        path, answerable = held_file(folder, name), name == FILES[0]
        for number, one in enumerate(json_lines(path.read_text("utf-8"), path), 1):
            try:
                (passage,) = one["passages"]
                query, document = one["id"], f"p:{one['id']}"
                queries.append({"query_id": query, "text": one["input"], "answerable": answerable})
                own = {key: passage[key] for key in ("title", "text", "sentences")}
                corpus.append({"doc_id": document} | own)
                if answerable:
                    qrels.append({"query_id": query, "doc_id": document})
                    answers += [
                        {"query_id": query, "doc_id": document, "annotator": at,
                         "text": given["answer"],
                         "sentence_index": _indices(own["sentences"], given["selected_sentences"])}
                        for at, given in enumerate(one["output"])
                    ]  # fmt: skip
            except (KeyError, ValueError, TypeError) as error:
                found = f"not as published: {error!r}"
                raise InputError(path, found, "a question with its passage", line=number) from None
    kinds = {"query_id": pl.String, "doc_id": pl.String, "annotator": pl.Int32, "text": pl.String,
             "sentence_index": pl.List(pl.Int32)}  # fmt: skip
    return {
        "corpus": pl.DataFrame(corpus),
        "queries": pl.DataFrame(queries),
        "qrels": pl.DataFrame(qrels, {"query_id": pl.String, "doc_id": pl.String}),
        "answers": pl.DataFrame(answers, kinds),
    }


def _indices(sentences: list[str], selected: list[str]) -> list[int]:
    """Numbers of the selected sentences; ValueError for one that the passage does not have."""
    return [sentences.index(one) for one in selected]
