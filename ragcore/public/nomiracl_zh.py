"""NoMIRACL in Chinese: is an answer among ten passages? The answers of eleven models as runs.

Half of the questions have a relevant passage among theirs, half have none. The prompt allows two
answers; both at once, and anything else, is an output that is no state: an error, not silence.
"""

from __future__ import annotations

import hashlib
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
    held_file,
    in_order,
    json_lines,
    many,
    refuse_twice,
    refuse_unknown,
    taken,
    typed,
)

FILES = {"r": "relevant-zh.jsonl", "n": "non_relevant-zh.jsonl"}
"""The official files by half, with their folders in their names: both are called alike."""
PRESENT, SILENT = "yes, answer is present", "i don't know"
"""The two answers that the prompt allows, in lower case."""
INVALID = "invalid output"
QUESTION, CONTEXTS, OUTPUT = "QUESTION:\n", "\n\nCONTEXTS:\n", "\n\nOUTPUT:"
"""What parts a prompt."""


def state_of(response: str) -> str | None:
    """What an answer says: ``answer``, ``abstain``, or None for both at once and anything else.

    Either of the allowed answers counts wherever it stands, in any case and with either apostrophe.
    """
    text = response.lower().replace("’", "'")
    silent, present = SILENT in text, PRESENT in text
    if silent == present:
        return None
    return "abstain" if silent else "answer"


def build(tables: Tables) -> Imported:
    """The suite from `corpus`, `queries`, `candidates` and `responses`.

    Raises
    ------
    InputError
        If a table or a column is missing, or a row names what is not there.
    """
    corpus = taken(tables, "corpus", "doc_id", "title", "text")
    queries = taken(tables, "queries", "query_id", "text", "answerable", "source_query_id")
    candidates = taken(tables, "candidates", "query_id", "doc_id", "position")
    responses = taken(tables, "responses", "query_id", "system", "response")
    names = queries["query_id"]
    refuse_twice("queries", names, "question")
    for where, rows in (("candidates", candidates), ("responses", responses)):
        refuse_unknown(where, rows["query_id"], names, "question")
    refuse_unknown("candidates", candidates["doc_id"], corpus["doc_id"], "passage")
    n = len(queries)
    cases = typed(
        {
            "case_id": names,
            "lang": ["zh"] * n,
            "question": queries["text"],
            "answerable": queries["answerable"],
            "expected_state": ["answer" if one else "abstain" for one in queries["answerable"]],
        },
        schema.CASES,
    )
    shown: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    for query, document, _ in candidates.sort("position").iter_rows():
        shown[query].append({"id": document})
    runs, n_invalid = {}, 0
    for (system,), own in responses.group_by("system", maintain_order=True):
        refuse_twice(f"responses of {system}", own["query_id"], "question")
        runs[str(system)], invalid = _run(shown, own)
        n_invalid += invalid
    total = n * len(runs)
    notes = (
        f"{many(n_invalid, 'answer')} of {total:,} are neither or both of the two that the prompt "
        f"allows: no state, recorded as {INVALID!r}",
        f"{many(total - len(responses), 'answer')} not recorded",
        "which of the passages are relevant is not told, only whether any is: no measure of "
        "retrieval",
    )
    return Imported(cases, documents(corpus, "zh"), runs, {}, notes)


def _run(shown: dict[str, list[dict[str, str]]], own: pl.DataFrame) -> tuple[pa.Table, int]:
    """The answers of one system in the order of the cases, and how many are invalid."""
    rows = in_order(own, "query_id", list(shown))
    said = rows["response"].to_list()
    states = [state_of(one) for one in said]
    invalid = [None if state else INVALID for state in states]
    columns = {
        "case_id": rows["query_id"],
        "context": [shown[name] for name in rows["query_id"]],
        "proposed": [
            {"state": state, "text": text} for state, text in zip(states, said, strict=True)
        ],
        "error": invalid,
    }
    return typed(columns, schema.RUNS), len(invalid) - invalid.count(None)


def official(folder: Path) -> dict[str, pl.DataFrame]:
    """The tables that `build` takes, out of the prompts and answers that the authors published.

    A passage stands in the prompt alone, as `title: text`. An id with a second text gets the
    beginning of that text's hash.

    Raises
    ------
    InputError
        If a file is missing or is not as published.
    """
    passages: dict[str, dict[str, Any]] = {}
    queries, candidates, responses = [], [], []
    for half, name in FILES.items():
        path = held_file(folder, name)
        for number, one in enumerate(json_lines(path.read_text("utf-8"), path), 1):
            try:
                question, texts = _parted(one["prompt"], len(one["docids"]))
                query = f"zh:{half}:{one['query_id']}"
                ids = [
                    _named(passages, name, text)
                    for name, text in zip(one["docids"], texts, strict=True)
                ]
                said = sorted(one["results"].items())
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                found = f"not as published: {error!r}"
                raise InputError(path, found, "a prompt with answers", line=number) from None
            queries.append(
                {"query_id": query, "text": question, "answerable": half == "r", "lang": "zh",
                 "source_query_id": one["query_id"]}
            )  # fmt: skip
            candidates += [
                {"query_id": query, "doc_id": name, "position": at}
                for at, name in enumerate(ids, 1)
            ]
            responses += [
                {"query_id": query, "system": system, "response": text} for system, text in said
            ]
    return {
        "corpus": pl.DataFrame(list(passages.values())),
        "queries": pl.DataFrame(queries),
        "candidates": pl.DataFrame(candidates).cast({"position": pl.Int32}),
        "responses": pl.DataFrame(responses),
    }


def _parted(prompt: str, n: int) -> tuple[str, list[str]]:
    """The question of a prompt, and its `n` passages."""
    start = prompt.index(QUESTION) + len(QUESTION)
    middle = prompt.index(CONTEXTS, start)
    body = prompt[middle + len(CONTEXTS) : prompt.rindex(OUTPUT)]
    texts, at = [], 0
    for number in range(1, n + 1):
        mark = f"[{number}] "
        if not body.startswith(mark, at):
            raise ValueError(f"no passage {mark.strip()}")
        at += len(mark)
        end = body.index(f"\n\n[{number + 1}] ", at) if number < n else len(body)
        texts.append(body[at:end])
        at = end + 2
    return prompt[start:middle], texts


def _named(passages: dict[str, dict[str, Any]], source: str, whole: str) -> str:
    """The id of a passage, which is entered if it is new."""
    title, _, text = whole.partition(": ")
    row = {"doc_id": f"zh:{source}", "title": title, "text": text, "lang": "zh"}
    known = passages.get(row["doc_id"])
    if known is not None and (known["title"], known["text"]) != (title, text):
        row["doc_id"] += f"@{hashlib.sha1(whole.encode(), usedforsecurity=False).hexdigest()[:6]}"
    passages.setdefault(row["doc_id"], row | {"source_doc_id": source})
    return row["doc_id"]
